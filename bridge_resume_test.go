package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// loadOnly is a stream of a version 1 agent that does not offer session/resume.
type loadOnly struct{ jsonrpc.Stream }

func (s loadOnly) WriteFrame(data []byte) error {
	return s.Stream.WriteFrame(bytes.Replace(data, []byte(`"resume":{}`), []byte(`"_resume":{}`), 1))
}

// TestBridgeResumeByLoad: a version 2 client resumes sessions of an agent that
// can only load them. What the agent replays then is kept from the client, the
// session's settings are not, and a session that is open is not loaded again.
func TestBridgeResumeByLoad(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	agent := &Agent{
		ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
			if s.ID() != "saved" {
				return SessionNotFound(s.ID())
			}
			if !replay {
				return errors.New("resumed")
			}
			_ = s.User(Text("question"))
			_ = s.ToolCall(ToolCall{Title: "tool"}).Complete()
			_ = s.Say("answer")
			_ = s.SetTitle("title")
			return s.SetOptions(ChoiceOption("mode", "Mode", SessionConfigOptionCategoryMode, "ask", "ask", "code"))
		},
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return StopEndTurn, t.Say("live") },
		Engine: jsonrpc.Settings{Incoming: []jsonrpc.Middleware{func(next jsonrpc.Handler) jsonrpc.Handler {
			return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
				if strings.HasPrefix(req.Method, "session/") {
					mu.Lock()
					calls = append(calls, req.Method)
					mu.Unlock()
				}
				return next(ctx, req)
			}
		}}},
	}
	var seen []string
	client := &Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
		mu.Lock()
		defer mu.Unlock()
		if text := u.Text(); text != "" {
			seen = append(seen, text)
		} else if _, ok := u.Update.(*ToolCallUpdate); ok {
			seen = append(seen, "tool")
		}
	}}
	conn := bridgedOver(t, agent, 1, client, 2, func(s jsonrpc.Stream) jsonrpc.Stream { return loadOnly{s} })
	for range 2 { // the second one finds it open
		s, err := conn.Resume(t.Context(), "saved", SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Options()) != 1 || s.Title() != "title" {
			t.Errorf("options %v, title %q", s.Options(), s.Title())
		}
	}
	s, _ := conn.Session("saved")
	if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if got := strings.Join(seen, " "); got != "live" {
		t.Errorf("the client saw %q", got)
	}
	if got := strings.Join(calls, " "); got != "session/load session/prompt" {
		t.Errorf("the agent was called %s", got)
	}
	seen = nil
	mu.Unlock()
	if _, err := conn.Load(t.Context(), "saved", SessionConfig{Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if got := strings.Join(seen, " "); got != "tool tool answer" {
		t.Errorf("loaded %q", got)
	}
	mu.Unlock()
	if _, err := conn.Resume(t.Context(), "other", SessionConfig{Cwd: "/"}); !IsSessionNotFound(err) {
		t.Errorf("unknown session: %v", err)
	}
}

// TestBridgeLacks: what the agent behind a bridge does not offer is said to the
// client.
func TestBridgeLacks(t *testing.T) {
	agent := &Agent{
		ResumeSession: func(context.Context, *AgentSession, bool) error { return nil },
		Prompt:        func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
	}
	conn := bridgedOver(t, agent, 1, &Client{}, 2, func(s jsonrpc.Stream) jsonrpc.Stream { return resumeOnly{s} })
	_, err := conn.Load(t.Context(), "s", SessionConfig{Cwd: "/"})
	if code(err) != jsonrpc.CodeInternalError || !strings.Contains(err.Error(), "the agent does not support session/load") {
		t.Errorf("load: %v", err)
	}
}

// resumeOnly is a stream of a version 1 agent that does not offer session/load.
type resumeOnly struct{ jsonrpc.Stream }

func (s resumeOnly) WriteFrame(data []byte) error {
	return s.Stream.WriteFrame(bytes.Replace(data, []byte(`"loadSession":true`), []byte(`"loadSession":false`), 1))
}

// TestBridgeEmptyPrompt: version 1 has empty prompts (S74), so a bridge passes
// them on to agents of either version.
func TestBridgeEmptyPrompt(t *testing.T) {
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("agent v%d", v), func(t *testing.T) {
			prompts := make(chan string, 1)
			agent := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				prompts <- t.Text()
				return StopEndTurn, t.Say("what?")
			}}
			conn := bridged(t, agent, v, &Client{}, 1)
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			var res json.RawMessage
			params := json.RawMessage(`{"sessionId":"` + string(s.ID()) + `","prompt":[]}`)
			if err := conn.Conn().Call(t.Context(), "session/prompt", params, &res); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(res), `"end_turn"`) {
				t.Errorf("answer %s", res)
			}
			if text := <-prompts; text != "" {
				t.Errorf("prompt %q", text)
			}
		})
	}
}

// sameID is a stream of an agent that gives its second session the id of the first.
type sameID struct{ jsonrpc.Stream }

func (s sameID) WriteFrame(data []byte) error {
	return s.Stream.WriteFrame(bytes.Replace(data, []byte(`"sessionId":"s2"`), []byte(`"sessionId":"s1"`), 1))
}

// TestBridgeSameID: a second session of one id is refused, with the reason.
func TestBridgeSameID(t *testing.T) {
	for _, version := range []int{1, 2} {
		n := 0
		agent := &Agent{
			NewSession: func(_ context.Context, s *AgentSession) error {
				n++
				s.SetID(SessionID(fmt.Sprint("s", n)))
				return nil
			},
			Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
		}
		c := bridgedOver(t, agent, version, &Client{}, 3-version, func(s jsonrpc.Stream) jsonrpc.Stream { return sameID{s} })
		if _, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		_, err := c.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err == nil || !strings.Contains(err.Error(), "gave a new session the id of an open one") {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
