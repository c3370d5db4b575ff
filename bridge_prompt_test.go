package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// bridgeWays are the versions of the agent and of the client.
var bridgeWays = [][2]int{{1, 2}, {2, 1}, {1, 1}, {2, 2}}

// bridgedSessionOf opens a session through a bridge.
func bridgedSessionOf(t *testing.T, a *Agent, c *Client, way [2]int) *ClientSession {
	t.Helper()
	conn := bridged(t, a, way[0], c, way[1])
	s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// updatesOf reads a reply and describes what the agent said in it.
func updatesOf(r *Reply) (list []string, res *Result, err error) {
	for u, err := range r.Updates() {
		if err == nil && !u.Synthetic {
			list = append(list, u.short())
		}
	}
	res, err = r.Wait()
	return list, res, err
}

// TestBridgeRefusedPrompt: a prompt that the agent refuses is refused, and one
// that fails later has a turn that fails, whatever the versions.
func TestBridgeRefusedPrompt(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			agent := &Agent{
				Accept: func(_ context.Context, t *Turn) error {
					if t.Text() == "refuse" {
						return jsonrpc.ErrAuthRequired.WithData("why")
					}
					return nil
				},
				Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
					_ = t.Say("so far")
					return "", jsonrpc.Errorf(-32042, "custom")
				},
			}
			s := bridgedSessionOf(t, agent, new(Client), way)
			list, _, err := updatesOf(s.Prompt(t.Context(), Text("refuse")))
			if code(err) != jsonrpc.CodeAuthRequired || list != nil {
				t.Errorf("refused: %q, %v", list, err)
			}
			list, _, err = updatesOf(s.Prompt(t.Context(), Text("fail")))
			if code(err) != -32042 || !strings.Contains(strings.Join(list, ","), "say so far") {
				t.Errorf("failed: %q, %v", list, err)
			}
		})
	}
}

// TestBridgeHeldPrompt: a prompt that the agent holds back is held back, and can
// be withdrawn.
func TestBridgeHeldPrompt(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			held := make(chan struct{}, 1)
			agent := &Agent{
				Accept: func(ctx context.Context, t *Turn) error {
					if t.Text() != "hold" {
						return nil
					}
					held <- struct{}{}
					<-ctx.Done()
					return context.Cause(ctx)
				},
				Prompt: func(_ context.Context, t *Turn) (StopReason, error) { return StopEndTurn, t.Say(t.Text()) },
			}
			s := bridgedSessionOf(t, agent, new(Client), way)
			r := s.Prompt(t.Context(), Text("hold"))
			<-held
			if err := s.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if list, res, err := updatesOf(r); err != nil || res.StopReason != StopCancelled || list != nil {
				t.Errorf("%q, %+v, %v", list, res, err)
			}
			if list, _, err := updatesOf(s.Prompt(t.Context(), Text("next"))); err != nil || !strings.Contains(strings.Join(list, ","), "say next") {
				t.Errorf("next: %q, %v", list, err)
			}
		})
	}
}

// TestBridgeMessages: messages keep their ids, the prompt's own has one id on
// both sides, those the bridge makes up are no others', and the user's messages
// that are no prompts are passed on.
func TestBridgeMessages(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			var prompt MessageID
			agent := &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
				prompt = t.PromptID()
				_ = t.Say("a")
				_ = t.Send(&UserMessageChunk{MessageID: "other", Content: Text("from elsewhere")})
				return StopEndTurn, nil
			}}
			s := bridgedSessionOf(t, agent, new(Client), way)
			kinds := map[MessageID]string{}
			see := func(id MessageID, kind string) {
				if was, ok := kinds[id]; ok && was != kind {
					t.Errorf("message %s is the %s's and the %s's", id, was, kind)
				}
				kinds[id] = kind
			}
			r := s.Prompt(t.Context(), Text("hi"))
			own, others := 0, 0
			for u, err := range r.Updates() {
				if err != nil {
					t.Fatal(err)
				}
				switch v := u.Update.(type) {
				case *UserMessage:
					own++
					see(v.MessageID, "user")
				case *UserMessageChunk:
					others++
					see(v.MessageID, "user")
				case *AgentMessageChunk:
					see(v.MessageID, "agent")
				}
			}
			if own != 1 || others != 1 || kinds["other"] != "user" {
				t.Errorf("%d prompts and %d other messages of the user: %v", own, others, kinds)
			}
			if way == [2]int{2, 2} && r.MessageID() != prompt {
				t.Errorf("the prompt is %s for the client and %s for the agent", r.MessageID(), prompt)
			}
		})
	}
}

// TestBridgeMCPErrors: what the client's side says of an MCP server is passed on
// as it is.
func TestBridgeMCPErrors(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			agent := &Agent{
				MCP: MCPTransports{ACP: true},
				Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					_, err := t.Session().CallMCP(ctx, MCPServerACPID(t.Text()), "m", nil, nil)
					return StopEndTurn, t.Say(fmt.Sprint(code(err)))
				},
			}
			client := &Client{MCP: func(context.Context, *MCPCall) (json.RawMessage, error) {
				return nil, fmt.Errorf("wrapped: %w", &mcpBindingError{jsonrpc.Errorf(codeMCPNoServer, "gone")})
			}}
			conn := bridged(t, agent, way[0], client, way[1])
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot, MCPServers: []MCPServer{&MCPServerACP{Name: "n", ServerID: "srv"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, server := range []string{"srv", "nobody"} {
				list, _, err := updatesOf(s.Prompt(t.Context(), Text(server)))
				if err != nil || !strings.Contains(strings.Join(list, ","), "say -33001") {
					t.Errorf("%s: %q, %v", server, list, err)
				}
			}
		})
	}
}
