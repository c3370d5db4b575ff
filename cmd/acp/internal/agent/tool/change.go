package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/internal/patch"
)

// A revision is what a file becomes.
type revision struct {
	after  string
	at     []uint32       // the lines, counted from 1, at which the changes begin
	places []served.Range // what has changed, in the new text
	where  string         // that in words, with how each place was found
	note   string         // what else is to be said
	made   []served.Made  // the edits; none if all of the file was written
}

// maxWhere bounds the places that are named.
const maxWhere = 10

// revised returns what edits have made of a file.
func revised(after string, changes []edit.Change) revision {
	r := revision{after: after}
	var where []string
	for i, c := range changes {
		lines := named(c.At)
		r.places = append(r.places, c.At...)
		for _, l := range c.At {
			r.at = append(r.at, uint32(l.From))
		}
		if c.How == edit.Already {
			lines = []string{fmt.Sprintf("line %d", c.Line)}
			r.at = append(r.at, uint32(max(1, c.Line)))
		} else {
			r.made = append(r.made, c.Made())
		}
		switch {
		case i > maxWhere || len(lines) == 0:
			continue
		case i == maxWhere:
			where = append(where, fmt.Sprintf("%d more", len(changes)-i))
			continue
		}
		said := strings.Join(lines, ", ")
		if note := c.Note(); note != "" {
			said += " (" + note + ")"
		}
		where = append(where, said)
	}
	r.where = strings.Join(where, ", ")
	return r
}

// named names places by their lines: maxWhere of them, and how many more there are.
func named(at []served.Range) []string {
	var all []string
	for _, l := range at[:min(len(at), maxWhere)] {
		all = append(all, lineNumbers(l))
	}
	if more := len(at) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more places", more))
	}
	return all
}

// lineNumbers names some lines.
func lineNumbers(l served.Range) string {
	if l.N <= 1 {
		return fmt.Sprintf("line %d", l.From)
	}
	return fmt.Sprintf("lines %d-%d", l.From, l.From+l.N-1)
}

// A maker returns what a file becomes, given what is in it and whether it does not exist.
type maker func(before string, created bool) (revision, error)

// change changes a file as make says. The user is asked with the difference, and nothing is written
// if the file was changed by somebody else meanwhile. The result has room for so many bytes.
func change(ctx context.Context, env Env, tool, title string, p place, room int, make maker) Result {
	c := begin(ctx, env, acp.ToolCall{
		Name: tool, Title: prose.OneLine(title, 200), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	c.room = room
	said, err := c.change(p, make)
	if err != nil {
		return c.failed(p.wrap(err))
	}
	return c.done(said)
}

// change asks for permission with the difference, checks that the file is still what the user has
// seen, and writes it.
func (c *call) change(p place, make maker) (string, error) {
	req := using(acp.ToolKindEdit, p)
	if v := c.env.Judge(req); v.Effect == acphost.EffectDeny {
		ask := acp.Permission{Title: "Change " + p.shown + "?"}
		return "", c.permit(Question{Permission: ask, About: AboutEdit, Request: req})
	}
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	before, created, err := c.current(p)
	if err != nil {
		return "", err
	}
	r, err := c.revise(p, before, created, make)
	if err != nil {
		return "", err
	}
	after := r.after
	if after == before && !created {
		if r.where != "" {
			return fmt.Sprintf("%s is like that already: %s.", prose.Inline(p.shown), r.where), nil
		}
		return fmt.Sprintf("%s is like that already.", prose.Inline(p.shown)), nil
	}
	c.locate(p, r.at)
	_ = c.h.Change(acp.FileChange{Path: p.path, Before: before, After: after, Created: created})
	verb := "Change "
	if created {
		verb = "Create "
	}
	if err := c.permit(mayChange(p, verb+p.shown+"?", req)); err != nil {
		return "", err
	}
	c.status(acp.ToolCallStatusInProgress)
	if err := c.unchanged(p, before, created); err != nil {
		return "", err
	}
	if created {
		if err := os.MkdirAll(filepath.Dir(p.path), 0o777); err != nil {
			return "", err
		}
	}
	if err := c.env.Intend(Intent{Path: p.path, Before: before, After: after, Created: created, Made: r.made}); err != nil {
		return "", err
	}
	if err := c.unchanged(p, before, created); err != nil { // keeping the intent takes a while
		return "", err
	}
	if err := c.write(p, before, created, r); err != nil {
		return "", err
	}
	said := fmt.Sprintf("Changed %s", prose.Inline(p.shown))
	if created {
		said = fmt.Sprintf("Created %s with %s", prose.Inline(p.shown), prose.Count(prose.Lines(after), "line"))
	}
	return c.say(said, p, r, created), nil
}

// revise returns what a file becomes.
func (c *call) revise(p place, before string, created bool, make maker) (revision, error) {
	if !created {
		if err := writable(p); err != nil {
			return revision{}, err
		}
	}
	r, err := make(before, created)
	return r, shows(c.env, p, before, err)
}

// shows returns why a file is left as it is. What of its text that shows, the model knows from now on.
func shows(env Env, p place, text string, err error) error {
	if r, ok := errors.AsType[*edit.Refusal](err); ok && r.Near != nil {
		env.Served().Show(p.real, text, r.Near.Shown()...)
	}
	if u, ok := errors.AsType[*unread](err); ok {
		env.Served().Show(p.real, text, u.shown...)
	}
	return err
}

// write writes a file, and remembers that.
func (c *call) write(p place, before string, created bool, r revision) error {
	if err := c.store(p, before, created, r.after); err != nil {
		return err
	}
	c.env.Served().Change(p.real, before, r.after, r.made...)
	return nil
}

// storable returns why a text cannot be written.
func (c *call) storable(p place, text string) error {
	if c.env.Files() != nil && !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8, and your editor, through which it would be written, has no other text", p.shown)
	}
	return nil
}

// store writes a file.
func (c *call) store(p place, before string, created bool, text string) error {
	if err := c.storable(p, text); err != nil {
		return err
	}
	var err error
	if f := c.env.Files(); f != nil { // what counts is not always what the client shows
		if err = c.env.Output().WriteFile(p.path, text); err == nil {
			f.Wrote(p.path, text)
		}
	} else {
		old := &before
		if created {
			old = nil
		}
		err = c.env.Output().ReplaceFile(p.path, old, text)
	}
	if errors.Is(err, acp.ErrFileChanged) {
		return changedMeanwhile(p)
	}
	return err
}

// say returns a sentence about a change, with where it is, and shows the model what is there
// now.
func (c *call) say(said string, p place, r revision, created bool) string {
	if r.where == "" && !created {
		r.where = strings.Join(named(r.places), ", ")
	}
	if r.where != "" {
		said += ": " + r.where
	}
	if r.note != "" {
		said += "; " + r.note
	}
	said += "."
	if !created && c.env.Served() != nil {
		view, shown := edit.View(r.after, r.places, c.room-len(said))
		c.env.Served().Show(p.real, r.after, shown...)
		c.found = said + "\n" + view
	}
	return said
}

// mayChange asks whether a file may be changed.
func mayChange(p place, title string, req acphost.Request) Question {
	asked, always, about := AboutEdit, "changes to files of the session", ""
	if !p.inside {
		asked, always = AboutWrite, "changes to files outside the session's directories"
		about = "It is outside the directories of this session."
	}
	ask := acp.Permission{Title: title, Description: about}
	return Question{Permission: ask, About: asked, Always: always, Request: req}
}

// locate shows where a file changes.
func (c *call) locate(p place, at []uint32) {
	where := []acp.ToolCallLocation{}
	for _, line := range at[:min(len(at), 20)] {
		where = append(where, acp.ToolCallLocation{Path: p.path, Line: &line})
	}
	c.locations(where)
}

// unchanged returns an error if a file is not what it was any more.
func (c *call) unchanged(p place, before string, created bool) error {
	now, stillCreated, err := c.current(p)
	if err != nil {
		return err
	}
	if now != before || created != stillCreated {
		return changedMeanwhile(p)
	}
	if again, err := locate(c.env, p.path); err != nil || again.inside != p.inside || again.real != p.real {
		return fmt.Errorf("%s leads somewhere else than before; nothing was written", p.shown)
	}
	return nil
}

func changedMeanwhile(p place) error {
	return fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written", p.shown)
}

// current returns what is in a file, and whether it does not exist.
func (c *call) current(p place) (text string, missing bool, err error) { return current(c.env, p) }

func current(env Env, p place) (text string, missing bool, err error) {
	text, _, err = readText(env, p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return text, false, err
}

// writable returns an error for a file that its owner has made read-only, also if the system
// would let this program write it.
func writable(p place) error {
	info, err := os.Stat(p.path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o222 != 0 {
		return nil // what else is wrong is said when it is written
	}
	return fmt.Errorf("%s is read-only (mode %04o), so it is left as it is; ask the user if it is to be changed",
		p.shown, info.Mode().Perm())
}

// overwrites returns why a file must not be written whole: there is something in it that the
// model does not know.
func overwrites(p place, before string, known *served.File) error {
	switch {
	case known.Whole():
		return nil
	case !utf8.ValidString(before):
		return fmt.Errorf("%s is not UTF-8, so it cannot be written as a whole without loss; change it by edits", p.shown)
	}
	u := &unread{name: p.shown}
	was, ok := known.Known()
	switch {
	case ok:
		u.difference, u.shown = difference(was, before)
	case known.Lost() || known.Stale():
		u.changed = true
	case len(known.Seen()) > 0:
		u.seen, u.of = named(known.Seen()), known.Lines()
	}
	if u.difference == "" && len(before) <= maxDifference && !binary(before) {
		u.text, u.shown = before, []served.Range{{From: 1, N: prose.Lines(before)}}
	}
	return u
}

// An unread says why a file is not written whole: for people in a sentence, for a language
// model with the difference.
type unread struct {
	name       string
	difference string // between what the model knows and what is there
	text       string // or else what is there, if that is little
	shown      []served.Range
	changed    bool     // since it was read, or it is not known whether it has
	seen       []string // which lines were read
	of         int      // of so many
}

// Error returns the reason.
func (u *unread) Error() string {
	const nothing = "; nothing was written"
	switch {
	case u.difference != "":
		return u.name + " has changed since you read it" + nothing
	case u.changed:
		return u.name + " is not as you have read it, perhaps" + nothing + ": read all of it first"
	case len(u.seen) > 0:
		return fmt.Sprintf("of %s you have read only %s of %d%s: read the rest first, or use edit",
			u.name, strings.Join(u.seen, ", "), u.of, nothing)
	}
	return u.name + " exists, and you have not read it" + nothing + ": read all of it first, or use edit"
}

func (u *unread) full() string {
	said := prose.Sentence(u.Error()) + "."
	switch {
	case u.difference != "":
		return said + " The user or a command has made these changes; write the file with them in it:\n" + u.difference
	case u.text != "":
		return said + " This is what is in it; write it again if none of that is needed:\n" + u.text
	}
	return said
}

// maxDifference bounds a difference that is shown, in bytes.
const maxDifference = 8 << 10

// difference returns what has changed, and which lines of the new text it shows; none if that
// is too much.
func difference(was, is string) (text string, shown []served.Range) {
	text = patch.Git(patch.File{OldPath: "file", NewPath: "file", Old: was, New: is})
	if i := strings.Index(text, "@@"); i >= 0 {
		text = text[i:]
	}
	if len(text) > maxDifference || !utf8.ValidString(is) {
		head, _ := prose.Head(text, 1000, maxDifference)
		return head + "(and more: read the file)\n", nil
	}
	for _, s := range patch.Spans(was, is) {
		from := max(1, s.New+1-3)
		shown = append(shown, served.Range{From: from, N: s.NewEnd + 3 - from + 1})
	}
	return text, shown
}
