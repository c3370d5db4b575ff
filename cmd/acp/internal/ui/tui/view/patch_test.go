package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// TestBigBlocks: where thousands of lines replace as many, each is shown beside or near the one that
// it replaces, none is lost, and the numbers in the head are of the whole file.
func TestBigBlocks(t *testing.T) {
	const n = 3000
	var old, now strings.Builder
	for i := range n {
		fmt.Fprintf(&old, "line number %d\n", i)
		if i != n/2 {
			fmt.Fprintf(&now, "LINE NO %d\n", i)
		}
	}
	th := NewTheme(standard, true, colorprofile.TrueColor)
	patch := udiff.Unified("a/big.txt", "b/big.txt", old.String(), now.String())
	for _, width := range []int{80, 200} {
		lines := PatchDiff(patch, width, th, DiffAuto)
		text := ansi.Strip(strings.Join(lines, "\n"))
		if head := strings.SplitN(text, "\n", 2)[0]; !strings.Contains(head, "+2999 −3000") {
			t.Errorf("width %d: the head is %q", width, head)
		}
		first := ansi.Strip(strings.Join(lines[:60], "\n"))
		if !strings.Contains(first, "line number 0") || !strings.Contains(first, "LINE NO 0") {
			t.Errorf("width %d: the first lines are not of both sides:\n%s", width, first)
		}
		for i := range n {
			if k := strings.Count(text, fmt.Sprintf("line number %d ", i)); k != 1 {
				t.Fatalf("width %d: the old line %d is there %d times", width, i, k)
			}
			want := 1
			if i == n/2 {
				want = 0
			}
			if k := strings.Count(text, fmt.Sprintf("LINE NO %d ", i)); k != want {
				t.Fatalf("width %d: the new line %d is there %d times", width, i, k)
			}
		}
		if width == 200 {
			for _, l := range lines[1 : n/2] { // one line is removed at the middle
				l = ansi.Strip(l)
				if strings.Contains(l, "line number") != strings.Contains(l, "LINE NO") {
					t.Fatalf("not side by side: %q", l)
				}
			}
		}
	}
}
