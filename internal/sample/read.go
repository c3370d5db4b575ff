package sample

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Deviation is a set of ways in which a reader may differ from the reference reader of
// [Schema.Salvage]. The zero value is the reference: the generated validators of the
// official TypeScript SDK.
type Deviation uint

const (
	// OpenEnums keeps unknown words of closed enums.
	OpenEnums Deviation = 1 << iota
	// OpenUnions keeps objects with an unknown tag where the union is closed.
	OpenUnions
	// TagDecides lets a string tag alone choose the branch of a union that also has an
	// untagged branch: a known tag with a bad payload is an error, an unknown tag is kept.
	TagDecides
	// IntRange rejects integers outside their format's 64 bits.
	IntRange
	// UniqueNames takes an object in which a known member occurs twice for malformed.
	UniqueNames
	// AnyURI does not check format uri.
	AnyURI
	// AnyTime does not check format date-time.
	AnyTime
	// RawVariants keeps the malformed optional members of an unknown variant that its
	// branch names. Those next to the union are forgiven as ever.
	RawVariants
	// RawAny keeps an object whole where the last resort of a union is any value, though
	// an earlier branch would strip it.
	RawAny
	// EmptyTag takes an empty optional tag for an absent one.
	EmptyTag

	lastDeviation
)

var deviationNames = map[Deviation]string{
	OpenEnums: "open-enum", OpenUnions: "open-union", TagDecides: "tag-decides", IntRange: "int-range",
	UniqueNames: "unique-names", AnyURI: "any-uri", AnyTime: "any-date-time",
	RawVariants: "raw-variant", RawAny: "raw-any", EmptyTag: "empty-tag",
}

// Deviations lists the single deviations, each a set of one.
func Deviations() []Deviation {
	var all []Deviation
	for d := Deviation(1); d < lastDeviation; d <<= 1 {
		all = append(all, d)
	}
	return all
}

// String names the set, its members joined by "+".
func (d Deviation) String() string {
	var names []string
	for _, one := range Deviations() {
		if d&one != 0 {
			names = append(names, deviationNames[one])
		}
	}
	if names == nil {
		return "reference"
	}
	return strings.Join(names, "+")
}

// Check reports whether the value is valid: every member present is well-formed, also where
// a lenient reader would forgive it. Unknown members are allowed, repeated known ones not.
func (s *Schema) Check(name string, data []byte) error {
	n, err := s.def(name)
	if err != nil {
		return err
	}
	v, err := parse(data)
	if err != nil {
		return err
	}
	r := reader{s: s, dev: IntRange | UniqueNames}
	_, err = r.read(n, v)
	return err
}

// Salvage is what a reader with the schema's leniency keeps of a value: malformed optional
// members are dropped where the schema marks them, bad list items are skipped, null becomes
// empty where it is marked so, and unknown members are stripped, except in places the
// schema leaves open. Schema defaults are not filled in. An error means the value is
// rejected.
func (s *Schema) Salvage(name string, data []byte, dev Deviation) ([]byte, error) {
	n, err := s.def(name)
	if err != nil {
		return nil, err
	}
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	r := reader{s: s, dev: dev, lenient: true}
	out, err := r.read(n, v)
	if err != nil {
		return nil, err
	}
	return out.bytes(), nil
}

type reader struct {
	s       *Schema
	dev     Deviation
	lenient bool
}

func (r *reader) has(d Deviation) bool { return r.dev&d != 0 }

// part is what one subschema makes of an object: other subschemas may add to it.
type part struct {
	out  *value
	seen map[string]bool // members a subschema looked at, kept or not
	rest bool            // members nobody looked at are payload
}

func (r *reader) read(n *node, v *value) (*value, error) {
	if v.kind == kindObject {
		p, err := r.object(n, v)
		return p.out, err
	}
	return r.scalar(n, v)
}

func mismatch(n *node, v *value, what string) error {
	return fmt.Errorf("%s: %s does not fit %s", n.owner, v.kind, what)
}

// scalar reads anything but an object.
func (r *reader) scalar(n *node, v *value) (*value, error) {
	if n.any() {
		return v, nil
	}
	if n.ref != "" {
		return r.read(r.s.defs[n.ref], v)
	}
	if len(n.types) > 0 {
		if !slices.ContainsFunc(n.types, func(t string) bool { return typeFits(t, v) }) {
			return nil, mismatch(n, v, strings.Join(n.types, "|"))
		}
		if v.kind == kindNull {
			return v, nil
		}
	}
	if len(n.props) > 0 {
		return nil, mismatch(n, v, "object")
	}
	if err := r.fixed(n, v); err != nil {
		return nil, err
	}
	var err error
	switch v.kind {
	case kindNumber:
		err = r.number(n, v)
	case kindString:
		err = r.text(n, v)
	case kindArray:
		v, err = r.array(n, v)
	}
	if err != nil {
		return nil, err
	}
	for _, sub := range n.allOf {
		if v, err = r.read(sub, v); err != nil {
			return nil, err
		}
	}
	if u := n.union(); len(u) > 0 {
		if exclusive(r.s, n) {
			return nil, mismatch(n, v, "object")
		}
		out, err := r.first(u, v)
		if err == nil {
			return out, nil
		}
		if r.has(OpenEnums) && v.kind == kindString && n.isEnum() {
			return v, nil
		}
		return nil, mismatch(n, v, "any branch")
	}
	return v, nil
}

func (r *reader) first(branches []*node, v *value) (*value, error) {
	for _, b := range branches {
		out, err := r.read(b, v)
		if err == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("no branch")
}

func typeFits(t string, v *value) bool {
	switch t {
	case "integer", "number":
		return v.kind == kindNumber
	default:
		return v.kind.String() == t
	}
}

// fixed checks const and enum.
func (r *reader) fixed(n *node, v *value) error {
	if n.constant != nil && !same(n.constant, v) {
		return mismatch(n, v, "constant")
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e *value) bool { return same(e, v) }) {
		if r.has(OpenEnums) && v.kind == kindString && n.isEnum() {
			return nil
		}
		return mismatch(n, v, "enum")
	}
	return nil
}

func same(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case kindString:
		return a.str() == b.str()
	case kindNumber:
		x, errX := rational(a.text)
		y, errY := rational(b.text)
		return errX == nil && errY == nil && x.Cmp(y) == 0
	default:
		return a.text == b.text
	}
}

// hugeExponent keeps big.Rat away from numbers like 1e999999999.
func hugeExponent(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err != nil
}

var bounds = map[string][2]string{
	"int32":  {"-2147483648", "2147483647"},
	"uint32": {"0", "4294967295"},
	"uint16": {"0", "65535"},
	"int64":  {"-9223372036854775808", "9223372036854775807"},
	"uint64": {"0", "18446744073709551615"},
}

func (r *reader) number(n *node, v *value) error {
	integer := slices.Contains(n.types, "integer")
	if !integer && !slices.Contains(n.types, "number") {
		return nil
	}
	if hugeExponent(v.text) {
		return mismatch(n, v, "finite number")
	}
	var x *big.Rat
	if f, _ := strconv.ParseFloat(v.text, 64); f == 0 {
		// Includes underflow: 1e-400 is read as zero, and is not worth a big fraction.
		x = new(big.Rat)
	} else if x, _ = rational(v.text); x == nil {
		return mismatch(n, v, "number")
	}
	if integer && !x.IsInt() {
		// A JavaScript reader sees the rounded double, which has no fraction beyond 2^52.
		f, _ := strconv.ParseFloat(v.text, 64)
		if r.has(IntRange) || f != math.Trunc(f) {
			return mismatch(n, v, "integer")
		}
	}
	if b, ok := bounds[n.format]; ok && integer {
		wide := n.format == "int64" || n.format == "uint64"
		low, _ := rational(b[0])
		high, _ := rational(b[1])
		if (!wide || r.has(IntRange)) && (x.Cmp(low) < 0 || x.Cmp(high) > 0) {
			return mismatch(n, v, n.format)
		}
	}
	if n.minimum != nil && x.Cmp(n.minimum) < 0 || n.maximum != nil && x.Cmp(n.maximum) > 0 {
		return mismatch(n, v, "bounds")
	}
	return nil
}

func (r *reader) text(n *node, v *value) error {
	str := v.str()
	switch {
	case utf8.RuneCountInString(str) < n.minLength:
		return mismatch(n, v, "minLength")
	case n.format == "uri" && !r.has(AnyURI) && !uriFits(str):
		return mismatch(n, v, "uri")
	case n.format == "date-time" && !r.has(AnyTime) && !timeFits(str):
		return mismatch(n, v, "date-time")
	}
	return nil
}

func (r *reader) array(n *node, v *value) (*value, error) {
	out := emptyArray()
	for _, it := range v.items {
		if n.items == nil {
			out.items = append(out.items, it)
			continue
		}
		kept, err := r.read(n.items, it)
		switch {
		case err == nil:
			out.items = append(out.items, kept)
		case !n.skipInvalid || !r.lenient:
			return nil, err
		}
	}
	if len(out.items) < n.minItems {
		return nil, mismatch(n, v, "minItems")
	}
	return out, nil
}

// object reads an object under one subschema and everything below it.
func (r *reader) object(n *node, v *value) (part, error) {
	p := part{out: emptyObject(), seen: map[string]bool{}}
	if n.any() {
		p.out, p.rest = v.unique(), true
		return p, nil
	}
	if n.ref != "" {
		return r.object(r.s.defs[n.ref], v)
	}
	if len(n.types) > 0 && !slices.Contains(n.types, "object") {
		return p, mismatch(n, v, strings.Join(n.types, "|"))
	}
	if n.constant != nil || n.enum != nil {
		return p, mismatch(n, v, "constant")
	}
	for _, name := range n.required {
		if v.get(name) == nil {
			return p, fmt.Errorf("%s: %s is missing", n.owner, name)
		}
	}
	for _, m := range n.props {
		if err := r.property(n, m, v, &p); err != nil {
			return p, err
		}
	}
	if n.not != nil {
		// What a deviating reader tolerates is still not what the schema names here.
		if _, err := (&reader{s: r.s}).read(n.not, v); err == nil {
			return p, mismatch(n, v, "not")
		}
	}
	for _, sub := range n.allOf {
		q, err := r.object(sub, v)
		if err != nil {
			return p, err
		}
		p.merge(q)
	}
	if len(n.union()) > 0 {
		if t := n.tag; r.has(EmptyTag) && t != nil && n.propIndex[t.key] != nil && !n.needs(t.key) {
			if word := p.out.get(t.key); word != nil && word.text == `""` {
				p.out.remove(t.key)
			}
		}
		// A malformed optional tag is forgiven before it chooses a branch.
		q, err := r.union(n, r.without(v, &p))
		if err != nil {
			return p, err
		}
		p.merge(q)
	}
	return p, r.rest(n, v, &p)
}

// without hides the members that were looked at and not kept.
func (r *reader) without(v *value, p *part) *value {
	out := emptyObject()
	for _, m := range v.members {
		if !p.seen[m.name] || p.out.get(m.name) != nil {
			out.members = append(out.members, m)
		}
	}
	return out
}

func (p *part) merge(q part) {
	for _, m := range q.out.members {
		if p.out.get(m.name) == nil {
			p.out.members = append(p.out.members, m)
		}
	}
	for name := range q.seen {
		p.seen[name] = true
	}
	p.rest = p.rest || q.rest
}

// rest deals with the members that no property names.
func (r *reader) rest(n *node, v *value, p *part) error {
	if n.additional != nil {
		for _, m := range v.members {
			if n.propIndex[m.name] != nil {
				continue
			}
			if err := r.once(n, m.name, v); err != nil {
				return err
			}
			kept, err := r.read(n.additional, m.value)
			if err != nil {
				return err
			}
			if p.out.get(m.name) != nil {
				p.out.remove(m.name)
			}
			p.out.members = append(p.out.members, &member{m.name, m.key, kept})
		}
		return nil
	}
	if !n.rawMembers() && !(p.rest && len(n.union()) > 0) {
		return nil
	}
	if len(n.props) > 0 && n.not != nil {
		// The branch of a union: the union itself keeps the payload, once it knows what
		// its other subschemas looked at.
		p.rest = true
		for _, m := range v.members {
			if r.has(RawVariants) && p.seen[m.name] && p.out.get(m.name) == nil {
				p.out.members = append(p.out.members, m)
			}
		}
		return nil
	}
	for _, m := range v.members {
		if !p.seen[m.name] && p.out.get(m.name) == nil {
			p.out.members = append(p.out.members, &member{m.name, m.key, v.get(m.name)})
		}
	}
	p.rest = false
	return nil
}

func (r *reader) once(n *node, name string, v *value) error {
	if !r.has(UniqueNames) {
		return nil
	}
	count := 0
	for _, m := range v.members {
		if m.name == name {
			count++
		}
	}
	if count > 1 {
		return fmt.Errorf("%s: %s is repeated", n.owner, name)
	}
	return nil
}

func (r *reader) property(n *node, m prop, v *value, p *part) error {
	if err := r.once(n, m.name, v); err != nil {
		return err
	}
	p.seen[m.name] = true
	got := v.get(m.name)
	if got == nil {
		return nil
	}
	keep := func(val *value) {
		p.out.members = append(p.out.members, newMember(m.name, val))
	}
	if m.node.onNull && r.lenient && got.kind == kindNull {
		got = emptyArray()
		if r.s.hasType(m.node, "object") {
			got = emptyObject()
		}
		keep(got)
		return nil
	}
	kept, err := r.read(m.node, got)
	if err == nil {
		keep(kept)
		return nil
	}
	if !m.node.onError || !r.lenient {
		return err
	}
	if !r.s.nullable(m.node) && r.s.hasType(m.node, "array") {
		keep(emptyArray())
	}
	return nil
}

func (r *reader) union(n *node, v *value) (part, error) {
	branches := n.union()
	if r.has(RawAny) && slices.ContainsFunc(branches, r.s.anything) {
		return part{out: v.unique(), seen: map[string]bool{}}, nil
	}
	if exclusive(r.s, n) {
		return r.exactlyOne(n, v)
	}
	var word string
	var tagged bool
	if n.tag != nil {
		if t := v.get(n.tag.key); t != nil && t.kind == kindString {
			word, tagged = t.str(), true
		}
	}
	known := tagged && slices.Contains(n.tag.known, word)
	for _, b := range branches {
		if tagged {
			c, fixed := constString(b.propIndex[n.tag.key])
			if fixed && c != word {
				continue
			}
			if !fixed && r.has(TagDecides) && b.propIndex[n.tag.key] == nil {
				continue
			}
		}
		p, err := r.object(b, v)
		if err == nil {
			return p, nil
		}
	}
	keep := n.tag != nil && tagged && !known && !n.tag.catchAll
	if keep && (n.tag.leftover && r.has(TagDecides) || !n.tag.leftover && r.has(OpenUnions)) {
		return part{out: emptyObject(), seen: map[string]bool{}, rest: true}, nil
	}
	return part{}, mismatch(n, v, "any branch")
}

// exclusive reports a union of objects without a tag of which exactly one must apply: the
// member it requires shows which.
func exclusive(s *Schema, n *node) bool {
	if len(n.oneOf) == 0 || n.tag != nil {
		return false
	}
	for _, b := range n.oneOf {
		if len(s.resolve(b).required) == 0 {
			return false
		}
	}
	return true
}

func (r *reader) exactlyOne(n *node, v *value) (part, error) {
	var chosen *node
	for _, b := range n.oneOf {
		missing := func(name string) bool { return v.get(name) == nil }
		if slices.ContainsFunc(r.s.resolve(b).required, missing) {
			continue
		}
		if chosen != nil {
			return part{}, mismatch(n, v, "exactly one branch")
		}
		chosen = b
	}
	if chosen == nil {
		return part{}, mismatch(n, v, "any branch")
	}
	return r.object(chosen, v)
}
