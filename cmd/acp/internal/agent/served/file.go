package served

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/goacp/acp/internal/patch"
)

// Bounds of what is known of one file.
const (
	maxGone     = 64        // texts that are not there any more
	maxGoneSize = 512 << 10 // bytes of them
	maxBefore   = 2         // texts of the file before that
	maxMade     = 64        // edits
	around      = 50        // lines that are kept around one that has gone
)

// A Range is some lines: From is the first one, counted from 1.
type Range struct {
	From int `json:"from"`
	N    int `json:"n"`
}

// A File is what a model knows of a file. It is never changed: what happens to a file makes
// another File. Its methods may be called on nil, which knows nothing.
type File struct {
	text   string // what is in it, if loaded
	loaded bool   // or else only the hash is known
	sum    string
	of     int     // lines
	seen   []Range // that the model was shown, or has written: in order, with gaps between
	gone   []Gone
	made   []Made
	lost   bool // some of what was shown is not remembered
}

// Gone are lines that a model knows and that are not there any more, or not one after the
// other, with those around them.
type Gone struct {
	Text   string
	At     int  // the line, counted from 1, that is in their place
	Unseen bool // by the model: somebody else has changed them, and it was not shown what is there

	before *string // all of the file before that; nil if it is not remembered
}

// Before returns all of the file as it was before the lines went, with plain line ends. It
// reports false if that is not remembered.
func (g Gone) Before() (string, bool) {
	if g.before == nil {
		return "", false
	}
	return unix(*g.before), true
}

// Made is an edit that the model has made, and whose place has not changed since.
type Made struct {
	Edit string `json:"edit"` // its hash: see [Hash]
	Range
}

// Lost reports whether the model was shown something that is not remembered.
func (f *File) Lost() bool { return f != nil && f.lost }

// Gone returns what has gone, the latest last.
func (f *File) Gone() []Gone {
	if f == nil {
		return nil
	}
	return f.gone
}

// Has reports whether the model knows n lines, the first of which is from.
func (f *File) Has(from, n int) bool {
	if f == nil {
		return false
	}
	i, ok := slices.BinarySearchFunc(f.seen, from, func(r Range, line int) int {
		switch {
		case r.From+r.N <= line:
			return -1
		case r.From > line:
			return 1
		}
		return 0
	})
	return ok && from+n <= f.seen[i].From+f.seen[i].N
}

// Seen returns the lines that the model knows, in order.
func (f *File) Seen() []Range {
	if f == nil {
		return nil
	}
	return f.seen
}

// Whole reports whether the model knows all of the file, as it is.
func (f *File) Whole() bool {
	return f != nil && f.loaded && !f.lost && (f.of == 0 || f.Has(1, f.of)) && !f.Stale()
}

// Stale reports whether somebody else has changed something that the model knows, and it was
// not shown what is there now.
func (f *File) Stale() bool {
	return slices.ContainsFunc(f.Gone(), func(g Gone) bool { return g.Unseen })
}

// Lines returns how many lines there are.
func (f *File) Lines() int {
	if f == nil {
		return 0
	}
	return f.of
}

// Made returns the place of an edit that was made before, and that is as it was left.
func (f *File) Made(old, new string) (Range, bool) {
	if f == nil {
		return Range{}, false
	}
	h := Hash(old, new)
	for _, m := range f.made {
		if m.Edit == h {
			return m.Range, true
		}
	}
	return Range{}, false
}

// Known returns the file as the model believes it to be: as it was before somebody else has
// changed it. It reports false if that is not remembered, or nothing has changed.
func (f *File) Known() (string, bool) {
	for _, g := range f.Gone() {
		if g.Unseen && g.before != nil {
			return *g.before, true
		}
	}
	return "", false
}

// At returns what the model knows of a file that has a text now. Lines of it that somebody
// has changed are gone.
func (f *File) At(text string) *File {
	if f != nil && f.loaded && f.text == text {
		return f
	}
	sum := Sum(text)
	switch {
	case f == nil:
		return &File{text: text, loaded: true, sum: sum, of: lines(text)}
	case f.sum == sum:
		g := *f
		g.text, g.loaded, g.of = text, true, lines(text)
		return &g
	case !f.loaded:
		return &File{text: text, loaded: true, sum: sum, of: lines(text), lost: f.lost || len(f.seen) > 0}
	}
	return f.move(text, sum, func(patch.Span, bool) bool { return false }, true)
}

// Changed returns what the model knows once it has changed a file by edits. all says that it
// has written all of it.
func (f *File) Changed(after string, all bool, made ...Made) *File {
	g := f.move(after, Sum(after), func(s patch.Span, known bool) bool { return all || known || s.Old == s.OldEnd }, false)
	if all {
		g.seen, g.lost = Range{1, g.of}.list(), false
	}
	for _, m := range made {
		if !slices.Contains(g.made, m) {
			g.made = append(g.made[max(0, len(g.made)-maxMade+1):len(g.made):len(g.made)], m)
		}
	}
	return g
}

// Ended returns what the model knows once the last line of the file has an end, which is a change of nothing that
// it knows.
func (f *File) Ended(end string) *File {
	if f == nil || !f.loaded {
		return f
	}
	g := *f
	g.text += end
	g.sum, g.of = Sum(g.text), lines(g.text)
	return &g
}

// move takes what is known to another text. knows says whether the new lines of a change
// are known, given whether the old ones were.
func (f *File) move(text, sum string, knows func(s patch.Span, known bool) bool, unseen bool) *File {
	g := &File{text: text, loaded: true, sum: sum, of: lines(text), lost: f.lost}
	was := split(f.text)
	before := f.text
	var gone []Gone
	at, to := 0, 0 // what comes next in the old text, and in the new one
	keep := func(n int) {
		for _, r := range f.seen {
			from, end := max(r.From-1, at), min(r.From-1+r.N, at+n)
			if from < end {
				g.see(Range{from - at + to + 1, end - from})
			}
		}
	}
	spans := patch.Spans(f.text, text)
	for _, s := range spans {
		keep(s.Old - at)
		known := f.Has(s.Old+1, s.OldEnd-s.Old)
		if knows(s, known) && s.NewEnd > s.New {
			g.see(Range{s.New + 1, s.NewEnd - s.New})
		}
		for _, r := range f.seen {
			first, last := r.From-1, r.From-1+r.N
			from, end := max(first, s.Old), min(last, s.OldEnd)
			if from > end || from == end && s.Old < s.OldEnd {
				continue
			}
			from, end = max(first, from-around), min(last, end+around)
			text := strings.TrimSuffix(unix(strings.Join(was[from:end], "")), "\n") + "\n"
			gone = append(gone, Gone{Text: text, At: s.New + 1, Unseen: unseen, before: &before})
		}
		at, to = s.OldEnd, s.NewEnd
	}
	keep(len(was) - at)
	for _, o := range f.gone {
		o.At = Moved(o.At, spans)
		g.gone = append(g.gone, o)
	}
	for _, m := range f.made {
		if !touches(m.Range, spans) {
			m.From = Moved(m.From, spans)
			g.made = append(g.made, m)
		}
	}
	g.gone = append(g.gone, gone...)
	g.bound()
	return g
}

// touches reports whether changes are about some lines, or next to them if there are none.
func touches(r Range, spans []patch.Span) bool {
	from, end := r.From-1, r.From-1+r.N
	for _, s := range spans {
		switch {
		case s.Old < end && s.OldEnd > from: // also what comes between its lines
			return true
		case r.N == 0 && s.Old <= from && s.OldEnd >= from:
			return true
		}
	}
	return false
}

// Moved returns where a line is after changes.
func Moved(line int, spans []patch.Span) int {
	by := 0
	for _, s := range spans {
		if line-1 < s.Old {
			break
		}
		if line-1 < s.OldEnd {
			return s.New + 1
		}
		by = s.NewEnd - s.OldEnd
	}
	return line + by
}

// bound forgets what has gone first, and what the file was like before that. What the model has changed itself, and
// knows as it is now, is not lost by that.
func (f *File) bound() {
	size, texts := 0, 0
	var last *string
	for i := len(f.gone) - 1; i >= 0; i-- {
		if size += len(f.gone[i].Text); size > maxGoneSize || len(f.gone)-i > maxGone {
			unseen := slices.ContainsFunc(f.gone[:i+1], func(g Gone) bool { return g.Unseen })
			f.gone, f.lost = slices.Clone(f.gone[i+1:]), f.lost || unseen || f.of > 0 && !f.Has(1, f.of)
			return
		}
		if b := f.gone[i].before; b != nil && b != last {
			texts++
			last = b
		}
		if texts > maxBefore {
			f.gone[i].before = nil
		}
	}
}

// Shown returns what the model knows once it was shown n lines, the first of which is from.
// A file without lines is shown by Shown(1, 0).
func (f *File) Shown(from, n int) *File {
	n = min(n, f.of-from+1)
	if from < 1 || n < 1 && f.of > 0 {
		return f
	}
	g := *f
	g.seen = slices.Clone(f.seen)
	if n > 0 {
		g.see(Range{from, n})
	}
	g.gone = slices.Clone(f.gone)
	for i, o := range g.gone {
		if o.Unseen && o.At >= from && o.At <= from+n {
			g.gone[i].Unseen, g.gone[i].before = false, nil
		}
	}
	if g.of == 0 || g.Has(1, g.of) {
		g.lost = false
	}
	return &g
}

// see adds a range.
func (f *File) see(r Range) {
	end := r.From + r.N
	var all []Range
	i := 0
	for ; i < len(f.seen) && f.seen[i].From+f.seen[i].N < r.From; i++ {
		all = append(all, f.seen[i])
	}
	for ; i < len(f.seen) && f.seen[i].From <= end; i++ {
		r.From, end = min(r.From, f.seen[i].From), max(end, f.seen[i].From+f.seen[i].N)
	}
	f.seen = append(append(all, Range{r.From, end - r.From}), f.seen[i:]...)
}

func (r Range) list() []Range {
	if r.N == 0 {
		return nil
	}
	return []Range{r}
}

// emptySize is what a file takes of which nothing is known.
const emptySize = 256

// size returns how many bytes a file takes here, about.
func (f *File) size() int {
	n := len(f.text) + 16*len(f.seen) + 48*len(f.made) + emptySize
	var last *string
	for _, g := range f.gone {
		n += len(g.Text) + 64
		if g.before != nil && g.before != last {
			n += len(*g.before)
			last = g.before
		}
	}
	return n
}

// Sum returns the hash of a text.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Hash is what an edit is remembered by.
func Hash(old, new string) string { return Sum(unix(old) + "\x00" + unix(new))[:16] }

func unix(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// split cuts a text into lines with their ends.
func split(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// lines counts lines; the last one may be unfinished.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
