package edit

import (
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// knowledge is what a model knows of a file.
type knowledge struct {
	*served.File
	anchored bool // the model has said what comes before
}

// exactly finds the places of an old text as it is written, but for line ends.
func (f *file) exactly(old string) ([]place, How) {
	for _, how := range []How{Exact, LineEndings} {
		found := f.find(old, how)
		if how != Exact && strings.TrimSpace(old) == "" {
			break // blanks alone are anywhere
		}
		if old[0] == ' ' || old[0] == '\t' {
			outside := found[:0]
			for _, p := range found {
				if indent, inside := f.indentAt(p.from); !inside || indent == 0 {
					outside = append(outside, p)
				}
			}
			found = outside
		}
		if len(found) > 0 {
			return found, how
		}
	}
	return nil, Exact
}

// indentAt returns how far an offset is from the beginning of its line, and whether nothing
// but blanks are in between.
func (f *file) indentAt(at int) (n int, blank bool) {
	start := strings.LastIndexByte(f.text[:at], '\n') + 1
	return at - start, strings.Trim(f.text[start:at], " \t") == ""
}

// edges say whether a piece of a text begins where a line does, and ends where one does.
type edges struct{ start, end bool }

func edgesOf(text string, from, to int) edges {
	return edges{
		start: from == 0 || text[from-1] == '\n',
		end:   to == len(text) || to > from && text[to-1] == '\n' || text[to] == '\n' || strings.HasPrefix(text[to:], "\r\n"),
	}
}

// count counts the places of a piece in a text that have such edges, or better ones.
func count(text, piece string, like edges) (n int, better bool) {
	for at := 0; piece != ""; {
		i := strings.Index(text[at:], piece)
		if i < 0 {
			break
		}
		e := edgesOf(text, at+i, at+i+len(piece))
		if (e.start || !like.start) && (e.end || !like.end) {
			n++
			better = better || e != like
		}
		at += i + 1
	}
	return n, better
}

// doubt returns why a text that is there as it is written is not what the model means: it
// knows another place with that text which is not there any more.
func (f *file) doubt(e Edit, found []place, known knowledge) *Refusal {
	if len(found) != 1 || e.All || known.File == nil {
		return nil
	}
	p, old := found[0], unix(e.Old)
	like := edgesOf(f.text, p.from, p.to)
	for i := len(known.Gone()) - 1; i >= 0; i-- {
		g := known.Gone()[i]
		n, better := count(g.Text, old, like)
		switch {
		case better: // whole lines that have become a part of others
			return f.changed(e.Old, g, known)
		case n > 0 && g.Unseen && !known.anchored:
			before, ok := g.Before()
			if all, _ := count(before, old, like); !ok || all > 1 {
				return f.changed(e.Old, g, known)
			}
		}
	}
	from := f.lineAt(p.from)
	if n := f.lineAt(max(p.from, p.to-1)) - from + 1; known.Lost() && !known.Has(from, n) {
		return &Refusal{Reason: Forgotten, Near: f.region(from-1, n)}
	}
	return nil
}

// seek finds an old text that is not there as it is written: in lines that the model knows, or else where the same
// edit was made before, if that place is allowed. That comes first for a hunk with @@ lines; and if it is not known
// what has gone, as after a restart, for then a guess may be of lines that are only like those that were changed.
func (f *file) seek(e Edit, known knowledge, allowed func(served.Range) bool) ([]place, How, *served.Range, *Refusal) {
	at, made := known.Made(e.Old, e.New)
	made = made && allowed(at)
	if made && (known.anchored || len(known.Gone()) == 0 || known.Lost()) {
		return nil, "", &at, nil
	}
	found, how, refusal := f.guess(e, known)
	if made && refusal != nil {
		return nil, "", &at, nil
	}
	return found, how, nil, refusal
}

// guess finds an old text that is not there as it is written, in lines that the model knows.
func (f *file) guess(e Edit, known knowledge) ([]place, How, *Refusal) {
	missing := func() *Refusal { return &Refusal{Reason: Missing, Near: f.nearest(e.Old)} }
	old := unix(e.Old)
	gone := known.Gone()
	like := edges{start: old[0] == ' ' || old[0] == '\t'}
	for i := len(gone) - 1; i >= 0; i-- {
		if n, _ := count(gone[i].Text, old, like); n > 0 {
			return nil, "", f.changed(e.Old, gone[i], known)
		}
	}
	if strings.TrimSpace(old) == "" {
		return nil, "", missing()
	}
	var found []place
	var how How
	for _, how = range []How{Trailing, Indentation, Quotes} {
		if found = f.find(e.Old, how); len(found) > 0 {
			break
		}
	}
	if len(found) == 0 || found[0].shift != 0 && len(strings.Join(strings.Fields(old), "")) < minShifted {
		return nil, "", missing()
	}
	for i := len(gone) - 1; i >= 0; i-- {
		was := newFile(gone[i].Text)
		for _, g := range was.find(e.Old, Quotes) {
			for _, p := range found {
				if was.linesOf(g) != f.linesOf(p) {
					return nil, "", f.changed(e.Old, gone[i], known)
				}
			}
		}
	}
	for _, p := range found {
		if len(found) > 1 && !e.All {
			break // which is refused anyway
		}
		if refusal := f.unread(p, how, known); refusal != nil {
			return nil, "", refusal
		}
	}
	return found, how, nil
}

// unread returns why a place that is not as it was written does not count: the model does not know it.
func (f *file) unread(p place, how How, known knowledge) *Refusal {
	switch {
	case known.Has(p.first+1, p.n):
		return nil
	case known.Lost():
		return &Refusal{Reason: Forgotten, How: how, Near: f.region(p.first, p.n)}
	}
	return &Refusal{Reason: Unknown, How: how, Near: f.region(p.first, p.n)}
}

// linesOf returns the lines of a place, with plain ends.
func (f *file) linesOf(p place) string {
	var b strings.Builder
	for _, l := range f.lines[p.first : p.first+p.n] {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// changed refuses an old text that has gone, and shows what is in its place.
func (f *file) changed(old string, g served.Gone, known knowledge) *Refusal {
	n := min(maxNear/2, strings.Count(old, "\n")+1)
	from := max(0, min(g.At, len(f.lines))-1-context)
	return &Refusal{Reason: Changed, Own: !g.Unseen, Near: f.region(from, min(n+2*context, len(f.lines)-from))}
}

// context is how many lines are shown around what has changed.
const context = 3
