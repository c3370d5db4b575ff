package acp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// TestBridgeEarlyElicit: an agent's question that comes right behind its answer to
// initialize reaches the client.
func TestBridgeEarlyElicit(t *testing.T) {
	agentEnd, bridgeDown := jsonrpc.Pipe()
	bridgeUp, clientEnd := Pipe()
	answers := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(answers)
		for {
			f, err := agentEnd.ReadFrame()
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if err := json.Unmarshal(f.Data, &m); err != nil {
				t.Error(err)
			}
			switch {
			case m.Method == "initialize":
				for _, line := range []string{
					`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`,
					`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"mode":"form","message":"name?",` +
						`"requestedSchema":{"type":"object","properties":{}},"requestId":1}}`,
				} {
					if err := agentEnd.WriteFrame([]byte(line)); err != nil {
						t.Error(err)
					}
				}
			case m.Method == "" && string(m.ID) == `"e"`:
				answers <- string(f.Data)
			}
		}
	})
	wg.Go(func() {
		_ = (&Bridge{Agent: Over(bridgeDown), Logger: logtest.New(t)}).Serve(t.Context(), bridgeUp)
	})
	client := &Client{
		Elicit: func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
			return AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ada"`)}), nil
		},
		Logger: logtest.New(t),
	}
	conn, err := client.Connect(t.Context(), clientEnd)
	if err != nil {
		t.Fatal(err)
	}
	if answer := <-answers; !strings.Contains(answer, "Ada") {
		t.Errorf("the agent was answered %s", answer)
	}
	_ = conn.Close()
	wg.Wait()
}

// TestTurnCancel: an agent can let a new prompt take the place of the turn that runs.
func TestTurnCancel(t *testing.T) {
	for v := 1; v <= 2; v++ {
		agent := &Agent{
			Received: func(_ context.Context, t *Turn) error {
				if running := t.Session().Turn(); running != nil {
					running.Cancel()
				}
				return nil
			},
			Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
				if t.Text() == "first" {
					_ = t.Say("running")
					<-ctx.Done()
					return "", ctx.Err()
				}
				return StopEndTurn, nil
			},
		}
		running := make(chan struct{}, 1)
		conn, _ := paired(t, agent, &Client{MaxVersion: v, Update: func(_ context.Context, _ *ClientSession, u *Update) {
			if u.Text() == "running" {
				running <- struct{}{}
			}
		}})
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		first := s.Prompt(t.Context(), Text("first"))
		<-running
		second := s.Prompt(t.Context(), Text("second"))
		if res, err := first.Wait(); err != nil || res.StopReason != StopCancelled {
			t.Errorf("version %d: the first has ended with %v, %v", v, res, err)
		}
		if res, err := second.Wait(); err != nil || res.StopReason != StopEndTurn {
			t.Errorf("version %d: the second has ended with %v, %v", v, res, err)
		}
	}
}

// TestBridgeResumeOpen: a session that is open is resumed while the agent sends in it,
// which is for the race detector, and is still open if that fails.
func TestBridgeResumeOpen(t *testing.T) {
	for v := 1; v <= 2; v++ {
		fail := false
		agent := &Agent{
			ResumeSession: func(context.Context, *AgentSession, bool) error {
				if fail {
					return jsonrpc.ErrInternal
				}
				return nil
			},
			Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				for range 1000 {
					_ = t.Say("x")
				}
				return StopEndTurn, t.Err()
			},
			resumesOpen: true,
		}
		conn := bridged(t, agent, v, &Client{}, v)
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Prompt(t.Context(), Text("go"))
		for range 20 {
			if _, err := conn.Resume(t.Context(), s.ID(), SessionConfig{Cwd: "/"}); err != nil {
				t.Fatal(err)
			}
		}
		if text, _, err := r.Text(); err != nil || len(text) != 1000 {
			t.Errorf("version %d: %d bytes, %v", v, len(text), err)
		}
		fail = true
		if _, err := conn.Resume(t.Context(), s.ID(), SessionConfig{Cwd: "/"}); err == nil {
			t.Errorf("version %d: resuming has not failed", v)
		}
		if text, _, err := s.Prompt(t.Context(), Text("go")).Text(); err != nil || len(text) != 1000 {
			t.Errorf("version %d: after that %d bytes, %v", v, len(text), err)
		}
	}
}
