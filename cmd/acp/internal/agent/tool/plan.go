package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// PlanID is the id of the session's plan, which is the one that the library gives to the
// plan of an agent.
const PlanID acp.PlanID = "plan"

// Bounds of a plan.
const (
	MaxSteps = 200
	MaxStep  = 500 // characters
)

// Plan replaces the plan of the session. It shows no tool call: the plan is what is shown.
var Plan = Tool{
	Name: "plan", Kind: acp.ToolKindThink, Reads: true,
	About: "Shows the user the plan, all of it each time something changes.",
	Schema: json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","maxItems":200,"items":{"type":"object","properties":{` +
		`"text":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed"]}},` +
		`"required":["text","status"],"additionalProperties":false}}},` +
		`"required":["steps"],"additionalProperties":false}`),
	Run: runPlan,
}

// PlanInput is the input of [Plan].
type PlanInput struct {
	Steps []Step `json:"steps"`
}

// A Step is one of a plan.
type Step struct {
	Text   string              `json:"text"`
	Status acp.PlanEntryStatus `json:"status"`
}

func runPlan(_ context.Context, env Env, input json.RawMessage) (Result, error) {
	var in PlanInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if len(in.Steps) > MaxSteps {
		return Result{}, Misusef("a plan has %d steps at most", MaxSteps)
	}
	plan := make([]acp.PlanEntry, len(in.Steps))
	for i, s := range in.Steps {
		switch s.Status {
		case acp.PlanEntryStatusPending, acp.PlanEntryStatusInProgress, acp.PlanEntryStatusCompleted:
		default:
			return Result{}, Misusef("step %d has the status %q: use pending, in_progress or completed", i+1, prose.OneLine(string(s.Status), 40))
		}
		plan[i] = acp.PlanEntry{Content: prose.OneLine(s.Text, MaxStep), Priority: acp.PlanEntryPriorityMedium, Status: s.Status}
		if plan[i].Content == "" {
			return Result{}, Misusef("step %d is empty", i+1)
		}
	}
	out := env.Output()
	out.EndMessage()
	_ = out.UpdatePlan(&acp.PlanItems{PlanID: PlanID, Entries: plan}) // kept by the turn
	env.SetPlan(plan)
	if len(plan) == 0 {
		return Result{Said: "There is no plan any more.", Status: acp.ToolCallStatusCompleted}, nil
	}
	return Result{Said: Progress(plan), Status: acp.ToolCallStatusCompleted}, nil
}

// Progress says how far a plan is.
func Progress(plan []acp.PlanEntry) string {
	done := 0
	now := ""
	for i, e := range plan {
		switch e.Status {
		case acp.PlanEntryStatusCompleted:
			done++
		case acp.PlanEntryStatusInProgress:
			now = fmt.Sprintf(" Now: %d. %s", i+1, prose.Inline(e.Content))
		}
	}
	if done == len(plan) {
		return fmt.Sprintf("All %d steps of the plan are done.", done)
	}
	return fmt.Sprintf("%d of %d steps are done.%s", done, len(plan), now)
}
