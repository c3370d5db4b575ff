package sample

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options says which differences between two values [Schema.Canonical] removes. The zero
// value removes all differences without a meaning and keeps unknown members and raw data
// as they were spelled. It must not be changed while in use.
type Options struct {
	// Patch lists properties ("Type.property") in which null and absent differ, and an
	// empty value and absent too.
	Patch map[string]bool
	// Present lists further optional properties in which an empty string, list or map
	// differs from absent.
	Present map[string]bool
	// KeepNull keeps an explicit null of every optional property.
	KeepNull bool
	// KeepDefault keeps members that equal their schema default.
	KeepDefault bool
	// KeepEmpty keeps empty strings, lists and maps of optional properties.
	KeepEmpty bool
	// Strip drops members the schema does not know. Payload of open places stays.
	Strip bool
	// DropTags drops from the outermost object the tags of the unions its definition is a
	// variant of: a type that belongs to a union may write them when it stands alone.
	DropTags bool
	// JavaScript makes numbers, also in raw data, equal when a JavaScript peer cannot tell
	// them apart, and compares raw data by value instead of by spelling and order.
	JavaScript bool
}

// Canonical is the normal form of a value, with default options: see [Options.Canonical].
func (s *Schema) Canonical(name string, data []byte) ([]byte, error) {
	return Options{}.Canonical(s, name, data)
}

// Canonical brings a value of the named definition into a normal form: two values mean the
// same under the schema exactly when their normal forms are equal bytes. Members are
// sorted; white space, string escapes and number spelling of typed fields are normalised;
// absent, null, default and empty optional members are distinguished only as far as the
// options say. The value must be one a lenient reader of any kind could have kept; else the
// error says where it is not.
func (o Options) Canonical(s *Schema, name string, data []byte) ([]byte, error) {
	n, err := s.def(name)
	if err != nil {
		return nil, err
	}
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	for _, key := range s.tags[name] {
		if o.DropTags && n.propIndex[key] == nil {
			v.remove(key)
		}
	}
	out, err := (&canon{s: s, Options: o}).typed(n, v)
	if err != nil {
		return nil, err
	}
	return out.bytes(), nil
}

type canon struct {
	Options
	s *Schema
}

// tolerant keeps what any of our readers keeps, to find the branch a value belongs to.
const tolerant = OpenEnums | OpenUnions | TagDecides | AnyURI | AnyTime

func (s *Schema) fits(n *node, v *value) bool {
	r := reader{s: s, lenient: true, dev: tolerant}
	if _, err := r.read(n, v); err == nil {
		return true
	}
	r.dev &^= TagDecides
	_, err := r.read(n, v)
	return err == nil
}

func (c *canon) typed(n *node, v *value) (*value, error) {
	n = c.s.resolve(n)
	if n.raw() && (n.any() || v.kind != kindNull) {
		return c.rawValue(v), nil
	}
	switch v.kind {
	case kindObject:
		return c.object(n, v)
	case kindNull, kindBool:
		return v, c.scalarFits(n, v)
	}
	if b := n.union(); len(b) > 0 {
		for _, branch := range b {
			if c.s.fits(branch, v) {
				return c.typed(branch, v)
			}
		}
		if v.kind == kindString && n.isEnum() {
			return stringValue(v.str()), nil
		}
		return nil, mismatch(n, v, "any branch")
	}
	if err := c.scalarFits(n, v); err != nil {
		return nil, err
	}
	switch v.kind {
	case kindString:
		return stringValue(v.str()), nil
	case kindNumber:
		return numberValue(c.number(v.text, slices.Contains(n.types, "integer"))), nil
	}
	if !slices.Contains(n.types, "array") {
		return nil, mismatch(n, v, strings.Join(n.types, "|"))
	}
	out := emptyArray()
	for _, it := range v.items {
		if n.items == nil {
			out.items = append(out.items, c.rawValue(it))
			continue
		}
		sub, err := c.typed(n.items, it)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, sub)
	}
	return out, nil
}

func (c *canon) scalarFits(n *node, v *value) error {
	if v.kind == kindArray || c.s.fits(n, v) {
		return nil
	}
	return mismatch(n, v, strings.Join(n.types, "|"))
}

// number spells a number by its value.
func (c *canon) number(text string, integer bool) string {
	if hugeExponent(text) {
		return "null" // what JavaScript writes for a number it cannot hold
	}
	f, _ := strconv.ParseFloat(text, 64)
	if f == 0 {
		return "0"
	}
	if integer && !c.JavaScript {
		if x, err := rational(text); err == nil && x.IsInt() {
			return x.Num().String()
		}
	}
	if f == float64(int64(f)) && f < 1<<53 && f > -1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// rawValue normalises data the schema says nothing about.
func (c *canon) rawValue(v *value) *value {
	if !c.JavaScript {
		return v // written without white space, all else as spelled
	}
	switch v.kind {
	case kindString:
		return stringValue(v.str())
	case kindNumber:
		return numberValue(c.number(v.text, false))
	case kindArray:
		out := emptyArray()
		for _, it := range v.items {
			out.items = append(out.items, c.rawValue(it))
		}
		return out
	case kindObject:
		out := emptyObject()
		for _, name := range memberNames(v) {
			out.members = append(out.members, newMember(name, c.rawValue(v.get(name))))
		}
		return out
	}
	return v
}

// memberNames lists the names of an object, sorted, each once.
func memberNames(v *value) []string {
	var names []string
	for _, m := range v.members {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// field is what the schema says about one member of an object.
type field struct {
	node     *node
	required bool
	mapped   bool // a free key of a typed map
}

// shape is what the schema says about an object value: its fields, and whether members that
// are not fields are payload.
type shape struct {
	fields map[string]field
	rest   bool
}

// shapeOf collects the fields of an object value from all subschemas that apply to it,
// choosing the branch of each union that fits the value.
func (s *Schema) shapeOf(n *node, v *value, sh *shape) error {
	switch {
	case n.ref != "":
		return s.shapeOf(s.defs[n.ref], v, sh)
	case n.any():
		sh.rest = true
		return nil
	}
	if n.rawMembers() {
		sh.rest = true
	}
	var branchErr error
	if len(n.union()) > 0 {
		b, err := s.branch(n, v)
		switch {
		case err != nil:
			branchErr = err
		case b == nil:
			sh.rest = true
			sh.add(n.tag.key, field{node: &node{types: []string{"string"}}, required: true})
		default:
			if err := s.shapeOf(b, v, sh); err != nil {
				return err
			}
		}
	}
	for _, sub := range n.allOf {
		if err := s.shapeOf(sub, v, sh); err != nil {
			return err
		}
	}
	for _, p := range n.props {
		sh.add(p.name, field{node: p.node, required: n.needs(p.name)})
	}
	if n.additional != nil {
		for _, m := range v.members {
			if n.propIndex[m.name] == nil {
				sh.add(m.name, field{node: n.additional, required: true, mapped: true})
			}
		}
	}
	return branchErr
}

func (sh *shape) add(name string, f field) {
	if old, ok := sh.fields[name]; ok {
		old.required = old.required || f.required
		sh.fields[name] = old
		return
	}
	sh.fields[name] = f
}

// branch picks the branch of a union an object belongs to; nil without an error is an
// unknown branch that is kept whole.
func (s *Schema) branch(n *node, v *value) (*node, error) {
	// Where any value is the last resort, a malformed one went there.
	lenient := !slices.ContainsFunc(n.union(), s.anything)
	for _, dev := range []Deviation{tolerant, tolerant &^ TagDecides} {
		r := reader{s: s, lenient: lenient, dev: dev}
		if exclusive(s, n) {
			for _, b := range n.oneOf {
				if s.fits(b, v) {
					return b, nil
				}
			}
			continue
		}
		word := ""
		if n.tag != nil {
			if t := v.get(n.tag.key); t != nil && t.kind == kindString {
				word = t.str()
				if !n.tag.catchAll && dev&TagDecides != 0 && !slices.Contains(n.tag.known, word) {
					return nil, nil
				}
			}
		}
		for _, b := range n.union() {
			if n.tag != nil {
				c, fixed := constString(b.propIndex[n.tag.key])
				if fixed && c != word {
					continue
				}
			}
			if _, err := r.object(b, v); err == nil {
				return b, nil
			}
		}
	}
	return nil, mismatch(n, v, "any branch")
}

func (c *canon) object(n *node, v *value) (*value, error) {
	sh := shape{fields: map[string]field{}}
	if err := c.s.shapeOf(n, v, &sh); err != nil {
		return nil, err
	}
	out := emptyObject()
	for _, name := range memberNames(v) {
		got := v.get(name)
		f, known := sh.fields[name]
		if !known {
			if sh.rest || !c.Strip {
				out.members = append(out.members, newMember(name, c.rawValue(got)))
			}
			continue
		}
		if got.kind == kindNull && !f.required && !c.keepsNull(name, f.node) {
			continue
		}
		sub, err := c.typed(f.node, got)
		if err != nil && sh.rest {
			// A reader may keep an unknown variant whole, malformed members included.
			out.members = append(out.members, newMember(name, c.rawValue(got)))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !f.required {
			drop, err := c.droppable(name, f.node, sub)
			if err != nil {
				return nil, err
			}
			if drop {
				continue
			}
		}
		out.members = append(out.members, newMember(name, sub))
	}
	return out, nil
}

func (c *canon) keepsNull(name string, n *node) bool {
	return c.KeepNull || c.Patch[n.owner+"."+name] || c.s.resolve(n).any()
}

// droppable reports whether an optional member's value means the same as its absence.
func (c *canon) droppable(name string, n *node, v *value) (bool, error) {
	if n.deflt != nil && !c.KeepDefault {
		d, err := c.typed(n, n.deflt)
		if err != nil {
			return false, fmt.Errorf("default of %s: %w", name, err)
		}
		if bytes.Equal(d.bytes(), v.bytes()) {
			return true, nil
		}
	}
	full := n.owner + "." + name
	if c.KeepEmpty || c.Patch[full] || c.Present[full] {
		return false, nil
	}
	switch v.kind {
	case kindString:
		return v.text == `""` && !c.s.resolve(n).any(), nil
	case kindArray:
		return len(v.items) == 0 && c.s.hasType(n, "array"), nil
	case kindObject:
		return len(v.members) == 0 && c.s.resolve(n).additional != nil, nil
	}
	return false, nil
}
