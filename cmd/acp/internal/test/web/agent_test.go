//go:build unix

package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// playAgent is an agent that does what its prompts say:
//
//	demo            everything that an agent can show
//	ask TITLE|…     questions, one after the other, and what was answered
//	both A|B        two questions at once, A first, and what was answered
//	held PIPE TITLE a question, once somebody has written into a named pipe
//	names N         a character, by its number, in everything that has a name, and a question
//	attacks N FILE  attacks of a corpus, from the Nth on
//	hostile [N FILE] hostileText, or attacks of a corpus, from the Nth on, in what else an agent can fill, a question for an address, and an error
//	form            a form, and what was filled in
//	sheet WHAT      a question of a kind (see sheet)
//	options         a model and a switch to choose
//	chosen          what was chosen
//	count N [US]    N numbers in one message, one every US microseconds
//	stream N US [P] the same, but as many as are due, so that they come at that rate however late each of them is, in
//	                paragraphs of P
//	lines N [US]    N paragraphs with numbers in one message, one every US microseconds
//	messages N [US] [FROM] N messages with numbers, one every US microseconds, the first one with the number FROM
//	delegate TEXT   a subagent says the text
//	fail TEXT       an error
//	suggest A|B     suggests the prompts A and B, in which ^ is what nobody sees; without any, withdraws them
//	cursor TEXT     the text, behind which the session can be forked
//	skill           has a skill, and prompts that invoke it say so
//	part            a tool call that a subagent does
//	touch TITLE     a question about a tool call that was not announced, which then writes in colours
//	wait            nothing, until it is cancelled
//	say TEXT        the text, and so does anything else
func playAgent() error {
	a := &acp.Agent{
		Info:    acp.Implementation{Name: "player", Version: "1"},
		Content: acp.PromptContent{Image: true, EmbeddedContext: true, Skill: true},
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			if _, err := os.Stat(filepath.Join(s.Cwd(), "choosy")); err == nil {
				return s.SetOptions(choices()...)
			}
			if why, err := os.ReadFile(filepath.Join(s.Cwd(), "refused")); err == nil {
				return &acp.Failure{Message: string(why), Reason: "hostile"}
			}
			return s.SetCommands(
				acp.SlashCommand{Name: "plan", Description: "make a plan", Input: &acpv2.TextCommandInput{Hint: "for what"}},
				acp.SlashCommand{Name: "review", Description: "look at the changes"},
			)
		},
		ForkSession:   func(context.Context, *acp.AgentSession, acp.SessionID) error { return nil },
		ForkSessionAt: func(context.Context, *acp.AgentSession, acp.SessionID, acpv2.CursorID) error { return nil },
		SessionOptions: func(_ context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
			if _, err := os.Stat(filepath.Join(q.Cwd, "choosy")); err != nil {
				return nil, &acp.Failure{Message: "not here", Reason: "x"}
			}
			return &acp.OptionsPreview{ConfigOptions: choices()}, nil
		},
		Prompt: play,
	}
	return a.Serve(context.Background(), acp.Stdio())
}

func choices() []acp.SessionConfigOption {
	return []acp.SessionConfigOption{
		{ConfigID: "model", Name: "Model", Category: acp.SessionConfigOptionCategoryModel, Kind: &acp.SessionConfigSelect{
			CurrentValue: "small", Options: acpv2.SessionConfigSelectOptionList{{Value: "small", Name: "Small"}, {Value: "large", Name: "Large"}},
		}},
		{ConfigID: "loud", Name: "Loud", Kind: &acpv2.SessionConfigBoolean{}},
	}
}

func play(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(t.Text()), " ")
	number := func(i, otherwise int) int {
		if f := strings.Fields(rest); i < len(f) {
			if n, err := strconv.Atoi(f[i]); err == nil {
				return n
			}
		}
		return otherwise
	}
	switch verb {
	case "demo":
		return acp.StopEndTurn, demo(ctx, t)
	case "ask":
		for title := range strings.SplitSeq(rest, "|") {
			answer, err := t.Ask(acp.Permission{Title: title, Command: "rm -rf build", Cwd: "/project"})
			if err != nil {
				return "", err
			}
			if err := t.Say("answered: " + string(answer.Option.Kind) + "\n"); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	case "fail":
		return "", &acp.Failure{Message: rest, Reason: "overloaded"}
	case "touch":
		call := acp.ToolCallUpdate{ToolCallID: "touch", Title: acp.Set(rest), Kind: acp.Set(acpv2.ToolKindExecute)}
		answer, err := t.Ask(acp.Permission{Title: rest, Subject: &acp.ToolCallPermissionSubject{ToolCall: call}})
		if err != nil || !answer.Allowed {
			return acp.StopEndTurn, err
		}
		call.Status = acp.Set(acpv2.ToolCallStatusCompleted)
		call.Content = acp.Set([]acp.ToolCallContent{&acpv2.Content{Content: acp.Text("\x1b[32mok\x1b[0m\ntouched\n")}})
		return acp.StopEndTurn, t.Send(&call)
	case "both":
		first, second, _ := strings.Cut(rest, "|")
		return acp.StopEndTurn, both(t, first, second)
	case "held":
		pipe, title, _ := strings.Cut(rest, " ")
		if _, err := os.ReadFile(pipe); err != nil {
			return "", err
		}
		_, err := t.Ask(acp.Permission{Title: title})
		return acp.StopEndTurn, err
	case "hostile":
		_, file, _ := strings.Cut(rest, " ")
		text, name, err := hostileTexts(number(0, 0), file)
		if err != nil {
			return "", err
		}
		return "", hostile(t, text, name)
	case "names":
		return acp.StopEndTurn, names(t, number(0, 0x202e))
	case "attacks":
		_, file, _ := strings.Cut(rest, " ")
		return acp.StopEndTurn, attack(t, file, number(0, 0))
	case "form":
		answer, err := t.Elicit(acp.FormRequest{Message: "Who are you?", Schema: acp.ElicitationSchema{
			Properties: []acpv2.ElicitationProperty{{Name: "name", Schema: &acpv2.StringPropertySchema{Title: "Name"}}}, Required: []string{"name"},
		}})
		if err != nil {
			return "", err
		}
		data, _ := json.Marshal(answer.Content)
		return acp.StopEndTurn, t.Say("form: " + string(data))
	case "sheet":
		return acp.StopEndTurn, sheet(t, rest)
	case "options":
		return acp.StopEndTurn, t.Session().SetOptions(choices()...)
	case "chosen":
		return acp.StopEndTurn, t.Say(fmt.Sprintf("%s, loud: %t", t.Session().Option("model"), t.Session().OptionOn("loud")))
	case "count":
		for i := range number(0, 100) {
			if !pauses(ctx, number(1, 0)) {
				return acp.StopCancelled, nil
			}
			if err := t.Say(fmt.Sprintf("%d ", i)); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, t.Say("end")
	case "stream":
		begin := time.Now()
		for i := range number(0, 100) {
			late := time.Since(begin) - time.Duration(i*number(1, 0))*time.Microsecond
			if late < 0 && !pauses(ctx, int(-late/time.Microsecond)) {
				return acp.StopCancelled, nil
			}
			after := " "
			if n := number(2, 0); n > 0 && (i+1)%n == 0 {
				after = "\n\n"
			}
			if err := t.Say(fmt.Sprint(i, after)); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, t.Say("end")
	case "lines":
		for i := range number(0, 100) {
			if !pauses(ctx, number(1, 0)) {
				return acp.StopCancelled, nil
			}
			if err := t.Say(fmt.Sprintf("line %d is one of *many*\n\n", i)); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, t.Say("end")
	case "messages":
		for i := number(2, 0); i < number(2, 0)+number(0, 100); i++ {
			if !pauses(ctx, number(1, 0)) {
				return acp.StopCancelled, nil
			}
			if err := t.Send(&acp.AgentMessage{MessageID: acp.MessageID(fmt.Sprintf("m%d-%d", time.Now().UnixNano(), i)), Content: acp.Set([]acp.ContentBlock{acp.Text(fmt.Sprintf("message %d", i))})}); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	case "delegate":
		sub := acp.SessionID("sub")
		child := t.Session().Child(sub)
		return acp.StopEndTurn, errors.Join(
			t.Subagent(&acp.SubagentUpdate{SessionID: sub, Title: acp.Set("Searcher"), State: acp.Set[acp.StateUpdate](&acp.RunningStateUpdate{})}),
			child.Send(&acp.UserMessage{MessageID: "task", Content: acp.Set([]acp.ContentBlock{acp.Text("Search it.")})}),
			child.Say(rest),
			t.Subagent(&acp.SubagentUpdate{SessionID: sub, State: acp.Set[acp.StateUpdate](&acp.IdleStateUpdate{})}),
			t.Say("searched"),
		)
	case "wait":
		if err := t.Say("waiting"); err != nil {
			return "", err
		}
		<-ctx.Done()
		return acp.StopCancelled, nil
	case "suggest":
		list := []acpv2.PromptSuggestion{}
		for text := range strings.SplitSeq(strings.ReplaceAll(rest, "^", "\x1b\u202e"), "|") {
			if text != "" {
				list = append(list, acpv2.PromptSuggestion{Prompt: []acp.ContentBlock{acp.Text(text)}})
			}
		}
		return acp.StopEndTurn, t.Send(&acpv2.PromptSuggestionsUpdate{Suggestions: list})
	case "drawn": // in pieces, as models do
		for _, piece := range []string{"so:\n$$\na_1 * b_2", " * c\n$$\nand\n\\[ x = \\frac{a}{b} \\]\n\n```mermaid\ngraph TD\n", "  A --> B\n```\n\n\\[1\\] costs $$ 5 and $$ 6"} {
			if err := t.Say(piece); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	case "say":
		return acp.StopEndTurn, t.Say(rest)
	case "cursor":
		id := acp.MessageID("m-" + rest)
		return acp.StopEndTurn, errors.Join(
			t.Send(&acp.AgentMessage{MessageID: id, Content: acp.Set([]acp.ContentBlock{acp.Text(rest)})}),
			t.Send(&acpv2.CursorUpdate{CursorID: acpv2.CursorID("c-" + rest), Capabilities: acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)}),
				Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: id, Position: acpv2.CursorAnchorPositionAfter}}))
	case "skill":
		return acp.StopEndTurn, t.Session().SetSkills(acpv2.Skill{Name: "polish", Description: "make it shine", Path: "/s/SKILL.md"})
	case "part":
		sub := acp.SessionID("sub")
		return acp.StopEndTurn, errors.Join(
			t.Subagent(&acp.SubagentUpdate{SessionID: sub, Title: acp.Set("Searcher"), State: acp.Set[acp.StateUpdate](&acp.IdleStateUpdate{})}),
			t.Send(&acp.ToolCallUpdate{ToolCallID: "part", Title: acp.Set("Delegate"), Status: acp.Set(acpv2.ToolCallStatusFailed),
				Content: acp.Set([]acp.ToolCallContent{&acpv2.SessionReference{SessionID: sub}})}))
	}
	if skill, ok := t.Blocks()[0].(*acpv2.SkillReference); ok {
		return acp.StopEndTurn, t.Say("the skill " + skill.Name)
	}
	return acp.StopEndTurn, t.Say("echo: " + t.Text())
}

// pauses waits some microseconds, and reports whether the turn goes on.
func pauses(ctx context.Context, us int) bool {
	if us == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(time.Duration(us) * time.Microsecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// both asks two questions at once.
func both(t *acp.Turn, titles ...string) error {
	var asking sync.WaitGroup
	errs := make([]error, len(titles))
	for i, title := range titles {
		asking.Go(func() {
			answer, err := t.Ask(acp.Permission{Title: title})
			if err == nil {
				err = t.Say(title + " answered: " + string(answer.Option.Kind) + "\n")
			}
			errs[i] = err
		})
	}
	asking.Wait()
	return errors.Join(errs...)
}

const words = `## What I did

The test failed because **the clock** of the machine was an hour ahead. Now:

- the clock is passed in,
- ` + "`TestClock`" + ` runs with three clocks,
- see [the standard](https://example.com/clock).

| case | before | after |
|---|---:|---:|
| winter | 3 | 0 |
| summer | 5 | 0 |

` + "```go\nfunc now(clock func() time.Time) string {\n\treturn clock().Format(time.RFC3339) // not time.Now()\n}\n```\n"

const patch = `diff --git a/clock.go b/clock.go
--- a/clock.go
+++ b/clock.go
@@ -1,4 +1,4 @@
 package clock
 
-func now() string {
-	return time.Now().Format(time.RFC3339)
+func now(clock func() time.Time) string {
+	return clock().Format(time.RFC3339)
 }
`

// demo shows everything.
func demo(_ context.Context, t *acp.Turn) error {
	s := t.Session()
	send := func(all ...acp.SessionUpdate) (err error) {
		for _, u := range all {
			err = errors.Join(err, t.Send(u))
		}
		return err
	}
	output := base64.StdEncoding.EncodeToString([]byte("\x1b[32mok\x1b[0m  \tclock\t0.012s\n\x1b[1;31mFAIL\x1b[0m\tother\n"))
	return errors.Join(
		s.SetTitle("Mend the clock"),
		t.Think("The clock is read in two places. I look at both."),
		send(
			&acp.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: "p", Entries: []acp.PlanEntry{
				{Content: "Find where the clock is read", Status: acp.PlanEntryStatusCompleted, Priority: acp.PlanEntryPriorityHigh},
				{Content: "Pass it in", Status: acp.PlanEntryStatusInProgress, Priority: acp.PlanEntryPriorityMedium},
				{Content: "Run the tests", Status: acp.PlanEntryStatusPending, Priority: acp.PlanEntryPriorityLow},
			}}},
			&acp.ToolCallUpdate{ToolCallID: "read", Title: acp.Set("Read clock.go"), Kind: acp.Set(acp.ToolKindRead), Status: acp.Set(acp.ToolCallStatusCompleted), Locations: acp.Set([]acp.ToolCallLocation{{Path: "/project/clock.go"}})},
			&acp.ToolCallUpdate{ToolCallID: "edit", Title: acp.Set("Edit clock.go"), Kind: acp.Set(acp.ToolKindEdit), Status: acp.Set(acp.ToolCallStatusCompleted), Content: acp.Set([]acp.ToolCallContent{
				&acp.Diff{Changes: []acp.DiffChange{{Operation: &acpv2.DiffModify{Path: "/project/clock.go"}}}, Patch: &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch}},
			})},
			&acp.TerminalUpdate{TerminalID: "t", Command: acp.Set("go test ./..."), Cwd: acp.Set("/project")},
			&acpv2.TerminalOutputChunk{TerminalID: "t", Data: output},
			&acp.TerminalUpdate{TerminalID: "t", ExitStatus: acp.Set(acp.TerminalExitStatus{ExitCode: new(int64(1))})},
			&acp.ToolCallUpdate{ToolCallID: "run", Title: acp.Set("Run the tests"), Kind: acp.Set(acp.ToolKindExecute), Status: acp.Set(acp.ToolCallStatusFailed), Content: acp.Set([]acp.ToolCallContent{&acp.TerminalContent{TerminalID: "t"}})},
		),
		t.Say(words),
	)
}

// names has a character in everything that has a name.
func names(t *acp.Turn, char int) error {
	name := func(s string) string { return s + string(rune(char)) + "end" }
	s := t.Session()
	value := acpv2.SessionConfigValueID("v")
	err := errors.Join(
		s.SetTitle(name("title")),
		s.SetCommands(acp.SlashCommand{Name: name("command"), Description: name("about"), Input: &acpv2.TextCommandInput{Hint: name("hint")}}),
		s.SetOptions(acpv2.SessionConfigOption{ConfigID: "o", Name: name("option"), Description: name("about"), Kind: &acpv2.SessionConfigSelect{
			CurrentValue: value, Options: acpv2.SessionConfigSelectOptionList{{Value: value, Name: name("value")}},
		}}),
		t.Send(&acpv2.Notice{Severity: acpv2.NoticeSeverityInfo, Title: name("notice"), Description: name("description")}),
	)
	if err != nil {
		return err
	}
	_, err = t.Ask(acp.Permission{Title: name("question"), Command: name("run"), Cwd: "/" + name("cwd"), Options: []acp.PermissionOption{
		{OptionID: "a", Name: name("allow"), Kind: acp.PermissionOptionKindAllowOnce}, {OptionID: "r", Name: name("reject"), Kind: acp.PermissionOptionKindRejectOnce},
	}})
	if err != nil {
		return err
	}
	_, err = t.Elicit(acp.FormRequest{Message: name("form"), Schema: acp.ElicitationSchema{Title: name("schema"), Description: name("schema"), Properties: []acpv2.ElicitationProperty{
		{Name: "text", Schema: &acpv2.StringPropertySchema{Title: name("field"), Description: name("about")}},
		{Name: "one", Schema: &acpv2.StringPropertySchema{Title: name("field"), Enum: []string{name("x"), name("y")}}},
	}}})
	return err
}
