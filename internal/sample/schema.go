package sample

import (
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Schema is one loaded schema document. It is immutable after [Load] and safe for
// concurrent use. The zero value has no definitions.
type Schema struct {
	defs  map[string]*node
	names []string
	// the tags a definition carries as a variant of unions, by definition
	tags map[string][]string
	// every property name of the document: names invented for unknown members avoid them
	known map[string]bool
}

// node is one subschema.
type node struct {
	owner       string // definition this node is written in, not followed through references
	types       []string
	props       []prop
	propIndex   map[string]*node
	required    []string
	items       *node
	anyOf       []*node
	oneOf       []*node
	allOf       []*node
	not         *node
	ref         string
	constant    *value
	enum        []*value
	deflt       *value
	format      string
	minimum     *big.Rat
	maximum     *big.Rat
	minLength   int
	minItems    int
	additional  *node // schema of members that properties does not name
	open        bool  // additionalProperties or unevaluatedProperties is true
	onError     bool
	onNull      bool
	skipInvalid bool
	tag         *tag
}

type prop struct {
	name string
	node *node
}

// tag describes a union whose branches are distinguished by a constant string member.
type tag struct {
	key      string
	known    []string
	catchAll bool // some branch takes any other string
	leftover bool // some branch does not mention the member
}

// Load reads a schema document: a JSON Schema with its types under "$defs". A keyword it
// does not know is an error, because ignoring one would make every judgement wrong.
func Load(r io.Reader) (*Schema, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	doc, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	defs := doc.get("$defs")
	if doc.kind != kindObject || defs == nil || defs.kind != kindObject {
		return nil, fmt.Errorf("read schema: no $defs")
	}
	s := &Schema{defs: map[string]*node{}, known: map[string]bool{}}
	for _, m := range defs.members {
		n, err := s.node(m.value, m.name)
		if err != nil {
			return nil, fmt.Errorf("read schema: %s: %w", m.name, err)
		}
		s.defs[m.name] = n
	}
	s.names = slices.Sorted(maps.Keys(s.defs))
	for _, name := range s.names {
		if err := s.link(s.defs[name]); err != nil {
			return nil, fmt.Errorf("read schema: %s: %w", name, err)
		}
	}
	s.tags = map[string][]string{}
	for _, name := range s.names {
		s.spreadTags(s.defs[name], nil)
	}
	return s, nil
}

// spreadTags records for each definition below a union the tags of the unions it is in.
func (s *Schema) spreadTags(n *node, above []string) {
	if n.tag != nil {
		above = append(slices.Clone(above), n.tag.key)
	}
	for _, b := range n.union() {
		if n.tag == nil || b.propIndex[n.tag.key] == nil {
			continue
		}
		for _, sub := range b.allOf {
			if sub.ref == "" {
				continue
			}
			s.tags[sub.ref] = append(s.tags[sub.ref], above...)
			s.spreadTags(s.defs[sub.ref], above)
		}
	}
}

// Names lists the definitions in alphabetical order.
func (s *Schema) Names() []string { return slices.Clone(s.names) }

func (s *Schema) def(name string) (*node, error) {
	n := s.defs[name]
	if n == nil {
		return nil, fmt.Errorf("no definition %q", name)
	}
	return n, nil
}

func (s *Schema) node(v *value, owner string) (*node, error) {
	n := &node{owner: owner}
	if v.kind == kindBool && v.text == "true" {
		return n, nil
	}
	if v.kind != kindObject {
		return nil, fmt.Errorf("a schema is an object, not %s", v.kind)
	}
	for _, m := range v.members {
		if err := s.keyword(n, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return n, nil
}

func (s *Schema) keyword(n *node, m *member) (err error) {
	v := m.value
	switch m.name {
	case "$schema", "$comment", "title", "description", "examples", "discriminator", "contentEncoding", "x-docs-ignore", "x-side", "x-method":
		// names, prose and hints that do not change which values are valid
	case "type":
		n.types = stringsOf(v)
	case "required":
		n.required = stringsOf(v)
	case "properties":
		n.propIndex = map[string]*node{}
		for _, p := range v.members {
			sub, err := s.node(p.value, n.owner)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			n.props = append(n.props, prop{p.name, sub})
			n.propIndex[p.name] = sub
			s.known[p.name] = true
		}
	case "items":
		n.items, err = s.node(v, n.owner)
	case "not":
		n.not, err = s.node(v, n.owner)
	case "anyOf":
		n.anyOf, err = s.nodes(v, n.owner)
	case "oneOf":
		n.oneOf, err = s.nodes(v, n.owner)
	case "allOf":
		n.allOf, err = s.nodes(v, n.owner)
	case "$ref":
		ref, ok := strings.CutPrefix(v.str(), "#/$defs/")
		if !ok {
			return fmt.Errorf("reference %s is not to a definition", v.text)
		}
		n.ref = ref
	case "const":
		n.constant = v
	case "enum":
		n.enum = v.items
	case "default":
		n.deflt = v
	case "format":
		n.format = v.str()
	case "minimum":
		n.minimum, err = rational(v.text)
	case "maximum":
		n.maximum, err = rational(v.text)
	case "minLength":
		n.minLength, err = strconv.Atoi(v.text)
	case "minItems":
		n.minItems, err = strconv.Atoi(v.text)
	case "additionalProperties", "unevaluatedProperties":
		if v.kind == kindBool {
			if n.open = v.text == "true"; !n.open {
				return fmt.Errorf("closed objects are not supported")
			}
			return nil
		}
		n.additional, err = s.node(v, n.owner)
	case "x-deserialize-default-on-error":
		n.onError = v.text == "true"
	case "x-deserialize-default-on-null":
		n.onNull = v.text == "true"
	case "x-deserialize-skip-invalid-items":
		n.skipInvalid = v.text == "true"
	default:
		return fmt.Errorf("unknown keyword")
	}
	return err
}

func (s *Schema) nodes(v *value, owner string) ([]*node, error) {
	var out []*node
	for _, it := range v.items {
		n, err := s.node(it, owner)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func stringsOf(v *value) []string {
	if v.kind == kindString {
		return []string{v.str()}
	}
	var out []string
	for _, it := range v.items {
		out = append(out, it.str())
	}
	return out
}

func rational(text string) (*big.Rat, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return r, nil
}

// link checks references, formats and union shapes once all definitions are known.
func (s *Schema) link(n *node) error {
	if n == nil {
		return nil
	}
	if n.ref != "" && s.defs[n.ref] == nil {
		return fmt.Errorf("reference to missing definition %q", n.ref)
	}
	switch n.format {
	case "", "int32", "int64", "uint16", "uint32", "uint64", "double", "uri", "date-time", "regex":
	default:
		return fmt.Errorf("unknown format %q", n.format)
	}
	n.tag = s.findTag(n.union())
	subs := slices.Concat(n.anyOf, n.oneOf, n.allOf, []*node{n.items, n.not, n.additional})
	for _, p := range n.props {
		subs = append(subs, p.node)
	}
	for _, sub := range subs {
		if err := s.link(sub); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) union() []*node {
	if len(n.anyOf) > 0 {
		return n.anyOf
	}
	return n.oneOf
}

// any reports a schema without any demand.
func (n *node) any() bool {
	return len(n.types) == 0 && n.ref == "" && n.constant == nil && n.enum == nil &&
		len(n.props) == 0 && len(n.anyOf) == 0 && len(n.oneOf) == 0 && len(n.allOf) == 0
}

// raw reports a schema under which a value is kept as it was spelled.
func (n *node) raw() bool {
	return n.any() || n.rawObject()
}

// rawObject reports an object whose members the schema does not name.
func (n *node) rawObject() bool {
	return slices.Contains(n.types, "object") && len(n.props) == 0 && n.additional == nil &&
		len(n.anyOf) == 0 && len(n.oneOf) == 0 && len(n.allOf) == 0
}

// rawMembers is rawObject for schemas that say so: an object type with neither properties
// nor anything else that names members is a set of free members.
func (n *node) rawMembers() bool { return n.open || n.rawObject() }

func (n *node) needs(name string) bool { return slices.Contains(n.required, name) }

func constString(n *node) (string, bool) {
	if n != nil && n.constant != nil && n.constant.kind == kindString {
		return n.constant.str(), true
	}
	return "", false
}

func (s *Schema) findTag(branches []*node) *tag {
	var key string
	for _, b := range branches {
		for _, p := range b.props {
			if _, ok := constString(p.node); ok && b.needs(p.name) {
				key = p.name
			}
		}
	}
	if key == "" {
		return nil
	}
	t := &tag{key: key}
	for _, b := range branches {
		p := b.propIndex[key]
		switch c, ok := constString(p); {
		case ok:
			t.known = append(t.known, c)
		case p != nil && slices.Contains(p.types, "string"):
			t.catchAll = true
		default:
			t.leftover = true
		}
	}
	return t
}

// isEnum reports a union of nothing but string constants, a closed set of words.
func (n *node) isEnum() bool {
	u := n.union()
	for _, b := range u {
		if _, ok := constString(b); !ok {
			return false
		}
	}
	if len(u) > 0 {
		return true
	}
	for _, e := range n.enum {
		if e.kind != kindString {
			return false
		}
	}
	return len(n.enum) > 0
}

// resolve follows references and lone allOf wrappers to the node that says something.
func (s *Schema) resolve(n *node) *node {
	for {
		switch {
		case n.ref != "":
			n = s.defs[n.ref]
		case len(n.allOf) == 1 && len(n.props) == 0 && len(n.union()) == 0:
			n = n.allOf[0]
		default:
			return n
		}
	}
}

// nullable reports whether null is a value of the schema in its own right.
func (s *Schema) nullable(n *node) bool {
	n = s.resolve(n)
	if slices.Contains(n.types, "null") {
		return true
	}
	return slices.ContainsFunc(n.union(), s.nullable)
}

// anything reports a schema that every value fits.
func (s *Schema) anything(n *node) bool { return s.resolve(n).any() }

// hasType reports whether the schema, or a branch of it, has the type.
func (s *Schema) hasType(n *node, typ string) bool {
	n = s.resolve(n)
	if slices.Contains(n.types, typ) {
		return true
	}
	return slices.ContainsFunc(n.union(), func(b *node) bool { return s.hasType(b, typ) })
}

// Nullable lists the optional properties of a definition that also take null, sorted: the
// candidates for [Options.Patch], as "Type.property".
func (s *Schema) Nullable(name string) []string {
	n, err := s.def(name)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range n.props {
		if !n.needs(p.name) && s.nullable(p.node) {
			out = append(out, name+"."+p.name)
		}
	}
	slices.Sort(out)
	return out
}
