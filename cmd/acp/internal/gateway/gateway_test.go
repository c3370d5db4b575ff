package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// A rig is a gateway, its log and an agent.
type rig struct {
	t     *testing.T
	dir   string
	agent *acp.Agent
	max   int                                 // version of the agent
	wrap  func(jsonrpc.Stream) jsonrpc.Stream // the agent's end of the connection, unless it is nil
	quiet *slog.Logger
	log   *engine.Engine
	lease *engine.Lease
	g     *Gateway

	starts atomic.Int64
	mu     sync.Mutex
	last   jsonrpc.Stream // to the agent that was started last
}

func newRig(t *testing.T, agent *acp.Agent) *rig {
	r := &rig{t: t, dir: t.TempDir(), agent: agent, quiet: logtest.New(t)}
	r.open()
	t.Cleanup(r.close)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.log, err = sqlite.Open(r.t.Context(), r.dir, "test", engine.Options{Says: Says}); err != nil {
		r.t.Fatal(err)
	}
	if r.lease, err = r.log.Lease(r.t.Context(), fmt.Sprintf("node-%d", r.starts.Load())); err != nil {
		r.t.Fatal(err)
	}
	r.g = New(Config{Log: r.log, Lease: r.lease, Agent: "test", Agents: []string{"test", "other"}, Logger: r.quiet, Start: r.start})
}

func (r *rig) close() {
	if r.g == nil {
		return
	}
	if err := r.g.Close(); err != nil {
		r.t.Error(err)
	}
	if err := r.lease.Release(context.Background()); err != nil {
		r.t.Error(err)
	}
	if err := r.log.Close(); err != nil {
		r.t.Error(err)
	}
	r.g = nil
}

// start starts the agent.
func (r *rig) start(context.Context, string, string) (acp.Transport, error) {
	r.starts.Add(1)
	theirs, ours := jsonrpc.Pipe()
	agent := *r.agent
	agent.MaxVersion, agent.Logger = r.max, r.quiet
	if _, err := agent.Connect(context.Background(), acp.Over(r.wrapped(theirs))); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ours
	return acp.Over(ours), nil
}

// A client is a client of the gateway, and what it has seen.
type client struct {
	conn *acp.ClientConn
	seen *seen
}

// seen is what a client was sent, as text.
type seen struct {
	mu      sync.Mutex
	text    []string
	changed chan struct{}
}

func (s *seen) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, text)
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.text)
}

// until waits until a text has come, and returns everything up to it.
func (s *seen) until(t *testing.T, text string) []string {
	t.Helper()
	for {
		s.mu.Lock()
		if i := slices.Index(s.text, text); i >= 0 {
			defer s.mu.Unlock()
			return slices.Clone(s.text[:i+1])
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("%q did not come, but %q", text, s.take())
		}
	}
}

// describe writes an update as text; "" is nothing of interest.
func describe(u *acp.Update) string {
	switch v := skills.PlainUpdate(u.Update).(type) {
	case *acp.UserMessage:
		if content, ok := v.Content.Get(); ok && !u.Synthetic {
			return "user: " + content[0].(*acp.TextContent).Text
		}
	case *acp.UserMessageChunk:
		return "user: " + v.Content.(*acp.TextContent).Text
	case *acp.AgentMessageChunk:
		return "agent: " + v.Content.(*acp.TextContent).Text
	case *acp.IdleStateUpdate:
		if !u.Synthetic && v.StopReason != "" {
			return "end: " + string(v.StopReason)
		}
	case *acp.Notice:
		return "notice: " + v.Title
	case *acp.SessionInfoUpdate:
		if title, ok := v.Title.Get(); ok {
			return "title: " + title
		}
	}
	return ""
}

// connect connects a client of a version.
func (r *rig) connect(version int, change ...func(*acp.Client)) *client {
	r.t.Helper()
	return r.connectIn(context.Background(), version, change...)
}

// connectIn is connect with the context of the connection.
func (r *rig) connectIn(ctx context.Context, version int, change ...func(*acp.Client)) *client {
	r.t.Helper()
	a, b := acp.Pipe()
	var served sync.WaitGroup
	served.Go(func() { _ = r.g.Serve(ctx, a) })
	c := &client{seen: new(seen)}
	cfg := &acp.Client{MinVersion: version, MaxVersion: version, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		if text := describe(u); text != "" {
			c.seen.add(text)
		}
	}}
	for _, f := range change {
		f(cfg)
	}
	var err error
	if c.conn, err = cfg.Connect(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.conn.Close()
		served.Wait()
	})
	return c
}

func (c *client) new(t *testing.T) *acp.ClientSession {
	t.Helper()
	s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *client) load(t *testing.T, id acp.SessionID) *acp.ClientSession {
	t.Helper()
	s, err := c.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: "/project"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func say(t *testing.T, s *acp.ClientSession, text string) *acp.Result {
	t.Helper()
	res, err := s.Prompt(t.Context(), acp.Text(text)).Wait()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// talking is an agent that repeats the prompt, word by word. "wait" waits until the turn is cancelled
// or goOn is closed, and "ask" asks for a permission.
func talking(goOn <-chan struct{}) *acp.Agent {
	return &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		blocks := t.Blocks() // what a transcript says comes before
		for word := range strings.FieldsSeq(blocks[len(blocks)-1].(*acp.TextContent).Text) {
			switch word {
			case "wait":
				_ = t.Say("waiting")
				select {
				case <-goOn:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			case "ask":
				answer, err := t.Ask(acp.Permission{Title: "Really?"})
				if err != nil {
					return "", err
				}
				word = fmt.Sprint(answer.Option.OptionID, answer.Allowed)
			}
			if err := t.Say(word); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}}
}

// versions runs a test for both versions of the client and of the agent.
func versions(t *testing.T, f func(t *testing.T, client, agent int)) {
	for c := 1; c <= 2; c++ {
		for a := 1; a <= 2; a++ {
			t.Run(fmt.Sprintf("client %d agent %d", c, a), func(t *testing.T) { f(t, c, a) })
		}
	}
}

// TestOneClient: through the gateway a client sees what the agent says, before the end of the turn.
func TestOneClient(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		for range 3 {
			text, res, err := s.Prompt(t.Context(), acp.Text("one two three")).Text()
			if err != nil || text != "onetwothree" || res.StopReason != acp.StopEndTurn {
				t.Error(text, res, err)
			}
		}
		if n := r.starts.Load(); n != 1 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestManyClients: everybody who watches a session sees the prompts of the others and what the agent
// says, also those who come later.
func TestManyClients(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		first := r.connect(version)
		s := first.new(t)
		say(t, s, "one two")
		second := r.connect(3 - version)
		theirs := second.load(t, s.ID())
		history := []string{"user: one two", "agent: one", "agent: two"}
		if version == 1 { // the second one gets the states
			history = append(history, "end: end_turn")
		}
		if got := second.seen.take(); !cmp.Equal(got, history) {
			t.Errorf("history %q", got)
		}
		say(t, s, "three four")
		say(t, theirs, "five")
		want := append(slices.Clone(history), "user: three four", "agent: three", "agent: four")
		if version == 1 {
			want = append(want, "end: end_turn")
		}
		if got := second.seen.until(t, "agent: five"); !cmp.Equal(got[:len(want)], want) {
			t.Errorf("second %q", got)
		}
		if got := first.seen.until(t, "agent: five"); !slices.Contains(got, "user: five") {
			t.Errorf("first %q", got)
		}
	})
}

// TestQueue: prompts of several clients run one after the other, and each client gets the answer to its
// own.
func TestQueue(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	a, b, c := r.connect(1), r.connect(2), r.connect(1)
	first := a.new(t)
	second, third := b.load(t, first.ID()), c.load(t, first.ID())
	one := first.Prompt(t.Context(), acp.Text("wait one"))
	b.seen.until(t, "agent: waiting")
	two := second.Prompt(t.Context(), acp.Text("two"))
	ctx, cancel := context.WithCancel(t.Context())
	three := third.Prompt(ctx, acp.Text("three"))
	s := r.g.session(string(first.ID()))
	for n := 0; n < 3; {
		s.mu.Lock()
		n = len(s.queue)
		s.mu.Unlock()
	}
	cancel() // which cancels what is queued, and not what runs
	if _, err := three.Wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	for _, reply := range []*acp.Reply{one, two} {
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
	}
	got := a.seen.until(t, "agent: two")
	if i := slices.Index(got, "agent: one"); i < 0 || slices.Contains(got, "user: three") {
		t.Errorf("%q", got)
	}
}

// TestWithdraw: a client takes back one prompt, by the ID of its request: it never runs. What the client cancels afterwards is
// what runs, though that is somebody else's.
func TestWithdraw(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c, other := r.connect(version), r.connect(2)
		s := c.new(t)
		theirs := other.load(t, s.ID())
		one := theirs.Prompt(t.Context(), acp.Text("wait one"))
		other.seen.until(t, "agent: waiting")
		ctx, cancel := context.WithCancel(t.Context())
		withdrawn := make(chan error, 1)
		go func() {
			params := json.RawMessage(`{"sessionId":"` + string(s.ID()) + `","prompt":[{"type":"text","text":"two"}]}`)
			withdrawn <- c.conn.Conn().Call(ctx, "session/prompt", params, nil)
		}()
		queued(r.g.session(string(s.ID())), 2)
		cancel()
		if err := <-withdrawn; err == nil {
			t.Error("it has an answer")
		}
		for n := 0; n != 1; time.Sleep(time.Millisecond) { // until the gateway has taken it out
			r.g.present.mu.Lock()
			watchers := slices.Collect(maps.Keys(r.g.present.in[string(s.ID())]))
			r.g.present.mu.Unlock()
			n = 0
			for _, w := range watchers {
				w.mu.Lock()
				n += len(w.own)
				w.mu.Unlock()
			}
		}
		if err := s.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if res, err := one.Wait(); err != nil || res.StopReason != acp.StopCancelled {
			t.Error(res, err)
		}
		if res, err := theirs.Prompt(t.Context(), acp.Text("three")).Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
		if got := other.seen.until(t, "agent: three"); slices.Contains(got, "user: two") {
			t.Errorf("%q", got)
		}
	})
}

// TestCancel: a client may cancel its own turn, and the owner that of another client.
func TestCancel(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c, other := r.connect(version), r.connect(3-version)
		s := c.new(t)
		theirs := other.load(t, s.ID())
		for _, by := range []*acp.ClientSession{s, theirs} {
			reply := s.Prompt(t.Context(), acp.Text("wait"))
			for u := range reply.Updates() {
				if u.Text() == "waiting" {
					break
				}
			}
			if err := by.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopCancelled {
				t.Error(res, err)
			}
		}
	})
}

// TestClientLeaves: a client that leaves ends nothing, and finds everything when it is back.
func TestClientLeaves(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		goOn := make(chan struct{})
		r := newRig(t, talking(goOn))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		reply := s.Prompt(t.Context(), acp.Text("one wait two"))
		c.seen.until(t, "agent: waiting")
		_ = c.conn.Close()
		if _, err := reply.Wait(); err == nil {
			t.Error("the prompt has an answer")
		}
		back := r.connect(version)
		back.load(t, s.ID())
		close(goOn)
		want := []string{"user: one wait two", "agent: one", "agent: waiting", "agent: wait", "agent: two"}
		if got := back.seen.until(t, "agent: two"); !cmp.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// asking is a client whose permissions are decided by decide.
func asking(decide func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error)) func(*acp.Client) {
	return func(c *acp.Client) { c.RequestPermission = decide }
}

// TestPermission: everybody is asked, one answer counts, and the others' questions are withdrawn. Who
// comes while a question is open is asked, too.
func TestPermission(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		asked, withdrawn := make(chan *acp.PermissionRequest, 3), make(chan struct{}, 3)
		wait := asking(func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			asked <- req
			<-ctx.Done()
			withdrawn <- struct{}{}
			return acp.CancelPermission(), ctx.Err()
		})
		a, b := r.connect(version, wait), r.connect(3-version, wait)
		s := a.new(t)
		b.load(t, s.ID())
		reply := s.Prompt(t.Context(), acp.Text("ask"))
		for range 2 {
			if req := <-asked; req.Title != "Really?" || len(req.Options) != 4 {
				t.Errorf("%+v", req)
			}
		}
		r.connect(version, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return req.Allow(), nil
		})).load(t, s.ID())
		if text, _, err := reply.Text(); err != nil || text != "allow_oncetrue" && text != "allow-oncetrue" && !strings.HasSuffix(text, "true") {
			t.Error(text, err)
		}
		<-withdrawn
		<-withdrawn
	})
}

// TestPermissionRace: of answers that come at the same time exactly one counts, and the agent gets that one. GATEWAY_ROUNDS
// has how many rounds there are.
func TestPermissionRace(t *testing.T) {
	rounds := 200
	if n, err := strconv.Atoi(os.Getenv("GATEWAY_ROUNDS")); err == nil {
		rounds = n
	} else if !long.All() {
		rounds = 20
	}
	r := newRig(t, talking(nil))
	var first *acp.ClientSession
	for i := range 5 {
		c := r.connect(1+i%2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			if i%2 == 0 {
				return req.Allow(), nil
			}
			return req.Reject(), nil
		}))
		if first == nil {
			first = c.new(t)
		} else {
			c.load(t, first.ID())
		}
	}
	var told, decided []string
	for range rounds {
		text, _, err := first.Prompt(t.Context(), acp.Text("ask")).Text()
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, strings.TrimSuffix(strings.TrimSuffix(text, "true"), "false"))
	}
	err := r.log.Read(t.Context(), string(first.ID()), 0, func(rec engine.Record) error {
		if rec.Kind == kindAnswer {
			var a records.Decided
			err := json.Unmarshal(rec.Data, &a)
			decided = append(decided, string(a.Outcome))
			return err
		}
		return nil
	})
	if err != nil || !cmp.Equal(told, decided) {
		t.Error(err, cmp.Diff(decided, told))
	}
}

// TestRestart: another process continues the sessions of an earlier one.
func TestRestart(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		say(t, s, "one")
		reply := s.Prompt(t.Context(), acp.Text("wait"))
		c.seen.until(t, "agent: waiting")
		r.close()
		if _, err := reply.Wait(); err != nil {
			t.Error(err)
		}
		r.open()
		back := r.connect(version)
		var ids []acp.SessionID
		for info, err := range back.conn.ListSessions(t.Context(), acp.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, info.SessionID)
		}
		if !cmp.Equal(ids, []acp.SessionID{s.ID()}) {
			t.Fatal(ids)
		}
		again := back.load(t, s.ID())
		want := []string{"user: one", "agent: one", "user: wait", "agent: waiting", "agent: The turn has not ended: the server ended in the middle."}
		if version > 1 {
			want = []string{"user: one", "agent: one", "end: end_turn", "user: wait", "agent: waiting", "end: cancelled"}
		}
		if got := back.seen.take(); !cmp.Equal(got, want) {
			t.Errorf("%q", got)
		}
		say(t, again, "two")
		back.seen.until(t, "agent: two")
	})
}

// TestAgentDies: the turn ends with an error, the session does not, and the agent is started again.
func TestAgentDies(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		reply := s.Prompt(t.Context(), acp.Text("wait"))
		c.seen.until(t, "agent: waiting")
		r.mu.Lock()
		_ = r.last.Close()
		r.mu.Unlock()
		if _, err := reply.Wait(); err == nil || !strings.Contains(err.Error(), "the agent has ended") {
			t.Error(err)
		}
		if text, _, err := s.Prompt(t.Context(), acp.Text("two")).Text(); err != nil || !strings.HasSuffix(text, "two") {
			t.Error(text, err)
		}
		if n := r.starts.Load(); n != 2 {
			t.Errorf("%d starts", n)
		}
	})
}
