package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/detach"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// paired connects a client with an agent.
func paired(t *testing.T, a *Agent, c *Client) (*ClientConn, *AgentConn) {
	t.Helper()
	ours, theirs := Pipe()
	agent, err := logged(t, a).Connect(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	client := *c
	client.Logger = logtest.New(t)
	conn, err := client.Connect(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = agent.Wait()
	})
	return conn, agent
}

// fixedFile is a file system in which every file has the same text.
type fixedFile string

func (f fixedFile) ReadTextFile(context.Context, *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return &acpv1.ReadTextFileResponse{Content: string(f)}, nil
}

func (fixedFile) WriteTextFile(context.Context, *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return nil, errors.ErrUnsupported
}

// TestHalfDecoded: what a response has said that turns out not to be JSON is not part of
// the answer.
func TestHalfDecoded(t *testing.T) {
	theirs, ours := jsonrpc.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			f, err := theirs.ReadFrame()
			if err != nil {
				return
			}
			for method, answers := range map[string][]string{
				"initialize": {`"result":{"protocolVersion":1}}`},
				"session/new": {
					`"result":{"sessionId":"bad","modes":{"currentModeId":"m","availableModes":[{"id":"m","name":"M"}]},"_meta":{"x":1}},}`,
					`"result":{"sessionId":"good"}}`,
				},
			} {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if _ = json.Unmarshal(f.Data, &m); m.Method != method {
					continue
				}
				for _, a := range answers {
					_ = theirs.WriteFrame([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + "," + a))
				}
			}
		}
	})
	conn, err := (&Client{MaxVersion: 1, Logger: logtest.New(t)}).Connect(t.Context(), Over(ours))
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
	if err != nil || s.ID() != "good" || s.Meta() != nil || len(s.Options()) != 0 {
		t.Errorf("%v with _meta %s and %d options, %v", s.ID(), s.Meta(), len(s.Options()), err)
	}
	_ = conn.Close()
	wg.Wait()
}

// TestUnreadReply: a reply that nobody reads does not hold the agent if the Update hook
// gets the updates. Whoever reads it later learns that some are missing.
func TestUnreadReply(t *testing.T) {
	for v := 1; v <= 2; v++ {
		synctest.Test(t, func(t *testing.T) {
			agent := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				for i := range 5000 {
					_ = t.Say(fmt.Sprint(i))
				}
				return StopEndTurn, t.Err()
			}}
			var texts atomic.Int64
			conn, _ := paired(t, agent, &Client{MaxVersion: v, Update: func(_ context.Context, _ *ClientSession, u *Update) {
				if u.Text() != "" {
					texts.Add(1)
				}
			}})
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			r := s.Prompt(t.Context(), Text("x"))
			<-r.Done()
			if n := texts.Load(); n != 5000 {
				t.Errorf("version %d: %d updates", v, n)
			}
			lost, n := 0, 0
			for _, err := range r.Updates() {
				if errors.Is(err, ErrUpdatesLost) {
					lost++
				}
				n++
			}
			if lost != 1 || n != maxHeld+1 {
				t.Errorf("version %d: %d updates were held, and %d errors", v, n, lost)
			}
		})
	}
}

// TestQuestionsLeaveRoom: as many open questions as there may be do not stop what else
// the agent asks for, and one more is refused.
func TestQuestionsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		agent := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			if t.Text() == "read" {
				text, err := t.ReadFile("/f")
				return StopEndTurn, errors.Join(err, t.Say(text))
			}
			for range detach.Max {
				go func() { _, _ = t.Ask(Permission{Title: "?"}) }()
			}
			synctest.Wait()
			more, err := t.Ask(Permission{Title: "one more"})
			close(answer)
			if err != nil || !more.Cancelled {
				return "", errors.New("the question was not refused")
			}
			return StopEndTurn, nil
		}}
		conn, _ := paired(t, agent, &Client{
			MaxVersion: 1,
			Files:      fixedFile("text"),
			RequestPermission: func(context.Context, *PermissionRequest) (PermissionDecision, error) {
				<-answer
				return CancelPermission(), nil
			},
		})
		asks, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		reads, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		r := asks.Prompt(t.Context(), Text("ask"))
		if text, _, err := reads.Prompt(t.Context(), Text("read")).Text(); err != nil || text != "text" {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestTranscriptAgain: a conversation that is kept is the same after the session has
// been loaded again.
func TestTranscriptAgain(t *testing.T) {
	for v := 1; v <= 2; v++ {
		var saved []SessionUpdate
		agent := &Agent{
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return StopEndTurn, t.Say("done") },
			Record: func(_ context.Context, _ *AgentSession, u SessionUpdate) error {
				if !IsMomentary(u) {
					saved = append(saved, u)
				}
				return nil
			},
			ResumeSession: func(_ context.Context, s *AgentSession, _ bool) error {
				for _, u := range saved {
					_ = s.Send(u)
				}
				return s.Err()
			},
		}
		c := transcript.New(transcript.Config{})
		conn, _ := paired(t, agent, &Client{MaxVersion: v, Update: func(_ context.Context, _ *ClientSession, u *Update) {
			if u.Restarts {
				c.Reset()
			}
			c.Apply(u.Update)
		}})
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), Text("x")).Wait(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := conn.Load(t.Context(), s.ID(), SessionConfig{Cwd: "/"}); err != nil {
				t.Fatal(err)
			}
			got := ""
			for e := range c.Snapshot().Entries() {
				if m, ok := e.(*transcript.Message); ok {
					got += fmt.Sprintf("%s: %s\n", m.Role, m.Text())
				}
			}
			if got != "user: x\nagent: done\n" {
				t.Errorf("version %d: %s", v, got)
			}
		}
	}
}

// TestLeftCalls: tool calls that an agent left open when it was killed are ended, once,
// when the session is resumed; those that ended, and those that continue in the
// background, are left as they are.
func TestLeftCalls(t *testing.T) {
	call := func(id ToolCallID, status ToolCallStatus) SessionUpdate {
		u := &ToolCallUpdate{ToolCallID: id, Title: Set("t")}
		if status != "" {
			u.Status = Set(status)
		}
		return u
	}
	saved := []SessionUpdate{
		call("done", ToolCallStatusInProgress), call("done", ToolCallStatusCompleted), call("done", ""),
		call("open", ToolCallStatusInProgress), call("background", ToolCallStatusInProgress), call("new", ""),
	}
	for v := 1; v <= 2; v++ {
		kept := append([]SessionUpdate(nil), saved...)
		for _, want := range []string{"open new ", ""} { // the second time they have ended
			recorded := ""
			agent := &Agent{
				Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
				Record: func(_ context.Context, _ *AgentSession, u SessionUpdate) error {
					if c, ok := u.(*ToolCallUpdate); ok && c.Status.Or("") == ToolCallStatusCancelled {
						recorded += string(c.ToolCallID) + " "
						kept = append(kept, u)
					}
					return nil
				},
				ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
					for _, u := range kept {
						if err := s.Send(u); err != nil {
							return err
						}
					}
					return s.SetBackground(&acpv2.BackgroundToolCall{ToolCallID: "background"})
				},
			}
			status := map[ToolCallID]ToolCallStatus{}
			conn, _ := paired(t, agent, &Client{MaxVersion: v, Update: func(_ context.Context, _ *ClientSession, u *Update) {
				if c, ok := u.Update.(*ToolCallUpdate); ok && !c.Status.IsZero() {
					status[c.ToolCallID] = c.Status.Or("")
				}
			}})
			if _, err := conn.Load(t.Context(), "s", SessionConfig{Cwd: "/"}); err != nil {
				t.Fatal(err)
			}
			if recorded != want {
				t.Errorf("version %d: recorded as cancelled: %s", v, recorded)
			}
			for id, s := range status {
				ended := s == ToolCallStatusCompleted || s == ToolCallStatusFailed || s == ToolCallStatusCancelled
				if ended == (id == "background") {
					t.Errorf("version %d: %s is %s", v, id, s)
				}
			}
		}
	}
}

// TestMCPServersEnd: the servers of sessions that were closed, or were not opened, do not
// count, and one that cannot be offered fails the session.
func TestMCPServersEnd(t *testing.T) {
	fail := false
	agent := &Agent{
		MCP:    MCPTransports{ACP: true},
		Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
		NewSession: func(context.Context, *AgentSession) error {
			if fail {
				return errors.New("no")
			}
			return nil
		},
	}
	conn, _ := paired(t, agent, &Client{MCP: func(context.Context, *MCPCall) (json.RawMessage, error) { return nil, nil }})
	config := func(i int) SessionConfig {
		id := fmt.Sprint("server", i)
		return SessionConfig{Cwd: "/", MCPServers: []MCPServer{&MCPServerACP{Name: id, ServerID: acpv2.MCPServerACPID(id)}}}
	}
	for i := range 3 {
		s, err := conn.NewSession(t.Context(), config(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Resume(t.Context(), s.ID(), config(i+10)); err != nil {
			t.Fatal(err)
		}
		if n := len(conn.mcp.servers); n != 1 {
			t.Errorf("%d servers are offered by one session", n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fail = true
	if _, err := conn.NewSession(t.Context(), config(0)); err == nil {
		t.Error("the session was opened")
	}
	if n := len(conn.mcp.servers); n != 0 {
		t.Errorf("%d servers are offered by no session", n)
	}
	fail = false
	many := SessionConfig{Cwd: "/"}
	for i := range maxMCPServers {
		many.MCPServers = append(many.MCPServers, config(i).MCPServers...)
	}
	if err := conn.mcp.offer(many.MCPServers); err != nil {
		t.Error(err)
	}
	if _, err := conn.NewSession(t.Context(), config(maxMCPServers)); err == nil {
		t.Error("a session has more servers than there may be")
	}
	if _, err := conn.NewSession(t.Context(), config(0)); err != nil {
		t.Error(err)
	}
}
