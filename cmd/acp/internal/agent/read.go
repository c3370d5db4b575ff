package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
)

// Bounds of what /read shows.
const (
	maxReadLines = 2000
	maxReadBytes = 256 << 10
	maxEntries   = 500 // of a directory
)

func runRead(k *task) error {
	args, err := words(k.rest, 20)
	if err != nil {
		return misusef("%v", err)
	}
	files := linked(k.turn.Blocks())
	if len(args) == 0 {
		args = files
	}
	if len(args) == 0 {
		return misusef("which file to read is missing")
	}
	for _, arg := range args {
		if k.ctx.Err() != nil {
			return nil
		}
		if err := k.read(arg); err != nil {
			return err
		}
	}
	return nil
}

// read shows one file, or says why it cannot. The error is about arg.
func (k *task) read(arg string) error {
	arg, from, to, err := lineRange(arg)
	if err != nil {
		return misusef("%v", err)
	}
	p, err := k.find(arg)
	if err != nil {
		return err
	}
	title := "Read " + p.shown
	where := acp.ToolCallLocation{Path: p.path}
	if from > 0 {
		title += fmt.Sprintf(", from line %d", from)
		where.Line = &from
	}
	c := k.call(acp.ToolCall{Name: "read", Title: oneLine(title, 200), Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{where}})
	said, err := k.show(c, p, from, to)
	if err != nil {
		return k.failed(c, p.wrap(err))
	}
	c.complete()
	k.say(said + "\n")
	return nil
}

// find is locate for a word that the user typed, which may begin with the @ of a
// mentioned file.
func (k *task) find(name string) (place, error) {
	if rest, ok := strings.CutPrefix(name, "@"); ok && rest != "" {
		if p, err := k.s.locate(name); err == nil {
			if _, err := os.Lstat(p.path); err != nil {
				name = rest
			}
		}
	}
	p, err := k.s.locate(name)
	if err != nil {
		return p, fmt.Errorf("%s cannot be found: %w", oneLine(name, 200), reason(err))
	}
	return p, nil
}

// failed ends a call that has failed, and tells the user unless the turn was
// cancelled.
func (k *task) failed(c *call, err error) error {
	if k.ctx.Err() != nil {
		c.status(acp.ToolCallStatusCancelled)
		return nil
	}
	c.fail(err)
	k.say(capital(plainError(err)) + ".\n")
	return nil
}

// wrap says which file an error is about, unless it does.
func (p place) wrap(err error) error {
	if _, refused := errors.AsType[*refusal](err); refused || strings.Contains(err.Error(), p.shown) && reason(err) == err {
		return err
	}
	return fmt.Errorf("%s: %w", inline(p.shown), reason(err))
}

// reason takes the path off an error, which is said anyway, and names the commonest
// ones in plain words.
func reason(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("the system does not permit it")
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// show shows a file or a directory in a call and returns what to say about it.
func (k *task) show(c *call, p place, from, to uint32) (string, error) {
	if err := c.permitPlace(p); err != nil {
		return "", err
	}
	if info, err := os.Stat(p.path); err == nil && info.IsDir() {
		return k.showDir(c, p)
	}
	limit := uint32(0)
	if to > 0 {
		limit = to - from + 1
	}
	text, err := k.out.ReadLines(p.path, from, limit)
	if err != nil {
		return "", err
	}
	if binary(text) {
		return "", fmt.Errorf("%s is not text", p.shown)
	}
	first := max(from, 1)
	shown, cut := head(text, maxReadLines, maxReadBytes)
	n := lineCount(shown)
	if n == 0 {
		if from > 1 {
			return fmt.Sprintf("%s has no line %d.", inline(p.shown), from), nil
		}
		return inline(p.shown) + " is empty.", nil
	}
	last := first + uint32(n) - 1
	content := code(language(p.path), shown)
	said := fmt.Sprintf("Lines %d–%d of %s.", first, last, inline(p.shown))
	if cut {
		said += fmt.Sprintf(" That is not all of it: go on with `/read %s:%d-`.", p.shown, last+1)
		content += fmt.Sprintf("\n\n(Shown up to line %d.)", last)
	}
	c.text(content)
	return said, nil
}

func (k *task) showDir(c *call, p place) (string, error) {
	d, err := os.Open(p.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(maxEntries + 1)
	if err != nil && len(entries) == 0 {
		if info, e := d.Stat(); e == nil && info.IsDir() {
			return inline(p.shown) + " is an empty directory.", nil
		}
		return "", err
	}
	var b strings.Builder
	for _, e := range entries[:min(len(entries), maxEntries)] {
		b.WriteString(oneLine(e.Name(), 255))
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	c.text(code("", b.String()))
	if len(entries) > maxEntries {
		return fmt.Sprintf("%s is a directory; these are %d of its entries.", inline(p.shown), maxEntries), nil
	}
	return fmt.Sprintf("%s is a directory with %d entries.", inline(p.shown), len(entries)), nil
}

// binary reports whether something is not text.
func binary(text string) bool {
	start := text[:min(len(text), 8000)]
	if strings.IndexByte(start, 0) >= 0 {
		return true
	}
	return !utf8.ValidString(strings.ToValidUTF8(start, "")) || strings.Count(strings.ToValidUTF8(start, "\uFFFD"), "\uFFFD") > len(start)/10
}

// head returns the first lines of a text, and whether that is not all. A line that
// is too long alone is cut.
func head(text string, lines, bytes int) (string, bool) {
	end, n := 0, 0
	for l := range strings.Lines(text) {
		if n == lines || end+len(l) > bytes {
			if n == 0 {
				return strings.ToValidUTF8(text[:bytes], ""), true
			}
			return text[:end], true
		}
		end += len(l)
		n++
	}
	return text, false
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
