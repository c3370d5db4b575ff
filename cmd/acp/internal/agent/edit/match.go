package edit

import (
	"sort"
	"strings"
)

// A file is a text in lines.
type file struct {
	text  string
	lines []line
	end   string // how most of its lines end
}

type line struct {
	from  int    // where it begins
	plain int    // where it would if all lines ended with one byte
	text  string // without its end
	end   string
}

func newFile(text string) *file {
	f := &file{text: text, end: "\n"}
	at, pairs := 0, 0
	for l := range strings.Lines(text) {
		body, end := l, ""
		if b, ok := strings.CutSuffix(body, "\n"); ok {
			body, end = b, "\n"
			if b, ok := strings.CutSuffix(body, "\r"); ok {
				body, end = b, "\r\n"
			}
		}
		f.lines = append(f.lines, line{at, at - pairs, body, end})
		if len(end) == 2 {
			pairs++
		}
		at += len(l)
	}
	if 2*pairs > len(f.lines) {
		f.end = "\r\n"
	}
	return f
}

// lineAt returns the number of the line, counted from 1, that an offset is in.
func (f *file) lineAt(at int) int {
	return max(1, sort.Search(len(f.lines), func(i int) bool { return f.lines[i].from > at }))
}

// A place is where an old text is.
type place struct {
	from, to int // offsets
	first    int // its first line, and how many there are, where whole lines were matched
	n        int
	tab      int // how wide a tab counts
	shift    int // by how many columns the file is indented more
}

// find returns the places of an old text that are found in a way.
func (f *file) find(old string, how How) []place {
	switch how {
	case Exact:
		return f.exact(old)
	case LineEndings:
		return f.unended(old)
	}
	want := strings.Split(unix(old), "\n")
	ended := want[len(want)-1] == ""
	if ended {
		want = want[:len(want)-1]
	}
	if blankLines(want) {
		return nil
	}
	tabs := tabWidths
	if how == Trailing {
		tabs = tabs[:1] // indentations are the same
	}
	var found []place
	m := &matcher{how: how, want: want}
	for i := 0; i+len(want) <= len(f.lines); i++ {
		last := f.lines[i+len(want)-1]
		p := place{from: f.lines[i].from, to: last.from + len(last.text), first: i, n: len(want)}
		if ended {
			p.to += len(last.end)
		}
		ok := false
		for _, tab := range tabs {
			// A width with which nothing is shifted is the likeliest one.
			if shift, fits := m.at(f.lines[i:], tab); fits && (!ok || shift == 0 && p.shift != 0) {
				p.tab, p.shift, ok = tab, shift, true
			}
		}
		if ok {
			found = append(found, p)
		}
	}
	return found
}

// tabWidths are the columns that a tab may stand for, the likeliest first.
var tabWidths = []int{4, 2, 8, 3}

func (f *file) exact(old string) []place {
	var found []place
	for at := 0; ; {
		i := strings.Index(f.text[at:], old)
		if i < 0 {
			return found
		}
		found = append(found, place{from: at + i, to: at + i + len(old)})
		at += i + 1 // places may overlap
	}
}

// unended finds a text whatever its lines, and those of the file, end with. The last line
// of a file needs no end.
func (f *file) unended(old string) []place {
	want := unix(old)
	plain := unix(f.text)
	if body, ok := strings.CutSuffix(want, "\n"); ok && !strings.HasSuffix(plain, "\n") && strings.HasSuffix(plain, body) && !strings.Contains(plain, want) {
		return []place{{from: f.offset(len(plain) - len(body)), to: len(f.text)}}
	}
	if want == old && plain == f.text {
		return nil // that was looked for
	}
	var found []place
	for at := 0; ; {
		i := strings.Index(plain[at:], want)
		if i < 0 || want == "" {
			return found
		}
		found = append(found, place{from: f.offset(at + i), to: f.offset(at + i + len(want))})
		at += i + 1
	}
}

// offset returns where an offset in the text with plain line ends is in the file.
func (f *file) offset(at int) int {
	i := sort.Search(len(f.lines), func(i int) bool { return f.lines[i].plain > at }) - 1
	if i < 0 {
		return at
	}
	l := f.lines[i]
	if at-l.plain > len(l.text) {
		return l.from + len(l.text) + len(l.end)
	}
	return l.from + at - l.plain
}

// A matcher compares lines.
type matcher struct {
	how  How
	want []string
}

// at reports whether the lines begin with those that are wanted, and how much more they
// are indented.
func (m *matcher) at(lines []line, tab int) (shift int, ok bool) {
	known := false
	for i, want := range m.want {
		have := lines[i].text
		if m.how == Trailing {
			if trimmed(have) != trimmed(want) {
				return 0, false
			}
			continue
		}
		haveIndent, haveBody := indented(have)
		wantIndent, wantBody := indented(want)
		if m.how == Quotes {
			haveBody, wantBody = folded(haveBody), folded(wantBody)
		}
		if haveBody != wantBody {
			return 0, false
		}
		if haveBody == "" {
			continue
		}
		d := width(haveIndent, tab) - width(wantIndent, tab)
		if known && d != shift {
			return 0, false
		}
		shift, known = d, true
	}
	return shift, true
}

// replacement returns what stands in the place of an old text. Lines that the edit leaves
// as they are keep the bytes of the file. It reports false if the new text cannot be
// shifted.
func (f *file) replacement(p place, e Edit, how How) (string, bool) {
	end := f.end
	if i := f.lineAt(p.from) - 1; i < len(f.lines) && f.lines[i].end != "" {
		end = f.lines[i].end
	}
	now := unix(e.New)
	if indent, ok := f.unindented(p, e, how); ok {
		lines := strings.Split(now, "\n")
		for i, l := range lines[1:] {
			if l != "" {
				lines[i+1] = indent + l
			}
		}
		return strings.Join(lines, end), true
	}
	if how == Exact && (strings.Contains(e.Old, "\n") && !strings.Contains(e.Old, "\r\n") || strings.Contains(e.New, "\r\n")) {
		return e.New, true // as it is meant
	}
	if p.to == len(f.text) && strings.HasSuffix(e.Old, "\n") && !strings.HasSuffix(f.text, "\n") {
		now = strings.TrimSuffix(now, "\n")
	}
	if how == Exact || how == LineEndings {
		return strings.ReplaceAll(now, "\n", end), true
	}
	return f.shifted(p, unix(e.Old), now, end, how)
}

// unindented reports whether an edit puts lines before a line and leaves out the
// indentation of all of them. The old text, a part of its line, is found exactly then, but
// what it begins in the new text would lose its indentation.
func (f *file) unindented(p place, e Edit, how How) (indent string, ok bool) {
	old, now := strings.TrimSuffix(e.Old, "\n"), strings.TrimSuffix(e.New, "\n")
	if how != Exact || strings.Contains(old, "\n") || !strings.HasSuffix(now, "\n"+old) {
		return "", false
	}
	l := f.lines[f.lineAt(p.from)-1]
	indent, _ = indented(l.text)
	if indent == "" || p.from != l.from+len(indent) {
		return "", false
	}
	for l := range strings.Lines(now) {
		if strings.HasPrefix(l, indent) {
			return "", false
		}
	}
	return indent, true
}

// shifted returns the lines of a new text as the file would have them.
func (f *file) shifted(p place, old, now, end string, how How) (string, bool) {
	was, is := strings.Split(old, "\n"), strings.Split(now, "\n")
	same := 0 // lines at the beginning that stay
	for same < min(len(was), len(is), p.n) && was[same] == is[same] {
		same++
	}
	tail := 0 // lines at the end that stay; the piece after the last line break counts
	for tail < min(len(was), len(is))-same && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	style := f.styleOf(p, was)
	out := make([]string, len(is))
	for i, l := range is {
		switch {
		case i < same:
			out[i] = f.lines[p.first+i].text
		case i >= len(is)-tail:
			if at := i - len(is) + len(was); at < p.n {
				out[i] = f.lines[p.first+at].text
			}
		default:
			if how == Quotes && len(is)-same-tail <= maxKeptLine {
				l = f.kept(l, was[same:len(was)-tail], p.first+same)
			}
			shifted, ok := style.line(l, p)
			if !ok {
				return "", false
			}
			out[i] = shifted
		}
	}
	return strings.Join(out, end), true
}

// A style says how lines of a place are indented, compared with those of the old text.
type style struct {
	same     bool           // in the same way
	add, cut string         // or with these in front, which the old text lacks or has
	known    map[int]string // by columns
	tabs     bool
	trim     bool // the old text has blanks at the ends of lines that the file lacks
}

func (f *file) styleOf(p place, was []string) *style {
	s := &style{known: map[int]string{}}
	first := true
	for i, l := range f.lines[p.first : p.first+p.n] {
		have, body := indented(l.text)
		if body == "" {
			continue
		}
		want, _ := indented(was[i])
		s.known[width(have, p.tab)] = have
		s.tabs = s.tabs || strings.Contains(have, "\t")
		add, longer := strings.CutSuffix(have, want)
		cut, shorter := strings.CutSuffix(want, have)
		if !longer {
			add = "\x00" // which no indentation has
		}
		if !shorter {
			cut = "\x00"
		}
		if first {
			s.add, s.cut, first = add, cut, false
		}
		if s.add != add {
			s.add = "\x00"
		}
		if s.cut != cut {
			s.cut = "\x00"
		}
	}
	s.same = s.add == ""
	for i, l := range f.lines[p.first : p.first+p.n] {
		s.trim = s.trim || trimmed(was[i]) != was[i] && was[i] != l.text
	}
	return s
}

// line returns a line of the new text in the style of the file. It reports false if that
// is not certain.
func (s *style) line(l string, p place) (string, bool) {
	if s.trim {
		l = trimmed(l)
	}
	indent, body := indented(l)
	rest := l[len(indent):]
	switch {
	case body == "":
		return "", true
	case s.same:
		return l, true
	case s.add != "\x00" && !mixed(s.add, indent):
		return s.add + l, true
	case s.cut != "\x00":
		return strings.CutPrefix(l, s.cut)
	}
	w := width(indent, p.tab) + p.shift
	if known, ok := s.known[w]; ok {
		return known + rest, true
	}
	switch {
	case w < 0 || s.tabs && w%p.tab != 0:
		return "", false
	case s.tabs:
		return strings.Repeat("\t", w/p.tab) + rest, true
	}
	return strings.Repeat(" ", w) + rest, true
}

// mixed reports whether one indentation has tabs and the other blanks.
func mixed(a, b string) bool {
	return strings.Contains(a, "\t") != strings.Contains(b, "\t") && a != "" && b != ""
}

func unix(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func trimmed(s string) string { return strings.TrimRight(s, " \t") }

func blankLines(lines []string) bool {
	for _, l := range lines {
		if trimmed(l) != "" {
			return false
		}
	}
	return true
}

// indented parts a line into its indentation and the rest, without blanks at its end.
func indented(l string) (indent, body string) {
	body = strings.TrimLeft(l, " \t")
	return l[:len(l)-len(body)], trimmed(body)
}

// width returns how many columns an indentation takes.
func width(indent string, tab int) int {
	w := 0
	for _, c := range []byte(indent) {
		if c == '\t' {
			w += tab - w%tab
		} else {
			w++
		}
	}
	return w
}

// folds are the characters that models replace by plainer ones, or the other way round.
var folds = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'",
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "−", "-",
	"\u00a0", " ", "\u202f", " ", "\u2009", " ", "\u2007", " ",
)

// folded returns a text with plain characters. Bytes that are not UTF-8 are as they are shown.
func folded(s string) string { return strings.ToValidUTF8(folds.Replace(s), "\uFFFD") }
