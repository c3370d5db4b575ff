// Package patch writes and reads unified diffs in git's format.
//
// It works on texts in memory. Memory and time are proportional to their size, plus the
// bounded search for the shortest difference that [Git] describes. All functions may be
// called from any goroutine.
package patch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goacp/acp/internal/plaintext"
)

// A File is one file of a patch.
type File struct {
	// OldPath and NewPath name the file before and after the change; one of them is
	// empty if there was no file. They differ if the file was moved. Paths in patches
	// do not begin with a slash; neither do those that Texts returns.
	OldPath, NewPath string

	// Old and New are the texts before and after. They are ignored where there was no
	// file.
	Old, New string

	// Partial is set by Texts unless Old and New are the whole texts. Git ignores it.
	Partial bool
}

const devNull = "/dev/null"

// Git returns a patch in git's format. A file that does not change, or that has neither
// path, is left out. If a text contains a NUL byte or is not UTF-8, the patch says only
// that the file differs.
//
// The difference is the shortest one, unless finding it takes more than about four
// million comparisons for a file, which happens when about two thousand lines differ. The
// lines where that happens are then replaced as a whole.
func Git(files ...File) string {
	var b strings.Builder
	for _, f := range files {
		f.write(&b)
	}
	return b.String()
}

func (f File) write(b *strings.Builder) {
	if f.OldPath == "" {
		f.Old = ""
	}
	if f.NewPath == "" {
		f.New = ""
	}
	from, to := strings.TrimPrefix(f.OldPath, "/"), strings.TrimPrefix(f.NewPath, "/")
	if from == to && (from == "" || f.Old == f.New) {
		return
	}
	created, deleted := f.OldPath == "", f.NewPath == ""
	switch {
	case created:
		from = to
	case deleted:
		to = from
	}
	fmt.Fprintf(b, "diff --git %s %s\n", quote("a/"+from), quote("b/"+to))
	old, new := split(f.Old), split(f.New)
	binary := plaintext.IsBinary(f.Old) || plaintext.IsBinary(f.New)
	var e edits
	if !binary {
		e = compare(old, new)
	}
	switch {
	case created:
		b.WriteString("new file mode 100644\n")
	case deleted:
		b.WriteString("deleted file mode 100644\n")
	case from != to:
		fmt.Fprintf(b, "similarity index %d%%\nrename from %s\nrename to %s\n", similarity(f, old, e), quote(from), quote(to))
	}
	if f.Old == f.New {
		return
	}
	oldName, newName := quote("a/"+from), quote("b/"+to)
	if created {
		oldName = devNull
	}
	if deleted {
		newName = devNull
	}
	if binary {
		fmt.Fprintf(b, "Binary files %s and %s differ\n", oldName, newName)
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", ended(oldName), ended(newName))
	hunks(b, old, new, e)
}

// similarity is how much of the longer text stays, in percent.
func similarity(f File, old []string, e edits) int {
	longer := max(len(f.Old), len(f.New))
	if f.Old == f.New || longer == 0 {
		return 100
	}
	if e.deleted == nil {
		return 0 // binary
	}
	kept := 0
	for i, line := range old {
		if !e.deleted[i] {
			kept += len(line)
		}
	}
	return 100 * kept / longer
}

// ended adds the tab by which git marks the end of a name with spaces.
func ended(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// split cuts a text into lines with their ends.
func split(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// context is how many lines around a change are shown.
const context = 3

// hunks writes the changes with the lines around them.
func hunks(b *strings.Builder, old, new []string, e edits) {
	var run []change // of the hunk being gathered
	for c := range e.changes {
		if len(run) > 0 && c.old-run[len(run)-1].oldEnd > 2*context {
			hunk(b, old, new, run)
			run = run[:0]
		}
		run = append(run, c)
	}
	if len(run) > 0 {
		hunk(b, old, new, run)
	}
}

func hunk(b *strings.Builder, old, new []string, run []change) {
	first, last := run[0], run[len(run)-1]
	before := min(context, first.old)
	after := min(context, len(old)-last.oldEnd)
	i := first.old - before
	fmt.Fprintf(b, "@@ -%s +%s @@\n",
		span(i, last.oldEnd+after-i), span(first.new-before, last.newEnd+after-(first.new-before)))
	for _, c := range run {
		for ; i < c.old; i++ {
			writeLine(b, ' ', old[i])
		}
		for ; i < c.oldEnd; i++ {
			writeLine(b, '-', old[i])
		}
		for _, line := range new[c.new:c.newEnd] {
			writeLine(b, '+', line)
		}
	}
	for ; i < last.oldEnd+after; i++ {
		writeLine(b, ' ', old[i])
	}
}

// span writes where a hunk begins, counted from 1, and how long it is; an empty
// one is named by the line before it.
func span(start, n int) string {
	switch n {
	case 0:
		return strconv.Itoa(start) + ",0"
	case 1:
		return strconv.Itoa(start + 1)
	}
	return strconv.Itoa(start+1) + "," + strconv.Itoa(n)
}

const noNewline = "\\ No newline at end of file"

func writeLine(b *strings.Builder, op byte, line string) {
	b.WriteByte(op)
	b.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		b.WriteString("\n" + noNewline + "\n")
	}
}

// A Span says that lines of one text have taken the place of lines of another: those from
// Old to OldEnd of the old text, and from New to NewEnd of the new one, counted from 0. The
// ends are not part of it.
type Span struct{ Old, OldEnd, New, NewEnd int }

// Spans returns where two texts differ, line by line, from the first place to the last. Its
// bound is that of [Git].
func Spans(old, new string) []Span {
	a, b := split(old), split(new)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var all []Span
	for c := range compare(a[head:len(a)-tail], b[head:len(b)-tail]).changes {
		all = append(all, Span{head + c.old, head + c.oldEnd, head + c.new, head + c.newEnd})
	}
	return all
}
