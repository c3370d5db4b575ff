package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

const selectable = "A long paragraph that is wrapped into several lines because the screen is narrow, with 漢字漢字漢字漢字漢字漢字 in it.\n\n" +
	"- first item, which is wrapped as well since it is long\n- second\n\n```go\nfunc main() {\n\tprintln(\"a line of code that is longer than the screen\")\n}\n```\n\n> quoted\n"

// TestSelected: what is copied is as it was written: whole lines, without what is drawn around them.
func TestSelected(t *testing.T) {
	for _, width := range []int{24, 30, 41, 80, 200} {
		c := transcript.New(transcript.Config{})
		c.Apply(&acpv2.AgentMessage{MessageID: "m", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text(selectable)})})
		tr := New(fullTheme())
		tr.SetWidth(width)
		tr.Set(c.Snapshot(), nil)
		n := len(drawAll(tr))
		want := "A long paragraph that is wrapped into several lines because the screen is narrow, with 漢字漢字漢字漢字漢字漢字 in it.\n\n" +
			"• first item, which is wrapped as well since it is long\n• second\n\nfunc main() {\n    println(\"a line of code that is longer than the screen\")\n}\n\nquoted"
		got := tr.Selected(Position{}, Position{n, width})
		got = strings.ReplaceAll(got, "go\nfunc", "func") // the name of the language is above the code
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got)\n%s", width, diff)
		}
		if back := tr.Selected(Position{n, width}, Position{}); strings.ReplaceAll(back, "go\nfunc", "func") != got {
			t.Errorf("%d columns, from the end: %q", width, back)
		}
	}
}

// TestSelectedCells: a part of a line is only that part, and wide characters are whole.
func TestSelectedCells(t *testing.T) {
	c := transcript.New(transcript.Config{})
	c.Apply(&acpv2.AgentMessage{MessageID: "m", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("one two 漢字 three\n\nfour")})})
	tr := New(fullTheme())
	tr.SetWidth(60)
	tr.Set(c.Snapshot(), nil)
	ls := drawAll(tr)
	at := -1
	for i, l := range ls {
		if strings.Contains(l, "one two") {
			at = i
		}
	}
	for _, tt := range []struct {
		from, to Position
		want     string
	}{
		{Position{at, 6}, Position{at, 8}, "two"}, {Position{at, 2}, Position{at, 4}, "one"}, {Position{at, 0}, Position{at, 3}, "on"},
		{Position{at, 10}, Position{at, 11}, "漢"}, {Position{at, 15}, Position{at + 2, 3}, "three\n\nfo"}, {Position{at + 9, 0}, Position{at + 20, 3}, ""},
	} {
		if got := tr.Selected(tt.from, tt.to); got != tt.want {
			t.Errorf("%v to %v: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestSelectedDiff: code is copied from a diff without numbers and signs.
func TestSelectedDiff(t *testing.T) {
	c := transcript.New(transcript.Config{})
	c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("edit"), Status: acpv2.Set(acp.ToolCallStatusCompleted), Content: acpv2.Set([]acpv2.ToolCallContent{
		&acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffAdd{Path: "/w/a.go"}}}, Patch: &acpv2.DiffPatch{
			Text: "diff --git a/w/a.go b/w/a.go\n--- /dev/null\n+++ b/w/a.go\n@@ -0,0 +1,3 @@\n+func a() {\n+\treturn\n+}\n",
		}},
	})})
	tr := New(fullTheme())
	tr.SetWidth(40)
	tr.Set(c.Snapshot(), nil)
	got := tr.Selected(Position{}, Position{len(drawAll(tr)), 40})
	if want := "edit\na.go new +3\nfunc a() {\n    return\n}"; got != want && got != strings.Replace(want, "a.go", "/w/a.go", 1) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFileLinks: the names of files lead to them, wherever they are, and nothing else does.
func TestFileLinks(t *testing.T) {
	line := uint32(3)
	c := transcript.New(transcript.Config{})
	c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("Edit main.go:3"), Status: acpv2.Set(acp.ToolCallStatusCompleted),
		Locations: acpv2.Set([]acpv2.ToolCallLocation{{Path: "/w/main.go", Line: &line}, {Path: "/w/b.go"}, {Path: "/etc/passwd"}}),
		Content:   acpv2.Set([]acpv2.ToolCallContent{&acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffModify{Path: "/w/main.go"}}}, Patch: &acpv2.DiffPatch{Text: examplePatch}}})})
	tr := New(fullTheme())
	tr.SetOptions(Options{Cwd: "/w", FileLink: func(path string, line int) string {
		if path == "/etc/passwd" {
			return ""
		}
		return "file://" + path + "#" + string(rune('0'+line%10))
	}})
	tr.SetWidth(80)
	tr.Set(c.Snapshot(), nil)
	text := strings.Join(drawAll(tr), "\n")
	for _, want := range []string{"\x1b]8;;file:///w/main.go#3\a", "\x1b]8;;file:///w/b.go#0\a", "\x1b]8;;file:///w/main.go#9\a"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, ";/etc") || strings.Count(text, "\x1b]8;;f") != 3 {
		t.Errorf("%q", text)
	}
}
