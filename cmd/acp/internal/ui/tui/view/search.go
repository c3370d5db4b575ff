package view

import (
	"slices"
	"strings"
	"unicode"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// maxMatches bounds the matches of a search. Beyond it, only the latest are found.
const maxMatches = 1000

// maxQuery bounds the text to search for, in bytes.
const maxQuery = 1000

// A Match is a match of a search.
type Match struct {
	Seq  uint64
	Line int // of the transcript, as it is now; of a folded entry, where that begins

	row int // of the entry as it is unfolded
}

// A search is what is marked on the lines.
type search struct {
	query   query
	matches []Match
	current int
}

// A query is what is searched for.
type query struct {
	text  string
	exact bool // capitals count
}

func newQuery(s string) query {
	if len(s) > maxQuery {
		s = s[:maxQuery]
	}
	s = strings.Join(strings.Fields(safetext.Text(s)), " ")
	q := query{text: s, exact: strings.ContainsFunc(s, unicode.IsUpper)}
	if !q.exact {
		q.text = fold(s)
	}
	return q
}

// fold returns s in lower case. Characters keep their length in bytes, so that positions stay
// valid.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		l := unicode.ToLower(r)
		if len(string(l)) != len(string(r)) {
			return r
		}
		return l
	}, s)
}

func (q query) in(s string) bool {
	if !q.exact {
		s = fold(s)
	}
	return strings.Contains(s, q.text)
}

// ranges returns where the query is in a line.
func (q query) ranges(s string) []byteRange {
	if q.text == "" {
		return nil
	}
	if !q.exact {
		s = fold(s)
	}
	var out []byteRange
	for pos := 0; len(out) < 100; {
		i := strings.Index(s[pos:], q.text)
		if i < 0 {
			break
		}
		out = append(out, byteRange{pos + i, pos + i + len(q.text)})
		pos += i + len(q.text)
	}
	return out
}

// Search returns the lines that contain a text, in order and at most the latest thousand. It also
// searches folded entries. Letter case matters if the query contains a capital; a match may extend
// over the end of a line. The matches are remembered for [Transcript.Highlight] until the next
// search; an empty query forgets them.
func (t *Transcript) Search(text string) []Match {
	t.search = search{query: newQuery(text), current: -1}
	q := t.search.query
	if q.text == "" {
		return nil
	}
	for i := len(t.items) - 1; i >= 0 && len(t.search.matches) < maxMatches; i-- {
		rows := t.searchItem(i, q)
		slices.Reverse(rows)
		for _, row := range rows {
			t.search.matches = append(t.search.matches, Match{Seq: t.items[i].seq, row: row})
		}
	}
	ms := t.search.matches
	slices.Reverse(ms)
	if len(ms) > maxMatches {
		ms = ms[len(ms)-maxMatches:]
	}
	t.search.matches = ms
	for i := range ms {
		ms[i].Line = t.matchLine(&ms[i])
	}
	return slices.Clone(ms)
}

// searchItem returns the rows of an item with the query, as it would be unfolded.
func (t *Transcript) searchItem(i int, q query) []int {
	e := t.snap.Entry(t.items[i].seq)
	if e == nil || !t.mayHold(e, q) {
		return nil
	}
	it := &item{seq: e.Seq(), kind: e.EntryKind(), open: opened}
	t.buildApart(it, e)
	var out []int
	row := 0
	prev, prevHit := "", false
	for j := range it.parts {
		p := &it.parts[j]
		for _, l := range t.drawn(p) {
			s := stripped(l)
			hit := q.in(s)
			if !hit && !prevHit && prev != "" && strings.Contains(q.text, " ") {
				// over the end of a line
				both := strings.TrimSpace(prev) + " " + strings.TrimLeft(s, " │▏▌")
				if q.in(both) {
					out = append(out, row-1)
				}
			}
			if hit {
				out = append(out, row)
			}
			prev, prevHit = s, hit
			row++
		}
	}
	return out
}

// buildApart makes the parts of an entry without changing the transcript.
func (t *Transcript) buildApart(it *item, e transcript.Entry) {
	cached := t.cached
	apart := *t
	apart.shownIn = map[string]map[uint64]bool{}
	if term, ok := e.(*transcript.Terminal); ok && len(t.shownIn[string(term.ID)]) > 0 {
		return
	}
	apart.items = nil
	apart.build(it, e)
	t.cached = cached
}

// mayHold reports whether an entry may contain a query. It saves drawing entries that cannot.
func (t *Transcript) mayHold(e transcript.Entry, q query) bool {
	text := t.plainEntry(e, true)
	if !q.exact {
		text = fold(text)
	}
	for _, w := range strings.Fields(q.text) {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// matchLine returns the line of a match.
func (t *Transcript) matchLine(m *Match) int {
	top, ok := t.Top(m.Seq)
	if !ok {
		return 0
	}
	i, _ := t.find(m.Seq)
	if it := t.items[i]; m.row < it.height && (t.expanded(it) || !t.foldable(it)) {
		return top + m.row
	}
	return top
}

// foldable reports whether unfolding an item shows more.
func (t *Transcript) foldable(it *item) bool {
	m, ok := t.snap.Entry(it.seq).(*transcript.Message)
	switch {
	case !ok || m.Role == transcript.RoleThought:
		return true
	case m.Role != transcript.RoleUser:
		return false
	}
	return slices.ContainsFunc(m.Content(), func(c acpv2.ContentBlock) bool {
		text, ok := c.(*acpv2.TextContent)
		return ok && isLongPrompt(text.Text)
	})
}

// Highlight marks a text on all lines. The match of the last search with index current stands out;
// its entry is unfolded if necessary. Highlight returns the line of that match afterwards. An empty
// text removes all marks.
func (t *Transcript) Highlight(text string, current int) (line int) {
	if q := newQuery(text); q != t.search.query {
		t.search = search{query: q}
	}
	t.search.current = current
	if current < 0 || current >= len(t.search.matches) {
		t.search.current = -1
		return 0
	}
	m := &t.search.matches[current]
	i, ok := t.find(m.Seq)
	if !ok {
		return 0
	}
	it := t.items[i]
	if t.foldable(it) && !t.expanded(it) {
		t.setOpen(i, true)
	}
	t.fresh(i)
	for j, row := 0, 0; j < len(it.parts) && row <= m.row; j++ {
		if !it.parts[j].exact {
			t.drawPart(i, j)
		}
		row += it.parts[j].height
	}
	m.Line = t.matchLine(m)
	return m.Line
}

// highlighted returns lines with the matches marked. from is the number of the first line.
func (t *Transcript) highlighted(ls []string, from int) []string {
	q := t.search.query
	if q.text == "" {
		return ls
	}
	here := -1
	if c := t.search.current; c >= 0 && c < len(t.search.matches) {
		here = t.matchLine(&t.search.matches[c])
	}
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = l
		rs := q.ranges(stripped(l))
		if len(rs) == 0 || t.th.plain {
			continue
		}
		k := t.th.found
		if from+i == here {
			k = t.th.foundHere
		}
		out[i] = t.th.render(marked(parseLine(l), rs, k))
	}
	return out
}

// parseLine parses a rendered line.
func parseLine(s string) line {
	var l line
	k := look{}
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			return l.put(s, k)
		}
		l, s = l.put(s[:i], k), s[i:]
		switch {
		case strings.HasPrefix(s, "\x1b]8;"):
			end := strings.IndexAny(s, "\a\\")
			if end < 0 {
				return l
			}
			_, uri, _ := strings.Cut(s[4:end], ";")
			k.link = strings.TrimSuffix(uri, "\x1b")
			s = s[end+1:]
		case strings.HasPrefix(s, "\x1b["):
			end := strings.IndexByte(s, 'm')
			if end < 0 {
				return l
			}
			k.raw = s[2:end]
			s = s[end+1:]
		default:
			s = s[1:]
		}
	}
	return l
}

// PlainText returns the original text of an entry, for copying. It is safe for a terminal.
func (t *Transcript) PlainText(seq uint64) string {
	e := t.snap.Entry(seq)
	if e == nil {
		return ""
	}
	return strings.TrimRight(safetext.Text(t.plainEntry(e, false)), "\n")
}

// CodeBlocks returns the code blocks of an entry without their fences, for copying.
func (t *Transcript) CodeBlocks(seq uint64) []string {
	e := t.snap.Entry(seq)
	if e == nil {
		return nil
	}
	text := t.plainEntry(e, false)
	var out []string
	for _, p := range splitMarkdown(text, nil) {
		if !p.code {
			out = append(out, nestedCode(safetext.Text(text[p.start:p.end]))...)
			continue
		}
		code := safetext.Text(codeText(text[p.start:p.end], p))
		if p.first {
			out = append(out, code)
		} else if n := len(out); n > 0 {
			out[n-1] += code
		}
	}
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], "\n")
	}
	return out
}
