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
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

// Bounds of what is shown of a directory: the names, in order, and among how many they are
// the first.
const (
	maxEntries = 500
	maxSorted  = 10_000
)

// Read shows a file, some lines of it, or the entries of a directory.
var Read = Tool{
	Name: "read", Kind: acp.ToolKindRead, Reads: true,
	About: "Reads a text file or an image, or lists a directory. Long ones come in parts: the end says how to read on.",
	Schema: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"absolute or relative; job:ID is what a command has printed"},` +
		`"from":{"type":"integer","minimum":1,"description":"line, from 1"},` +
		`"lines":{"type":"integer","minimum":1},` +
		`"column":{"type":"integer","minimum":1,"description":"in a line that was cut"}},` +
		`"required":["path"],"additionalProperties":false}`),
	Run: read,
}

// ReadInput is the input of [Read].
type ReadInput struct {
	Path   string `json:"path"`
	From   uint32 `json:"from,omitempty"`
	Lines  uint32 `json:"lines,omitempty"`
	Column uint32 `json:"column,omitempty"`
}

func read(ctx context.Context, env Env, input json.RawMessage) (Result, error) {
	var in ReadInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	if id, ok := strings.CutPrefix(in.Path, "job:"); ok {
		return readJob(ctx, env, id, &in)
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
	said, err := c.showFile(p, &in)
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

// readJob shows what a command has printed, by the id of its job.
func readJob(ctx context.Context, env Env, id string, in *ReadInput) (Result, error) {
	j := env.Jobs().find(id)
	if j == nil {
		return Result{}, noJob(id)
	}
	c := begin(ctx, env, acp.ToolCall{
		Name: "read", Kind: acp.ToolKindRead,
		Title: "Read the output of job " + j.id + ": " + prose.OneLine(j.line, 150),
	})
	state, err := j.now()
	if err != nil {
		return c.failed(err), nil
	}
	shown := partOf(outputText(state), in.From, in.Lines, in.Column, outputHead+outputTail)
	said := c.showPart("job:"+j.id, "", &shown)
	c.found = lost(state) + c.found
	return c.done(said), nil
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
	if !below(root, real) {
		return place{}, Misusef("%s is not a file of the skill", prose.OneLine(name, 200))
	}
	return place{path: path, real: real, shown: prose.OneLine(name, 200), inside: true}, nil
}

// showFile shows a file or a directory in a call and returns what to say about it.
func (c *call) showFile(p place, in *ReadInput) (string, error) {
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	if info, err := os.Stat(p.path); err == nil && info.IsDir() {
		return c.showDir(p)
	}
	if image, err := readImage(p.path); image != nil || err != nil {
		return c.showImage(p, image, err)
	}
	text, stale, err := readText(c.env, p)
	if err != nil {
		return "", err
	}
	if binary(text) {
		return "", fmt.Errorf("%s is not text", p.shown)
	}
	shown := partOf(text, in.From, in.Lines, in.Column, MaxReadBytes)
	said := c.showPart(p.shown, language(p.path), &shown)
	if seen := shown.seen(); len(seen) > 0 || shown.total == 0 {
		c.env.Served().Show(p.real, text, seen...)
	}
	if stale {
		said += " This is what is on disk: your editor still shows an older text."
		c.found += "\n[this is what is on disk; the user's editor still shows an older text]"
	}
	return said, nil
}

// showPart shows a part of a text in a call and returns what to say about it.
func (c *call) showPart(name, language string, p *part) string {
	shown := prose.Inline(name)
	switch {
	case p.total == 0:
		return shown + " is empty."
	case p.last < p.first:
		return fmt.Sprintf("%s has no line %d: it has %s.", shown, p.first, prose.Count(p.total, "line"))
	}
	said := fmt.Sprintf("Lines %d–%d of %s.", p.first, p.last, shown)
	if !p.whole() {
		said = fmt.Sprintf("Lines %d–%d of %s, which has %d.", p.first, p.last, shown, p.total)
	}
	hints := c.env.Hints()
	if p.bounded {
		said += " That is not all of it: " + hints.ReadOn(name, uint32(p.last)+1) + "."
	}
	if cut := strings.TrimPrefix(p.saysCut(hints), "; "); cut != "" {
		said += " " + prose.Sentence(cut) + "."
	}
	c.text(prose.Code(language, p.text))
	c.found = strings.ToValidUTF8(p.text, "\uFFFD")
	if !strings.HasSuffix(c.found, "\n") {
		c.found += "\n"
	}
	c.found += p.says(hints)
	return said
}

// readText returns the text of a file, and whether the client shows another.
func readText(env Env, p place) (text string, stale bool, err error) {
	if f := env.Files(); f != nil {
		return f.Read(env.Output(), p.path)
	}
	text, err = env.Output().ReadFile(p.path)
	return text, false, err
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
	entries, err := d.ReadDir(maxSorted + 1)
	if err != nil && len(entries) == 0 {
		if info, e := d.Stat(); e == nil && info.IsDir() {
			return prose.Inline(p.shown) + " is an empty directory.", nil
		}
		return "", err
	}
	many := fmt.Sprintf("%d entries", len(entries))
	if len(entries) > maxSorted {
		many = fmt.Sprintf("more than %d entries", maxSorted)
		entries = entries[:maxSorted]
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	var b strings.Builder
	n := 0
	for ; n < min(len(entries), maxEntries) && b.Len() < MaxText-256; n++ {
		b.WriteString(prose.OneLine(entries[n].Name(), 255))
		if entries[n].IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	c.text(prose.Code("", b.String()))
	c.found = b.String()
	if n < len(entries) {
		c.found += fmt.Sprintf("[%d of %s; find names others]", n, many)
		return fmt.Sprintf("%s is a directory with %s; these are %d of them.", prose.Inline(p.shown), many, n), nil
	}
	return fmt.Sprintf("%s is a directory with %s.", prose.Inline(p.shown), many), nil
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
