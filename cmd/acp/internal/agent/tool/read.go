package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// Bounds of what Read shows.
const (
	MaxReadLines = 2000
	MaxReadBytes = 256 << 10
	maxEntries   = 500 // of a directory
)

// Read shows a file, some lines of it, or the entries of a directory.
var Read = Tool{
	Name: "read", Kind: acp.ToolKindRead, Reads: true,
	About: "Reads a text file, or lists a directory. Long files come in parts: say from which line, and how many lines.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"absolute, or relative to the working directory"},` +
		`"from":{"type":"integer","minimum":1,"description":"the first line, counted from 1"},` +
		`"lines":{"type":"integer","minimum":1,"description":"how many lines"}},` +
		`"required":["path"],"additionalProperties":false}`),
	Run: read,
}

// ReadInput is the input of [Read].
type ReadInput struct {
	Path  string `json:"path"`
	From  uint32 `json:"from,omitempty"`
	Lines uint32 `json:"lines,omitempty"`
}

func read(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in ReadInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	p, err := find(env, in.Path)
	if err != nil {
		return Result{}, err
	}
	title := "Read " + p.shown
	where := acp.ToolCallLocation{Path: p.path}
	if in.From > 0 {
		title += fmt.Sprintf(", from line %d", in.From)
		where.Line = &in.From
	}
	c := begin(ctx, env, acp.ToolCall{
		Name: "read", Title: prose.OneLine(title, 200), Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{where},
	})
	said, err := c.showFile(p, in.From, in.Lines)
	if err != nil {
		return c.failed(p.wrap(err)), nil
	}
	return c.done(said), nil
}

// showFile shows a file or a directory in a call and returns what to say about it.
func (c *call) showFile(p place, from, lines uint32) (string, error) {
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	if info, err := os.Stat(p.path); err == nil && info.IsDir() {
		return c.showDir(p)
	}
	text, err := c.env.Output().ReadLines(p.path, from, lines)
	if err != nil {
		return "", err
	}
	if binary(text) {
		return "", fmt.Errorf("%s is not text", p.shown)
	}
	first := max(from, 1)
	shown, cut := prose.Head(text, MaxReadLines, MaxReadBytes)
	n := prose.Lines(shown)
	if n == 0 {
		if from > 1 {
			return fmt.Sprintf("%s has no line %d.", prose.Inline(p.shown), from), nil
		}
		return prose.Inline(p.shown) + " is empty.", nil
	}
	last := first + uint32(n) - 1
	content := prose.Code(language(p.path), shown)
	c.found = bounded(shown, 0)
	if cut || len(c.found) > MaxText {
		c.found += fmt.Sprintf("\n[lines %d-%d; there are more]", first, last)
	}
	said := fmt.Sprintf("Lines %d–%d of %s.", first, last, prose.Inline(p.shown))
	if cut {
		said += " That is not all of it: " + c.env.Hints().ReadOn(p.shown, last+1) + "."
		content += fmt.Sprintf("\n\n(Shown up to line %d.)", last)
	}
	c.text(content)
	return said, nil
}

// showDir shows the names in a directory, up to maxEntries of them.
func (c *call) showDir(p place) (string, error) {
	d, err := os.Open(p.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && len(entries) == 0 {
		if info, e := d.Stat(); e == nil && info.IsDir() {
			return prose.Inline(p.shown) + " is an empty directory.", nil
		}
		return "", err
	}
	var b strings.Builder
	for _, e := range entries[:min(len(entries), maxEntries)] {
		b.WriteString(prose.OneLine(e.Name(), 255))
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	c.text(prose.Code("", b.String()))
	c.found = bounded(b.String(), 0)
	if len(entries) > maxEntries {
		return fmt.Sprintf("%s is a directory; these are %d of its entries.", prose.Inline(p.shown), maxEntries), nil
	}
	return fmt.Sprintf("%s is a directory with %d entries.", prose.Inline(p.shown), len(entries)), nil
}

// binary reports whether something is not text.
func binary(text string) bool {
	start := text[:min(len(text), 8000)]
	if strings.IndexByte(start, 0) >= 0 {
		return true
	}
	return !utf8.ValidString(strings.ToValidUTF8(start, "")) || strings.Count(strings.ToValidUTF8(start, "\uFFFD"), "\uFFFD") > len(start)/10
}

// language guesses the language of a block of code by the name of the file.
func language(path string) string {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	for _, c := range ext {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return ""
		}
	}
	if len(ext) > 12 {
		return ""
	}
	return ext
}
