package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

func runEdit(k *task) error {
	name, rest, ok, err := word(k.rest)
	if err != nil {
		return misusef("%v", err)
	}
	if !ok {
		return misusef("which file to edit is missing")
	}
	rs, err := replacements(rest)
	if err != nil {
		return misusef("%v", err)
	}
	p, err := k.find(name)
	if err != nil {
		return err
	}
	all := k.name == "edit!"
	return k.change("edit", "Edit "+p.shown, p, func(before string, created bool) (string, []uint32, error) {
		if created {
			return "", nil, fs.ErrNotExist
		}
		if binary(before) {
			return "", nil, fmt.Errorf("%s is not text", p.shown)
		}
		return apply(before, rs, all)
	})
}

func runWrite(k *task) error {
	name, text, ok, err := word(k.rest)
	if err != nil {
		return misusef("%v", err)
	}
	if !ok {
		return misusef("which file to write is missing")
	}
	text, err = written(text)
	if err != nil {
		return err
	}
	p, err := k.find(name)
	if err != nil {
		return err
	}
	return k.change("write", "Write "+p.shown, p, func(string, bool) (string, []uint32, error) { return text, []uint32{1}, nil })
}

// written is the text that /write writes: what follows the path in its line, as it
// is or in quotes, or else the lines below. It ends with a line break.
func written(text string) (string, error) {
	line, rest, more := strings.Cut(text, "\n")
	switch {
	case strings.TrimSpace(line) == "" && more:
		text = rest
	case strings.TrimSpace(text) == "":
		return "", misusef("what to write is missing")
	default:
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if w, rest, ok, err := word(text); text[0] == '"' && ok && err == nil && strings.TrimSpace(rest) == "" {
			text = w
		}
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// change changes a file as make says, which is given what is in it and whether it
// does not exist. The user is asked with the difference, and nothing is written
// if the file was changed by somebody else meanwhile.
func (k *task) change(tool, title string, p place, make func(before string, created bool) (string, []uint32, error)) error {
	c := k.call(acp.ToolCall{
		Name: tool, Title: oneLine(title, 200), Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: p.path}},
	})
	said, err := k.changeIn(c, p, make)
	if err != nil {
		return k.failed(c, p.wrap(err))
	}
	c.complete()
	k.say(said)
	return nil
}

func (k *task) changeIn(c *call, p place, make func(string, bool) (string, []uint32, error)) (string, error) {
	req := using(acp.ToolKindEdit, p)
	if v := k.s.judge(req); v.Effect == acphost.EffectDeny {
		return "", c.permit(askEdit, "", acp.Permission{Title: "Change " + p.shown + "?"}, req)
	}
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	before, created, err := k.current(p)
	if err != nil {
		return "", err
	}
	after, at, err := make(before, created)
	if err != nil {
		return "", err
	}
	if after == before && !created {
		return fmt.Sprintf("%s is like that already.", inline(p.shown)), nil
	}
	where := []acp.ToolCallLocation{}
	for _, line := range at[:min(len(at), 20)] {
		where = append(where, acp.ToolCallLocation{Path: p.path, Line: &line})
	}
	c.locations(where)
	c.change(acp.FileChange{Path: p.path, Before: before, After: after, Created: created})
	asked, rest, about := askEdit, "changes to files of the session", ""
	if !p.inside {
		asked, rest, about = askWrite, "changes to files outside the session's directories", "It is outside the directories of this session."
	}
	verb := "Change "
	if created {
		verb = "Create "
	}
	if err := c.permit(asked, rest, acp.Permission{Title: verb + p.shown + "?", Description: about}, req); err != nil {
		return "", err
	}
	c.status(acp.ToolCallStatusInProgress)
	now, stillCreated, err := k.current(p)
	if err != nil {
		return "", err
	}
	if now != before || created != stillCreated {
		return "", fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written", p.shown)
	}
	if again, err := k.s.locate(p.path); err != nil || again.inside != p.inside || again.real != p.real {
		return "", fmt.Errorf("%s leads somewhere else than before; nothing was written", p.shown)
	}
	if created {
		if err := os.MkdirAll(filepath.Dir(p.path), 0o777); err != nil {
			return "", err
		}
	}
	if err := k.out.WriteFile(p.path, after); err != nil {
		return "", err
	}
	if created {
		return fmt.Sprintf("Created %s with %s.", inline(p.shown), count(lineCount(after), "line")), nil
	}
	return fmt.Sprintf("Changed %s.", inline(p.shown)), nil
}

// current returns what is in a file, and whether it does not exist.
func (k *task) current(p place) (text string, missing bool, err error) {
	text, err = k.out.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return text, false, err
}
