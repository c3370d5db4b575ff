package edit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// A Region is a part of a file that is like an old text.
type Region struct {
	From  int      // its first line, counted from 1
	Lines []string // with blanks made visible where the old text differs in them alone
	Whole []bool   // which lines are shown as they are, but for such blanks
	Cut   bool     // there are more
}

// maxNear bounds the lines of a region that are shown, maxNearLine the bytes of each.
const (
	maxNear     = 40
	maxNearLine = 400
	maxCompared = 20_000_000 // pairs of lines that are compared
)

// String returns where the region is, and what is there.
func (r *Region) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lines %d-%d:\n", r.From, r.From+len(r.Lines)-1)
	for i, l := range r.Lines {
		fmt.Fprintf(&b, "%d| %s\n", r.From+i, l)
	}
	if r.Cut {
		b.WriteString("(and more)\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nearest returns the region that is most like an old text; nil if none is.
func (f *file) nearest(old string) *Region {
	want := strings.Split(strings.TrimSuffix(unix(old), "\n"), "\n")
	want = want[:min(len(want), maxNear)]
	if len(f.lines) == 0 || len(f.lines)*len(want) > maxCompared {
		return nil
	}
	keys := make([]string, len(want))
	for i, w := range want {
		keys[i] = key(w)
	}
	have := make([]string, len(f.lines))
	for i, l := range f.lines {
		have[i] = key(l.text)
	}
	best, at := 0, -1
	for i := range f.lines {
		score := 0
		for j, k := range keys {
			if i+j >= len(have) {
				break
			}
			score += alike(k, have[i+j])
		}
		if score > best {
			best, at = score, i
		}
	}
	if at < 0 || best < 50 {
		return nil
	}
	r := f.region(at, min(len(want), len(f.lines)-at))
	for j := range r.Lines {
		if l := f.lines[at+j].text; l != want[j] && have[at+j] == keys[j] {
			r.Lines[j] = cut(visible(l))
		}
	}
	r.Cut = strings.Count(old, "\n") >= maxNear
	return r
}

// region returns n lines, the first of which is at from, counted from 0; nil if there are
// none.
func (f *file) region(from, n int) *Region {
	if n <= 0 {
		return nil
	}
	r := &Region{From: from + 1, Cut: n > maxNear}
	for _, l := range f.lines[from : from+min(n, maxNear)] {
		r.Lines = append(r.Lines, cut(l.text))
		r.Whole = append(r.Whole, len(l.text) <= maxNearLine && utf8.ValidString(l.text))
	}
	return r
}

// cut returns a line as it is shown.
func cut(l string) string {
	if len(l) > maxNearLine {
		l = l[:maxNearLine] + "…"
	}
	return strings.ToValidUTF8(l, "\uFFFD")
}

// key is a line without what may differ.
func key(l string) string { return folded(strings.Join(strings.Fields(l), " ")) }

// alike says how much two lines have in common, up to 100.
func alike(a, b string) int {
	if a == b {
		if len(a) < 3 {
			return 5 // braces are everywhere
		}
		return 100
	}
	if a == "" || b == "" {
		return 0
	}
	n := min(len(a), len(b))
	head := 0
	for head < n && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if score := 100 * (head + tail) / max(len(a), len(b)); score >= 50 {
		return score - 10
	}
	return 0
}

// visible shows the blanks of a line.
func visible(l string) string {
	indent, _ := indented(l)
	body := trimmed(l[len(indent):])
	end := l[len(indent)+len(body):]
	show := strings.NewReplacer("\t", "→", " ", "·").Replace
	return show(indent) + body + show(end)
}

// minShifted is how many bytes, blanks aside, an old text needs to be found with another
// indentation than it has.
const minShifted = 10

// Bounds of a view.
const (
	maxViews     = 5  // regions
	maxViewLines = 24 // of each
)

// View returns what a text has in some places, with the lines around them and with numbers,
// and which lines it shows as they are. It shows at most 5 regions of 24 lines, the middle of
// a longer one is left out, and no more lines than have so many bytes.
func View(text string, places []served.Range, most int) (view string, shown []served.Range) {
	f := newFile(text)
	var regions []served.Range
	for _, p := range places {
		from, end := max(1, p.From-context), min(len(f.lines)+1, p.From+p.N+context)
		if last := len(regions) - 1; last >= 0 && from <= regions[last].From+regions[last].N && from >= regions[last].From {
			regions[last].N = max(regions[last].N, end-regions[last].From)
		} else if end > from {
			regions = append(regions, served.Range{From: from, N: end - from})
		}
	}
	var b strings.Builder
	full := false
	write := func(from, end int) {
		for i := from; i < end && !full; i++ {
			l := f.lines[i-1].text
			line := fmt.Sprintf("%d| %s\n", i, cut(l))
			if full = b.Len()+len(line) > most; full {
				b.WriteString("(more is not shown)\n")
				return
			}
			b.WriteString(line)
			if len(l) <= maxNearLine && utf8.ValidString(l) {
				shown = append(shown, served.Range{From: i, N: 1})
			}
		}
	}
	for i, r := range regions {
		if full {
			break
		}
		if i == maxViews {
			fmt.Fprintf(&b, "(%d more places are not shown)\n", len(regions)-i)
			break
		}
		if i > 0 {
			b.WriteString("…\n")
		}
		if r.N <= maxViewLines {
			write(r.From, r.From+r.N)
			continue
		}
		write(r.From, r.From+maxViewLines/2)
		if full {
			break
		}
		fmt.Fprintf(&b, "… (%d lines)\n", r.N-maxViewLines)
		write(r.From+r.N-maxViewLines/2, r.From+r.N)
	}
	return b.String(), shown
}

// Shown returns the lines of a region that are shown as they are.
func (r *Region) Shown() []served.Range {
	var all []served.Range
	for i, whole := range r.Whole {
		if whole {
			all = append(all, served.Range{From: r.From + i, N: 1})
		}
	}
	return all
}
