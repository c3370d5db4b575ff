package acp

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// TestBridgeHooks holds that hooks change prompts, sessions, updates and permissions, whichever
// versions the two sides speak.
func TestBridgeHooks(t *testing.T) {
	for client := 1; client <= 2; client++ {
		for agent := 1; agent <= 2; agent++ {
			t.Run(fmt.Sprintf("client v%d agent v%d", client, agent), func(t *testing.T) {
				a := &Agent{
					MinVersion: agent, MaxVersion: agent,
					Prompt: func(_ context.Context, turn *Turn) (StopReason, error) {
						if cwd := turn.Session().Cwd(); cwd != "/changed" {
							t.Errorf("the session is in %s", cwd)
						}
						answer, err := turn.ToolCall(ToolCall{Title: "Delete all", Kind: ToolKindDelete}).Ask(Permission{})
						if err != nil {
							return "", err
						}
						if answer.Allowed {
							t.Error("the hook rejects, but the agent may")
						}
						return StopEndTurn, turn.Say(turn.Text())
					},
				}
				agentEnd, bridgeDown := jsonrpc.Pipe()
				bridgeUp, clientEnd := Pipe()
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() { _ = a.Serve(t.Context(), Over(agentEnd)) })
				bridge := &Bridge{Agent: Over(bridgeDown), Hooks: BridgeHooks{
					Open: func(_ context.Context, _ SessionID, c *SessionConfig) error {
						c.Cwd = "/changed"
						return nil
					},
					Prompt: func(_ context.Context, _ *AgentSession, blocks []ContentBlock) ([]ContentBlock, error) {
						return append(blocks, Text("and more")), nil
					},
					Update: func(_ context.Context, u *Update) SessionUpdate {
						if m, ok := u.Update.(*AgentMessageChunk); ok {
							return &AgentMessageChunk{MessageID: m.MessageID, Content: Text("<" + m.Content.(*TextContent).Text + ">")}
						}
						return u.Update
					},
					Permission: func(_ context.Context, r *PermissionRequest, _ func(context.Context) (PermissionDecision, error)) (PermissionDecision, error) {
						return r.Reject(), nil
					},
				}}
				wg.Go(func() { _ = bridge.Serve(t.Context(), bridgeUp) })
				conn, err := (&Client{MinVersion: client, MaxVersion: client}).Connect(t.Context(), clientEnd)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
				if err != nil {
					t.Fatal(err)
				}
				text, _, err := s.Prompt(t.Context(), Text("one")).Text()
				if err != nil || text != "<one\nand more>" {
					t.Errorf("text %q, error %v", text, err)
				}
			})
		}
	}
}
