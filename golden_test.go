package acp_test

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
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

var _ = acptest.UpdateFlag()

// everyVerb is one Prompt hook that uses most of what a turn can do. It does not
// know which version it speaks.
func everyVerb(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	t.Think("let me see")
	t.Say("I will ")
	t.Say("write a file.")
	t.Plan(
		acp.PlanEntry{Content: "ask", Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusInProgress},
		acp.PlanEntry{Content: "write", Priority: acp.PlanEntryPriorityLow, Status: acp.PlanEntryStatusPending},
	)
	greeting := filepath.Join(os.TempDir(), "greeting.txt") // which acptest writes as /tmp1
	call := t.ToolCall(acp.ToolCall{
		Name: "write_file", Title: "Write greeting", Kind: acp.ToolKindEdit,
		Locations: []acp.ToolCallLocation{{Path: greeting}}, Input: map[string]string{"path": greeting},
	})
	if !call.Permit(acp.Permission{Description: "It does not exist yet."}) {
		return acp.StopEndTurn, call.Fail(errors.New("declined"))
	}
	call.Change(acp.FileChange{Path: greeting, After: "hello\n", Created: true})
	call.SetOutput(map[string]int{"bytes": 6})
	call.Complete()
	form, err := t.Elicit(acp.FormRequest{Message: "What is your name?"})
	if err != nil {
		return "", err
	}
	t.Say(fmt.Sprintf("Done, %s.", form.Content["name"]))
	t.SetTitle("Greeting")
	t.Usage(1200, 200000, &acp.Cost{Amount: 0.25, Currency: "EUR"})
	t.SetUsage(acp.Usage{TotalTokens: 12, InputTokens: 8, OutputTokens: 4})
	return acp.StopEndTurn, ctx.Err()
}

// TestGoldenTurn records what one hook, unchanged, says in each version:
// testdata/turn-v1.golden and testdata/turn-v2.golden, to be read side by side.
func TestGoldenTurn(t *testing.T) {
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := &acp.Agent{
					Info:   acp.Implementation{Name: "golden", Version: "1.0.0"},
					Prompt: everyVerb, MinVersion: v, MaxVersion: v,
					NewSession: func(_ context.Context, s *acp.AgentSession) error {
						return s.SetOptions(acp.SessionConfigOption{
							ConfigID: "mode", Name: "Mode", Category: acp.SessionConfigOptionCategoryMode,
							Kind: &acp.SessionConfigSelect{CurrentValue: "ask", Options: acp.SessionConfigSelectOptionList{
								{Value: "ask", Name: "Ask"}, {Value: "code", Name: "Code"},
							}},
						})
					},
				}
				client := &acp.Client{
					Info:              acp.Implementation{Name: "golden-client", Version: "1.0.0"},
					MinVersion:        v,
					MaxVersion:        v,
					RequestPermission: acptest.AcceptAll,
					Elicit: func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
						return acp.AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ada"`)}), nil
					},
				}
				var rec *acptest.Recording
				conn, _ := acptest.Pair(t, agent, client, func(s jsonrpc.Stream) jsonrpc.Stream {
					s, rec = acptest.Record(s)
					return s
				})
				session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/tmp"})
				if err != nil {
					t.Fatal(err)
				}
				if err := session.SetMode(t.Context(), "code"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				res, err := session.Prompt(t.Context(), acp.Text("greet me")).Wait()
				if err != nil || res.StopReason != acp.StopEndTurn || res.Usage.TotalTokens != 12 {
					t.Fatalf("turn: %+v, %v", res, err)
				}
				synctest.Wait()
				acptest.Golden(t, fmt.Sprintf("turn-v%d", v), rec)
			})
		})
	}
}
