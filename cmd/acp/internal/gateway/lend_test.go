package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
)

// A lenderSim is a client's files, all of which have the same text, and terminals that run until they are released.
type lenderSim struct {
	name string
	mu   sync.Mutex
	done map[acpv1.TerminalID]chan struct{}
	used []string
	gone chan acpv1.TerminalID // those that were released
}

func newLender(name string) *lenderSim {
	return &lenderSim{name: name, done: make(map[acpv1.TerminalID]chan struct{}), gone: make(chan acpv1.TerminalID, maxTerminals+8)}
}

func (l *lenderSim) lend(c *acp.Client) {
	c.Files = l
	c.Terminals = func(*acp.ClientConn) acp.TerminalHost { return l }
}

func (l *lenderSim) use(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = append(l.used, fmt.Sprintf(format, args...))
}

func (l *lenderSim) uses() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.used, "|")
}

func (l *lenderSim) ReadTextFile(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	l.use("read %s", r.Path)
	return &acpv1.ReadTextFileResponse{Content: l.name}, nil
}

func (l *lenderSim) WriteTextFile(_ context.Context, r *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	l.use("write %s %s", r.Path, r.Content)
	return &acpv1.WriteTextFileResponse{}, nil
}

func (l *lenderSim) CreateTerminal(_ context.Context, r *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := acpv1.TerminalID(fmt.Sprintf("%s-%d", l.name, len(l.used)))
	l.used = append(l.used, "run "+r.Command)
	l.done[id] = make(chan struct{})
	return &acpv1.CreateTerminalResponse{TerminalID: id}, nil
}

func (l *lenderSim) TerminalOutput(context.Context, *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	return &acpv1.TerminalOutputResponse{Output: l.name}, nil
}

func (l *lenderSim) WaitForTerminalExit(ctx context.Context, r *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	l.mu.Lock()
	done := l.done[r.TerminalID]
	l.mu.Unlock()
	select {
	case <-done:
		return &acpv1.WaitForTerminalExitResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lenderSim) KillTerminal(context.Context, *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	return &acpv1.KillTerminalResponse{}, nil
}

func (l *lenderSim) ReleaseTerminal(_ context.Context, r *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done := l.done[r.TerminalID]; done != nil {
		close(done)
		delete(l.done, r.TerminalID)
		l.gone <- r.TerminalID
	}
	return &acpv1.ReleaseTerminalResponse{}, nil
}

func (l *lenderSim) ReleaseSession(acpv1.SessionID) {}
func (l *lenderSim) Close() error                   { return nil }

// borrowing is an agent that does with files and terminals what the prompt says, and says what has come of it.
func borrowing() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		caps := t.Session().Conn().CapabilitiesV1()
		blocks := t.Blocks() // what a transcript says comes before
		prompt := blocks[len(blocks)-1].(*acp.TextContent).Text
		say := func(text string, err error) (acp.StopReason, error) {
			if err != nil {
				text = "error: " + err.Error()
			}
			return acp.StopEndTurn, t.Say(text)
		}
		switch prompt {
		case "caps":
			return say(fmt.Sprint(caps.FS.ReadTextFile, caps.FS.WriteTextFile, caps.Terminal), nil)
		case "read":
			return say(t.ReadFile("/project/x"))
		case "write":
			return say("written", t.WriteFile("/project/x", "new"))
		}
		conn := t.Session().Conn().Conn()
		id := acpv1.SessionID(t.Session().ID())
		made, err := acpv1.MethodTerminalCreate.Call(t.Context(), conn, &acpv1.CreateTerminalRequest{SessionID: id, Command: "x"})
		if err != nil || prompt == "leave" {
			return say("made", err)
		}
		if prompt == "many" {
			for err == nil {
				_, err = acpv1.MethodTerminalCreate.Call(t.Context(), conn, &acpv1.CreateTerminalRequest{SessionID: id, Command: "x"})
			}
			return say("", err)
		}
		_ = t.Say("running")
		_, err = acpv1.MethodTerminalWaitForExit.Call(t.Context(), conn, &acpv1.WaitForTerminalExitRequest{SessionID: id, TerminalID: made.TerminalID})
		return say("ended", err)
	}}
}

// lends begins a session to which the client lends what it has.
func (c *client) lends(t *testing.T) *acp.ClientSession {
	t.Helper()
	s, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(`{"` + metaKey + `":{"lend":true}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func answer(t *testing.T, s *acp.ClientSession, text string) string {
	t.Helper()
	got, _, err := s.Prompt(t.Context(), acp.Text(text)).Text()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// lendRig is a rig whose agents are of version 1.
func lendRig(t *testing.T) *rig {
	r := newRig(t, borrowing())
	r.max = 1
	return r
}

// TestLend: files and terminals are those of the client that has begun the session, or of the one that takes that over,
// and of nobody else. When it has left, the agent learns why it gets nothing.
func TestLend(t *testing.T) {
	r := lendRig(t)
	ann, bob := newLender("ann"), newLender("bob")
	a, b := r.connect(1, ann.lend), r.connect(1, bob.lend)
	s := a.lends(t)
	o := b.load(t, s.ID())
	for _, test := range []struct{ prompt, want string }{{"caps", "true true true"}, {"read", "ann"}, {"write", "written"}, {"leave", "made"}} {
		if got := answer(t, o, test.prompt); got != test.want {
			t.Errorf("%s: %q", test.prompt, got)
		}
	}
	if got := ann.uses(); got != "read /project/x|write /project/x new|run x" {
		t.Errorf("ann's: %q", got)
	}
	_ = a.conn.Close()
	gs := r.g.session(string(s.ID()))
	for gs.lending.has() {
	}
	for _, prompt := range []string{"read", "write", "run"} {
		if got := answer(t, o, prompt); !strings.Contains(got, "no client that is attached to the session lends") {
			t.Errorf("%s: %q", prompt, got)
		}
	}
	if got := bob.uses(); got != "" {
		t.Errorf("bob's: %q", got)
	}
	res, err := LendMethod.Call(t.Context(), b.conn.Conn(), &LendRequest{SessionID: s.ID()})
	if err != nil || !res.Read || !res.Write || !res.Terminals {
		t.Errorf("%+v, %v", res, err)
	}
	if got := answer(t, o, "read"); got != "bob" {
		t.Errorf("read: %q", got)
	}
}

// TestLendTerminals: terminals are released when their client leaves the session, or when the agent ends.
func TestLendTerminals(t *testing.T) {
	r := lendRig(t)
	ann := newLender("ann")
	a, b := r.connect(1, ann.lend), r.connect(2)
	s := a.lends(t)
	o := b.load(t, s.ID())
	reply := o.Prompt(t.Context(), acp.Text("run"))
	b.seen.until(t, "agent: running")
	if err := s.Close(t.Context()); err != nil { // and the connection stays
		t.Fatal(err)
	}
	// Its client leaves before, while or after the agent begins to wait, and may answer until then: it does not wait for ever.
	if text, _, err := reply.Text(); err != nil || !strings.HasPrefix(text, "runningerror: ") && text != "runningended" {
		t.Error(text, err)
	}
	s = a.lends(t)
	answer(t, s, "leave")
	r.stopAgent(s.ID())
	<-ann.gone
	if got := answer(t, s, "many"); !strings.Contains(got, fmt.Sprintf("%d terminals, which is the most", maxTerminals)) {
		t.Error(got)
	}
}

// TestLendNothing: what is not asked for is not lent, and what a client does not have cannot be.
func TestLendNothing(t *testing.T) {
	r := lendRig(t)
	ann := newLender("ann")
	a, plain := r.connect(1, ann.lend), r.connect(2)
	s := a.new(t)
	if got := answer(t, s, "caps"); got != "false false false" {
		t.Error(got)
	}
	o := plain.load(t, s.ID())
	if _, err := LendMethod.Call(t.Context(), plain.conn.Conn(), &LendRequest{SessionID: o.ID()}); err == nil || !strings.Contains(err.Error(), "lends neither") {
		t.Error(err)
	}
	if _, err := LendMethod.Call(t.Context(), plain.conn.Conn(), &LendRequest{SessionID: "s_other"}); !acp.IsSessionNotFound(err) {
		t.Error(err)
	}
	// An agent that is started while a client lends may use that.
	if _, err := LendMethod.Call(t.Context(), a.conn.Conn(), &LendRequest{SessionID: s.ID()}); err != nil {
		t.Error(err)
	}
	r.stopAgent(s.ID())
	if got := answer(t, s, "caps"); !strings.HasSuffix(got, "true true true") {
		t.Error(got)
	}
}
