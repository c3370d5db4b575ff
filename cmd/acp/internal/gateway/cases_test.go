package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// TestDamaged: a record that is damaged costs that record: all others of its session can be read, the session goes on, and whoever
// loads it learns what is left out. Other sessions are not affected.
func TestDamaged(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(1)
	s, well := c.new(t), c.new(t)
	for _, word := range []string{"alpha", "GAMMAGAMMA", "delta"} {
		say(t, s, word)
	}
	if err := r.g.session(string(s.ID())).setState(t.Context(), records.StateRunning); err != nil { // as if killed in a turn
		t.Fatal(err)
	}
	r.close()
	file := filepath.Join(r.dir, "sessions", string(s.ID())+".jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(data, []byte(`"type":"text","text":"GAMMAGAMMA"`), []byte(`"type":"text","text":"GAMMAGAMMB"`), 1)
	if bytes.Equal(data, damaged) {
		t.Fatal("nothing to damage")
	}
	if err := os.WriteFile(file, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	r.open()
	if err := r.g.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	for i := range 2 {
		c := r.connect(2)
		again := c.load(t, s.ID())
		said := strings.Join(c.seen.until(t, "notice: "+damagedTitle), "|")
		if strings.Contains(said, "user: GAMMA") || !strings.Contains(said, "agent: GAMMAGAMMA") || !strings.Contains(said, "agent: delta") {
			t.Errorf("%q", said)
		}
		say(t, again, fmt.Sprint("more ", i))
		say(t, c.load(t, well.ID()), "x")
	}
}

// TestTooLarge: a prompt that cannot be kept is refused, and harms nobody else.
func TestTooLarge(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.connect(1).new(t)
	o := r.connect(1).load(t, s.ID())
	if _, err := s.Prompt(t.Context(), acp.Text(strings.Repeat("x", 17<<20))).Wait(); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
	say(t, o, "two")
}

// TestOpenFails: of many that open a session that cannot be, none gets one.
func TestOpenFails(t *testing.T) {
	r := newRig(t, talking(nil))
	for round := range 100 {
		var opening sync.WaitGroup
		for range 8 {
			opening.Go(func() {
				if _, err := r.g.open(t.Context(), fmt.Sprint("s_", round)); err == nil {
					t.Error("a session")
				}
			})
		}
		opening.Wait()
	}
}

// TestCloseWhileStarting: an agent that is being started when its session is closed is ended.
func TestCloseWhileStarting(t *testing.T) {
	agent := talking(nil)
	opening, goOn := make(chan struct{}), make(chan struct{})
	first := true
	agent.NewSession = func(context.Context, *acp.AgentSession) error {
		if !first {
			close(opening)
			<-goOn
		}
		first = false
		return nil
	}
	r := newRig(t, agent)
	s := r.g.session(string(r.connect(2).new(t).ID()))
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	b.stop()
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := s.backend(context.Background(), 0); err == nil {
			t.Error("an agent")
		}
	})
	<-opening
	both.Go(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	for closed := false; !closed; {
		s.mu.Lock()
		closed = s.closed
		s.mu.Unlock()
	}
	close(goOn)
	both.Wait()
}

// TestRest: a client that comes while an idle session is given up finds it again.
func TestRest(t *testing.T) {
	for range 20 {
		r := newRig(t, talking(nil))
		c := r.connect(1)
		s := c.new(t)
		say(t, s, "one")
		_ = c.conn.Close()
		gs := r.g.session(string(s.ID()))
		for n := 1; n > 0; {
			gs.mu.Lock()
			n = len(gs.watchers)
			gs.mu.Unlock()
		}
		var resting sync.WaitGroup
		resting.Go(gs.rest) // what the timer does
		d := r.connect(1)
		o := d.load(t, s.ID())
		say(t, o, "two")
		resting.Wait()
		say(t, o, "three")
		r.close()
	}
}

// TestForms: a question that no client can show is answered all the same.
func TestForms(t *testing.T) {
	r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		answer, err := t.Elicit(acp.FormRequest{Message: "who?", Schema: acp.ElicitationSchema{}})
		if err != nil {
			return "", err
		}
		return acp.StopEndTurn, t.Say(fmt.Sprint(answer.Accepted, answer.Declined))
	}})
	s := r.connect(2).new(t) // has no forms
	if text, _, err := s.Prompt(t.Context(), acp.Text("x")).Text(); err != nil || text != "false false" {
		t.Error(text, err)
	}
}

// TestWelcome: what the agent says as it opens the session reaches the client that begins it.
func TestWelcome(t *testing.T) {
	agent := talking(nil)
	agent.NewSession = func(_ context.Context, s *acp.AgentSession) error { return s.Say("welcome") }
	for range 5 {
		r, _ := heldRig(t, agent, 1, nil)
		c := r.connect(1)
		c.new(t)
		c.seen.until(t, "agent: welcome")
		r.close()
	}
}

// TestKeep: what is known of a session is kept, also if two things change at once.
func TestKeep(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.g.session(string(r.connect(1).new(t).ID()))
	for i := range 100 {
		var both sync.WaitGroup
		both.Go(func() { _ = s.keep(t.Context(), func(a *attributes) { a.Starts = 1000 + i }) })
		both.Go(func() {
			_ = s.keep(t.Context(), func(a *attributes) { a.Directories = []string{fmt.Sprint(i)} })
		})
		both.Wait()
		info, err := r.log.Session(t.Context(), s.id)
		if err != nil {
			t.Fatal(err)
		}
		var a attributes
		if err := json.Unmarshal(info.Attributes, &a); err != nil || a.Starts != 1000+i || a.Directories[0] != fmt.Sprint(i) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	large := json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)
	if err := s.keep(t.Context(), func(a *attributes) { a.Commands = large }); err != nil {
		t.Error(err)
	}
}

// TestBusyOperation: a prompt that was refused because too many wait may be sent again.
func TestBusyOperation(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c := r.connect(1)
	s := c.new(t)
	s.Prompt(t.Context(), acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	gs := r.g.session(string(s.ID()))
	var filling []*turn
	for {
		f := &turn{id: "f", done: make(chan struct{})}
		if gs.enqueue(f) != nil {
			break
		}
		filling = append(filling, f)
	}
	o := r.connect(1).load(t, s.ID())
	send := func() error {
		_, err := o.PromptRequest(t.Context(), &acpv2.PromptRequest{
			Prompt: []acp.ContentBlock{acp.Text("x")}, Meta: json.RawMessage(`{"github.com/goacp/acp":{"operationId":"op-1"}}`),
		}).Wait()
		return err
	}
	busy := (*acp.Failure)(nil)
	if err := send(); !errors.As(err, &busy) || busy.Reason != "busy" {
		t.Error(err)
	}
	for _, f := range filling {
		f.cancel(errCancelled)
	}
	close(goOn)
	for _, f := range filling {
		<-f.done
	}
	if err := send(); err != nil {
		t.Error(err)
	}
}

// TestRoles: who a client is decides what it may do.
func TestRoles(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	var mu sync.Mutex
	now := Who{User: "ann", Rights: MayPrompt | MayApprove}
	r.g.cfg.Who = func(context.Context) Who {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	as := func(who Who) {
		mu.Lock()
		defer mu.Unlock()
		now = who
	}
	owner := r.connect(1, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-ctx.Done()
		return acp.CancelPermission(), ctx.Err()
	}))
	s := owner.new(t)
	say(t, s, "one")
	list := func(c *client) (n int) {
		for _, err := range c.conn.ListSessions(t.Context(), acp.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	stdio := acp.SessionConfig{Cwd: "/", MCPServers: []acp.MCPServer{&acpv2.MCPServerStdio{Name: "x", Command: "/bin/sh"}}}
	for name, who := range map[string]Who{
		"another user":    {User: "bob", Rights: MayPrompt | MayApprove},
		"nobody":          {Rights: MayPrompt | MayApprove},
		"another agent":   {User: "ann", Rights: MayPrompt, Agent: func(string) bool { return false }},
		"another session": {User: "ann", Rights: MayPrompt, Session: func(string) bool { return false }},
	} {
		as(who)
		c := r.connect(1)
		if n := list(c); n != 0 {
			t.Errorf("%s sees %d sessions", name, n)
		}
		if _, err := c.conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/"}); !acp.IsSessionNotFound(err) {
			t.Error(name, err)
		}
		_ = c.conn.Delete(t.Context(), s.ID()) // what is not there counts as deleted
	}
	as(Who{User: "ann"})
	asked := make(chan struct{}, 1)
	viewer := r.connect(1, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		asked <- struct{}{}
		return req.Reject(), nil
	}))
	v := viewer.load(t, s.ID()) // it is there still
	for what, err := range map[string]error{
		"prompt": func() error { _, err := v.Prompt(t.Context(), acp.Text("x")).Wait(); return err }(),
		"begin":  func() error { _, err := viewer.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"}); return err }(),
		"delete": viewer.conn.Delete(t.Context(), s.ID()),
	} {
		if err == nil || !strings.Contains(err.Error(), "you cannot") {
			t.Errorf("a viewer may %s: %v", what, err)
		}
	}
	as(Who{User: "ann", Rights: MayPrompt})
	prompter := r.connect(1)
	if _, err := prompter.conn.NewSession(t.Context(), stdio); err == nil || !strings.Contains(err.Error(), "you cannot") {
		t.Error("a prompter may have servers started:", err)
	}
	as(Who{User: "ann", Rights: MayPrompt | MayApprove})
	approver := r.connect(1, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return req.Allow(), nil
	}))
	o := approver.load(t, s.ID())
	if text, _, err := o.Prompt(t.Context(), acp.Text("ask")).Text(); err != nil || !strings.HasSuffix(text, "true") {
		t.Error(text, err)
	}
	if len(asked) > 0 {
		t.Error("a viewer was asked")
	}
	reply := s.Prompt(t.Context(), acp.Text("wait"))
	owner.seen.until(t, "agent: waiting")
	if err := v.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	say := viewer.conn.ListSessions // another request: the cancellation was handled before
	for range say(t.Context(), acp.ListOptions{}) {
	}
	close(goOn)
	if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error("a viewer has cancelled:", res, err)
	}
}
