package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// runPlan carries out /plan. Each change sends the whole plan, since the tool replaces it.
func runPlan(k *task) error {
	text := strings.TrimSpace(k.rest)
	verb, arg, _ := strings.Cut(text, " ")
	arg = strings.TrimSpace(arg)
	k.s.mu.Lock()
	plan := slices.Clone(k.s.plan)
	k.s.mu.Unlock()
	switch {
	case text == "":
		if len(plan) == 0 {
			k.say("There is no plan. Make one with `/plan STEP; STEP; …`.")
			return nil
		}
		k.say(planText(plan))
		return nil
	case text == "next":
		if len(plan) == 0 {
			return misusef("there is no plan")
		}
		next(plan)
	case verb == "done" && isNumber(arg):
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || n > len(plan) {
			return misusef("the plan has no step %s; it has %d", prose.OneLine(arg, 20), len(plan))
		}
		plan[n-1].Status = acp.PlanEntryStatusCompleted
		begin(plan)
	case text == "clear":
		plan = []acp.PlanEntry{}
	default:
		steps, err := planSteps(text)
		if err != nil {
			return err
		}
		plan = steps
	}
	in := tool.PlanInput{Steps: make([]tool.Step, len(plan))}
	for i, e := range plan {
		in.Steps[i] = tool.Step{Text: e.Content, Status: e.Status}
	}
	return k.use(tool.Plan, in, "")
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// planSteps makes a plan of steps that are separated by semicolons or lines.
func planSteps(text string) ([]acp.PlanEntry, error) {
	var plan []acp.PlanEntry
	for step := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		step = prose.OneLine(step, tool.MaxStep)
		if step == "" {
			continue
		}
		if len(plan) == tool.MaxSteps {
			return nil, misusef("a plan has %d steps at most", tool.MaxSteps)
		}
		plan = append(plan, acp.PlanEntry{Content: step, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending})
	}
	if len(plan) == 0 {
		return nil, misusef("there is no step in it")
	}
	begin(plan)
	return plan, nil
}

// next ends the step that is in progress and begins the one after it.
func next(plan []acp.PlanEntry) {
	for i := range plan {
		if plan[i].Status == acp.PlanEntryStatusInProgress {
			plan[i].Status = acp.PlanEntryStatusCompleted
		}
	}
	begin(plan)
}

// begin begins the first step that is left, unless one is in progress.
func begin(plan []acp.PlanEntry) {
	for i := range plan {
		if plan[i].Status == acp.PlanEntryStatusInProgress {
			return
		}
	}
	for i := range plan {
		if plan[i].Status == acp.PlanEntryStatusPending {
			plan[i].Status = acp.PlanEntryStatusInProgress
			return
		}
	}
}

// planText lists the steps of a plan.
func planText(plan []acp.PlanEntry) string {
	var b strings.Builder
	for i, e := range plan {
		mark := " "
		switch e.Status {
		case acp.PlanEntryStatusCompleted:
			mark = "x"
		case acp.PlanEntryStatusInProgress:
			mark = ">"
		}
		fmt.Fprintf(&b, "%d. [%s] %s\n", i+1, mark, prose.Inline(e.Content))
	}
	return b.String() + "\n" + tool.Progress(plan)
}
