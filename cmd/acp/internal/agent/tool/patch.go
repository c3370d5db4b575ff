package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/edit"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Patch changes files as a patch in the V4A form says, on which some models were trained.
// It takes the place of [Edit] for these.
var Patch = Tool{
	Name: "patch", Kind: acp.ToolKindEdit,
	About: "Changes files by a patch: *** Begin Patch, then for each file *** Add File: PATH, *** Delete File: PATH, or *** Update File: PATH " +
		"(and *** Move to: PATH); below an update, places of lines that begin with a blank (stays), - (goes) or + (comes); *** End Patch. " + patchRule,
	Schema: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`),
	Text: &TextForm{
		Name: "apply_patch", Member: "patch", Grammar: patchGrammar,
		About: "Changes files by a patch. The input is the patch as it is, without JSON around it. " + patchRule,
	},
	Run: runPatch,
}

// patchRule is how a place is found.
const patchRule = "Give three lines that stay above and below each change; where they are in the file more than once, " +
	"put @@ and the line of the function or class above. If one place cannot be found nothing is changed."

// patchGrammar is the form that [edit.ParsePatch] reads, as models were taught to write it.
const patchGrammar = `start: "*** Begin Patch" NL file+ "*** End Patch" NL?
file: added | deleted | updated
added: "*** Add File: " PATH NL NEW+
deleted: "*** Delete File: " PATH NL
updated: "*** Update File: " PATH NL (moved places? | places)
moved: "*** Move to: " PATH NL
places: (PLACE | LINE)+ end?
end: "*** End of File" NL
PATH: /[^\n]+/
NEW: /\+[^\n]*\n/
PLACE: /@@[^\n]*\n/
LINE: /[ +-][^\n]*\n/
NL: /\n/
`

// PatchInput is the input of [Patch].
type PatchInput struct {
	Patch string `json:"patch"`
}

func runPatch(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in PatchInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	return applyPatch(ctx, env, in.Patch, env.Cwd())
}

// applyPatch makes the changes of a patch whose paths are relative to a directory.
func applyPatch(ctx context.Context, env Env, source, dir string) (Result, error) {
	patch, err := edit.ParsePatch(source)
	if err != nil {
		return Result{}, Misusef("%v", err)
	}
	// All places are sought before anything is changed.
	places := make([]place, len(patch.Files))
	seen := map[string]bool{}
	for i, f := range patch.Files {
		if places[i], err = find(env, relativeTo(dir, f.Path)); err != nil {
			return Result{}, err
		}
		f.Path, f.To = places[i].shown, relativeTo(dir, f.To)
		patch.Files[i] = f
		if seen[places[i].path] {
			if f.Do == edit.Add {
				return Result{}, Misusef("%s is deleted and added: write it with the tool write", places[i].shown)
			}
			return Result{}, Misusef("%s is there twice: put all of its changes into one section", places[i].shown)
		}
		seen[places[i].path] = true
		if err := fits(env, f, places[i]); err != nil {
			return unfit(ctx, env, places[i], err), nil
		}
	}
	var said, text []string
	size := 0
	for i, f := range patch.Files {
		room := MaxText - forRefusal - size - forFile*(len(patch.Files)-i)
		res := patchFile(ctx, env, f, places[i], room)
		if res.Text == "" {
			res.Text = res.Said
		}
		size += len(res.Text) + 1
		said, text = append(said, res.Said), append(text, strings.TrimSuffix(res.Text, "\n"))
		if res.Status != acp.ToolCallStatusCompleted {
			if left := len(patch.Files) - i - 1; left > 0 {
				more := fmt.Sprintf("%s of the patch were not changed.", prose.Count(left, "further file"))
				said, text = append(said, more), append(text, more)
			}
			res.Said, res.Text = strings.Join(said, "\n"), bounded(strings.Join(text, "\n"), 0)
			return res, nil
		}
	}
	all := bounded(strings.Join(text, "\n"), 0)
	return Result{Said: strings.Join(said, "\n"), Text: all, Status: acp.ToolCallStatusCompleted}, nil
}

// unfit is the result of a patch that does not fit a file.
func unfit(ctx context.Context, env Env, p place, err error) Result {
	c := begin(ctx, env, acp.ToolCall{
		Name: "patch", Title: prose.OneLine("Patch "+p.shown, 200), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	res := c.failed(fmt.Errorf("nothing was changed: %w", err))
	if res.Text != "" {
		res.Text = "Nothing was changed. " + prose.Sentence(res.Text)
	}
	return res
}

// relativeTo returns a path that may be relative to a directory; "" stays.
func relativeTo(dir, path string) string {
	if _, ok := FilePath(path); ok || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// fits checks a change against the file as it is. What has to be asked about is left to the
// change itself.
func fits(env Env, f edit.FilePatch, p place) error {
	if !freely(env, p) {
		return nil
	}
	text, gone, err := current(env, p)
	switch {
	case err != nil:
		return p.wrap(err)
	case f.Do == edit.Add && !gone:
		return fmt.Errorf("%s exists already: change it with *** Update File", p.shown)
	case f.Do == edit.Add:
		return nil
	case gone:
		return missing(env, p)
	}
	if err := writable(p); err != nil {
		return err
	}
	if f.Do == edit.Update || len(f.Hunks) > 0 {
		now, err := hunks(env, text, f, p)
		if err != nil {
			return shows(env, p, text, err)
		}
		if f.Do == edit.Delete && strings.TrimSpace(now.after) != "" {
			return fmt.Errorf("%s has more lines than the patch deletes: write *** Delete File: %s alone to delete it all the same", p.shown, p.shown)
		}
	}
	if f.Do == edit.Delete {
		return mayRemove(env, p, text)
	}
	if f.To != "" {
		to, err := find(env, f.To)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(to.path); err == nil {
			return fmt.Errorf("%s exists already", to.shown)
		}
		if info, err := os.Lstat(p.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: name the file that it leads to", p.shown)
		}
	}
	return nil
}

// What the result of a patch has room for, in bytes, without what it shows of the changes: the model counts as
// knowing what is shown, so that must not be cut.
const (
	forRefusal = 18 << 10 // with the lines that it shows
	forFile    = 512      // what is said of each
)

// patchFile changes one file, as a call of its own. What is shown of the change has room for so many bytes.
func patchFile(ctx context.Context, env Env, f edit.FilePatch, p place, room int) Result {
	switch {
	case f.Do == edit.Delete:
		return remove(ctx, env, p)
	case f.Do == edit.Add:
		return change(ctx, env, "patch", "Write "+p.shown, p, room, func(_ string, created bool) (revision, error) {
			if !created {
				return revision{}, fs.ErrExist
			}
			return revision{after: f.Text, at: []uint32{1}}, nil
		})
	case f.To == "":
		return change(ctx, env, "patch", "Edit "+p.shown, p, room, func(before string, created bool) (revision, error) {
			if created {
				return revision{}, missing(env, p)
			}
			return hunks(env, before, f, p)
		})
	}
	to, err := find(env, f.To)
	if err != nil {
		return failure(err)
	}
	c := begin(ctx, env, acp.ToolCall{
		Name: "patch", Title: prose.OneLine("Move "+p.shown+" to "+to.shown, 200), Kind: acp.ToolKindMove,
		Status: acp.ToolCallStatusPending, Locations: []acp.ToolCallLocation{{Path: p.path}, {Path: to.path}},
	})
	c.room = room
	said, err := c.move(f, p, to)
	if err != nil {
		return c.failed(p.wrap(err))
	}
	return c.done(said)
}

// hunks returns what an update makes of a file.
func hunks(env Env, before string, f edit.FilePatch, p place) (revision, error) {
	if binary(before) {
		return revision{}, fmt.Errorf("%s is not text", p.shown)
	}
	after, changes, err := edit.ApplyHunks(f.Path, before, f.Hunks, env.Served().File(p.real, before))
	if err != nil {
		return revision{}, err
	}
	return revised(after, changes), nil
}

// move changes a file and gives it another path. It stays the same file: its mode, its owner
// and other names of it stay.
func (c *call) move(f edit.FilePatch, p, to place) (string, error) {
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	before, gone, err := c.current(p)
	if err != nil {
		return "", err
	}
	if gone {
		return "", missing(c.env, p)
	}
	r, err := c.revise(p, before, false, func(before string, _ bool) (revision, error) {
		return hunks(c.env, before, f, p)
	})
	if err != nil {
		return "", err
	}
	unsaved := c.unsaved(p, before)
	if unsaved || r.after != before {
		if err := c.storable(p, r.after); err != nil {
			return "", err
		}
	}
	_ = c.h.Change(acp.FileChange{Path: to.path, MovedFrom: p.path, Before: before, After: r.after})
	q := mayChange(p, "Move "+p.shown+" to "+to.shown+"?", using(acp.ToolKindDelete, p))
	if err := c.permit(q); err != nil {
		return "", err
	}
	if err := c.permit(mayChange(to, "Create "+to.shown+"?", using(acp.ToolKindEdit, to))); err != nil {
		return "", err
	}
	c.status(acp.ToolCallStatusInProgress)
	if err := os.MkdirAll(filepath.Dir(to.path), 0o777); err != nil {
		return "", err
	}
	if err := c.env.Intend(Intent{Path: p.path, Before: before, Deleted: true}); err != nil {
		return "", err
	}
	if err := c.env.Intend(Intent{Path: to.path, After: r.after, Created: true}); err != nil {
		return "", err
	}
	if err := errors.Join(c.unchanged(p, before, false), c.unchanged(to, "", true)); err != nil {
		return "", err
	}
	if err := os.Rename(p.path, to.path); err != nil {
		return "", err
	}
	c.env.Served().Move(p.real, to.real)
	switch {
	case r.after != before:
		err = c.write(to, before, false, r)
	case unsaved:
		err = c.store(to, before, false, before)
		r.note = "with what your editor had not saved"
	}
	if err != nil { // in words of its own, for the file is not as it was
		return "", fmt.Errorf("%s was moved to %s, but is not changed: %v", p.shown, to.shown, reason(err))
	}
	return c.say(fmt.Sprintf("Moved %s to %s", prose.Inline(p.shown), prose.Inline(to.shown)), to, r, false), nil
}

// unsaved reports whether the client shows another text of a file than the one on disk, which is all that is moved.
func (c *call) unsaved(p place, shown string) bool {
	if c.env.Files() == nil {
		return false
	}
	disk, err := readDisk(p.path)
	return err != nil || unixLines(disk) != unixLines(shown)
}

// remove deletes a file, if that is permitted.
func remove(ctx context.Context, env Env, p place) Result {
	c := begin(ctx, env, acp.ToolCall{
		Name: "patch", Title: prose.OneLine("Delete "+p.shown, 200), Kind: acp.ToolKindDelete, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	said, err := c.remove(p)
	if err != nil {
		return c.failed(p.wrap(err))
	}
	return c.done(said)
}

// mayRemove returns why a file must not be deleted: somebody else has changed it since the
// model has read it. One that it has not read may be deleted. Nothing of the file is shown where reading it would be
// asked about.
func mayRemove(env Env, p place, before string) error {
	known := env.Served().File(p.real, before)
	if !known.Stale() {
		return nil
	}
	if !freely(env, p) {
		return fmt.Errorf("%s has changed since you read it; nothing was deleted: read it first", p.shown)
	}
	return shows(env, p, before, overwrites(p, before, known))
}

func (c *call) remove(p place) (string, error) {
	before, gone, err := c.current(p)
	if err != nil {
		return "", err
	}
	if gone {
		return "", missing(c.env, p)
	}
	if err := writable(p); err != nil {
		return "", err
	}
	if err := mayRemove(c.env, p, before); err != nil {
		return "", err
	}
	_ = c.h.Change(acp.FileChange{Path: p.path, Before: before, Deleted: true})
	q := mayChange(p, "Delete "+p.shown+"?", using(acp.ToolKindDelete, p))
	if err := c.permit(q); err != nil {
		return "", err
	}
	if err := c.env.Intend(Intent{Path: p.path, Before: before, Deleted: true}); err != nil {
		return "", err
	}
	c.status(acp.ToolCallStatusInProgress)
	if err := c.unchanged(p, before, false); err != nil {
		return "", err
	}
	if err := os.Remove(p.path); err != nil {
		return "", err
	}
	c.env.Served().Move(p.real, "")
	return fmt.Sprintf("Deleted %s.", prose.Inline(p.shown)), nil
}
