// Package pattern reads JSON that is extended by a few words, for tests that say what a
// peer must send and what is sent to it. Patterns are matched against values; templates
// are filled with the values that names in patterns have matched.
//
// A pattern may contain
//   - ... for any value, for any other members of an object and, once in an array or at
//     both of its ends, for any elements,
//   - $name for any value, which is remembered: later uses of the name must be equal,
//   - string, number, integer, boolean, object and array for any value of that type,
//   - ~"regexp" for a string that matches the expression somewhere,
//   - a | b for what either of them matches, and !a for what a does not,
//   - a ? after the name of a member that may be missing.
//
// In a template $name is replaced by the value that was remembered.
package pattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxDepth bounds the nesting of values; it is what the protocol engine allows.
const MaxDepth = 512

// A Kind says what a [Value] is.
type Kind uint8

// The kinds. Those from Rest on are in patterns and templates only.
const (
	Scalar Kind = iota // a number, true, false or null
	String
	Object
	Array
	Rest   // ...
	Name   // $name
	Type   // string, number, …
	Regexp // ~"…"
	Either // a | b
	Not    // !a
)

// A Value is a JSON value, a pattern or a template. It is not changed once read.
type Value struct {
	Kind    Kind
	At      int      // offset in the text it was read from
	Text    string   // as it was written
	Str     string   // of a string: unescaped; of a name or type: the word
	Members []Member // of an object
	Elems   []*Value // of an array; the choices of Either, what Not is about
	Open    bool     // an object with a ... among its members
	Rest    int      // of an array: the index of ... among Elems, or -1
	Within  bool     // an array with ... at both ends
	re      *regexp.Regexp
}

// A Member is one of an object.
type Member struct {
	Key      string
	Val      *Value
	Optional bool // it may be missing
}

// Get returns a member of an object, or nil. v may be nil or no object.
func (v *Value) Get(key string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Key == key {
			return v.Members[i].Val
		}
	}
	return nil
}

// StringAt returns the string that a member of an object is, or "".
func (v *Value) StringAt(key string) string {
	if m := v.Get(key); m != nil && m.Kind == String {
		return m.Str
	}
	return ""
}

// A Dialect says what a text may hold beyond JSON.
type Dialect uint8

// The dialects.
const (
	Plain    Dialect = iota // nothing
	Pattern                 // all that a pattern may hold
	Template                // $name; members may repeat
)

// Blank is white space.
const Blank = " \t\r\n"

// reader reads values from text, which may hold more than one.
type reader struct {
	text    string
	pos     int
	dialect Dialect
	depth   int
}

// Parse reads a text that is one JSON value.
func Parse(text string) (*Value, error) { return ParseAs(text, Plain) }

// ParseAs reads a text that is one value of a dialect. Its errors are
// positioned: see [Offset].
func ParseAs(text string, d Dialect) (*Value, error) {
	r := &reader{text: text, dialect: d}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.space(); r.pos < len(text) {
		return nil, r.errorf("unexpected %s behind the value", r.here())
	}
	return v, nil
}

// Read reads the value that begins at an offset of text, and returns the offset
// behind it.
func Read(text string, at int, d Dialect) (*Value, int, error) {
	r := &reader{text: text, pos: at, dialect: d}
	v, err := r.value()
	return v, r.pos, err
}

// A SyntaxError says where a text is wrong.
type SyntaxError struct {
	At     int // offset
	Reason string
}

// Error returns the reason.
func (e *SyntaxError) Error() string { return e.Reason }

// LineOf returns the line, from 1, that an offset is in.
func LineOf(text string, at int) int { return 1 + strings.Count(text[:min(at, len(text))], "\n") }

// Offset returns where in its text err says that something is wrong, or 0.
func Offset(err error) int {
	if e, ok := errors.AsType[*SyntaxError](err); ok {
		return e.At
	}
	return 0
}

func (r *reader) errorf(format string, args ...any) error {
	return &SyntaxError{At: r.pos, Reason: fmt.Sprintf(format, args...)}
}

// here names what is at the cursor, for errors.
func (r *reader) here() string {
	if r.pos >= len(r.text) {
		return "end"
	}
	for i, c := range r.text[r.pos:] {
		if i == 0 {
			return fmt.Sprintf("%q", c)
		}
	}
	return "end"
}

func (r *reader) space() {
	for r.pos < len(r.text) && strings.IndexByte(Blank, r.text[r.pos]) >= 0 {
		r.pos++
	}
}

func (r *reader) eat(s string) bool {
	if strings.HasPrefix(r.text[r.pos:], s) {
		r.pos += len(s)
		return true
	}
	return false
}

// value reads a value and the choices behind it.
func (r *reader) value() (*Value, error) {
	v, err := r.one()
	if err != nil || r.dialect != Pattern {
		return v, err
	}
	either := &Value{Kind: Either, At: v.At, Rest: -1, Elems: []*Value{v}}
	for {
		end := r.pos
		for r.pos < len(r.text) && (r.text[r.pos] == ' ' || r.text[r.pos] == '\t') {
			r.pos++
		}
		if !r.eat("|") {
			r.pos = end
			break
		}
		next, err := r.one()
		if err != nil {
			return nil, err
		}
		either.Elems = append(either.Elems, next)
	}
	if len(either.Elems) == 1 {
		return v, nil
	}
	either.Text = r.text[either.At:r.pos]
	return either, nil
}

func (r *reader) one() (*Value, error) {
	r.space()
	v := &Value{At: r.pos, Rest: -1}
	var err error
	switch rest := r.text[r.pos:]; {
	case rest == "":
		return nil, r.errorf("a value is missing")
	case rest[0] == '{':
		v.Kind = Object
		err = r.nested(func() error { return r.object(v) })
	case rest[0] == '[':
		v.Kind = Array
		err = r.nested(func() error { return r.array(v) })
	case rest[0] == '"':
		v.Kind = String
		v.Str, err = r.string()
	case rest[0] == '$' && r.dialect != Plain:
		v.Kind = Name
		r.pos++
		v.Str, err = r.name()
	case r.dialect == Pattern && r.eat("..."):
		v.Kind = Rest
	case r.dialect == Pattern && rest[0] == '~':
		v.Kind = Regexp
		err = r.regexp(v)
	case r.dialect == Pattern && rest[0] == '!':
		v.Kind = Not
		err = r.nested(func() error {
			of, err := r.one()
			v.Elems = []*Value{of}
			return err
		})
	default:
		err = r.scalar(v)
	}
	if err != nil {
		return nil, err
	}
	v.Text = r.text[v.At:r.pos]
	return v, nil
}

func (r *reader) nested(f func() error) error {
	if r.depth++; r.depth > MaxDepth {
		return r.errorf("nested more than %d deep", MaxDepth)
	}
	defer func() { r.depth-- }()
	r.pos++
	return f()
}

func (r *reader) object(v *Value) error {
	seen := map[string]bool{}
	for first := true; ; first = false {
		r.space()
		if r.eat("}") {
			return nil
		}
		if !first && !r.eat(",") {
			return r.errorf("%s where , or } is expected", r.here())
		}
		r.space()
		if r.dialect == Pattern && r.eat("...") {
			if v.Open {
				return r.errorf("a second ... in one object")
			}
			v.Open = true
			continue
		}
		m, err := r.member(seen)
		if err != nil {
			return err
		}
		v.Members = append(v.Members, m)
	}
}

func (r *reader) member(seen map[string]bool) (m Member, err error) {
	if r.pos >= len(r.text) || r.text[r.pos] != '"' {
		return m, r.errorf("%s where the name of a member is expected", r.here())
	}
	start := r.pos
	if m.Key, err = r.string(); err != nil {
		return m, err
	}
	if seen[m.Key] && r.dialect != Template {
		r.pos = start
		return m, r.errorf("member %q appears twice", m.Key)
	}
	seen[m.Key] = true
	m.Optional = r.dialect == Pattern && r.eat("?")
	if r.space(); !r.eat(":") {
		return m, r.errorf("%s where : is expected", r.here())
	}
	m.Val, err = r.value()
	return m, err
}

func (r *reader) array(v *Value) error {
	for first := true; ; first = false {
		r.space()
		if r.eat("]") {
			return nil
		}
		if !first && !r.eat(",") {
			return r.errorf("%s where , or ] is expected", r.here())
		}
		e, err := r.value()
		if err != nil {
			return err
		}
		if e.Kind == Rest {
			if r.space(); v.Rest == 0 && len(v.Elems) > 0 && r.eat("]") {
				v.Within = true
				return nil
			}
			if v.Rest >= 0 {
				return r.errorf("a second ... in one array")
			}
			v.Rest = len(v.Elems)
			continue
		}
		v.Elems = append(v.Elems, e)
	}
}

func (r *reader) string() (string, error) {
	for i := r.pos + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '\\':
			i++
		case c < ' ':
			r.pos = i
			return "", r.errorf("a string that does not end on its line")
		case c == '"':
			var s string
			if json.Unmarshal([]byte(r.text[r.pos:i+1]), &s) != nil {
				return "", r.errorf("a string with a bad escape")
			}
			r.pos = i + 1
			return s, nil
		}
	}
	return "", r.errorf("a string that does not end")
}

func (r *reader) regexp(v *Value) (err error) {
	r.pos++
	if !strings.HasPrefix(r.text[r.pos:], `"`) {
		return r.errorf("%s where the string of an expression is expected", r.here())
	}
	start := r.pos
	if v.Str, err = r.string(); err != nil {
		return err
	}
	if v.re, err = regexp.Compile(v.Str); err != nil {
		r.pos = start
		return r.errorf("%v", err)
	}
	return nil
}

func (r *reader) name() (string, error) {
	start := r.pos
	for r.pos < len(r.text) && NameByte(r.text[r.pos]) {
		r.pos++
	}
	if start == r.pos {
		return "", r.errorf("%s where the name of a capture is expected", r.here())
	}
	return r.text[start:r.pos], nil
}

// NameByte reports whether names may hold c.
func NameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var types = map[string]bool{"string": true, "number": true, "integer": true, "boolean": true, "object": true, "array": true}

func (r *reader) scalar(v *Value) error {
	end := r.pos
	for end < len(r.text) && (NameByte(r.text[end]) || strings.IndexByte("+-.", r.text[end]) >= 0) {
		end++
	}
	word := r.text[r.pos:end]
	switch {
	case r.dialect == Pattern && types[word]:
		v.Kind, v.Str = Type, word
	case !json.Valid([]byte(word)):
		return r.errorf("%s where a value is expected", r.here())
	}
	r.pos = end
	return nil
}
