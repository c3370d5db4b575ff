package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// TestOperation: a prompt that is sent again runs once.
func TestOperation(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c := r.connect(1)
	s := c.new(t)
	meta := json.RawMessage(`{"github.com/goacp/acp":{"operationId":"op-1"}}`)
	send := func(s *acp.ClientSession, text string) *acp.Reply {
		return s.PromptRequest(t.Context(), &acpv2.PromptRequest{Prompt: []acp.ContentBlock{acp.Text(text)}, Meta: meta})
	}
	send(s, "wait")
	c.seen.until(t, "agent: waiting")
	_ = c.conn.Close()
	c = r.connect(2)
	s = c.load(t, s.ID())
	again := send(s, "wait") // while it runs
	close(goOn)
	for _, reply := range []*acp.Reply{again, send(s, "wait")} { // and afterwards
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
	}
	n := 0
	for _, text := range c.seen.take() {
		if text == "agent: waiting" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it ran %d times: %q", n, c.seen.take())
	}
	said := (*jsonrpc.Error)(nil)
	if _, err := send(s, "another").Wait(); !errors.As(err, &said) || said.Code != jsonrpc.CodeInvalidParams {
		t.Error(err)
	}
}

// local is who clients without a principal are.
const local = "local"

// TestOperationFromLog: what became of a prompt with a name is in the log: whether it ran, was cancelled in its turn or before
// that, or was another prompt. Of more prompts than are remembered the oldest is forgotten.
func TestOperationFromLog(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c := r.connect(1)
	s := c.new(t)
	gs := r.g.session(string(s.ID()))
	if _, err := sendOperation(t, s, "ran", "ran").Wait(); err != nil {
		t.Fatal(err)
	}
	running := sendOperation(t, s, "wait two", "stopped")
	c.seen.until(t, "agent: waiting")
	other := r.connect(1)
	theirs := other.load(t, s.ID())
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"never"}],"_meta":{%q:{"operationId":"never"}}}`, s.ID(), metaKey)
		answered <- other.conn.Conn().Call(ctx, "session/prompt", json.RawMessage(params), nil)
	}()
	for gs.turnOf(local, "never") == nil {
		runtime.Gosched()
	}
	cancel()
	<-answered
	for gs.turnOf(local, "never") != nil {
		runtime.Gosched()
	}
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopCancelled {
		t.Error(res, err)
	}
	check := func(s *acp.ClientSession) {
		t.Helper()
		for name, want := range map[string]acp.StopReason{"ran": acp.StopEndTurn, "stopped": acp.StopCancelled, "never": acp.StopCancelled} {
			text := name
			if name == "stopped" {
				text = "wait two"
			}
			if res, err := sendOperation(t, s, text, name).Wait(); err != nil || res.StopReason != want {
				t.Errorf("%s: %v, %v", name, res, err)
			}
			said := (*jsonrpc.Error)(nil)
			if _, err := sendOperation(t, s, "other", name).Wait(); !errors.As(err, &said) || said.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s, another prompt: %v", name, err)
			}
		}
	}
	check(theirs)
	r.close()
	r.open() // and what was in memory is gone
	check(r.connect(2).load(t, s.ID()))
	var prompts []string
	if err := r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
		if rec.Kind == kindPrompt {
			p, err := records.DecodePrompt(rec.Data)
			prompts = append(prompts, p.Operation)
			return err
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ran", "stopped"}, prompts); diff != "" {
		t.Error(diff)
	}
}

// TestStateBounds: of the prompts with a name the last ones are known, as many as are allowed.
func TestStateBounds(t *testing.T) {
	var s state
	raw, err := records.RawPrompt([]acp.ContentBlock{acp.Text("x")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxOperations + 10 {
		name := fmt.Sprint(i)
		s.apply(&engine.Record{Kind: kindPrompt, Data: encode(records.Prompt{ID: name, By: local, Operation: name, Raw: raw})})
		if i%2 == 0 {
			s.apply(&engine.Record{Kind: kindEnd, Data: encode(records.End{Prompt: name, Stop: acp.StopEndTurn})})
		}
	}
	_, first := s.operation(operationKey{local, "9"})
	_, last := s.operation(operationKey{local, "10"})
	if first || !last || len(s.by) != maxOperations || len(s.order) != maxOperations || len(s.runs) != maxOperations/2 {
		t.Errorf("%v, %v, %d of %d, %d have not ended", first, last, len(s.by), len(s.order), len(s.runs))
	}
}

// sendOperation sends a prompt under a name.
func sendOperation(t *testing.T, s *acp.ClientSession, text, operation string) *acp.Reply {
	return s.PromptRequest(t.Context(), &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text(text)}, Meta: json.RawMessage(`{"github.com/goacp/acp":{"operationId":"` + operation + `"}}`),
	})
}

// TestOperationMoves: prompts that have a name survive the node that had them. One that waited runs on the next node;
// one that was sent again while it ran ends as it did.
func TestOperationMoves(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	first := a.connect(1)
	s := first.new(t)
	say(t, s, "one")
	sendOperation(t, s, "wait", "op-wait")
	first.seen.until(t, "agent: waiting")
	c, d := b.connect(1), b.connect(1)
	mine, other := c.load(t, s.ID()), d.load(t, s.ID())
	owned := a.g.session(string(s.ID()))
	queued := func(want int) {
		for n := -1; n != want; {
			owned.mu.Lock()
			n = len(owned.queue)
			owned.mu.Unlock()
		}
	}
	again := sendOperation(t, mine, "wait", "op-wait") // it runs on the other node
	waiting := sendOperation(t, other, "two", "op-two")
	queued(2)
	a.die()
	a.dead = true
	a.lapse()
	if res, err := again.Wait(); err == nil || !strings.Contains(err.Error(), "the gateway that ran it has ended") {
		t.Error("sent again:", res, err)
	}
	if res, err := waiting.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error("waited:", res, err)
	}
	n := 0
	for _, text := range d.seen.until(t, "agent: two") {
		if text == "agent: waiting" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it has run %d times", n)
	}
}

// TestOperationNamed: the message of a prompt has the name that its client has given to it, for clients of the same user, of
// both versions, as it begins and later. A name that is too long is refused.
func TestOperationNamed(t *testing.T) {
	r := newRig(t, talking(nil))
	byUser(r)
	first := r.as("ann", 2)
	s := first.new(t)
	if _, code := first.share(t, s.ID(), "bob", RoleViewer); code != 0 {
		t.Fatal(code)
	}
	type shown struct {
		c     *client
		user  string
		mu    sync.Mutex
		names []string
	}
	var all []*shown
	show := func() {
		for _, user := range []string{"ann", "bob"} {
			for version := 1; version <= 2; version++ {
				to := &shown{user: user}
				to.c = r.as(user, version, func(c *acp.Client) {
					c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
						var meta json.RawMessage
						switch m := u.Update.(type) {
						case *acp.UserMessage:
							meta = m.Meta
						case *acp.UserMessageChunk:
							meta = m.Meta
						default:
							to.c.seen.add(describe(u))
							return
						}
						var said struct{ OperationID string }
						ownmeta.Read(meta, &said)
						to.mu.Lock()
						defer to.mu.Unlock()
						to.names = append(to.names, said.OperationID)
					}
				})
				to.c.load(t, s.ID())
				all = append(all, to)
			}
		}
	}
	show()
	sendOperation(t, s, "one", "op-one")
	first.seen.until(t, "agent: one")
	say(t, s, "two")
	show()
	for _, to := range all {
		to.c.seen.until(t, "agent: two")
		want := []string{"op-one", ""}
		if to.user != "ann" {
			want[0] = ""
		}
		to.mu.Lock()
		if diff := cmp.Diff(want, to.names); diff != "" {
			t.Error(to.user, diff)
		}
		to.mu.Unlock()
	}
	_, err := s.PromptRequest(t.Context(), &acpv2.PromptRequest{
		Prompt: []acp.ContentBlock{acp.Text("three")}, Meta: ownmeta.Of(map[string]string{"operationId": strings.Repeat("x", maxOperation+1)}),
	}).Wait()
	if !errors.Is(err, jsonrpc.ErrInvalidParams) {
		t.Error(err)
	}
}

// TestOperationRepeated: a prompt that was sent again is answered when its turn begins, or at once if that has been. The
// answer names the message that the log has.
func TestOperationRepeated(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	first := r.connect(2)
	s := first.new(t)
	running := s.Prompt(t.Context(), acp.Text("wait"))
	first.seen.until(t, "agent: waiting")
	queuer := r.connect(2)
	sendOperation(t, queuer.load(t, s.ID()), "two", "op-two")
	gs := r.g.session(string(s.ID()))
	for n := 0; n != 2; {
		gs.mu.Lock()
		n = len(gs.queue)
		gs.mu.Unlock()
	}
	second := r.connect(2)
	mine := second.load(t, s.ID())
	start := func(operation string) *jsonrpc.Pending[acpv2.PromptResponse] {
		t.Helper()
		return startOperation(t, second, mine.ID(), "two", operation)
	}
	answer := func(call *jsonrpc.Pending[acpv2.PromptResponse]) acp.MessageID {
		t.Helper()
		res, err := call.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if !hasPrompt(t, r, s.ID(), res.MessageID) {
			t.Errorf("the log has no message %s", res.MessageID)
		}
		return res.MessageID
	}
	waiting := start("op-two")
	close(goOn)
	two := answer(waiting)
	if got := prompts(t, r, s.ID()); got != "wait|two" {
		t.Errorf("when it was answered the log had %q", got)
	}
	if _, err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	second.seen.until(t, "agent: two")
	if id := answer(start("op-two")); id != two {
		t.Errorf("the prompt that has ended is %s, not %s", id, two)
	}
	if id := answer(start("op-three")); id == two {
		t.Errorf("another one is %s, too", id)
	}
	if got := prompts(t, r, s.ID()); got != "wait|two|two" {
		t.Errorf("the log has %q", got)
	}
}

// TestOperationElsewhere: a prompt that has a name and is sent again at another node than that of its session, while it runs
// and when it has ended, ends as the first try, and holds up nothing that comes after it.
func TestOperationElsewhere(t *testing.T) {
	for version := 1; version <= 2; version++ {
		dir, goOn := t.TempDir(), make(chan struct{})
		a := newMember(t, dir, "a", talking(goOn))
		b := newMember(t, dir, "b", talking(goOn))
		first := a.connect(version)
		s := first.new(t)
		sendOperation(t, s, "wait", "op-1")
		first.seen.until(t, "agent: waiting")
		elsewhere := b.connect(version).load(t, s.ID())
		again := sendOperation(t, elsewhere, "wait", "op-1")
		close(goOn)
		for _, reply := range []*acp.Reply{again, sendOperation(t, elsewhere, "wait", "op-1"), elsewhere.Prompt(t.Context(), acp.Text("next"))} {
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Error(res, err)
			}
		}
		if got := prompts(t, a.rig, s.ID()); got != "wait|next" {
			t.Errorf("%q have run", got)
		}
	}
}
