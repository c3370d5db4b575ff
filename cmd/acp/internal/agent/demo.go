package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// Bounds of the demonstrations.
const (
	maxFlood = 1_000_000 // updates
	maxBig   = 64        // MB
)

// runDemo carries out /demo. What it shows is made for that, so that a client can be tried without
// a model.
func runDemo(k *task) error {
	args, err := words(k.rest, 2)
	if err != nil {
		return misusef("%v", err)
	}
	what := ""
	if len(args) > 0 {
		what = args[0]
	}
	number := func(def, limit int) (int, error) {
		if len(args) < 2 {
			return def, nil
		}
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 || n > limit {
			return 0, misusef("%q is no number from 1 to %d", prose.OneLine(args[1], 20), limit)
		}
		return n, nil
	}
	if len(args) == 2 && what != "flood" && what != "big" {
		return misusef("nothing may follow %q", prose.OneLine(what, 40))
	}
	switch what {
	case "":
		return k.demo()
	case "flood":
		n, err := number(1000, maxFlood)
		if err != nil {
			return err
		}
		return k.demoFlood(n)
	case "big":
		n, err := number(1, maxBig)
		if err != nil {
			return err
		}
		return k.demoBig(n)
	case "slow":
		k.say("This demonstration does nothing until you cancel it.")
		<-k.ctx.Done()
		return nil
	case "form":
		return k.demoForm()
	}
	return misusef("there is no demonstration %q", prose.OneLine(what, 40))
}

// demoFlood sends n small updates as fast as they are taken.
func (k *task) demoFlood(n int) error {
	k.say(fmt.Sprintf("A demonstration of %d updates:\n\n", n))
	for i := 1; i <= n && k.ctx.Err() == nil && k.turn.Err() == nil; i++ {
		k.say(fmt.Sprintf("update %d of %d\n", i, n))
	}
	return nil
}

// demoBig sends one message of n million bytes.
func (k *task) demoBig(n int) error {
	const line = "This line is part of a message that is long on purpose, to show how it is dealt with.\n\n"
	k.say(strings.Repeat(line, n*1_000_000/len(line)+1)[:n*1_000_000])
	return nil
}

// demoForm asks for something.
func (k *task) demoForm() error {
	low, high, length := int64(1), int64(10), uint32(40)
	answer, err := k.out.Elicit(acp.FormRequest{
		Message: "This form is a demonstration: what you fill in is shown to you and used for nothing.",
		Schema: acp.ElicitationSchema{
			Title: "A demonstration",
			Properties: []acp.ElicitationProperty{
				{Name: "name", Schema: &acpv2.StringPropertySchema{Title: "Name", Description: "Any text", MaxLength: &length}},
				{Name: "count", Schema: &acpv2.IntegerPropertySchema{Title: "Count", Minimum: &low, Maximum: &high, Default: &low}},
				{Name: "colour", Schema: &acpv2.StringPropertySchema{Title: "Colour", Enum: []string{"red", "green", "blue"}}},
				{Name: "sure", Schema: &acpv2.BooleanPropertySchema{Title: "Sure?", Default: new(false)}},
			},
			Required: []string{"name"},
		},
	})
	switch {
	case k.ctx.Err() != nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		k.say("Your client has no forms, so there is nothing to show.")
		return nil
	case err != nil:
		return fmt.Errorf("the form could not be shown: %w", err)
	case answer.Declined:
		k.say("You declined the form.")
		return nil
	case !answer.Accepted:
		k.say("You dismissed the form.")
		return nil
	}
	text, err := json.MarshalIndent(answer.Content, "", "  ")
	if err != nil {
		return err
	}
	head, _ := prose.Head(string(text), 50, 8<<10)
	k.say("You filled in:\n\n" + prose.Code("json", head))
	return nil
}

// demoFile is what the demonstration changes, in a directory of its own.
const demoFile = `package greet

// Greet greets.
func Greet(name string) string {
	return "Hello, " + name
}
`

// demo shows everything once. What it says it does it does, in a directory of its
// own that is removed in the end, or it says that it is for show.
func (k *task) demo() (err error) {
	dir, err := os.MkdirTemp("", "acp-demo-")
	if err != nil {
		return fmt.Errorf("the demonstration has no directory to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "greet.go")
	if err := os.WriteFile(file, []byte(demoFile), 0o600); err != nil {
		return err
	}
	steps := []func(dir, file string){k.demoThought, k.demoRead, k.demoEdit, k.demoTerminal, k.demoKinds, k.demoSubagent, k.demoEnd}
	for i, step := range steps {
		if k.ctx.Err() != nil || k.turn.Err() != nil {
			return nil
		}
		k.demoPlan(i)
		step(dir, file)
	}
	return nil
}

// demoSteps are the steps of the demonstration, for its plan.
var demoSteps = []string{
	"think and talk", "read a file", "change it, with permission", "run a command", "show the other kinds of tools",
	"start a subagent", "sum up",
}

// demoPlan shows the plan of the demonstration at a step. It is no plan of the
// session's: that comes back in the end.
func (k *task) demoPlan(at int) {
	plan := make([]acp.PlanEntry, len(demoSteps))
	for i, t := range demoSteps {
		plan[i] = acp.PlanEntry{Content: "Demonstration: " + t, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending}
		switch {
		case i < at:
			plan[i].Status = acp.PlanEntryStatusCompleted
		case i == at:
			plan[i].Status = acp.PlanEntryStatusInProgress
		}
	}
	k.send(&acp.PlanUpdate{Plan: &acp.PlanItems{PlanID: demoPlanID, Entries: plan}})
}

// demoPlanID is another than the one of the session's plan. Version 1 has one
// plan, so there the session's is shown again in the end.
const demoPlanID acp.PlanID = "demo"

func (k *task) demoThought(string, string) {
	k.think("This is a demonstration: there is no language model here, and nobody thinks. ")
	k.think("A thought is shown like this.")
	k.say("# A demonstration\n\nEverything a screen can show, once. Nothing here is real; I work in a directory of my own, " +
		"which is removed in the end.\n\nMarkdown has *emphasis*, **strong emphasis**, `code`, [links](https://example.com), and\n\n" +
		"1. lists,\n2. with numbers,\n   - and without;\n\n> quotations,\n\n| tables | numbers |\n|---|---:|\n| with | 1 |\n| rows | 20 |\n\n" +
		"and code:\n\n```go\nfunc main() {\n\tfmt.Println(\"hello, 世界 👋\")\n}\n```\n")
}

// demoRead shows a call that reads.
func (k *task) demoRead(_, file string) {
	c := k.out.ToolCall(acp.ToolCall{Name: "demo", Title: "Read greet.go (demonstration)", Kind: acp.ToolKindRead,
		Locations: []acp.ToolCallLocation{{Path: file, Line: new(uint32(1))}}})
	data, err := os.ReadFile(file)
	if err != nil {
		tool.Fail(c, err)
		return
	}
	_ = c.Text(prose.Code("go", string(data)))
	_ = c.Complete()
}

// demoEdit shows a change to a file with its permission.
func (k *task) demoEdit(_, file string) {
	c := k.out.ToolCall(acp.ToolCall{Name: "demo", Title: "Edit greet.go (demonstration)", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: file, Line: new(uint32(5))}}})
	after := strings.ReplaceAll(demoFile, `"Hello, " + name`, `"Hello, " + name + "!"`)
	_ = c.Change(acp.FileChange{Path: file, Before: demoFile, After: after})
	if !k.demoPermit(c, acp.Permission{Title: "Change greet.go?", Description: "A demonstration: the file is a temporary one."}) {
		return
	}
	_ = c.SetStatus(acp.ToolCallStatusInProgress)
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		tool.Fail(c, err)
		return
	}
	_ = c.Complete()
}

// demoPermit asks, whatever the mode is, and remembers nothing.
func (k *task) demoPermit(c *acp.ToolCallHandle, p acp.Permission) bool {
	p.Options = acp.DefaultPermissionOptions()
	d, err := c.Ask(p)
	switch {
	case k.ctx.Err() != nil:
		_ = c.SetStatus(acp.ToolCallStatusCancelled)
		return false
	case err != nil:
		tool.Fail(c, fmt.Errorf("the question could not be asked: %w", err))
		return false
	case !d.Allowed:
		tool.Fail(c, errors.New("not done: you did not allow it"))
		return false
	}
	return true
}

// demoTerminal shows a command with its permission and its output.
func (k *task) demoTerminal(string, string) {
	line := `for i in 1 2 3; do printf '\033[32mok\033[0m   test %s\n' "$i"; sleep 0.2; done; printf '\033[1mPASS\033[0m\n'`
	if runtime.GOOS == "windows" {
		line = `echo ok test 1& echo ok test 2& echo PASS`
	}
	dir := k.turn.Session().Cwd()
	c := k.out.ToolCall(acp.ToolCall{Name: "demo", Title: "Print three lines (demonstration)", Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusPending})
	if !k.demoPermit(c, acp.Permission{Title: "Run this command?", Command: line, Cwd: dir, Description: "A demonstration: it only prints."}) {
		return
	}
	_ = c.SetStatus(acp.ToolCallStatusInProgress)
	if _, err := tool.Exec(c, k.s.agent.keys, line, dir); err != nil {
		if k.ctx.Err() == nil {
			tool.Fail(c, err)
		}
		return
	}
	_ = c.Complete()
}

// demoKinds shows a call of each of the other kinds, one of which fails.
func (k *task) demoKinds(_, file string) {
	for _, d := range []struct {
		kind  acp.ToolKind
		title string
		text  string
		fails bool
	}{
		{acp.ToolKindSearch, "Search for “Greet”", "greet.go:3: // Greet greets.\ngreet.go:4: func Greet(name string) string {", false},
		{acp.ToolKindFetch, "Fetch https://example.com", "Nothing was fetched.", false},
		{acp.ToolKindThink, "Consider", "Nothing was considered.", false},
		{acp.ToolKindMove, "Move greet.go to hello.go", "Nothing was moved.", false},
		{acp.ToolKindDelete, "Delete greet.go", "This is how a tool looks that has failed. Nothing was deleted.", true},
		{acp.ToolKindSwitchMode, "Switch to another mode", "The mode is what it was.", false},
		{acp.ToolKindOther, "Do something else", "Nothing was done.", false},
	} {
		c := k.out.ToolCall(acp.ToolCall{Name: "demo", Title: d.title + " (only for show)", Kind: d.kind})
		if d.kind == acp.ToolKindSearch {
			_ = c.SetLocations(acp.ToolCallLocation{Path: file, Line: new(uint32(3))}, acp.ToolCallLocation{Path: file, Line: new(uint32(4))})
		}
		if d.fails {
			tool.Fail(c, errors.New(d.text))
			continue
		}
		_ = c.Text(d.text)
		_ = c.Complete()
	}
}

// demoSubagent shows a session that works for this one.
func (k *task) demoSubagent(string, string) {
	child := acp.SessionID(k.s.nextID("child"))
	running := acp.Set[acp.StateUpdate](&acp.RunningStateUpdate{})
	k.send(&acp.SubagentUpdate{
		SessionID: child, Title: acp.Set("Subagent (demonstration)"), Description: acp.Set("It says one sentence."), State: running,
	})
	// What a child says is its own conversation: it is not kept with this one.
	_ = k.turn.Session().Child(child).Say("I am a demonstration of a subagent, and this is all I say.")
	k.send(&acp.SubagentUpdate{
		SessionID: child, State: acp.Set[acp.StateUpdate](&acp.IdleStateUpdate{StopReason: acp.StopEndTurn}),
	})
}

// demoEnd shows a notice and the usage, and shows the session's own plan again, which version 1
// clients have replaced.
func (k *task) demoEnd(string, string) {
	k.send(&acp.Notice{Severity: acp.NoticeSeverityInfo, Title: "A notice", Description: "It is not part of the conversation. It is a demonstration."})
	k.send(&acp.UsageUpdate{Used: 12_345, Size: 200_000, Cost: acp.Set(acp.Cost{Amount: 0.01, Currency: "USD"})})
	k.say("That was it. The usage that is shown, 12,345 of 200,000 tokens and 0.01 USD, is invented: without a language model nothing is used and nothing costs.")
	k.s.mu.Lock()
	plan := k.s.plan
	k.s.mu.Unlock()
	k.demoPlan(len(demoSteps))
	if len(plan) > 0 {
		k.send(&acp.PlanUpdate{Plan: &acp.PlanItems{PlanID: tool.PlanID, Entries: plan}})
	}
}
