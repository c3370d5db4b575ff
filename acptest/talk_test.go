package acptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// talker is an agent that uses much of the protocol in one turn.
func talker(root string) *acp.Agent {
	return &acp.Agent{
		Info: acp.Implementation{Name: "talker", Version: "1.2.3"},
		NewSession: func(ctx context.Context, s *acp.AgentSession) error {
			return s.SetCommands(acp.SlashCommand{Name: "plan", Description: "Makes a plan"})
		},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			t.Think("What is this about?")
			t.Say("You said: ")
			t.Say(t.Text())
			t.Plan(acp.PlanEntry{Content: "write", Priority: "high", Status: "in_progress"})
			path := filepath.Join(root, "hello.txt")
			call := t.ToolCall(acp.ToolCall{
				Title: "Write hello.txt", Kind: acp.ToolKindEdit, Input: map[string]any{"path": path, "n": 1},
				Locations: []acp.ToolCallLocation{{Path: path}},
			})
			if !call.Permit(acp.Permission{Title: "Write hello.txt?"}) {
				_ = call.Fail(errors.New("declined"))
				return acp.StopEndTurn, nil
			}
			if err := call.Change(acp.FileChange{Path: path, Before: "a\n", After: "b\n"}); err != nil {
				return "", err
			}
			e, err := t.Elicit(acp.FormRequest{Message: "Which?", Schema: acp.ElicitationSchema{
				Properties: []acp.ElicitationProperty{{Name: "what", Schema: &acpv2.StringPropertySchema{}}},
			}})
			if err != nil {
				return "", err
			}
			t.Say(fmt.Sprintf("You chose %s.", e.Content["what"]))
			return acp.StopEndTurn, call.Complete()
		},
	}
}

// spoken is what a client saw of a conversation.
type spoken struct {
	Updates []string
	Stop    acp.StopReason
	Asked   []string
	Errors  []string
}

// listener is a client that writes down what it sees.
func listener(out *spoken) *acp.Client {
	return &acp.Client{
		Info: acp.Implementation{Name: "listener", Version: "3.2.1"},
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if _, unknown := u.Update.(*acp.UnknownSessionUpdate); unknown {
				return
			}
			text, err := json.Marshal(u.Update)
			if err != nil {
				out.Errors = append(out.Errors, err.Error())
			}
			out.Updates = append(out.Updates, string(text))
		},
		RequestPermission: func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			out.Asked = append(out.Asked, req.Title)
			return AcceptAll(ctx, req)
		},
		Elicit: func(_ context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			out.Asked = append(out.Asked, req.Message)
			return acp.AcceptElicitation(map[string]json.RawMessage{"what": json.RawMessage(`"this"`)}), nil
		},
	}
}

// converse has a whole conversation in the given version, in a bubble.
func converse(t *testing.T, version int, wrap ...func(jsonrpc.Stream) jsonrpc.Stream) (out spoken) {
	t.Helper()
	root := filepath.Join(os.TempDir(), "talk1234", "001")
	client := listener(&out)
	client.MaxVersion = version
	conn, _ := Pair(t, talker(root), client, wrap...)
	if conn.Version() != version {
		t.Fatalf("version %d", conn.Version())
	}
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: root})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // an agent of version 1 tells its commands now
	for _, text := range []string{"hello", "again"} {
		res, err := session.Prompt(t.Context(), acp.Text(text)).Wait()
		if err != nil {
			t.Fatal(err)
		}
		out.Stop = res.StopReason
	}
	return out
}
