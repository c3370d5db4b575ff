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
//	quotes        and but for typographic quotes, dashes and blanks
//
// It must be there once, unless all of its places are to be changed. Nothing else is ever
// taken for it: a similar text is refused, with the place that is nearest.
package edit

import (
	"fmt"
	"strings"
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
	Already     How = "already applied" // the new text is there in its place
)

// A Change is what an edit did.
type Change struct {
	How    How
	Line   int // at which the first place begins, counted from 1 in the text before this edit
	Places int
}

// Apply makes the edits one after another: all of them, or none. An error is a [*Refusal].
func Apply(text string, edits []Edit) (string, []Change, error) {
	changes := make([]Change, 0, len(edits))
	for i, e := range edits {
		after, c, err := apply(text, e)
		if err != nil {
			err.Index, err.Of = i, len(edits)
			return "", nil, err
		}
		text = after
		changes = append(changes, c)
	}
	return text, changes, nil
}

// A Reason says why an edit is refused.
type Reason string

// The reasons.
const (
	Empty     Reason = "empty"
	Missing   Reason = "missing"
	Ambiguous Reason = "ambiguous"
	Unchanged Reason = "unchanged"
)

// A Refusal says why an edit was not made.
type Refusal struct {
	Index  int // of the edit, from 0
	Of     int // how many edits there are
	Reason Reason
	Lines  []int // at which the old text begins, if it is there more than once
	How    How   // in which way it was found then
	Near   *Region
	file   string // that a patch is about
}

// Error returns the reason, with the nearest region, for a language model.
func (r *Refusal) Error() string {
	which := "the old text"
	switch {
	case r.file != "":
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
		lines := make([]string, 0, maxPlaces+1)
		for _, l := range r.Lines[:min(len(r.Lines), maxPlaces)] {
			lines = append(lines, fmt.Sprint(l))
		}
		if len(r.Lines) > maxPlaces {
			lines = append(lines, "…")
		}
		s := fmt.Sprintf("%s is in the file %d times, at lines %s: give more of what surrounds it", which, len(r.Lines), strings.Join(lines, ", "))
		if r.How != Exact {
			s += fmt.Sprintf(" (it is there but for its %s)", r.How)
		}
		return s
	}
	if r.Near == nil {
		return which + " is not in the file, nor anything like it"
	}
	return fmt.Sprintf("%s is not in the file. The nearest place is %s", which, r.Near)
}

// maxPlaces bounds the places that are named.
const maxPlaces = 10

// apply makes one edit.
func apply(text string, e Edit) (string, Change, *Refusal) {
	switch {
	case e.Old == "":
		return "", Change{}, &Refusal{Reason: Empty}
	case e.Old == e.New:
		return "", Change{}, &Refusal{Reason: Unchanged}
	}
	f := newFile(text)
	var found []place
	var how How
	for _, how = range []How{Exact, LineEndings, Trailing, Indentation, Quotes} {
		if how != Exact && strings.TrimSpace(e.Old) == "" {
			break // blanks alone are anywhere
		}
		if found = f.find(e.Old, how); len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) == 0 && applied(text, e):
		at := strings.Index(text, e.New)
		return text, Change{How: Already, Line: 1 + strings.Count(text[:at], "\n")}, nil
	case len(found) == 0:
		return "", Change{}, &Refusal{Reason: Missing, Near: f.nearest(e.Old)}
	case how != Exact && how != LineEndings && f.elsewhere(e.Old, found):
		return "", Change{}, &Refusal{Reason: Missing, Near: f.nearest(e.Old)}
	case len(found) > 1 && !e.All:
		r := &Refusal{Reason: Ambiguous, How: how}
		for _, p := range found {
			r.Lines = append(r.Lines, f.lineAt(p.from))
		}
		return "", Change{}, r
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
	return b.String(), Change{How: how, Line: f.lineAt(found[0].from), Places: len(found)}, nil
}

// applied reports whether the new text is there, once, with enough in it that the old one
// lacks, and nothing of what the edit removes is there any more. An edit that removes lines
// is never taken for one that was applied: what is left of them is anywhere.
func applied(text string, e Edit) bool {
	was, is := lineSet(e.Old), lineSet(e.New)
	added := 0
	for l := range is {
		if !was[l] {
			added += len(l)
		}
	}
	if added < minAdded || strings.Count(text, e.New) != 1 || strings.Count(e.New, "\n") < strings.Count(e.Old, "\n") {
		return false
	}
	there := lineSet(text)
	for l := range was {
		if l != "" && !is[l] && there[l] {
			return false
		}
	}
	return true
}

// minAdded is how many bytes of a new text have to be its own.
const minAdded = 8

// lineSet returns the lines of a text, without blanks around them.
func lineSet(text string) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(text) {
		set[strings.TrimSpace(l)] = true
	}
	return set
}
