package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// TestBridgeVendors: a bridge passes metadata that it does not know, and the methods of vendors in both directions, as they
// are. Nothing of that is understood here, and nothing fails because of it.
func TestBridgeVendors(t *testing.T) {
	for _, way := range bridgeWays {
		t.Run(fmt.Sprintf("agent v%d client v%d", way[0], way[1]), func(t *testing.T) {
			var got []string // by the agent, in order: then by the client
			heard := make(chan string, 10)
			vendor := func(mux *jsonrpc.Mux, name string, to chan<- string) {
				jsonrpc.Notification[json.RawMessage]{Name: name}.Handle(mux, func(_ context.Context, p *json.RawMessage) error {
					to <- name + " " + string(*p)
					return nil
				})
			}
			agent := &Agent{
				Extensions: func(mux *jsonrpc.Mux) { vendor(mux, "_x/note", heard) },
				Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
					conn := t.Session().Conn().Conn()
					if err := conn.Notify(ctx, "_claude/sdkMessage", json.RawMessage(`{"n":1.0}`)); err != nil {
						return "", err
					}
					_ = t.Send(&ToolCallUpdate{ToolCallID: "c", Title: Set("T"), Meta: json.RawMessage(`{"_codex/hooks/x":{"n":1.0},"vendor":[1,{"a":null}]}`)})
					_ = t.Send(&UsageUpdate{Used: 1, Size: 2, Meta: json.RawMessage(`{"_claude/origin":{"kind":"x"}}`)})
					t.SetAnswerMeta(json.RawMessage(`{"quota":{"token_count":null}}`))
					select {
					case text := <-heard:
						return StopEndTurn, t.Say(text)
					case <-ctx.Done():
						return "", ctx.Err()
					}
				},
			}
			messages := make(chan string, 10)
			client := &Client{
				Extensions: func(mux *jsonrpc.Mux) { vendor(mux, "_claude/sdkMessage", messages) },
				Update: func(_ context.Context, _ *ClientSession, u *Update) {
					switch v := u.Update.(type) {
					case *ToolCallUpdate:
						got = append(got, string(v.Meta))
					case *UsageUpdate:
						got = append(got, string(v.Meta))
					case *AgentMessageChunk:
						got = append(got, v.Content.(*TextContent).Text)
					}
				},
			}
			s := bridgedSessionOf(t, agent, client, way)
			reply := s.Prompt(t.Context(), Text("x"))
			if err := s.Conn().Conn().Notify(t.Context(), "_x/note", json.RawMessage(`{"b":1e2}`)); err != nil {
				t.Fatal(err)
			}
			res, err := reply.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Meta) != `{"quota":{"token_count":null}}` {
				t.Errorf("the metadata of the end: %s", res.Meta)
			}
			want := []string{`{"_codex/hooks/x":{"n":1.0},"vendor":[1,{"a":null}]}`, `{"_claude/origin":{"kind":"x"}}`, `_x/note {"b":1e2}`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if text := <-messages; text != `_claude/sdkMessage {"n":1.0}` {
				t.Error(text)
			}
		})
	}
}
