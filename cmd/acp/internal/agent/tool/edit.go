package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Edit replaces texts in a file.
var Edit = Tool{
	Name: "edit", Kind: acp.ToolKindEdit,
	About: "Replaces texts in a file, one after another: all of them or none. Each old text must be in the file exactly once, unless all is set.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"absolute, or relative to the working directory"},` +
		`"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"},"all":{"type":"boolean"}},` +
		`"required":["old","new"],"additionalProperties":false}},` +
		`"all":{"type":"boolean","description":"replace the old texts wherever they are"}},` +
		`"required":["path","edits"],"additionalProperties":false}`),
	Run: runEdit,
}

// EditInput is the input of [Edit].
type EditInput struct {
	Path  string        `json:"path"`
	Edits []Replacement `json:"edits"`
	All   bool          `json:"all,omitempty"`
}

// A Replacement is one text for another.
type Replacement struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all,omitempty"` // wherever the old text is
}

func runEdit(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in EditInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if len(in.Edits) == 0 {
		return Result{}, Misusef("what to replace is missing")
	}
	for _, r := range in.Edits {
		if r.Old == "" {
			return Result{}, Misusef("the old text is empty")
		}
	}
	p, err := find(env, in.Path)
	if err != nil {
		return Result{}, err
	}
	return change(ctx, env, "edit", "Edit "+p.shown, p, func(before string, created bool) (string, []uint32, error) {
		if created {
			return "", nil, fs.ErrNotExist
		}
		if binary(before) {
			return "", nil, fmt.Errorf("%s is not text", p.shown)
		}
		return replace(before, in.Edits, in.All, env.Hints().ReplaceAll)
	}), nil
}

// Write writes a file.
var Write = Tool{
	Name: "write", Kind: acp.ToolKindEdit,
	About: "Writes a file: a new one, or all of one that exists. Directories are made as needed.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"absolute, or relative to the working directory"},` +
		`"text":{"type":"string","description":"all of the file"}},` +
		`"required":["path","text"],"additionalProperties":false}`),
	Run: runWrite,
}

// WriteInput is the input of [Write].
type WriteInput struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

func runWrite(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in WriteInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	p, err := find(env, in.Path)
	if err != nil {
		return Result{}, err
	}
	return change(ctx, env, "write", "Write "+p.shown, p, func(string, bool) (string, []uint32, error) {
		return in.Text, []uint32{1}, nil
	}), nil
}

// change changes a file as make says, which is given what is in it and whether it
// does not exist. The user is asked with the difference, and nothing is written
// if the file was changed by somebody else meanwhile.
func change(ctx context.Context, env Env, tool, title string, p place, make func(before string, created bool) (string, []uint32, error)) Result {
	c := begin(ctx, env, acp.ToolCall{
		Name: tool, Title: prose.OneLine(title, 200), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	said, err := c.change(p, make)
	if err != nil {
		return c.failed(p.wrap(err))
	}
	return c.done(said)
}

// change asks for permission with the difference, checks that the file is still what the user has
// seen, and writes it.
func (c *call) change(p place, make func(string, bool) (string, []uint32, error)) (string, error) {
	req := using(acp.ToolKindEdit, p)
	if v := c.env.Judge(req); v.Effect == acphost.EffectDeny {
		return "", c.permit(Question{Permission: acp.Permission{Title: "Change " + p.shown + "?"}, About: AboutEdit, Request: req})
	}
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	before, created, err := c.current(p)
	if err != nil {
		return "", err
	}
	after, at, err := make(before, created)
	if err != nil {
		return "", err
	}
	if after == before && !created {
		return fmt.Sprintf("%s is like that already.", prose.Inline(p.shown)), nil
	}
	where := []acp.ToolCallLocation{}
	for _, line := range at[:min(len(at), 20)] {
		where = append(where, acp.ToolCallLocation{Path: p.path, Line: &line})
	}
	c.locations(where)
	_ = c.h.Change(acp.FileChange{Path: p.path, Before: before, After: after, Created: created})
	asked, always, about := AboutEdit, "changes to files of the session", ""
	if !p.inside {
		asked, always, about = AboutWrite, "changes to files outside the session's directories", "It is outside the directories of this session."
	}
	verb := "Change "
	if created {
		verb = "Create "
	}
	err = c.permit(Question{
		Permission: acp.Permission{Title: verb + p.shown + "?", Description: about}, About: asked, Always: always, Request: req,
	})
	if err != nil {
		return "", err
	}
	c.status(acp.ToolCallStatusInProgress)
	now, stillCreated, err := c.current(p)
	if err != nil {
		return "", err
	}
	if now != before || created != stillCreated {
		return "", fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written", p.shown)
	}
	if again, err := locate(c.env, p.path); err != nil || again.inside != p.inside || again.real != p.real {
		return "", fmt.Errorf("%s leads somewhere else than before; nothing was written", p.shown)
	}
	if created {
		if err := os.MkdirAll(filepath.Dir(p.path), 0o777); err != nil {
			return "", err
		}
	}
	if err := c.env.Intend(Intent{Path: p.path, Before: before, After: after, Created: created}); err != nil {
		return "", err
	}
	if err := c.env.Output().WriteFile(p.path, after); err != nil {
		return "", err
	}
	if f := c.env.Files(); f != nil {
		f.Wrote(p.path, after)
	}
	if created {
		return fmt.Sprintf("Created %s with %s.", prose.Inline(p.shown), prose.Count(prose.Lines(after), "line")), nil
	}
	return fmt.Sprintf("Changed %s.", prose.Inline(p.shown)), nil
}

// current returns what is in a file, and whether it does not exist.
func (c *call) current(p place) (text string, missing bool, err error) {
	if f := c.env.Files(); f != nil {
		text, _, err = f.Read(c.env.Output(), p.path)
	} else {
		text, err = c.env.Output().ReadFile(p.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return text, false, err
}

// replace makes the replacements, one after another. Unless all is set, the old text must
// be there once; hint says how to set it. It returns the new text and the lines, counted
// from 1, at which the first changes of each begin.
func replace(text string, rs []Replacement, all bool, hint string) (string, []uint32, error) {
	edits := make([]edit.Edit, len(rs))
	for i, r := range rs {
		edits[i] = edit.Edit{Old: r.Old, New: r.New, All: all || r.All}
	}
	after, changes, err := edit.Apply(text, edits)
	if r, ok := errors.AsType[*edit.Refusal](err); ok {
		return "", nil, &notReplaced{r, prose.OneLine(rs[r.Index].Old, 60), hint}
	}
	if err != nil {
		return "", nil, err
	}
	at := make([]uint32, len(changes))
	for i, c := range changes {
		at[i] = uint32(c.Line)
	}
	return after, at, nil
}

// A notReplaced says for people why a text was not replaced; what it wraps says it for a
// language model.
type notReplaced struct {
	*edit.Refusal
	old, hint string
}

func (n *notReplaced) Unwrap() error { return n.Refusal }

// Error returns the reason in a sentence.
func (n *notReplaced) Error() string {
	switch n.Reason {
	case edit.Ambiguous:
		return fmt.Sprintf("the old text %q is in the file %d times: give more of what surrounds it, or %s", n.old, len(n.Lines), n.hint)
	case edit.Unchanged:
		return fmt.Sprintf("the old text %q is the same as the new one", n.old)
	}
	return fmt.Sprintf("the old text %q is not in the file", n.old)
}
