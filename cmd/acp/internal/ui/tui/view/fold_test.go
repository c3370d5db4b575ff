package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestFoldedHead holds that the head of a folded change tells the size of the whole change.
func TestFoldedHead(t *testing.T) {
	const n = 3000
	var patch strings.Builder
	fmt.Fprintf(&patch, "diff --git a/big.txt b/big.txt\n--- a/big.txt\n+++ b/big.txt\n@@ -1,%d +1,%d @@\n", n, n)
	for _, sign := range []string{"-old", "+new"} {
		for i := range n {
			fmt.Fprintf(&patch, "%s %d\n", sign, i)
		}
	}
	diff, err := (&acpv2.Diff{
		Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffModify{Path: "big.txt"}}},
		Patch:   &acpv2.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: patch.String()},
	}).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := conversation(t, `{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Edit","kind":"edit","status":"completed","content":[`+string(diff)+`]}`)
	tr := New(plainTheme())
	tr.SetWidth(80)
	tr.Set(c.Snapshot(), nil)
	folded := strings.Join(drawAll(tr), "\n")
	if !strings.Contains(folded, "+3000 −3000") || !strings.Contains(folded, "lines more") {
		t.Errorf("folded:\n%.2000s", folded)
	}
}

// TestFoldedPrompt holds that a long prompt takes a few rows until it is unfolded, and that
// what is searched for in it is found and shown all the same.
func TestFoldedPrompt(t *testing.T) {
	var lines strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	for _, tt := range []struct {
		name, text, more string
		rows             int
	}{
		{"short", strings.TrimSuffix(strings.Repeat("x\n", longPrompt), "\n"), "", longPrompt},
		{"lines", lines.String(), "… 1492 lines more", foldedPrompt + 1},
		{"one line", strings.Repeat("é", 50_000), "… 99.0 kB more", 0},
		{"long lines", strings.Repeat(strings.Repeat("y", 600)+"\n", 20), "… 19 lines more", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := conversation(t, `{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":`+quote(tt.text)+`}]}`)
			tr := New(plainTheme())
			tr.SetWidth(80)
			tr.Set(c.Snapshot(), nil)
			folded := drawAll(tr)
			text := strings.Join(folded, "\n")
			if tt.rows != 0 && len(folded) != tt.rows || len(folded) > 30 {
				t.Errorf("%d rows, want %d:\n%.1000s", len(folded), tt.rows, text)
			}
			if !strings.Contains(text, tt.more) || tt.more == "" && strings.Contains(text, "more") {
				t.Errorf("want %q:\n%s", tt.more, text)
			}
			if strings.ContainsRune(text, '\uFFFD') {
				t.Error("a rune was cut")
			}
			if tt.more == "" {
				return
			}
			seq, _, _ := tr.At(0)
			tr.Toggle(seq)
			if open := drawAll(tr); len(open) < 100 && tt.name != "long lines" || strings.Contains(strings.Join(open, "\n"), "more") {
				t.Errorf("unfolded: %d rows", len(open))
			}
		})
	}
	c := conversation(t, `{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":`+quote(lines.String())+`}]}`)
	tr := New(plainTheme())
	tr.SetWidth(80)
	tr.Set(c.Snapshot(), nil)
	if ms := tr.Search("line 1234"); len(ms) != 1 {
		t.Fatalf("%d matches", len(ms))
	}
	if at := tr.Highlight("line 1234", 0); !strings.Contains(drawAll(tr)[at], "line 1234") {
		t.Errorf("row %d: %q", at, drawAll(tr)[at])
	}
}
