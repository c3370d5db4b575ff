package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp"
)

// planID is the id of the plan that the library's agents have by default.
const planID acp.PlanID = "plan"

// Bounds of a plan.
const (
	maxSteps = 200
	maxStep  = 500 // characters
)

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
			return misusef("the plan has no step %s; it has %d", oneLine(arg, 20), len(plan))
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
	_ = k.send(&acp.PlanUpdate{Plan: &acp.PlanItems{PlanID: planID, Entries: plan}})
	k.s.mu.Lock()
	k.s.plan = plan
	k.s.mu.Unlock()
	if len(plan) == 0 {
		k.say("There is no plan any more.")
		return nil
	}
	k.say(planProgress(plan))
	return nil
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// planSteps makes a plan of steps that are separated by semicolons or lines.
func planSteps(text string) ([]acp.PlanEntry, error) {
	var plan []acp.PlanEntry
	for step := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		step = oneLine(step, maxStep)
		if step == "" {
			continue
		}
		if len(plan) == maxSteps {
			return nil, misusef("a plan has %d steps at most", maxSteps)
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

func planProgress(plan []acp.PlanEntry) string {
	done := 0
	now := ""
	for i, e := range plan {
		switch e.Status {
		case acp.PlanEntryStatusCompleted:
			done++
		case acp.PlanEntryStatusInProgress:
			now = fmt.Sprintf(" Now: %d. %s", i+1, inline(e.Content))
		}
	}
	if done == len(plan) {
		return fmt.Sprintf("All %d steps of the plan are done.", done)
	}
	return fmt.Sprintf("%d of %d steps are done.%s", done, len(plan), now)
}

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
		fmt.Fprintf(&b, "%d. [%s] %s\n", i+1, mark, inline(e.Content))
	}
	return b.String() + "\n" + planProgress(plan)
}
