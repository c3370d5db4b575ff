package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/picture"
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
	About: "Reads a text file or an image, or lists a directory. Long files come in parts: say from which line, and how many lines.",
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
	p, err := readable(env, in.Path)
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
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(env, p)
	}
	if err != nil {
		return c.failed(p.wrap(err)), nil
	}
	res := c.done(said)
	res.File = p.path
	return res, nil
}

// readable finds what is to be read: a file, or one of a skill, as skill:NAME or
// skill:NAME/FILE. Skills are the user's, so they are read without a question.
func readable(env Env, name string) (place, error) {
	rest, ok := strings.CutPrefix(name, "skill:")
	if !ok {
		return find(env, name)
	}
	skill, file, _ := strings.Cut(rest, "/")
	dir, ok := env.Skill(skill)
	if !ok {
		return place{}, Misusef("there is no skill %q", prose.OneLine(skill, 80))
	}
	if file == "" {
		file = "SKILL.md"
	}
	path := filepath.Join(dir, filepath.FromSlash(file))
	real, err := realPath(path)
	if err != nil {
		return place{}, err
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return place{}, err
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return place{}, Misusef("%s is not a file of the skill", prose.OneLine(name, 200))
	}
	return place{path: path, real: real, shown: prose.OneLine(name, 200), inside: true}, nil
}

// showFile shows a file or a directory in a call and returns what to say about it.
func (c *call) showFile(p place, from, lines uint32) (string, error) {
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	if info, err := os.Stat(p.path); err == nil && info.IsDir() {
		return c.showDir(p)
	}
	if image, err := readImage(p.path); image != nil || err != nil {
		return c.showImage(p, image, err)
	}
	text, stale, err := c.readLines(p, from, lines)
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
		c.served(p, 1, "", "")
		return prose.Inline(p.shown) + " is empty.", nil
	}
	last := first + uint32(n) - 1
	content := prose.Code(language(p.path), shown)
	c.found = bounded(shown, 0)
	c.served(p, int(first), shown, c.found)
	if cut || len(c.found) > MaxText {
		c.found += fmt.Sprintf("\n[lines %d-%d; there are more]", first, last)
	}
	said := fmt.Sprintf("Lines %d–%d of %s.", first, last, prose.Inline(p.shown))
	if cut {
		said += " That is not all of it: " + c.env.Hints().ReadOn(p.shown, last+1) + "."
		content += fmt.Sprintf("\n\n(Shown up to line %d.)", last)
	}
	if stale {
		said += " This is what is on disk: your editor still shows an older text."
		c.found += "\n[this is what is on disk; the user's editor still shows an older text]"
	}
	c.text(content)
	return said, nil
}

// readLines returns lines of a file, and whether the client shows others.
func (c *call) readLines(p place, from, count uint32) (text string, stale bool, err error) {
	f := c.env.Files()
	if f == nil {
		text, err = c.env.Output().ReadLines(p.path, from, count)
		return text, false, err
	}
	text, stale, err = f.Read(c.env.Output(), p.path)
	if err != nil {
		return "", false, err
	}
	all := strings.SplitAfter(text, "\n")
	start := min(int(max(from, 1))-1, len(all))
	end := len(all)
	if count > 0 {
		end = min(end, start+int(count))
	}
	return strings.Join(all[start:end], ""), stale, nil
}

// readImage returns the image in a file, as models take it; nil if it holds none. The error says why they cannot.
func readImage(path string) (*Image, error) {
	if !slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp"}, strings.ToLower(filepath.Ext(path))) {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil, !info.Mode().IsRegular():
		return nil, nil // reading it as text says what is wrong
	case info.Size() > picture.MaxData:
		return nil, fmt.Errorf("the image has more than %d MiB: make a smaller one of it", picture.MaxData>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if picture.Kind(data) == "" {
		return nil, nil
	}
	p, err := picture.Fit(data, picture.Common)
	if err != nil {
		return nil, fmt.Errorf("the image cannot be shown: %w", err)
	}
	return &p, nil
}

// showImage shows an image in a call.
func (c *call) showImage(p place, i *Image, err error) (string, error) {
	if err != nil {
		return "", err
	}
	c.images = append(c.images, *i)
	c.show(&acp.BlockContent{Content: &acp.ImageContent{MIMEType: i.MIMEType, Data: base64.StdEncoding.EncodeToString(i.Data)}})
	return fmt.Sprintf("%s is an image, %s.", prose.Inline(p.shown), prose.Size(int64(len(i.Data)))), nil
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
	return !utf8.ValidString(strings.ToValidUTF8(start, "")) || strings.Count(strings.ToValidUTF8(start, "\uFFFD"), "\uFFFD") > len(start)/3
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
