package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// An Edit changes a file of settings and leaves comments and everything else in it as they are. It
// is for one goroutine. Nothing is written before [Edit.Save].
type Edit struct {
	name string
	was  []byte // what was read
	doc  *document
}

// OpenEdit reads a file to change it; one that does not exist is empty. A file that is not TOML is
// an error: it must be edited by hand.
func OpenEdit(name string) (*Edit, error) {
	if name == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "there is no place for settings: set HOME or XDG_CONFIG_HOME")
	}
	data, err := readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	doc, problem := parseDocument(name, data)
	if problem != nil {
		return nil, fail(problem)
	}
	return &Edit{name: name, was: data, doc: doc}, nil
}

// Text returns the file as it would be written.
func (e *Edit) Text() string { return string(e.doc.text) }

// Has reports whether the file has anything at a key or below it.
func (e *Edit) Has(key ...string) bool {
	return slices.ContainsFunc(e.doc.entries, func(x entry) bool { return x.path.hasPrefix(key) }) ||
		slices.ContainsFunc(e.doc.headers, func(h header) bool { return h.path.hasPrefix(key) })
}

// SetText sets a key, as it is written in files, to a value, as it is written in environment
// variables: text, true, 30s; for lists an array as in files, or one entry per line. Errors have
// the exit status of wrong usage.
func (e *Edit) SetText(key, value string) error {
	p, err := parseKey(key)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	n, err := find(p)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "key %q: %w", key, err)
	}
	v, err := n.parse(value)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "key %q: %w", key, err)
	}
	return e.Set(v, p...)
}

// Set sets a key to a value of the setting's type: string, bool, int,
// time.Duration or []string. Errors have the exit status of wrong usage.
func (e *Edit) Set(value any, key ...string) error {
	p := path(key)
	n, err := find(p)
	if err == nil {
		value, _, err = n.convert(value)
	}
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "key %q: %w", p, err)
	}
	text, err := e.set(p, format(value))
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	doc, problem := parseDocument(e.name, text)
	if problem != nil {
		return exitcode.Errorf(exitcode.Usage, "%s: key %q cannot be added to what is there; use acp config edit", e.name, p)
	}
	if got, _, err := n.convert(doc.value(p)); err != nil || !reflect.DeepEqual(got, value) {
		return exitcode.Errorf(exitcode.Usage, "%s: key %q cannot be set in what is there; use acp config edit", e.name, p)
	}
	e.doc = doc
	return nil
}

// set returns the text with a key set to a value that is written as TOML.
func (e *Edit) set(p path, value string) ([]byte, error) {
	d := e.doc
	for _, x := range d.entries {
		if x.path.equal(p) {
			return splice(d.text, x.valueAt, x.end, value), nil
		}
	}
	parent := p[:len(p)-1]
	line := func(in path) string { return p[len(in):].String() + " = " + value + "\n" }
	for i, h := range slices.Backward(d.headers) {
		if h.path.equal(parent) {
			return e.insertAfter(e.sectionEnd(i), line(h.path)), nil
		}
	}
	// The table may exist without a line of its own, or in braces.
	for _, x := range slices.Backward(d.entries) {
		in := e.tableAt(x.keyAt)
		if len(parent) == 0 || !x.path.hasPrefix(parent) || len(in) > len(parent) {
			continue
		}
		if x.inline && len(x.outer) <= len(parent) {
			n, _ := position(d.text, x.outerAt)
			return nil, fmt.Errorf("%s:%d: %s is written in braces; use acp config edit to add %s", e.name, n, x.outer, p)
		}
		return e.insertAfter(max(x.end, x.outerEnd), line(in)), nil
	}
	if len(parent) == 0 {
		return e.insertAfter(e.sectionEnd(-1), line(nil)), nil
	}
	text := bytes.TrimRight(d.text, "\n")
	gap := "\n\n"
	if len(text) == 0 {
		gap = ""
	}
	return append(slices.Clone(text), gap+"["+parent.String()+"]\n"+line(parent)...), nil
}

// tableAt returns the table that an offset is in.
func (e *Edit) tableAt(at int) path {
	var in path
	for _, h := range e.doc.headers {
		if h.at <= at {
			in = h.path
		}
	}
	return in
}

// sectionEnd returns the end of the last value under a header, or of the header's line; -1 stands
// for what precedes all headers.
func (e *Edit) sectionEnd(i int) int {
	d := e.doc
	from, to := 0, len(d.text)
	end := -1
	if i >= 0 {
		from = d.headers[i].at
		end = lineEnd(d.text, from)
	}
	if i+1 < len(d.headers) {
		to = d.headers[i+1].at
	}
	for _, x := range d.entries {
		if at, last := x.keyAt, x.end; at >= from && at < to {
			if x.inline {
				last = x.outerEnd
			}
			end = max(end, last)
		}
	}
	return end
}

// insertAfter adds a line after the one that an offset is in. -1 means the beginning of the file,
// but after the comment that describes it.
func (e *Edit) insertAfter(at int, line string) []byte {
	text := e.doc.text
	if at < 0 {
		end := 0
		for end < len(text) && text[end] == '#' {
			end = min(lineEnd(text, end)+1, len(text))
		}
		if end == len(text) && end > 0 && text[end-1] != '\n' {
			line = "\n" + line
		}
		switch {
		case end < len(text) && text[end] == '\n':
			end++
			line += "\n"
		case end < len(text):
			end = 0 // the comment belongs to what follows
			line += "\n"
		}
		return splice(text, end, end, line)
	}
	end := lineEnd(text, at)
	if end == len(text) {
		return splice(text, end, end, "\n"+line)
	}
	return splice(text, end+1, end+1, line)
}

// lineEnd returns where the line of an offset ends: its line feed, or the end of the text.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

func splice(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}

// UnsetKey is [Edit.Unset] for a key as it is written in files.
func (e *Edit) UnsetKey(key string) (bool, error) {
	p, err := parseKey(key)
	if err != nil {
		return false, exitcode.With(exitcode.Usage, err)
	}
	if _, err := find(p); err != nil && !e.Has(p...) {
		return false, exitcode.Errorf(exitcode.Usage, "key %q: %w", key, err)
	}
	return e.Unset(p...)
}

// Unset removes a key and everything below it, and reports whether there was anything. The error
// has the exit status of wrong usage.
func (e *Edit) Unset(key ...string) (bool, error) {
	p, d := path(key), e.doc
	if !e.Has(key...) {
		return false, nil
	}
	type span struct{ from, to int }
	var spans []span
	for i, h := range d.headers {
		if !h.path.hasPrefix(p) {
			continue
		}
		to := len(d.text)
		if i+1 < len(d.headers) {
			to = e.above(d.headers[i+1].at, h.at)
		}
		spans = append(spans, span{h.at, to})
	}
	for _, x := range d.entries {
		switch {
		case !x.path.hasPrefix(p):
		case !x.inline:
			spans = append(spans, span{lineStart(d.text, x.keyAt), min(lineEnd(d.text, x.end)+1, len(d.text))})
		case x.outer.hasPrefix(p):
			spans = append(spans, span{lineStart(d.text, x.outerAt), min(lineEnd(d.text, x.outerEnd)+1, len(d.text))})
		default:
			n, _ := position(d.text, x.outerAt)
			return false, exitcode.Errorf(exitcode.Usage, "%s:%d: %s is written in braces; use acp config edit to remove %s", e.name, n, x.outer, p)
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	var text []byte
	at := 0
	for _, s := range spans { // one may be within another
		text = append(text, d.text[at:max(at, s.from)]...)
		at = max(at, s.to)
	}
	text = append(text, d.text[at:]...)
	doc, problem := parseDocument(e.name, text)
	if problem != nil {
		return false, exitcode.Errorf(exitcode.Usage, "%s: key %q cannot be removed from what is there; use acp config edit", e.name, p)
	}
	if e.doc = doc; e.Has(key...) {
		e.doc = d
		return false, exitcode.Errorf(exitcode.Usage, "%s: key %q cannot be removed from what is there; use acp config edit", e.name, p)
	}
	return true, nil
}

// above returns where the comment directly above a header begins.
func (e *Edit) above(at, limit int) int {
	for at > limit+1 {
		start := lineStart(e.doc.text, at-1)
		if start <= limit || e.doc.text[start] != '#' {
			break
		}
		at = start
	}
	return at
}

// Check looks for mistakes in the file as it would be written.
func (e *Edit) Check() error {
	_, problems := e.doc.items(e.name)
	return fail(problems...)
}

// Save replaces the file atomically. Only the user can read a new file, since it may hold secrets.
// If another program has changed the file since it was opened, Save writes nothing and fails.
func (e *Edit) Save() error {
	if err := os.MkdirAll(filepath.Dir(e.name), 0o700); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	switch now, err := readFile(e.name); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !bytes.Equal(now, e.was):
		return fmt.Errorf("write settings: %s was changed by somebody else just now; try again", e.name)
	}
	if err := writeFile(e.name, e.doc.text, 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	e.was = bytes.Clone(e.doc.text)
	return nil
}
