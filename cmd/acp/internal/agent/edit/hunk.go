package edit

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// Unanchored is the reason of a hunk whose @@ line is not in the file. The line is
// Refusal.Anchor.
const Unanchored Reason = "anchor"

// ApplyHunks makes the changes of an update to a text, one after the other: all of them or
// none. An error is a [*Refusal]. known is what the model knows of the file; nil is nothing.
//
// The place of a hunk is where its old text is, after the hunk before it. Without an @@ line
// it has to be there once, or as often as there are hunks left that are the same but for
// what they put there. With @@ lines it is the first one after them that belongs to what the
// last of them begins: a function, a class, a section. The numbers of a diff do not tell places
// apart: they may be of an older text, or wrong. A hunk that is not found after the
// one before it may be the only one of its kind before that. One that changes nothing only
// says where the next one is.
func ApplyHunks(path, text string, hunks []Hunk, known *served.File) (string, []Change, error) {
	b := begin(text, known)
	bare := text != "" && !strings.HasSuffix(text, "\n")
	if bare { // the last line is one like all others
		end := newFile(text).end
		b.text, b.known = b.text+end, b.known.Ended(end)
	}
	s := spot{}
	for i, h := range hunks {
		same := 1
		for _, more := range hunks[i+1:] {
			if slices.Equal(more.Old, h.Old) && slices.Equal(more.After, h.After) && more.End == h.End {
				same++
			}
		}
		after, c, now, err := applyHunk(b.text, h, s, same, b.knows())
		if h.idle() {
			if err == nil { // it says where the next one is
				s = now
			}
			continue
		}
		if err != nil {
			err.Index, err.Of, err.file = i, len(hunks), path
			return "", nil, err
		}
		if now.end < s.end { // it was out of order
			longer := len(after) - len(b.text)
			now = spot{s.core + longer, s.end + longer}
		}
		if h.OldBare != h.NewBare {
			bare = h.NewBare
		}
		b.step(after, c, h.edit())
		s = now
	}
	if bare {
		b.text = strings.TrimSuffix(strings.TrimSuffix(b.text, "\n"), "\r")
	}
	return b.text, b.changes, nil
}

// edit is the change of whole lines that a hunk stands for.
func (h Hunk) edit() Edit {
	e := Edit{Old: strings.Join(h.Old, "\n") + "\n", New: strings.Join(h.New, "\n") + "\n"}
	if len(h.New) == 0 {
		e.New = ""
	}
	return e
}

// anchor is the last of the @@ lines; "" if there is none.
func (h Hunk) anchor() string {
	if len(h.After) == 0 {
		return ""
	}
	return h.After[len(h.After)-1]
}

// A spot is where a hunk was made: up to core it has changed the text, up to end it has
// named it.
type spot struct{ core, end int }

// applyHunk changes the place of a hunk. last is where the hunk before it was made, same is
// how many hunks with the same place are left.
func applyHunk(text string, h Hunk, last spot, same int, known *served.File) (after string, c Change, now spot, refusal *Refusal) {
	f := newFile(text)
	if len(h.Old) == 0 {
		return f.insert(h, last)
	}
	e := h.edit()
	s := &seeker{f: f, h: h, e: e, known: knowledge{File: known, anchored: len(h.After) > 0}}
	s.anchors, s.missing = f.anchors(h.After)
	found, refusal := s.places(last)
	if refusal != nil {
		return "", c, now, refusal
	}
	if s.made != nil {
		at := f.offsetOf(s.made.From + s.made.N - 1)
		return text, Change{How: Already, Line: s.made.From}, spot{at, at}, nil
	}
	if len(found) > 1 && len(found) != same {
		return "", c, now, f.ambiguous(found, s.how, h.anchor())
	}
	p := found[0]
	if h.idle() {
		return text, c, spot{p.from, p.from}, nil
	}
	if refusal := s.doubt(p); refusal != nil {
		return "", c, now, refusal
	}
	is, ok := f.replacement(p, e, s.how)
	if !ok {
		return "", c, now, &Refusal{Reason: Missing, Near: f.nearest(e.Old)}
	}
	after = text[:p.from] + is + text[p.to:]
	now = spot{p.from + len(is), p.from + len(is)}
	for i := 1; i <= min(len(h.Old), len(h.New)) && h.Old[len(h.Old)-i] == h.New[len(h.New)-i]; i++ {
		if now.core <= p.from {
			break
		}
		now.core = p.from + strings.LastIndex(strings.TrimSuffix(after[p.from:now.core], "\n"), "\n") + 1
	}
	return after, Change{How: s.how, Line: f.lineAt(p.from), Shift: p.shift}, now, nil
}

// offsetOf returns where a line begins, counted from 0, or the end of the text.
func (f *file) offsetOf(line int) int {
	if line < len(f.lines) {
		return f.lines[line].from
	}
	return len(f.text)
}

// insert puts lines after the line of @@, or at the end.
func (f *file) insert(h Hunk, last spot) (after string, c Change, now spot, refusal *Refusal) {
	at := len(f.text)
	switch {
	case h.End, len(h.After) == 0 && !h.Numbered, strings.TrimSpace(f.text) == "":
	case h.Numbered: // a number, or what git found above, is too little to go by
		return "", c, now, &Refusal{Reason: Empty}
	default:
		anchors, missing := f.anchors(h.After)
		if missing != "" {
			return "", c, now, f.unanchored(missing)
		}
		if len(anchors) > 1 {
			anchors = slices.DeleteFunc(anchors, func(i int) bool { return f.lines[i].from < last.core })
		}
		if len(anchors) != 1 {
			refusal = &Refusal{Reason: Ambiguous, How: Exact, Anchor: h.anchor()}
			for _, i := range anchors {
				refusal.Lines = append(refusal.Lines, i+1)
			}
			return "", c, now, refusal
		}
		l := f.lines[anchors[0]]
		at = l.from + len(l.text) + len(l.end)
	}
	is := strings.ReplaceAll(strings.Join(h.New, "\n")+"\n", "\n", f.end)
	line := 1 + strings.Count(f.text[:at], "\n")
	now = spot{at + len(is), at + len(is)}
	return f.text[:at] + is + f.text[at:], Change{How: Exact, Line: line}, now, nil
}

// A seeker looks for the place of a hunk.
type seeker struct {
	f   *file
	h   Hunk
	e   Edit
	how How // in which way it was found

	anchors []int  // the lines that the @@ lines name
	missing string // the @@ line that names none

	known knowledge
	made  *served.Range // where the same was done before
}

// doubt returns why a place that was found is not what the model means.
func (s *seeker) doubt(p place) *Refusal {
	if s.how == Exact || s.how == LineEndings {
		return s.f.doubt(s.e, []place{p}, s.known)
	}
	return s.f.unread(p, s.how, s.known)
}

// places returns where the old text of a hunk is that may be meant: one place, or several
// that are equal. A refusal says what was not found.
func (s *seeker) places(last spot) ([]place, *Refusal) {
	all, refusal := s.all()
	if refusal != nil || s.made != nil {
		return nil, refusal
	}
	if s.h.End {
		ends := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return strings.TrimSpace(s.f.text[p.to:]) != "" })
		switch {
		case len(ends) > 0:
			all = ends
		case s.h.OldBare || s.h.NewBare:
			return nil, &Refusal{Reason: Missing, Near: s.f.nearest(s.e.Old)}
		}
	}
	next := s.after(all, last)
	if len(s.h.After) == 0 {
		return next, nil
	}
	named := s.named(next)
	if len(named) == 0 {
		named = s.named(all)
	}
	switch {
	case len(named) > 0:
		return named, nil
	case s.missing != "":
		return nil, s.f.unanchored(s.missing)
	}
	// An anchor that begins nothing is a line somewhere before the place.
	if i := s.anchors[len(s.anchors)-1]; len(all) == 1 && !s.f.opens(i) && all[0].from > s.f.lines[s.anchors[0]].from {
		return all, nil
	}
	return nil, s.f.ambiguous(all, s.how, s.h.anchor())
}

// after returns the places that come after the hunk before; if there are none, those in what
// it has left as it was, and then all.
func (s *seeker) after(all []place, last spot) []place {
	for _, from := range []int{last.end, last.core} {
		if i := sort.Search(len(all), func(i int) bool { return all[i].from >= from }); i < len(all) {
			return all[i:]
		}
	}
	return all
}

// all returns all places of the old text, in the first way that finds one.
func (s *seeker) all() ([]place, *Refusal) {
	found, how := s.f.exactly(s.e.Old)
	found = slices.DeleteFunc(found, func(p place) bool { return p.from > 0 && s.f.text[p.from-1] != '\n' }) // whole lines
	if s.how = how; len(found) > 0 {
		return found, nil
	}
	found, how, made, refusal := s.f.seek(s.e, s.known, s.allows)
	if s.how, s.made = how, made; refusal == nil {
		return found, nil
	}
	if s.missing != "" && refusal.Reason == Missing {
		return nil, s.f.unanchored(s.missing)
	}
	return nil, refusal
}

// allows reports whether a place where the same was done before is one that the @@ lines name: it comes after the
// last of them and belongs to it. One that the hunk itself has changed is not there any more.
func (s *seeker) allows(made served.Range) bool {
	if len(s.h.After) == 0 {
		return true
	}
	if s.missing != "" {
		return slices.ContainsFunc(s.h.Old, func(l string) bool { return strings.Contains(folded(l), folded(s.missing)) })
	}
	line := min(made.From-1, len(s.f.lines)-1)
	return slices.ContainsFunc(s.anchors, func(i int) bool { return i <= line && s.f.within(i, line) })
}

// named returns the first place that belongs to each anchor, or that has it among its lines.
func (s *seeker) named(all []place) []place {
	last := folded(s.h.anchor())
	var found []place
	for _, i := range s.anchors {
		at := s.f.lines[i].from
		n := sort.Search(len(all), func(n int) bool { return all[n].to > at })
		for ; n < len(all) && all[n].from <= at; n++ {
			if old := i - s.f.lineAt(all[n].from) + 1; old < len(s.h.Old) && strings.Contains(folded(s.h.Old[old]), last) {
				break
			}
		}
		if n == len(all) {
			continue
		}
		first := s.f.lineAt(all[n].from) - 1
		if s.h.Numbered { // what git found may end where the place begins
			first--
		}
		if !s.f.within(i, first) {
			continue
		}
		if len(found) == 0 || found[len(found)-1].from != all[n].from {
			found = append(found, all[n])
		}
	}
	return found
}

// anchors returns the lines that the last of several @@ lines may name. Each of these @@ lines
// names a line in what the one before it begins. missing is the first that names none.
func (f *file) anchors(say []string) (found []int, missing string) {
	for n, a := range say {
		lines := f.saying(a)
		if n > 0 {
			var inside []int
			for _, before := range found {
				i := sort.SearchInts(lines, before+1)
				if i < len(lines) && f.within(before, lines[i]) && (len(inside) == 0 || inside[len(inside)-1] != lines[i]) {
					inside = append(inside, lines[i])
				}
			}
			lines = inside
		}
		if len(lines) == 0 {
			return nil, a
		}
		found = lines
	}
	return found, ""
}

// saying returns the lines that say something: whole lines, or else those that begin with it,
// or else those that have it in them.
func (f *file) saying(say string) []int {
	plain := func(l string) string { return folded(strings.Join(strings.Fields(l), " ")) }
	want := plain(say)
	for _, same := range []func(l string) bool{
		func(l string) bool { return strings.TrimSpace(l) == say },
		func(l string) bool { return plain(l) == want },
		func(l string) bool {
			rest, ok := strings.CutPrefix(plain(l), want)
			return ok && (rest == "" || want == "" || !isWord(rest[0]) || !isWord(want[len(want)-1]))
		},
		func(l string) bool { return strings.Contains(plain(l), want) },
	} {
		var found []int
		for i, l := range f.lines {
			if same(l.text) {
				found = append(found, i)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// opens reports whether a line begins something: it says so itself, or the lines after it are
// indented more.
func (f *file) opens(i int) bool {
	l := strings.TrimSpace(f.lines[i].text)
	if heads(l) || l != "" && strings.IndexByte("{([:", l[len(l)-1]) >= 0 {
		return true
	}
	for _, next := range f.lines[i+1:] {
		if body := strings.TrimSpace(next.text); body != "" && body != "{" {
			return columns(next.text) > columns(f.lines[i].text)
		}
	}
	return false
}

// heads reports whether a line is the head of a section in itself.
func heads(l string) bool {
	return strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") ||
		strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "##")
}

// within reports whether a line belongs to what an earlier line begins; or, if that begins
// nothing, whether both are in the same part of the text. A line before it does.
func (f *file) within(anchor, line int) bool {
	if line <= anchor {
		return true
	}
	first := strings.TrimSpace(f.lines[anchor].text)
	if about := f.about(anchor); about != anchor && about < line && f.opens(about) && !f.within(about, line) {
		return false
	}
	indent, opens, head := columns(f.lines[anchor].text), f.opens(anchor), heads(first)
	for _, l := range f.lines[anchor+1 : line+1] {
		body := strings.TrimSpace(l.text)
		if body == "" {
			continue
		}
		at := columns(l.text)
		switch {
		case head:
			if heads(body) && body[0] == first[0] && at <= indent {
				return false
			}
		case strings.HasPrefix(body, "- ") && !strings.HasPrefix(first, "- ") && at == indent: // of a list
		case opens && at <= indent && !goesOn(body),
			!opens && (at < indent || at == indent && firstWord(body) == firstWord(first)):
			return false
		}
	}
	return true
}

// about returns the line that a comment or a decorator is about, if that is near; any other
// is about itself.
func (f *file) about(i int) int {
	for n := i; n < min(len(f.lines), i+maxNear); n++ {
		l := strings.TrimSpace(f.lines[n].text)
		if l != "" && l[0] != '#' && l[0] != '@' && !strings.HasPrefix(l, "//") {
			return n
		}
	}
	return i
}

// goesOn reports whether a line, though it is indented no more than the first one of a
// block, does not end it.
func goesOn(body string) bool {
	for _, begins := range []string{"}", ")", "]", "{", "#", "//", "/*", "*", "--"} {
		if strings.HasPrefix(body, begins) {
			return true
		}
	}
	switch firstWord(body) {
	case "else", "elif", "elsif", "elseif", "except", "finally", "catch", "rescue", "ensure", "case", "default", "when",
		"end", "fi", "done", "esac", "then", "do", "public", "private", "protected", "where":
		return true
	}
	return firstWord(body)+":" == body // a label
}

// firstWord returns the word that a text begins with, or else its first byte.
func firstWord(l string) string {
	l = strings.TrimSpace(l)
	end := 0
	for end < len(l) && isWord(l[end]) {
		end++
	}
	return l[:min(max(end, 1), len(l))]
}

func isWord(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// columns returns how far a line is indented.
func columns(l string) int {
	indent, _ := indented(l)
	return width(indent, tabWidths[0])
}

// unanchored refuses a hunk whose @@ line is not there.
func (f *file) unanchored(anchor string) *Refusal {
	return &Refusal{Reason: Unanchored, Anchor: anchor, Near: f.nearest(anchor + "\n")}
}

// hunkError says why a hunk was refused, and what to do next; "" if that is said as of any edit.
func (r *Refusal) hunkError() string {
	which := fmt.Sprintf("%s: hunk %d: ", r.file, r.Index+1)
	near := ""
	if r.Near != nil {
		near = fmt.Sprintf(" The nearest place is %s", r.Near)
	}
	lines := placesOf(r.Lines)
	switch {
	case r.Reason == Changed, r.Reason == Forgotten, r.Reason == Unknown:
		return ""
	case r.Reason == Empty:
		return which + "it has no line that stays or goes: add a line of the file with a blank in front"
	case r.Reason == Unanchored:
		return which + fmt.Sprintf("the line @@ %s is not in the file: name a line that is there, "+
			"or leave @@ out and give more lines that stay.%s", head(r.Anchor), near)
	case r.Reason == Ambiguous && r.Anchor != "" && len(r.Lines) == 1:
		return which + fmt.Sprintf("the old text is not in what @@ %s begins, but at line %s: "+
			"name what is above that place", head(r.Anchor), lines)
	case r.Reason == Ambiguous && r.Anchor != "":
		return which + fmt.Sprintf("the line @@ %s does not tell the places apart, at lines %s: "+
			"put an @@ line with the class or function above it", head(r.Anchor), lines)
	case r.Reason == Ambiguous:
		return which + fmt.Sprintf("the old text is in the file %d times, at lines %s: "+
			"put @@ and the function or class above it, or give more lines that stay", len(r.Lines), lines)
	case r.Near == nil:
		return which + "the old text is not in the file, nor anything like it: read the file again"
	}
	return which + "the old text is not in the file: take it from what is there." + near
}

// placesOf names lines.
func placesOf(lines []int) string {
	named := make([]string, 0, maxPlaces+1)
	for _, l := range lines[:min(len(lines), maxPlaces)] {
		named = append(named, fmt.Sprint(l))
	}
	if len(lines) > maxPlaces {
		named = append(named, "…")
	}
	return strings.Join(named, ", ")
}
