package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestPermissionCommandOnce shows a command once, though the tool call that runs it is named by it.
func TestPermissionCommandOnce(t *testing.T) {
	call := &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("go test ./..."), RawInput: []byte(`{"command":"go test ./..."}`)}
	for _, req := range []*acp.PermissionRequest{
		{Title: "Run it?", ToolCall: call, Subject: &acpv2.CommandPermissionSubject{Command: "go test ./...", Cwd: "/w"}},
		{Title: "Run it?", ToolCall: call},
	} {
		got := strings.Join(Permission(req, nil, 80, plainTheme()), "\n")
		if strings.Count(got, "go test") != 1 {
			t.Errorf("%T:\n%s", req.Subject, got)
		}
	}
	call.Title = acpv2.Set("Test everything")
	got := strings.Join(Permission(&acp.PermissionRequest{Title: "Run it?", ToolCall: call}, nil, 80, plainTheme()), "\n")
	if !strings.Contains(got, "Test everything") {
		t.Errorf("what the call is about is not told:\n%s", got)
	}
}

// TestPermissionShapes shows what would be run in the shapes in which agents tell it, or that it is not
// known, in the dialog and in what is kept of the question.
func TestPermissionShapes(t *testing.T) {
	text := acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: acpv2.Text("Requesting approval to Running: touch x")}})
	for _, tt := range []struct {
		name  string
		call  acpv2.ToolCallUpdate
		want  string // in the dialog
		line  string // in the conversation
		title string // of the tool call
	}{
		{"P", acpv2.ToolCallUpdate{RawInput: []byte(`{"command":"touch x","commands":["touch x"]}`)}, "$ touch x", "waiting for an answer", "demo shell: touch x"},
		{"Z", acpv2.ToolCallUpdate{RawInput: []byte(`{"command":["bash","-lc","touch x"],"call_id":"1"}`)}, "$ touch x", "waiting for an answer", "demo shell: touch x"},
		{"K", acpv2.ToolCallUpdate{Content: text}, "not certain", "Asks: demo shell $ touch x", "demo shell: touch x"},
		{"nothing", acpv2.ToolCallUpdate{}, "It is not known what would run.", "Asks: demo shell (it is not known what would run)", "demo shell"},
	} {
		call := tt.call
		call.ToolCallID, call.Title, call.Kind = "c", acpv2.Set("demo shell"), acpv2.Set(acpv2.ToolKindExecute)
		req := &acp.PermissionRequest{Title: "demo shell", ToolCall: &call, Subject: &acpv2.ToolCallPermissionSubject{ToolCall: call}}
		if got := strings.Join(Permission(req, nil, 80, plainTheme()), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: the dialog lacks %q:\n%s", tt.name, tt.want, got)
		}
		c := transcript.New(transcript.Config{})
		c.Apply(&call)
		c.Asked(&acpv2.RequestPermissionRequest{Title: "demo shell", Subject: req.Subject})
		tr := New(plainTheme())
		tr.SetWidth(80)
		tr.Set(c.Snapshot(), nil)
		got := strings.Join(tr.Lines(0, 20), "\n")
		for _, want := range []string{tt.line, tt.title} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the conversation lacks %q:\n%s", tt.name, want, got)
			}
		}
	}
}

// TestPermissionOnLine: the line of a tool call shows the answer to the question about it, and
// the question has rows of its own only where that line does not show what was asked for.
func TestPermissionOnLine(t *testing.T) {
	options := []acpv2.PermissionOption{
		{OptionID: "y", Name: "Allow", Kind: acpv2.PermissionOptionKindAllowOnce},
		{OptionID: "a", Name: "Allow, and the like", Kind: acpv2.PermissionOptionKindAllowAlways},
		{OptionID: "n", Name: "Reject", Kind: acpv2.PermissionOptionKindRejectOnce},
		{OptionID: "N", Name: "Never", Kind: acpv2.PermissionOptionKindRejectAlways},
		{OptionID: "?", Name: "Ponder", Kind: "_own"},
	}
	call := func(title string) *acpv2.ToolCallUpdate {
		return &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set(title), Kind: acpv2.Set(acpv2.ToolKindEdit), Status: acpv2.Set(acpv2.ToolCallStatusCompleted)}
	}
	selected := func(id acpv2.PermissionOptionID) acpv2.RequestPermissionOutcome {
		return &acpv2.SelectedPermissionOutcome{OptionID: id}
	}
	about := &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "c"}}
	runs := func(command string) acpv2.RequestPermissionSubject {
		return &acpv2.CommandPermissionSubject{Command: command, ToolCallID: "c"}
	}
	for _, tt := range []struct {
		name    string
		subject acpv2.RequestPermissionSubject
		outcome acpv2.RequestPermissionOutcome
		then    string // the title of the call afterwards
		want    []string
	}{
		{"allowed", about, selected("y"), "", []string{"✓ ✎ Edit a.go · allowed"}},
		{"always", about, selected("a"), "", []string{"✓ ✎ Edit a.go · always allowed"}},
		{"rejected", about, selected("n"), "", []string{"✓ ✎ Edit a.go · rejected"}},
		{"never", about, selected("N"), "", []string{"✓ ✎ Edit a.go · always rejected"}},
		{"cancelled", about, &acpv2.CancelledPermissionOutcome{}, "", []string{"✓ ✎ Edit a.go · not answered"}},
		{"an answer of its own kind", about, selected("?"), "", []string{"✓ ✎ Edit a.go", "• Answered (Ponder): May I?"}},
		{"not offered", about, selected("x"), "", []string{"✓ ✎ Edit a.go", "? Answered with an option that was not offered: May I?"}},
		{"another command", runs("rm x"), selected("y"), "", []string{"✓ ✎ Edit a.go", "✓ Allowed: May I? $ rm x"}},
		{"the command is shown", runs("rm x"), selected("y"), "Run rm x", []string{"✓ ✎ Run rm x · allowed"}},
		{"about nothing", nil, selected("y"), "", []string{"✓ ✎ Edit a.go", "✓ Allowed: May I?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := transcript.New(transcript.Config{})
			tr := New(plainTheme())
			tr.SetWidth(80)
			step := func(changes ...transcript.Change) {
				tr.Set(c.Snapshot(), changes)
				drawAll(tr)
			}
			step(c.Apply(call("Edit a.go")))
			asked, changes := c.Asked(&acpv2.RequestPermissionRequest{Title: "May I?", Subject: tt.subject, Options: options})
			step(changes...)
			step(c.Answered(asked, tt.outcome))
			if tt.then != "" {
				step(c.Apply(call(tt.then)))
			}
			whole := New(plainTheme())
			whole.SetWidth(80)
			whole.Set(c.Snapshot(), nil)
			for name, tr := range map[string]*Transcript{"by steps": tr, "at once": whole} {
				var got []string
				for _, l := range drawAll(tr) {
					if l != "" {
						got = append(got, strings.TrimSpace(l))
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// TestPermissionSaidOnce: whatever an agent repeats of a command, the dialog shows it once.
func TestPermissionSaidOnce(t *testing.T) {
	long := "cd work && touch one two three four five six"
	content := func(s string) acpv2.ToolCallContent { return &acpv2.Content{Content: acpv2.Text(s)} }
	for _, tt := range []struct {
		name, title, description, callTitle string
		content                             []acpv2.ToolCallContent
		input                               string
		heading                             string
	}{
		{"title and call", long, "", long, nil, `{"command":"` + long + `"}`, "Run this command?"},
		{"quoted", "`" + long + "`", "", "`" + long + "`", nil, `{"command":"` + long + `"}`, "Run this command?"},
		{"content", "Bash", "", "Bash", []acpv2.ToolCallContent{content("```sh\n" + long + "\n```"), content("$ " + long)}, `{"command":"` + long + `"}`, "Bash"},
		{"four times", long, long, "`" + long + "`", []acpv2.ToolCallContent{content("```\n" + long + "\n```")}, `{"command":"` + long + `"}`, "Run this command?"},
		{"no command", "Change x?", "Change  x?", "Change x?", []acpv2.ToolCallContent{content("Change x?")}, "", "Change x?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set(tt.callTitle), Content: acpv2.Set(tt.content)}
			if tt.input != "" {
				call.RawInput, call.Kind = []byte(tt.input), acpv2.Set(acpv2.ToolKindExecute)
			}
			req := &acp.PermissionRequest{Title: tt.title, Description: tt.description, ToolCall: call, Subject: &acpv2.ToolCallPermissionSubject{ToolCall: *call}}
			lines := Permission(req, nil, 80, plainTheme())
			got := strings.Join(lines, "\n")
			want := long
			if tt.input == "" {
				want = tt.title
			}
			if strings.Count(strings.Join(strings.Fields(got), " "), want) != 1 || !strings.Contains(lines[0], tt.heading) {
				t.Errorf("\n%s", got)
			}
		})
	}
}

// TestAwaits: a tool call says that it waits for an answer for as long as it does, whatever the agent
// says of its status.
func TestAwaits(t *testing.T) {
	c := transcript.New(transcript.Config{})
	tr := New(plainTheme())
	tr.SetWidth(80)
	sees := func(changes []transcript.Change, want string) {
		t.Helper()
		for _, full := range []bool{false, true} {
			if full {
				changes = nil
			}
			tr.Set(c.Snapshot(), changes)
			if got := strings.Join(tr.Lines(0, 20), "\n"); !strings.Contains(got, "$ touch x · "+want) {
				t.Errorf("lacks %q (%t):\n%s", want, full, got)
			}
		}
	}
	call := &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("touch x"), Kind: acpv2.Set(acpv2.ToolKindExecute), Status: acpv2.Set(acpv2.ToolCallStatusInProgress)}
	sees([]transcript.Change{c.Apply(call)}, "running")
	seq, changes := c.Asked(&acpv2.RequestPermissionRequest{Title: "touch x?", Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "c"}}})
	sees(changes, "waiting for an answer")
	sees([]transcript.Change{c.Answered(seq, &acpv2.CancelledPermissionOutcome{})}, "running")
}

func TestLineCount(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "\n\n": 0, "a": 1, "a\nb\n": 2, "```go\na\nb\n```": 2, "````\n```\na\n````\n": 2, "```\n```": 0,
		"```\na": 2, "text\n```": 2, "```": 1, "a\n\nb": 3,
	} {
		if got := lineCount(in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// TestPermissionWhole: the dialog shows the input of a tool if nothing else says what it does, with the lines of texts as
// lines, marks the title as the agent's, and writes out what nobody sees in every part.
func TestPermissionWhole(t *testing.T) {
	const unseen, written = "a\u200bb\u202e", `a\u{200b}b\u{202e}`
	text := acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: acpv2.Text(unseen)}})
	diff := acpv2.Set([]acpv2.ToolCallContent{&acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffModify{Path: "/w/" + unseen}}},
		Patch: &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: "diff --git a/w/x b/w/x\n--- a/w/x\n+++ b/w/x\n@@ -1 +1 @@\n-a\n+" + unseen + "\n"}}})
	for _, tt := range []struct {
		name  string
		title string
		call  acpv2.ToolCallUpdate
		want  []string
		not   string
	}{
		{"arguments", "mail: send", acpv2.ToolCallUpdate{RawInput: []byte(`{"to":"boss@example.com","body":"I quit"}`), Content: text}, []string{"The agent says: mail: send", "to: boss@example.com", "body: I quit"}, `"to"`},
		{"a plan", "Ready to code?", acpv2.ToolCallUpdate{RawInput: []byte(`{"plan":"1. Delete the tests\n2. Push to main\n"}`)}, []string{"1. Delete the tests\n", "2. Push to main"}, `\n2`},
		{"the title", unseen, acpv2.ToolCallUpdate{}, []string{written}, ""},
		{"the content", "x", acpv2.ToolCallUpdate{Content: text}, []string{written}, ""},
		{"the change", "x", acpv2.ToolCallUpdate{Content: diff, RawInput: []byte(`{"n":1}`)}, []string{"+ " + written, "/w/" + written}, "n: 1"},
		{"the place", "x", acpv2.ToolCallUpdate{Locations: acpv2.Set([]acpv2.ToolCallLocation{{Path: "/w/" + unseen}})}, []string{"/w/" + written}, ""},
		{"the input", "x", acpv2.ToolCallUpdate{RawInput: []byte(`{"url":"` + unseen + `"}`)}, []string{"url: " + written}, ""},
		{"the command", "List the files", acpv2.ToolCallUpdate{Kind: acpv2.Set(acpv2.ToolKindExecute), RawInput: []byte(`{"command":"` + unseen + `"}`)}, []string{"The agent says: List the files", "$ " + written}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.call.ToolCallID = "c"
			got := strings.Join(Permission(&acp.PermissionRequest{Title: tt.title, ToolCall: &tt.call, Subject: &acpv2.ToolCallPermissionSubject{ToolCall: tt.call}}, nil, 200, plainTheme()), "\n") + "\n"
			for _, want := range tt.want {
				if !strings.Contains(strings.ReplaceAll(got, " +"+written, " + "+written), want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			if tt.not != "" && strings.Contains(got, tt.not) || strings.ContainsAny(got, "\u200b\u202e") {
				t.Errorf("has %q, or what nobody sees:\n%q", tt.not, got)
			}
		})
	}
	got := strings.Join(Permission(&acp.PermissionRequest{Title: "Run this command?", Subject: &acpv2.CommandPermissionSubject{Command: unseen, Cwd: "/" + unseen}}, nil, 80, plainTheme()), "\n")
	if strings.Count(got, written) != 2 || strings.Contains(got, "The agent says") {
		t.Error(got)
	}
}
