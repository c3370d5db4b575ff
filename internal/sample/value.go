package sample

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// value is a JSON value that remembers how its scalars were spelled and the order of its
// members, which encoding/json does not.
type value struct {
	kind    kind
	text    string // spelling of a scalar; strings include their quotes
	items   []*value
	members []*member
}

type member struct {
	name  string // decoded
	key   string // as spelled, with quotes
	value *value
}

func nullValue() *value           { return &value{kind: kindNull, text: "null"} }
func numberValue(s string) *value { return &value{kind: kindNumber, text: s} }
func stringValue(s string) *value { return &value{kind: kindString, text: quote(s)} }
func emptyArray() *value          { return &value{kind: kindArray} }
func emptyObject() *value         { return &value{kind: kindObject} }

func boolValue(b bool) *value {
	return &value{kind: kindBool, text: fmt.Sprint(b)}
}

func newMember(name string, v *value) *member {
	return &member{name: name, key: quote(name), value: v}
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// str is the decoded text of a string value; lone surrogates read as U+FFFD.
func (v *value) str() string { return unquote(v.text) }

func unquote(lit string) string {
	if strings.IndexByte(lit, '\\') < 0 {
		return lit[1 : len(lit)-1] // the parser has checked that it is UTF-8
	}
	var s string
	if err := json.Unmarshal([]byte(lit), &s); err != nil {
		panic(err) // the parser has checked the literal
	}
	return s
}

// get returns the last member of that name, as readers that allow duplicates do.
func (v *value) get(name string) *value {
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}

// unique is the object without repeated names: the last of each counts.
func (v *value) unique() *value {
	out := emptyObject()
	for i, m := range v.members {
		if !slices.ContainsFunc(v.members[i+1:], func(o *member) bool { return o.name == m.name }) {
			out.members = append(out.members, m)
		}
	}
	return out
}

func (v *value) remove(name string) {
	kept := v.members[:0:0]
	for _, m := range v.members {
		if m.name != name {
			kept = append(kept, m)
		}
	}
	v.members = kept
}

func (v *value) clone() *value {
	c := *v
	c.items, c.members = nil, nil
	for _, it := range v.items {
		c.items = append(c.items, it.clone())
	}
	for _, m := range v.members {
		c.members = append(c.members, &member{m.name, m.key, m.value.clone()})
	}
	return &c
}

func (v *value) bytes() []byte { return v.append(nil, nil) }

// append writes the value; space, when not nil, is asked for white space between tokens.
func (v *value) append(dst []byte, space func() string) []byte {
	gap := func() {
		if space != nil {
			dst = append(dst, space()...)
		}
	}
	switch v.kind {
	case kindArray:
		dst = append(dst, '[')
		for i, it := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			gap()
			dst = it.append(dst, space)
			gap()
		}
		return append(dst, ']')
	case kindObject:
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			gap()
			dst = append(dst, m.key...)
			gap()
			dst = append(dst, ':')
			gap()
			dst = m.value.append(dst, space)
			gap()
		}
		return append(dst, '}')
	default:
		return append(dst, v.text...)
	}
}

type parser struct {
	data []byte
	pos  int
}

// parse reads one JSON text. It accepts duplicate names and keeps all of them.
func parse(data []byte) (*value, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("not a JSON text")
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	p := &parser{data: data}
	return p.value(), nil
}

// The parser below runs on text that json.Valid has accepted, so it looks for the ends of
// tokens only.

func (p *parser) space() byte {
	for strings.IndexByte(" \t\r\n", p.data[p.pos]) >= 0 {
		p.pos++
	}
	return p.data[p.pos]
}

func (p *parser) value() *value {
	switch c := p.space(); c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return &value{kind: kindString, text: p.literal()}
	case 't', 'f':
		return &value{kind: kindBool, text: p.word()}
	case 'n':
		return &value{kind: kindNull, text: p.word()}
	default:
		return &value{kind: kindNumber, text: p.word()}
	}
}

func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.data) && strings.IndexByte(" \t\r\n,]}:", p.data[p.pos]) < 0 {
		p.pos++
	}
	return string(p.data[start:p.pos])
}

func (p *parser) literal() string {
	start := p.pos
	for p.pos++; p.data[p.pos] != '"'; p.pos++ {
		if p.data[p.pos] == '\\' {
			p.pos++
		}
	}
	p.pos++
	return string(p.data[start:p.pos])
}

func (p *parser) array() *value {
	v := emptyArray()
	for p.pos++; p.space() != ']'; {
		v.items = append(v.items, p.value())
		if p.space() == ',' {
			p.pos++
		}
	}
	p.pos++
	return v
}

func (p *parser) object() *value {
	v := emptyObject()
	for p.pos++; p.space() != '}'; {
		key := p.literal()
		p.space()
		p.pos++ // the colon
		v.members = append(v.members, &member{unquote(key), key, p.value()})
		if p.space() == ',' {
			p.pos++
		}
	}
	p.pos++
	return v
}
