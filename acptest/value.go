package acptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds the nesting of what scripts hold and of what they are
// compared with; it is what the protocol engine allows.
const maxDepth = 512

type kind uint8

const (
	kindScalar kind = iota // a number, true, false or null
	kindString
	kindObject
	kindArray
	kindRest // ...
	kindName // $name
)

// A value is a JSON value of a script or of a frame. In patterns any value may
// be ... or $name, and objects and arrays may hold one ... for whatever else is
// there.
type value struct {
	kind    kind
	at      int      // offset in the text it was read from
	text    string   // as it was written
	str     string   // of a string: unescaped; of a name: without the dollar
	members []member // of an object
	elems   []*value // of an array
	open    bool     // an object with a ... among its members
	rest    int      // of an array: the index of ... among elems, or -1
}

type member struct {
	key string
	val *value
}

// get returns a member of an object, or nil.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].val
		}
	}
	return nil
}

// string returns the string that a member of an object is, or "".
func (v *value) string(key string) string {
	if m := v.get(key); m != nil && m.kind == kindString {
		return m.str
	}
	return ""
}

// use of wildcards and names by what is read
type dialect uint8

const (
	plain    dialect = iota // JSON
	pattern                 // with ... and $name
	template                // with $name; members may repeat
)

// reader reads values from text, which may hold more than one.
type reader struct {
	text    string
	pos     int
	dialect dialect
	depth   int
}

// parse reads a text that is one JSON value.
func parse(text string) (*value, error) {
	r := &reader{text: text}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.space(); r.pos < len(text) {
		return nil, r.errorf("unexpected %s behind the value", r.here())
	}
	return v, nil
}

// A syntaxError says where a text is wrong.
type syntaxError struct {
	at     int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

func (r *reader) errorf(format string, args ...any) error {
	return &syntaxError{at: r.pos, reason: fmt.Sprintf(format, args...)}
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
	for r.pos < len(r.text) && strings.IndexByte(blank, r.text[r.pos]) >= 0 {
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

func (r *reader) value() (*value, error) {
	r.space()
	v := &value{at: r.pos, rest: -1}
	var err error
	switch rest := r.text[r.pos:]; {
	case rest == "":
		return nil, r.errorf("a value is missing")
	case rest[0] == '{':
		v.kind = kindObject
		err = r.nested(func() error { return r.object(v) })
	case rest[0] == '[':
		v.kind = kindArray
		err = r.nested(func() error { return r.array(v) })
	case rest[0] == '"':
		v.kind = kindString
		v.str, err = r.string()
	case rest[0] == '$' && r.dialect != plain:
		v.kind = kindName
		r.pos++
		v.str, err = r.name()
	case r.dialect == pattern && r.eat("..."):
		v.kind = kindRest
	default:
		err = r.scalar()
	}
	if err != nil {
		return nil, err
	}
	v.text = r.text[v.at:r.pos]
	return v, nil
}

func (r *reader) nested(f func() error) error {
	if r.depth++; r.depth > maxDepth {
		return r.errorf("nested more than %d deep", maxDepth)
	}
	defer func() { r.depth-- }()
	r.pos++
	return f()
}

func (r *reader) object(v *value) error {
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
		if r.dialect == pattern && r.eat("...") {
			if v.open {
				return r.errorf("a second ... in one object")
			}
			v.open = true
			continue
		}
		if r.pos >= len(r.text) || r.text[r.pos] != '"' {
			return r.errorf("%s where the name of a member is expected", r.here())
		}
		start := r.pos
		key, err := r.string()
		if err != nil {
			return err
		}
		if seen[key] && r.dialect != template {
			r.pos = start
			return r.errorf("member %q appears twice", key)
		}
		seen[key] = true
		if r.space(); !r.eat(":") {
			return r.errorf("%s where : is expected", r.here())
		}
		val, err := r.value()
		if err != nil {
			return err
		}
		v.members = append(v.members, member{key, val})
	}
}

func (r *reader) array(v *value) error {
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
		if e.kind == kindRest {
			if v.rest >= 0 {
				return r.errorf("a second ... in one array")
			}
			v.rest = len(v.elems)
			continue
		}
		v.elems = append(v.elems, e)
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

func (r *reader) name() (string, error) {
	start := r.pos
	for r.pos < len(r.text) && nameByte(r.text[r.pos]) {
		r.pos++
	}
	if start == r.pos {
		return "", r.errorf("%s where the name of a capture is expected", r.here())
	}
	return r.text[start:r.pos], nil
}

func nameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (r *reader) scalar() error {
	end := r.pos
	for end < len(r.text) && (nameByte(r.text[end]) || strings.IndexByte("+-.", r.text[end]) >= 0) {
		end++
	}
	if !json.Valid([]byte(r.text[r.pos:end])) {
		return r.errorf("%s where a value is expected", r.here())
	}
	r.pos = end
	return nil
}

// lineOf returns the line, from 1, that an offset is in.
func lineOf(text string, at int) int { return 1 + strings.Count(text[:min(at, len(text))], "\n") }

// offset returns where in its text err says that something is wrong.
func offset(err error) int {
	var e *syntaxError
	if errors.As(err, &e) {
		return e.at
	}
	return 0
}
