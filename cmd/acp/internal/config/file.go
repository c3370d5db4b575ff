package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// maxFile bounds files with settings, in bytes.
const maxFile = 1 << 20

// An origin is where a setting comes from.
type origin struct {
	name         string // default, a file, a variable, or a flag
	line, column int    // in a file, from 1; columns count bytes
}

func (o origin) String() string {
	if o.line > 0 {
		return fmt.Sprintf("%s:%d", o.name, o.line)
	}
	return o.name
}

// An item is a setting as one of the sources has it.
type item struct {
	path   path
	value  any // string, bool, int, time.Duration or []string
	origin origin
	more   []origin // earlier sources, of lists that are combined
}

// A Problem is a mistake in a setting.
type Problem struct {
	Source       string // a file, a variable, or a flag
	Line, Column int    // in a file, both from 1; columns count bytes
	Key          string // "" if it is about all of the source
	Err          error
}

// Error returns one line: where, which key, and what is wrong.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Key != "" {
		fmt.Fprintf(&b, "key %q: ", p.Key)
	}
	b.WriteString(p.Err.Error())
	return b.String()
}

// Unwrap returns what is wrong.
func (p *Problem) Unwrap() error { return p.Err }

// An Error is all mistakes in one source of settings.
type Error struct {
	Problems []*Problem // at least one
}

// maxNamed bounds the problems that the text of an Error names.
const maxNamed = 5

// Error returns the first problems, and how many more there are.
func (e *Error) Error() string {
	var all []string
	for _, p := range e.Problems[:min(len(e.Problems), maxNamed)] {
		all = append(all, p.Error())
	}
	s := strings.Join(all, "; ")
	if n := len(e.Problems) - len(all); n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// fail returns problems as an error with the exit status of wrong usage.
func fail(problems ...*Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return exitcode.With(exitcode.Usage, &Error{Problems: problems})
}

// readFile reads a file of settings. A file that does not exist is an error that wraps
// [fs.ErrNotExist]; other errors are problems.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fail(&Problem{Source: name, Err: bare(err)})
	}
	if !info.Mode().IsRegular() {
		return nil, fail(&Problem{Source: name, Err: errors.New("is not a regular file")})
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fail(&Problem{Source: name, Err: bare(err)})
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fail(&Problem{Source: name, Err: bare(err)})
	case len(data) > maxFile:
		return nil, fail(&Problem{Source: name, Err: fmt.Errorf("is larger than %d bytes", maxFile)})
	}
	return data, nil
}

// bare returns the error below the one that names a file.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// An entry is a key with a value in a file.
type entry struct {
	path     path
	keyAt    int // where the key begins
	valueAt  int
	end      int   // of the value
	elements []int // where the entries of a list begin
	inline   bool  // it is in an inline table, which is the value of outer
	outer    path
	outerAt  int // where the key of outer begins
	outerEnd int // and its value ends
}

// A header is the line that begins a table.
type header struct {
	path path
	at   int
}

// A document is a file with settings and where everything in it is.
type document struct {
	text    []byte
	tree    map[string]any
	entries []entry
	headers []header
}

// parseDocument parses TOML. A mistake is a problem of the file name.
func parseDocument(name string, text []byte) (*document, *Problem) {
	d := &document{text: text, tree: map[string]any{}}
	if err := toml.Unmarshal(text, &d.tree); err != nil {
		p := &Problem{Source: name, Err: err}
		var de *toml.DecodeError
		if errors.As(err, &de) {
			p.Line, p.Column = de.Position()
			p.Key = path(de.Key()).String()
			p.Err = errors.New(strings.TrimPrefix(oneLine(de.Error()), "toml: "))
		}
		return nil, p
	}
	var parser unstable.Parser
	parser.Reset(text)
	var table path
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var at int
			table, at = keys(e)
			d.headers = append(d.headers, header{table, lineStart(text, at)})
			if e.Kind == unstable.ArrayTable {
				return nil, d.problem(name, at, table, errors.New("no setting is a list of tables"))
			}
		case unstable.KeyValue:
			d.add(table, e, nil)
		}
	}
	if err := parser.Error(); err != nil {
		return nil, &Problem{Source: name, Err: err}
	}
	return d, nil
}

// keys returns the key of an expression, and where it begins.
func keys(e *unstable.Node) (p path, at int) {
	at = -1
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if at < 0 {
			at = int(n.Raw.Offset)
		}
		p = append(p, string(n.Data))
	}
	return p, at
}

// add adds a key with a value, or what is in an inline table. outer is the key of that table.
func (d *document) add(table path, e *unstable.Node, outer *entry) {
	key, at := keys(e)
	entry := entry{path: append(append(path{}, table...), key...), keyAt: at}
	entry.end = len(bytes.TrimRight(d.text[:e.Raw.Offset+e.Raw.Length], " \t"))
	if outer != nil {
		entry.inline, entry.outer, entry.outerAt, entry.outerEnd = true, outer.path, outer.keyAt, outer.end
	}
	v := e.Value()
	if v.Kind == unstable.InlineTable {
		if outer == nil {
			outer = &entry
		}
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				d.add(entry.path, it.Node(), outer)
			}
		}
		return
	}
	last := at
	for it := e.Key(); it.Next(); {
		last = int(it.Node().Raw.Offset + it.Node().Raw.Length)
	}
	rest := bytes.TrimLeft(d.text[last:], " \t")
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("=")), " \t")
	entry.valueAt = len(d.text) - len(rest)
	if v.Kind == unstable.Array {
		for it := v.Children(); it.Next(); {
			entry.elements = append(entry.elements, int(it.Node().Raw.Offset))
		}
	}
	d.entries = append(d.entries, entry)
}

// value returns the value at a key.
func (d *document) value(p path) any {
	var v any = d.tree
	for _, part := range p {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[part]
	}
	return v
}

func (d *document) problem(name string, at int, p path, err error) *Problem {
	line, column := position(d.text, at)
	return &Problem{Source: name, Line: line, Column: column, Key: p.String(), Err: err}
}

// items checks the contents of the file and returns them.
func (d *document) items(name string) (items []item, problems []*Problem) {
	for _, h := range d.headers {
		n, err := find(h.path)
		if err == nil && n.kind != kindTable && n.kind != kindNames {
			err = fmt.Errorf("is not %s", n)
		}
		if err != nil {
			at := h.at + bytes.IndexByte(d.text[h.at:], '[') + 1
			problems = append(problems, d.problem(name, at, h.path, err))
		}
	}
	for _, e := range d.entries {
		n, err := find(e.path)
		if err != nil {
			if !d.headerIsWrong(e.path) {
				problems = append(problems, d.problem(name, e.keyAt, e.path, err))
			}
			continue
		}
		v, i, err := n.convert(d.value(e.path))
		if err != nil {
			at := e.valueAt
			if i >= 0 && i < len(e.elements) && e.elements[i] > 0 {
				at = e.elements[i]
			}
			problems = append(problems, d.problem(name, at, e.path, err))
			continue
		}
		line, column := position(d.text, e.keyAt)
		items = append(items, item{path: e.path, value: v, origin: origin{name, line, column}})
	}
	return items, append(problems, d.emptyServers(name)...)
}

// emptyServers are MCP servers that have no settings and thus no item: they must not be left out
// silently.
func (d *document) emptyServers(name string) (problems []*Problem) {
	servers, _ := d.tree["mcp"].(map[string]any)
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		if m, ok := servers[server].(map[string]any); !ok || len(m) > 0 {
			continue
		}
		p, at := path{"mcp", server}, 0
		for _, h := range d.headers {
			if h.path.equal(p) {
				at = h.at + bytes.IndexByte(d.text[h.at:], '[') + 1
			}
		}
		problems = append(problems, d.problem(name, at, p, errors.New("the server has neither a command nor a url")))
	}
	return problems
}

// headerIsWrong reports whether a key is in a table that was reported already.
func (d *document) headerIsWrong(p path) bool {
	for _, h := range d.headers {
		if p.hasPrefix(h.path) {
			if _, err := find(h.path); err != nil {
				return true
			}
		}
	}
	return false
}

// position returns the line and the column of an offset, from 1.
func position(text []byte, at int) (line, column int) {
	at = min(max(at, 0), len(text))
	return 1 + bytes.Count(text[:at], []byte("\n")), at - lineStart(text, at) + 1
}

// lineStart returns where the line of an offset begins.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
