package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
	"github.com/goacp/acp/internal/patch"
)

// Edit replaces texts in a file.
var Edit = Tool{
	Name: "edit", Kind: acp.ToolKindEdit,
	About: "Replaces texts in a file, one after another: all of them or none. Each old text must be in the file exactly once, unless all is set.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string"},` +
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
	p, err := find(env, in.Path)
	if err != nil {
		return Result{}, err
	}
	for _, r := range in.Edits {
		if r.Old == "" {
			return Result{}, Misusef("the old text is empty: name a line that is there, or use write for a file that is new or empty")
		}
	}
	return change(ctx, env, "edit", "Edit "+p.shown, p, MaxText, func(before string, created bool) (revision, error) {
		if created {
			return revision{}, missing(env, p)
		}
		if binary(before) {
			return revision{}, fmt.Errorf("%s is not text", p.shown)
		}
		return replace(before, in.Edits, in.All, env.Hints().ReplaceAll, env.Served().File(p.real, before))
	}), nil
}

// Write writes a file.
var Write = Tool{
	Name: "write", Kind: acp.ToolKindEdit,
	About: "Writes a file: a new one, or all of one that you have read to its end.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string"},` +
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
	return change(ctx, env, "write", "Write "+p.shown, p, MaxText, func(before string, created bool) (revision, error) {
		if created {
			return revision{after: in.Text, at: []uint32{1}}, nil
		}
		if env.Served() != nil {
			if err := overwrites(p, before, env.Served().File(p.real, before)); err != nil {
				return revision{}, err
			}
		}
		return rewrite(before, in.Text), nil
	}), nil
}

// rewrite returns a text that takes the place of another, with what people have chosen for
// the file: how its lines end, a byte-order mark, and whether the last line ends.
func rewrite(before, text string) revision {
	after, notes := text, []string(nil)
	end := "\n"
	if n := strings.Count(before, "\r\n"); 2*n > strings.Count(before, "\n") && !strings.Contains(after, "\r\n") {
		end = "\r\n"
		after = strings.ReplaceAll(after, "\n", "\r\n")
		notes = append(notes, "its lines end with CRLF, as before")
	}
	const mark = "\ufeff"
	if strings.HasPrefix(before, mark) && !strings.HasPrefix(after, mark) {
		after = mark + after
		notes = append(notes, "it begins with a byte-order mark, as before")
	}
	if before != "" && before != mark && strings.Trim(after, mark) != "" {
		switch ended, ends := strings.HasSuffix(before, "\n"), strings.HasSuffix(after, "\n"); {
		case ended && !ends:
			after += end
		case !ended && ends:
			after = strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
			notes = append(notes, "its last line does not end, as before")
		}
	}
	r := revision{after: after, note: strings.Join(notes, "; ")}
	for _, s := range patch.Spans(before, after) {
		r.at = append(r.at, uint32(s.New+1))
		r.places = append(r.places, served.Range{From: s.New + 1, N: s.NewEnd - s.New})
	}
	return r
}

// replace makes the replacements, one after another. Unless all is set, the old text must
// be there once; hint says how to set it. known is what the model knows of the file.
func replace(text string, rs []Replacement, all bool, hint string, known *served.File) (revision, error) {
	edits := make([]edit.Edit, len(rs))
	for i, r := range rs {
		edits[i] = edit.Edit{Old: r.Old, New: r.New, All: all || r.All}
	}
	after, changes, err := edit.Apply(text, edits, known)
	if r, ok := errors.AsType[*edit.Refusal](err); ok {
		return revision{}, &notReplaced{r, prose.OneLine(rs[r.Index].Old, 60), hint}
	}
	if err != nil {
		return revision{}, err
	}
	return revised(after, changes), nil
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
		return fmt.Sprintf("the old text %q is in the file %d times: give more of what surrounds it, or %s",
			n.old, len(n.Lines), n.hint)
	case edit.Unchanged:
		return fmt.Sprintf("the old text %q is the same as the new one", n.old)
	case edit.Changed, edit.Forgotten:
		return fmt.Sprintf("the old text %q is not there any more: it has changed since it was read", n.old)
	}
	return fmt.Sprintf("the old text %q is not in the file", n.old)
}
