// Package edit changes texts as a language model asks for: by what is there and what shall
// be there instead. It touches no file.
//
// A model often gets blanks wrong. An old text is looked for in five ways, one after the
// other, and the first that finds it decides:
//
//	exact         byte for byte
//	line endings  the same, but for how lines end
//	trailing      whole lines, but for blanks at their ends
//	indentation   and but for one shift of all indentations, or tabs for blanks; the new
//	              text is shifted likewise
//	quotes        and but for typographic quotes, dashes and blanks, and bytes that are not
//	              UTF-8
//
// It must be there once, unless all of its places are to be changed. Nothing else is ever
// taken for it: a similar text is refused, with the place that is nearest.
//
// The first two are what the model has said. The others are guesses, so they count only for
// lines that the model knows, as a [served.File] says, and only if nothing that it knows and
// that is not there any more is what it means. A text that begins with blanks is not found
// in the middle of an indentation.
package edit

import (
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/internal/patch"
)

// An Edit replaces a text.
type Edit struct {
	Old, New string
	All      bool // wherever it is
}

// How an old text was found.
type How string

// The ways.
const (
	Exact       How = "exact"
	LineEndings How = "line endings"
	Trailing    How = "trailing blanks"
	Indentation How = "indentation"
	Quotes      How = "quotes"
	Already     How = "already applied" // the session has made this edit, and its place is as it was left
)

// A Change is what an edit did.
type Change struct {
	How   How
	Line  int            // at which the first place begins, counted from 1 in the text before this edit
	Shift int            // by how many columns the file is indented more than the old text
	At    []served.Range // what has changed, in the text after all edits; the lines of one that removes lines are none
	edit  Edit
}

// Note says how an old text was found, if not as it was written.
func (c Change) Note() string {
	switch {
	case c.How == Exact:
		return ""
	case c.How == Already:
		return "you have made this edit already"
	case c.Shift != 0:
		return fmt.Sprintf("indentation differed by %d", max(c.Shift, -c.Shift))
	case c.How == Quotes:
		return "quotes or other characters differed"
	}
	return string(c.How) + " differed"
}

// Made returns what is remembered of the edit.
func (c Change) Made() served.Made {
	m := served.Made{Edit: served.Hash(c.edit.Old, c.edit.New)}
	if len(c.At) > 0 {
		last := c.At[len(c.At)-1]
		m.Range = served.Range{From: c.At[0].From, N: last.From + last.N - c.At[0].From}
	}
	return m
}

// Apply makes the edits one after another: all of them, or none. known is what the model
// knows of the file; nil is nothing. An error is a [*Refusal].
func Apply(text string, edits []Edit, known *served.File) (string, []Change, error) {
	b := begin(text, known)
	for i, e := range edits {
		after, c, err := apply(b.text, e, knowledge{File: b.knows()})
		if err != nil {
			err.Index, err.Of = i, len(edits)
			return "", nil, err
		}
		b.step(after, c, e)
	}
	return b.text, b.changes, nil
}

// A batch is some edits of a text, as far as they are made.
type batch struct {
	text    string
	known   *served.File
	changes []Change
}

func begin(text string, known *served.File) *batch {
	if known != nil {
		known = known.At(text)
	}
	return &batch{text: text, known: known}
}

// step takes what came of an edit.
func (b *batch) step(after string, c Change, e Edit) {
	spans := patch.Spans(b.text, after)
	for i := range b.changes {
		at := b.changes[i].At
		for j := range at {
			at[j].From = served.Moved(at[j].From, spans)
		}
	}
	for _, s := range spans {
		c.At = append(c.At, served.Range{From: s.New + 1, N: s.NewEnd - s.New})
	}
	c.edit = e
	b.changes = append(b.changes, c)
	b.text = after
}

// knows returns what the model knows of the text, with the edits that were made.
func (b *batch) knows() *served.File {
	if b.known != nil && len(b.changes) > 0 {
		b.known = b.known.Changed(b.text, false)
	}
	return b.known
}

// A Reason says why an edit is refused.
type Reason string

// The reasons.
const (
	Empty     Reason = "empty"
	Missing   Reason = "missing"
	Ambiguous Reason = "ambiguous"
	Unchanged Reason = "unchanged"
	Changed   Reason = "changed"   // what the model knows is not there any more
	Forgotten Reason = "forgotten" // the file has changed, and it is not known what of it the model has seen
	Unknown   Reason = "unknown"   // it is there but for something, where the model has not looked
)

// A Refusal says why an edit was not made.
type Refusal struct {
	Index  int // of the edit, from 0
	Of     int // how many edits there are
	Reason Reason
	Lines  []int // at which the old text begins, if it is there more than once
	How    How   // in which way it was found then
	Own    bool  // the model itself has changed what was there
	Near   *Region
	Anchor string // of a patch: the @@ line that the reason is about, if it is about one
	file   string // that a patch is about
}

// Error returns the reason, with the nearest region, for a language model.
func (r *Refusal) Error() string {
	which := "the old text"
	switch {
	case r.file != "":
		if said := r.hunkError(); said != "" {
			return said
		}
		which = fmt.Sprintf("%s: hunk %d: the old text", r.file, r.Index+1)
	case r.Of > 1:
		which = fmt.Sprintf("edit %d of %d: the old text", r.Index+1, r.Of)
	}
	switch r.Reason {
	case Empty:
		return which + " is empty"
	case Unchanged:
		return which + " is the same as the new one"
	case Ambiguous:
		s := fmt.Sprintf("%s is in the file %d times, at lines %s: give more of what surrounds it", which, len(r.Lines), placesOf(r.Lines))
		if r.How != Exact {
			s += fmt.Sprintf(" (it is there but for its %s)", r.How)
		}
		return s
	}
	said := which + " is not in the file"
	switch {
	case r.Reason == Changed && r.Own:
		said = which + " is not there any more: you have changed it yourself"
	case r.Reason == Changed:
		said = which + " is not there any more: since you read it, the user or a command has changed it"
	case r.Reason == Forgotten:
		return fmt.Sprintf("%s may have been in another place: the file has changed since you read it. There are now %s\n"+
			"If you mean these, make the edit again", which, r.Near)
	case r.Reason == Unknown:
		return fmt.Sprintf("%s is in the file but for its %s, in lines that you have not read: %s\n"+
			"If you mean these, use them as they are", which, r.How, r.Near)
	case r.Near == nil:
		return said + ", nor anything like it"
	}
	switch {
	case r.Near == nil:
		return said + ". Read the file again"
	case r.Reason == Changed:
		return fmt.Sprintf("%s. In its place there are now %s", said, r.Near)
	}
	return fmt.Sprintf("%s. The nearest place is %s", said, r.Near)
}

// maxPlaces bounds the places that are named.
const maxPlaces = 10

// apply makes one edit.
func apply(text string, e Edit, known knowledge) (string, Change, *Refusal) {
	switch {
	case e.Old == "":
		return "", Change{}, &Refusal{Reason: Empty}
	case e.Old == e.New:
		return "", Change{}, &Refusal{Reason: Unchanged}
	}
	f := newFile(text)
	found, how := f.exactly(e.Old)
	if len(found) == 0 {
		var made *served.Range
		var refusal *Refusal
		found, how, made, refusal = f.seek(e, known, func(served.Range) bool { return true })
		if refusal != nil {
			return "", Change{}, refusal
		}
		if made != nil {
			return text, Change{How: Already, Line: made.From}, nil
		}
	} else if refusal := f.doubt(e, found, known); refusal != nil {
		return "", Change{}, refusal
	}
	if len(found) > 1 && !e.All {
		return "", Change{}, f.ambiguous(found, how, "")
	}
	var b strings.Builder
	done := 0
	for _, p := range found {
		if p.from < done {
			continue // it overlaps the one before
		}
		now, ok := f.replacement(p, e, how)
		if !ok {
			return "", Change{}, &Refusal{Reason: Missing, Near: f.nearest(e.Old)}
		}
		b.WriteString(text[done:p.from])
		b.WriteString(now)
		done = p.to
	}
	b.WriteString(text[done:])
	return b.String(), Change{How: how, Line: f.lineAt(found[0].from), Shift: found[0].shift}, nil
}

// ambiguous refuses an old text that is in several places, found in a way. The @@ line of a patch that does not tell
// them apart is "" if there is none.
func (f *file) ambiguous(found []place, how How, anchor string) *Refusal {
	r := &Refusal{Reason: Ambiguous, How: how, Anchor: anchor}
	for _, p := range found {
		r.Lines = append(r.Lines, f.lineAt(p.from))
	}
	return r
}
