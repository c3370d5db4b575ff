package view

import (
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
	"github.com/google/go-cmp/cmp"
)

var hostile = []string{
	"", "a", "# h\n\n- x\n  - y\n\n```go\nfunc\n```\n", "| a | b |\n|---|---|\n| 1 |\n", "\x1b[31mred\x1b]8;;http://x\x07y", "&#27;[2J &#x9b;1m &#x202e;x",
	"[a](http://x/\x1b[1m) <http://y> ![i](j)", ">>>>>>>> x", "1. a\n\n   b\n2. c", "世界🙂👩\u200d👩\u200d👧\u0301\u0301", "~~~\n\t\tx", "[x]: y\n", "```\x1b[1m\nx",
	"[a](https://example.com/\"\\x07) [b](file:///etc/passwd) [c](https://u:p@h)", "\r\n\r", "```go\n`\"\n", "- [ ] x\n- [x]", "<script>\n\n</script>",
}

func FuzzMarkdown(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, uint8(i*13))
	}
	f.Fuzz(func(t *testing.T, s string, w uint8) {
		width := int(w)%200 + 1
		c := transcript.New(transcript.Config{})
		c.Apply(chunk("m", s))
		c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set(s), Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Content{Content: &acpv2.TextContent{Text: s}}})})
		c.Apply(&acpv2.UserMessageChunk{MessageID: "u", Content: &acpv2.TextContent{Text: s}})
		c.Apply(&acpv2.AgentThoughtChunk{MessageID: "h", Content: &acpv2.TextContent{Text: s}})
		tr := New(fullTheme())
		tr.SetWidth(width)
		tr.Set(c.Snapshot(), nil)
		checkLines(t, drawAll(tr), width)
		tr.Search(s)
		tr.Highlight(s, 0)
		checkLines(t, drawAll(tr), width)
		for e := range c.Snapshot().Entries() {
			tr.PlainText(e.Seq())
			tr.CodeBlocks(e.Seq())
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add(examplePatch, uint8(80))
	f.Add("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\n\\ No newline\n", uint8(120))
	f.Add("diff --git \"a/\\t\" \"b/\\t\"\nrename from a\nrename to b\nBinary files differ\n@@ -9999999999999999999 +1 @@\n", uint8(30))
	for _, s := range hostile {
		f.Add(s, uint8(40))
	}
	f.Fuzz(func(t *testing.T, s string, w uint8) {
		width := int(w)%200 + 1
		for _, mode := range []DiffMode{DiffAuto, DiffUnified, DiffSplit} {
			checkLines(t, PatchDiff(s, width, fullTheme(), mode), width)
		}
		checkLines(t, Diff("a.go", s, "x"+s, width, fullTheme(), DiffAuto), width)
		req := &acp.PermissionRequest{Title: s, Description: s, Subject: &acpv2.CommandPermissionSubject{Command: s, Cwd: s}}
		checkLines(t, Permission(req, nil, width, fullTheme()), width)
	})
}

// A text that grows shows what it shows at once, whatever it is.
func FuzzGrowing(f *testing.F) {
	for i, s := range hostile {
		f.Add(s+s, uint8(i))
	}
	f.Fuzz(func(t *testing.T, s string, step uint8) {
		var grown []piece
		for n := 0; n < len(s); {
			n = min(n+1+int(step), len(s))
			grown = splitMarkdown(s[:n], grown)
		}
		if diff := cmp.Diff(splitMarkdown(s, nil), grown, cmp.AllowUnexported(piece{})); diff != "" {
			t.Errorf("pieces (-whole +grown):\n%s", diff)
		}
	})
}
