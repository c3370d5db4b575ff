package edit

import (
	"fmt"
	"strings"
)

// A Region is a part of a file that is like an old text.
type Region struct {
	From  int      // its first line, counted from 1
	Lines []string // with blanks made visible where the old text differs in them alone
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
	for _, l := range r.Lines {
		b.WriteString(l)
		b.WriteByte('\n')
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
	r := &Region{From: at + 1}
	for j := range want {
		if at+j >= len(f.lines) {
			break
		}
		l := f.lines[at+j].text
		if l != want[j] && have[at+j] == keys[j] {
			l = visible(l)
		}
		if len(l) > maxNearLine {
			l = strings.ToValidUTF8(l[:maxNearLine], "") + "…"
		}
		r.Lines = append(r.Lines, l)
	}
	r.Cut = strings.Count(old, "\n") >= maxNear
	return r
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

// elsewhere reports whether an old text that was found with another indentation is more
// likely meant for a place that has its own, and has changed since.
func (f *file) elsewhere(old string, found []place) bool {
	want := strings.Split(strings.TrimSuffix(unix(old), "\n"), "\n")
	same, shifted := true, false
	for _, p := range found {
		shifted = shifted || p.shift != 0
		for i, w := range want {
			have, body := indented(f.lines[p.first+i].text)
			indent, _ := indented(w)
			same = same && (body == "" || have == indent)
		}
	}
	if same {
		return false
	}
	if shifted && len(strings.Join(strings.Fields(old), "")) < minShifted || len(f.lines)*len(want) > maxCompared {
		return true
	}
	most := 0
	for i, w := range want {
		want[i] = trimmed(w)
		most += resembles(want[i], want[i])
	}
	for i := range f.lines {
		score := 0
		for j, w := range want {
			if i+j >= len(f.lines) {
				break
			}
			score += resembles(w, trimmed(f.lines[i+j].text))
		}
		if 10*score >= 9*most {
			return true
		}
	}
	return false
}

// resembles says how likely it is, up to 100, that one line has become the other. Their
// indentations are the same then.
func resembles(a, b string) int {
	ia, ba := indented(a)
	ib, bb := indented(b)
	switch {
	case ia != ib || (ba == "") != (bb == ""):
		return 0
	case len(ba) < 3 && ba == bb:
		return 30
	case ba != "" && (strings.HasPrefix(ba, bb) || strings.HasPrefix(bb, ba)):
		return 100
	}
	return alike(ba, bb)
}
