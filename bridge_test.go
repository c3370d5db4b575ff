package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// bridged connects a client through a bridge with an agent, each bound to one
// version.
func bridged(t *testing.T, a *Agent, agentVersion int, c *Client, clientVersion int) *ClientConn {
	t.Helper()
	return bridgedOver(t, a, agentVersion, c, clientVersion, func(s jsonrpc.Stream) jsonrpc.Stream { return s })
}

// bridgedOver is bridged with an agent whose stream is wrapped.
func bridgedOver(t *testing.T, a *Agent, agentVersion int, c *Client, clientVersion int, wrap func(jsonrpc.Stream) jsonrpc.Stream) *ClientConn {
	t.Helper()
	a.MinVersion, a.MaxVersion = agentVersion, agentVersion
	c.MinVersion, c.MaxVersion = clientVersion, clientVersion
	log := logtest.New(t)
	a, client := logged(t, a), *c
	if client.Logger == nil {
		client.Logger = log
	}
	agentEnd, bridgeDown := jsonrpc.Pipe()
	bridgeUp, clientEnd := Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Serve(t.Context(), Over(wrap(agentEnd))); err != nil && t.Context().Err() == nil {
			t.Errorf("agent: %v", err)
		}
	})
	wg.Go(func() {
		if err := (&Bridge{Agent: Over(bridgeDown), Logger: log}).Serve(t.Context(), bridgeUp); err != nil && t.Context().Err() == nil {
			t.Errorf("bridge: %v", err)
		}
	})
	conn, err := client.Connect(t.Context(), clientEnd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		wg.Wait()
	})
	if conn.Version() != clientVersion {
		t.Fatalf("version %d", conn.Version())
	}
	return conn
}

// TestBridge: a whole conversation, in both directions.
func TestBridge(t *testing.T) {
	for _, dir := range [][2]int{{1, 2}, {2, 1}, {1, 1}, {2, 2}} {
		t.Run(fmt.Sprintf("agent v%d client v%d", dir[0], dir[1]), func(t *testing.T) {
			agent := &Agent{
				Info:    Implementation{Name: "behind", Version: "7"},
				Content: PromptContent{Image: true},
				Initialize: func(context.Context, *AgentConn) (json.RawMessage, error) {
					return json.RawMessage(`{"mark":1}`), nil
				},
				NewSession: func(_ context.Context, s *AgentSession) error {
					return s.SetOptions(SessionConfigOption{ConfigID: "mode", Name: "Mode", Category: SessionConfigOptionCategoryMode,
						Kind: &SessionConfigSelect{CurrentValue: "ask", Options: SessionConfigSelectOptionList{{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"}}}})
				},
				ResumeSession: func(_ context.Context, s *AgentSession, replay bool) error {
					if s.ID() != "saved" {
						return SessionNotFound(s.ID())
					}
					if replay {
						_ = s.User(Text("old question"))
						_ = s.Say("old answer")
					}
					return nil
				},
				DeleteSession: func(_ context.Context, _ *AgentConn, id SessionID) error { return SessionNotFound(id) },
				Extensions: func(mux *jsonrpc.Mux) {
					jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: "_x/echo"}.Handle(mux,
						func(_ context.Context, p *json.RawMessage) (*json.RawMessage, error) { return p, nil })
				},
				Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					switch t.Text() {
					case "fail":
						return "", jsonrpc.Errorf(-32042, "custom")
					case "hang":
						t.Say("hanging")
						<-ctx.Done()
						return StopEndTurn, nil
					case "ask":
						call := t.ToolCall(ToolCall{Title: "Write", Kind: ToolKindEdit})
						d, err := call.Ask(Permission{Title: "Write?"})
						if err != nil {
							return "", err
						}
						call.Change(FileChange{Path: "/f", Before: "a\n", After: "b\n"})
						_ = call.Complete()
						t.Say(fmt.Sprint(d.Allowed))
						e, err := t.Elicit(FormRequest{Message: "name?"})
						if err != nil {
							return "", err
						}
						t.Say(string(e.Content["name"]))
					}
					t.Say("echo " + t.Text())
					t.SetUsage(Usage{TotalTokens: 3, InputTokens: 1, OutputTokens: 2})
					return StopEndTurn, nil
				},
			}
			var mu sync.Mutex
			var seen []string
			client := &Client{
				Update: func(_ context.Context, _ *ClientSession, u *Update) {
					mu.Lock()
					defer mu.Unlock()
					switch v := u.Update.(type) {
					case *AgentMessageChunk:
						seen = append(seen, fmt.Sprint("say ", v.Content.(*TextContent).Text, " ", u.Replayed))
					case *UserMessage, *UserMessageChunk:
						seen = append(seen, fmt.Sprint("user ", u.Replayed))
					case *ToolCallUpdate:
						seen = append(seen, fmt.Sprint("tool ", v.Status.Or("")))
					}
				},
				RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) {
					if r.ToolCall == nil || r.ToolCall.Title.Or("") == "" {
						return CancelPermission(), errors.New("no tool call")
					}
					return r.Allow(), nil
				},
				Elicit: func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
					return AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ada"`)}), nil
				},
			}
			conn := bridged(t, agent, dir[0], client, dir[1])
			if got := conn.Agent(); got.Name != "behind" || string(conn.Meta()) != `{"mark":1}` {
				t.Errorf("agent %+v, meta %s", got, conn.Meta())
			}
			caps := conn.Capabilities()
			if caps.Session == nil || caps.Session.Prompt == nil || caps.Session.Prompt.Image == nil || caps.Session.Prompt.Audio != nil {
				t.Errorf("capabilities %+v", caps.Session)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetMode(t.Context(), "code"); err != nil {
				t.Errorf("set mode: %v", err)
			}
			if err := s.SetMode(t.Context(), "nope"); code(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("set a mode there is not: %v", err)
			}
			res, err := s.Prompt(t.Context(), Text("ask")).Wait()
			if err != nil || res.StopReason != StopEndTurn || res.Usage == nil || res.Usage.TotalTokens != 3 {
				t.Errorf("result %+v, %v", res, err)
			}
			mu.Lock()
			want := []string{"user false", "tool in_progress", "tool ", "tool completed", "say true false", `say "Ada" false`, "say echo ask false"}
			got := slices.Clone(seen)
			mu.Unlock()
			if dir[1] == 2 { // content is a chunk of its own there
				got = slices.DeleteFunc(got, func(s string) bool { return s == "tool " })
				want = slices.DeleteFunc(want, func(s string) bool { return s == "tool " })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
			// Errors of the agent are the agent's.
			res, err = s.Prompt(t.Context(), Text("fail")).Wait()
			if f, ok := errors.AsType[*Failure](err); !ok || f.Code != -32042 {
				t.Errorf("failure %+v, %v", res, err)
			}
			// Cancelling.
			reply := s.Prompt(t.Context(), Text("hang"))
			for u, err := range reply.Updates() {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := u.Update.(*AgentMessageChunk); ok {
					if err := s.Cancel(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if res, err := reply.Wait(); err != nil || res.StopReason != StopCancelled {
				t.Errorf("cancelled: %+v, %v", res, err)
			}
			// History.
			mu.Lock()
			seen = nil
			mu.Unlock()
			if _, err := conn.Load(t.Context(), "saved", SessionConfig{Cwd: "/"}); err != nil {
				t.Errorf("load: %v", err)
			}
			mu.Lock()
			if diff := cmp.Diff([]string{"user true", "say old answer true"}, seen); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			mu.Unlock()
			if _, err := conn.Load(t.Context(), "unsaved", SessionConfig{Cwd: "/"}); code(err) != jsonrpc.CodeResourceNotFound {
				t.Errorf("load of nothing: %v", err)
			}
			if err := conn.Delete(t.Context(), "unsaved"); err != nil { // S31
				t.Errorf("delete of nothing: %v", err)
			}
			// Methods that are not part of the protocol pass.
			var echo json.RawMessage
			if err := conn.Conn().Call(t.Context(), "_x/echo", json.RawMessage(`{"big":12345678901234567890}`), &echo); err != nil ||
				!strings.Contains(string(echo), "12345678901234567890") {
				t.Errorf("extension: %s, %v", echo, err)
			}
			if err := conn.Conn().Call(t.Context(), "_x/other", nil, &echo); code(err) != jsonrpc.CodeMethodNotFound {
				t.Errorf("an extension nobody has: %v", err)
			}
			if dir[1] == 2 || conn.CapabilitiesV1().SessionCapabilities.Close != nil {
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
}

// TestBridgeAgentDies: a client is told, and let go, when the agent has ended.
func TestBridgeAgentDies(t *testing.T) {
	agentEnd, bridgeDown := Pipe()
	bridgeUp, clientEnd := Pipe()
	agent, err := echoAgent().Connect(t.Context(), agentEnd)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- (&Bridge{Agent: bridgeDown}).Serve(t.Context(), bridgeUp) }()
	conn, err := (&Client{}).Connect(t.Context(), clientEnd)
	if err != nil {
		t.Fatal(err)
	}
	_ = agent.Close()
	<-conn.Done()
	if err := <-served; err == nil {
		t.Error("no error")
	}
	_ = conn.Close()
}

// TestBridgeNoAgent: an agent that cannot be reached fails initialize, and in the end the bridge.
func TestBridgeNoAgent(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	bridgeUp, clientEnd := Pipe()
	served := make(chan error, 1)
	go func() {
		served <- (&Bridge{Agent: Command(missing), Logger: logtest.New(t)}).Serve(t.Context(), bridgeUp)
	}()
	if _, err := (&Client{MaxVersion: 1}).Connect(t.Context(), clientEnd); code(err) != jsonrpc.CodeInternalError {
		t.Errorf("connected: %v", err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("served: %v", err)
	}
}

// TestBridgeReach: who reaches the agent in place of the bridge says what the client is told, and a
// later attempt that does not fail is what counts.
func TestBridgeReach(t *testing.T) {
	agentEnd, bridgeDown := Pipe()
	agent := &Agent{Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil }}
	go func() { _ = agent.Serve(t.Context(), agentEnd) }()
	bridgeUp, clientEnd := Pipe()
	tries := 0
	b := &Bridge{Reach: func(ctx context.Context, client *Client) (*ClientConn, error) {
		if tries++; tries == 1 {
			return nil, fmt.Errorf("no luck: %w", jsonrpc.Errorf(-32050, "try again"))
		}
		return client.Connect(ctx, bridgeDown)
	}}
	served := make(chan error, 1)
	go func() { served <- b.Serve(t.Context(), bridgeUp) }()
	stream, err := clientEnd.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn := jsonrpc.NewConn(stream, jsonrpc.Config{})
	hello := json.RawMessage(`{"protocolVersion":1}`)
	var answer json.RawMessage
	if err := conn.Call(t.Context(), "initialize", hello, &answer); code(err) != -32050 {
		t.Errorf("the first time: %v", err)
	}
	if err := conn.Call(t.Context(), "initialize", hello, &answer); err != nil || tries != 2 {
		t.Errorf("the second time: %v after %d tries", err, tries)
	}
	_ = conn.Close()
	if err := <-served; err != nil {
		t.Errorf("served: %v", err)
	}
}
