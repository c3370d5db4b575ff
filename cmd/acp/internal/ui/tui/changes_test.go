package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestPromptAfterBase: the first prompt is not sent before Git was asked what there is, or a slow
// Git would count what the turn changes as there before.
func TestPromptAfterBase(t *testing.T) {
	r := newRig(t, 100, 40, nil)
	r.send(startedMsg{r.m.attempt, r.link, nil})
	r.talk.results = make(chan turnEnd)
	opened := r.send(openedMsg{attempt: r.m.attempt, talk: r.talk})
	r.keys("hello")
	r.run(r.keys("enter"))
	if sent := r.talk.sent(); len(sent) != 0 {
		t.Fatalf("sent %v", sent)
	}
	r.run(opened)
	r.talk.results <- turnEnd{res: &acp.Result{}} // which only a prompt that was sent takes
	if sent := r.talk.sent(); len(sent) != 1 {
		t.Fatalf("sent %v", sent)
	}
}

// TestPromptCancelledBeforeBase: one that is cancelled meanwhile is not sent, and returns to the input; the next one is.
func TestPromptCancelledBeforeBase(t *testing.T) {
	r := newRig(t, 100, 40, nil)
	r.send(startedMsg{r.m.attempt, r.link, nil})
	r.talk.results = make(chan turnEnd)
	opened := r.send(openedMsg{attempt: r.m.attempt, talk: r.talk})
	r.keys("wrong")
	waits := r.keys("enter")
	r.keys("ctrl+c")
	r.run(waits)
	r.wants("cancelled", "wrong")
	if sent := r.talk.sent(); len(sent) != 0 || r.m.busy() {
		t.Fatalf("sent %v", sent)
	}
	r.keys("!")
	r.run(r.keys("enter"))
	r.run(opened)
	r.talk.results <- turnEnd{res: &acp.Result{}}
	if sent := r.talk.sent(); len(sent) != 1 || sent[0][0].(*acp.TextContent).Text != "wrong!" {
		t.Fatalf("sent %v", sent)
	}
}

// TestChanges: one key shows all that the session has changed, and takes single hunks back, after
// asking.
func TestChanges(t *testing.T) {
	r := newRig(t, 100, 40, nil).start()
	r.run(r.keys("alt+c"))
	r.wants("this session has not changed any file")
	path := filepath.Join(r.m.opt.cwd, "sub", "a.go")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	before := "package a\n" + strings.Repeat("// filler\n", 20) + "var last = 1\n"
	after := "package b\n" + strings.Repeat("// filler\n", 20) + "var last = 2\n"
	if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
	filler := strings.Repeat(" // filler\n", 3)
	r.said(&acpv2.ToolCallUpdate{
		ToolCallID: "t", Title: acpv2.Set("edit"), Status: acpv2.Set(acp.ToolCallStatusCompleted),
		Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Diff{
			Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffModify{Path: path}}},
			Patch: &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: "diff --git " + path + " " + path + "\n--- " + path + "\n+++ " + path +
				"\n@@ -1,4 +1,4 @@\n-package a\n+package b\n" + filler + "@@ -19,4 +19,4 @@\n" + filler + "-var last = 1\n+var last = 2\n"},
		}}),
	})
	r.run(r.keys("alt+c"))
	r.wants("What this session has changed", "1 file +2 −2", "▌ sub/a.go +2 −2", "package b", "var last = 1", "x takes back")
	r.keys("down", "down")
	r.wants("▌ ⋯", "▌ 19")
	r.keys("x")
	r.wants("x again takes these lines back")
	r.keys("down") // any other key does not
	r.lacks("x again")
	r.keys("x", "q")
	if data, _ := os.ReadFile(path); string(data) != after {
		t.Fatalf("%q", data)
	}
	r.run(r.keys("alt+c"))
	r.keys("down", "down", "x")
	r.run(r.keys("x"))
	r.wants("1 file +1 −1", "taken back in a.go")
	r.lacks("▌ 19")
	if data, _ := os.ReadFile(path); string(data) != strings.Replace(after, "= 2", "= 1", 1) {
		t.Fatalf("%q", data)
	}
	r.run(r.keys("u"))
	r.wants("1 file +2 −2")
	r.keys("home")
	r.wants("▌ sub/a.go")
	r.keys("enter")
	if n := strings.Count(r.screen(), "package b"); n != 1 { // in the conversation
		t.Errorf("folded, %d times on the screen", n)
	}
	r.keys("x")
	r.wants("all of this file")
	r.run(r.keys("x"))
	if data, _ := os.ReadFile(path); string(data) != before {
		t.Fatalf("%q", data)
	}
	r.wants("nothing is left")
	r.now = r.now.Add(5 * time.Second)
	r.keys("esc")
	r.wants("1 taken back; the agent does not know of it")
}

// TestAtLine: editors are given a line as they want it.
func TestAtLine(t *testing.T) {
	for editor, want := range map[string][]string{
		"/usr/bin/vim": {"+7", "f"}, "nvim": {"+7", "f"}, "code": {"-g", "f:7"}, "/opt/Code.exe": {"-g", "f:7"}, "hx": {"f:7"}, "ed": {"f"},
	} {
		if filepath.Separator == '/' && strings.HasPrefix(editor, `\`) {
			continue
		}
		if diff := cmp.Diff(want, atLine(editor, "f", 7)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", editor, diff)
		}
	}
}

// TestEditorQuotes: a variable for the editor may have quotes, and mistakes in it are said.
func TestEditorQuotes(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	t.Setenv("VISUAL", `"unfinished`)
	r.run(r.keys("ctrl+g"))
	r.wants("VISUAL: ")
}

// TestChangesGone: that a session has changed files of which nothing is left is not the same as that it has changed none.
func TestChangesGone(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	r.said(&acpv2.ToolCallUpdate{ToolCallID: "1", Title: acpv2.Set("Edit x"), Kind: acpv2.Set(acpv2.ToolKindEdit), Status: acpv2.Set(acpv2.ToolCallStatusCompleted)})
	r.send(changesMsg{})
	r.wants("nothing of what this session has changed is left")
}
