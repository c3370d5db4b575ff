package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Patch changes files as a patch in the V4A form says, on which some models were trained.
// It takes the place of [Edit] for these.
var Patch = Tool{
	Name: "patch", Kind: acp.ToolKindEdit,
	About:  "Changes files by a patch of the form *** Begin Patch, *** Add File: PATH, *** Update File: PATH, *** Move to: PATH, *** Delete File: PATH, @@ PLACE, lines that begin with a blank, - or +, *** End Patch. If one place cannot be found nothing is changed.",
	Schema: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`),
	Run:    runPatch,
}

// PatchInput is the input of [Patch].
type PatchInput struct {
	Patch string `json:"patch"`
}

func runPatch(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in PatchInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	patch, err := edit.ParsePatch(in.Patch)
	if err != nil {
		return Result{}, Misusef("%v", err)
	}
	// All places are sought before anything is changed.
	places := make([]place, len(patch.Files))
	seen := map[string]bool{}
	for i, f := range patch.Files {
		if places[i], err = find(env, f.Path); err != nil {
			return Result{}, err
		}
		if seen[places[i].path] {
			return Result{}, Misusef("%s is there twice: put all of its changes into one section", places[i].shown)
		}
		seen[places[i].path] = true
		if err := fits(env, f, places[i]); err != nil {
			return Result{}, fmt.Errorf("nothing was changed: %w", err)
		}
	}
	var said []string
	for i, f := range patch.Files {
		res := patchFile(ctx, env, f, places[i])
		said = append(said, res.Said)
		if res.Status != acp.ToolCallStatusCompleted {
			if left := len(patch.Files) - i - 1; left > 0 {
				said = append(said, fmt.Sprintf("%s of the patch were not changed.", prose.Count(left, "further file")))
			}
			res.Said = strings.Join(said, "\n")
			if res.Text != "" {
				res.Text = strings.Join(append(said[:i:i], res.Text), "\n")
			}
			return res, nil
		}
	}
	return Result{Said: strings.Join(said, "\n"), Status: acp.ToolCallStatusCompleted}, nil
}

// fits checks a change against the file as it is.
func fits(env Env, f edit.FilePatch, p place) error {
	text, err := env.Output().ReadFile(p.path)
	switch {
	case f.Do == edit.Add && err == nil:
		return fmt.Errorf("%s exists already: update it", p.shown)
	case f.Do == edit.Add:
		return nil
	case err != nil:
		return p.wrap(err)
	case f.Do == edit.Update:
		if _, _, err := edit.ApplyHunks(p.shown, text, f.Hunks); err != nil {
			return err
		}
	}
	if f.To != "" {
		to, err := find(env, f.To)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(to.path); err == nil {
			return fmt.Errorf("%s exists already", to.shown)
		}
	}
	return nil
}

// patchFile changes one file, as a call of its own.
func patchFile(ctx context.Context, env Env, f edit.FilePatch, p place) Result {
	switch {
	case f.Do == edit.Delete:
		return remove(ctx, env, p, "")
	case f.Do == edit.Add:
		return change(ctx, env, "patch", "Write "+p.shown, p, func(_ string, created bool) (string, []uint32, error) {
			if !created {
				return "", nil, fs.ErrExist
			}
			return f.Text, []uint32{1}, nil
		})
	case f.To == "":
		return change(ctx, env, "patch", "Edit "+p.shown, p, func(before string, created bool) (string, []uint32, error) {
			if created {
				return "", nil, fs.ErrNotExist
			}
			return hunks(before, f)
		})
	}
	to, err := find(env, f.To)
	if err != nil {
		return Result{Said: prose.Sentence(err.Error()) + ".", Status: acp.ToolCallStatusFailed, Err: err}
	}
	before, err := env.Output().ReadFile(p.path)
	var after string
	if err == nil {
		after, _, err = hunks(before, f)
	}
	if err != nil {
		return Result{Said: prose.Sentence(prose.Error(p.wrap(err))) + ".", Status: acp.ToolCallStatusFailed, Err: err}
	}
	res := change(ctx, env, "patch", "Write "+to.shown, to, func(_ string, created bool) (string, []uint32, error) {
		if !created {
			return "", nil, fs.ErrExist
		}
		return after, []uint32{1}, nil
	})
	if res.Status != acp.ToolCallStatusCompleted {
		return res
	}
	gone := remove(ctx, env, p, before)
	gone.Said = res.Said + "\n" + gone.Said
	return gone
}

func hunks(before string, f edit.FilePatch) (string, []uint32, error) {
	after, changes, err := edit.ApplyHunks(f.Path, before, f.Hunks)
	if err != nil {
		return "", nil, err
	}
	at := make([]uint32, len(changes))
	for i, c := range changes {
		at[i] = uint32(c.Line)
	}
	return after, at, nil
}

// remove deletes a file, if that is permitted and, unless want is empty, its text is that.
func remove(ctx context.Context, env Env, p place, want string) Result {
	c := begin(ctx, env, acp.ToolCall{
		Name: "patch", Title: prose.OneLine("Delete "+p.shown, 200), Kind: acp.ToolKindDelete, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	before, missing, err := c.current(p)
	switch {
	case err != nil:
		return c.failed(p.wrap(err))
	case missing:
		return c.failed(p.wrap(fs.ErrNotExist))
	case want != "" && before != want:
		return c.failed(fmt.Errorf("%s was changed by somebody else meanwhile; it was not deleted", p.shown))
	}
	_ = c.h.Change(acp.FileChange{Path: p.path, Before: before, Deleted: true})
	asked, always := AboutEdit, "changes to files of the session"
	if !p.inside {
		asked, always = AboutWrite, "changes to files outside the session's directories"
	}
	err = c.permit(Question{
		Permission: acp.Permission{Title: "Delete " + p.shown + "?"}, About: asked, Always: always, Request: using(acp.ToolKindDelete, p),
	})
	if err == nil {
		err = env.Intend(Intent{Path: p.path, Before: before, Deleted: true})
	}
	if err == nil {
		c.status(acp.ToolCallStatusInProgress)
		err = os.Remove(p.path)
	}
	if err != nil {
		return c.failed(p.wrap(err))
	}
	return c.done(fmt.Sprintf("Deleted %s.", prose.Inline(p.shown)))
}
