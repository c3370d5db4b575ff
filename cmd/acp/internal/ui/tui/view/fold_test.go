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
