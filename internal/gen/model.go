package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

type kind int

const (
	kindString kind = iota // a named string
	kindAlias              // another name for a Go type
	kindEnum
	kindIntEnum
	kindStruct
	kindUnion
	kindListUnion // one of several array types
)

// A goType is one type to generate.
type goType struct {
	schema       string // name of the definition, or "Union=tag" for types defined here
	name         string
	doc          string
	kind         kind
	experimental bool
	file         string

	alias  string  // kindAlias
	values []value // enums
	closed bool    // an enum of one value that is a constant

	// kindStruct
	fields    []*field
	inline    *inlineUnion // members that depend on a discriminator of the same object
	meta      bool
	patch     bool     // _meta of an upsert: null means something
	unknown   bool     // keeps members the schema does not know
	either    []string // one of these must be there; the first one counts
	merged    string   // the discriminator of the variants merged into this struct
	variant   *variant // the union this type is a variant of
	plain     bool     // also used outside that union
	payload   *goType  // a per-tag type: the type whose fields it has
	shared    bool     // payload of several tags
	sharedKey string   // shared: the discriminator of those tags
	coalloc   *coalloc // per-tag payload: allocate this together with it
	fuse      bool     // allocate the message together with its union's shared payload

	union *union
}

type inlineUnion struct {
	field string // Go name of the field
	doc   string
	union *union
}

// coalloc is a member, the type of what it usually holds, and in that the text
// that differs from one message to the next.
type coalloc struct{ field, typ, text string }

type value struct {
	json, name, doc string
	experimental    bool
}

// A union is one of several object types told apart by a discriminator, or,
// where the schema has none, by a member that only one of them requires.
type union struct {
	typ      *goType
	key      string // discriminator
	variants []*variant
	untagged *variant // stands for objects without discriminator
	catchAll *catchAll
	inline   bool
	outer    *variant // the union is itself a variant of another one
	byMember []string // without discriminator: the member that selects each variant
	exactly  bool     // without discriminator: two selecting members are an error
	anyTag   bool     // untagged also stands for tags the schema does not know
	owner    *goType  // inline: the struct around it, when there is only one
}

type variant struct {
	union        *union
	tag          string
	typ          *goType
	experimental bool
}

type catchAll struct {
	name   string
	fields []*field
	inline *inlineUnion
}

// A field is one property of a struct.
type field struct {
	json, name, doc string
	typ             *typeRef
	required        bool
	nullable        bool
	patch           bool
	pointer         bool
	always          bool // optional, but always sent
	onError         bool // malformed counts as absent
	onNull          bool // null counts as empty
	constant        string
	onlyFor         string // the tag of the merged variant that has this member
	experimental    bool
}

type typeKind int

const (
	tString typeKind = iota
	tBool
	tInt32
	tInt64
	tUint16
	tUint32
	tUint64
	tFloat
	tDef
	tSlice
	tMap
	tOrdered // a map whose order matters
	tRaw
	tRawObject
	tForm // a raw answer to a form field
	tID   // a JSON-RPC id
)

type typeRef struct {
	kind        typeKind
	def         *goType
	elem        *typeRef
	skipInvalid bool
	minimum     json.RawMessage
	maximum     json.RawMessage
	minLength   int
	minItems    int
	ordered     string // tOrdered: Go name of the element type
}

// A model is what one package is generated from.
type model struct {
	version string // "v1"
	doc     *document
	stable  *document
	tab     *table
	docs    *docs
	types   []*goType
	byName  map[string]*goType // by definition
	methods []*method
	errs    []error
	marked  []string // names of what only the unstable schema has
}

func (m *model) errorf(format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf(m.version+": "+format, args...))
}

func (m *model) experimental(name string) { m.marked = append(m.marked, name) }

// buildModel turns a schema into Go types, following the table. All problems
// are collected, so that a new schema shows all decisions it asks for at once.
func buildModel(version string, doc, stable *document, tab *table, dd *docs) (*model, error) {
	m := &model{version: version, doc: doc, stable: stable, tab: tab, docs: dd, byName: map[string]*goType{}}
	m.checkSubset()
	for _, d := range doc.defs {
		if tab.skip.has(d.name) {
			continue
		}
		t := &goType{schema: d.name, name: goName(d.name)}
		if n, ok := tab.names.get(d.name); ok {
			t.name = n
		}
		t.experimental = stable.byID[d.name] == nil
		m.byName[d.name] = t
		m.types = append(m.types, t)
	}
	for _, d := range doc.defs {
		if t := m.byName[d.name]; t != nil {
			m.classify(t, d.node)
		}
	}
	for _, t := range slices.Clone(m.types) {
		m.finish(t)
	}
	m.settleInline()
	m.buildMethods()
	m.assignFiles()
	m.checkNames()
	for _, u := range tab.unused() {
		m.errorf("table entry never used: %s", u)
	}
	if len(m.errs) > 0 {
		return nil, errors.Join(m.errs...)
	}
	slices.Sort(m.marked)
	m.marked = slices.Compact(m.marked)
	return m, nil
}

func (m *model) classify(t *goType, n *node) {
	t.doc = m.typeDoc(t.schema, t.name)
	if t.experimental {
		m.experimental(t.schema)
	}
	if a, ok := m.tab.aliases.get(t.schema); ok {
		t.kind, t.alias = kindAlias, a
		return
	}
	alts := n.alternatives()
	switch {
	case len(alts) > 0 && len(n.props) == 0 && allConst(alts, "string"):
		t.kind, t.closed = kindEnum, m.tab.closed.has(t.schema)
		m.enumValues(t, n, t.schema, t.name)
	case len(alts) > 0 && len(n.props) == 0 && allConst(alts, "integer"):
		t.kind = kindIntEnum
		m.enumValues(t, n, t.schema, t.name)
	case len(n.types) == 1 && n.types[0] == "string":
		t.kind = kindString
		if n.minLength > 0 {
			m.errorf("%s: minLength is not checked here", t.schema)
		}
	case len(n.types) == 0 && n.target() != "" && len(n.props) == 0:
		t.kind = kindAlias
	case len(n.types) == 0 && len(alts) == 0 && len(n.props) == 0:
		t.kind, t.alias = kindAlias, "json.RawMessage"
	case isKey(m.tab.lists, t.schema):
		t.kind = kindListUnion
	case n.hasType("object") || isKey(m.tab.merge, t.schema):
		t.kind = kindStruct
	case len(alts) > 0:
		t.kind, t.union = kindUnion, &union{typ: t} // a variant may be met before it is finished
	default:
		m.errorf("%s: no rule for this kind of definition", t.schema)
	}
}

func (m *model) typeDoc(key, name string) string {
	d := m.docs.get(m.version, key)
	if d == "" {
		m.errorf("docs.txt has no entry for %s", key)
		return ""
	}
	return name + " " + d
}

// allConst reports whether every alternative is a constant of the type, but
// for one that admits any other.
func allConst(alts []*node, typ string) bool {
	n := 0
	for _, a := range alts {
		if !slices.Equal(a.types, []string{typ}) || len(a.props) > 0 {
			return false
		}
		if a.constant != nil {
			n++
		}
	}
	return n > 0
}

func (m *model) enumValues(t *goType, n *node, docKey, prefix string) {
	stable := map[string]bool{}
	if s := m.stable.byID[t.schema]; s != nil {
		for _, a := range s.alternatives() {
			stable[string(a.constant)] = true
		}
	}
	for _, a := range n.alternatives() {
		if a.constant == nil {
			continue
		}
		v := value{json: string(a.constant)}
		plain := strings.Trim(v.json, `"`)
		v.name = prefix + goName(plain)
		if nm, ok := m.tab.values.get(t.schema + "=" + plain); ok {
			v.name = nm
		}
		if v.doc = m.docs.get(m.version, docKey+"="+plain); v.doc == "" {
			m.errorf("docs.txt has no entry for %s=%s", docKey, plain)
		}
		if v.experimental = !t.experimental && !stable[v.json]; v.experimental {
			m.experimental(docKey + "=" + plain)
		}
		t.values = append(t.values, v)
	}
}

// finish fills in what depends on other types being classified.
func (m *model) finish(t *goType) {
	n := m.doc.byID[t.schema]
	switch t.kind {
	case kindAlias:
		if t.alias == "" {
			target := m.byName[n.target()]
			if target == nil {
				m.errorf("%s: alias of unknown %s", t.schema, n.target())
				return
			}
			t.alias = target.name
			target.plain = true
		}
	case kindStruct:
		m.structFields(t, n)
	case kindUnion:
		t.union = m.buildUnion(t, n, false)
	case kindListUnion:
		t.union = &union{typ: t}
		spec, _ := m.tab.lists.get(t.schema)
		for i, a := range n.alternatives() {
			if a.items == nil || m.byName[a.items.target()] == nil || i >= len(spec.keys) {
				m.errorf("%s: the table does not fit its lists", t.schema)
				continue
			}
			item := m.byName[a.items.target()]
			item.plain = true
			t.union.variants = append(t.union.variants, &variant{union: t.union, tag: spec.keys[i], typ: &goType{
				schema: t.schema, name: spec.names[i], kind: kindListUnion, payload: item,
				fields: []*field{{typ: &typeRef{kind: tSlice, elem: &typeRef{kind: tDef, def: item}, minItems: a.minItems}}},
			}})
		}
	}
}

func (m *model) structFields(t *goType, n *node) {
	stable := m.stable.byID[t.schema]
	t.unknown = true
	for _, p := range n.props {
		if p.name == "_meta" {
			t.meta = true
			t.patch = m.tab.metaPatch.has(t.schema)
			continue
		}
		f := m.newField(t.schema, p, n.requires(p.name))
		if f == nil {
			continue
		}
		if stable != nil && stable.prop(p.name) == nil {
			f.experimental = true
			m.experimental(t.schema + "." + p.name)
		}
		t.fields = append(t.fields, f)
	}
	if c, ok := m.tab.coalloc.get(t.schema); ok {
		t.coalloc = &c
	}
	t.fuse = m.tab.fuse.has(t.schema)
	alts := n.alternatives()
	if len(alts) == 0 {
		return
	}
	if isKey(m.tab.merge, t.schema) {
		m.mergeAlternatives(t, n)
		return
	}
	spec, ok := m.tab.inline.get(t.schema)
	if !ok {
		m.errorf("%s: alternatives beside properties need an entry in the table", t.schema)
		return
	}
	t.inline = m.inlineUnion(spec, t, n)
}

// inlineUnion builds, or reuses, the union whose members are flattened into
// the owner's object.
func (m *model) inlineUnion(spec inlineSpec, owner *goType, n *node) *inlineUnion {
	in := &inlineUnion{field: spec.field, doc: spec.fieldDoc}
	for _, t := range m.types {
		if t.kind == kindUnion && t.name == spec.union {
			t.union.owner = nil
			in.union = t.union
			return in
		}
	}
	u := &goType{schema: owner.schema + "+" + spec.union, name: spec.union, kind: kindUnion, experimental: owner.experimental}
	u.doc = spec.union + " " + spec.doc
	u.file = owner.schema
	m.types = append(m.types, u)
	u.union = m.buildUnion(u, n, true)
	u.union.owner = owner
	in.union = u.union
	return in
}

// mergeAlternatives makes one struct of all alternatives: their members become
// optional members of it.
func (m *model) mergeAlternatives(t *goType, n *node) {
	spec, _ := m.tab.merge.get(t.schema)
	if spec.enum != "" {
		e := &goType{schema: t.schema + "." + spec.key, name: spec.enum, kind: kindEnum, experimental: t.experimental, file: t.schema}
		e.doc = spec.enum + " " + spec.enumDoc
		consts := &node{}
		for _, a := range n.alternatives() {
			if p := a.prop(spec.key); p != nil && p.constant != nil {
				consts.anyOf = append(consts.anyOf, &node{constant: p.constant})
			}
		}
		was := e.experimental
		e.experimental = true // the type below covers its values
		m.enumValues(e, consts, e.schema, e.name)
		e.experimental = was
		m.types = append(m.types, e)
		for _, f := range t.fields {
			if f.json == spec.key {
				f.typ = &typeRef{kind: tDef, def: e}
				f.pointer = false
			}
		}
	}
	for _, a := range n.alternatives() {
		if r := a.target(); r != "" && a.prop(spec.key) != nil {
			_, tag := constProp(a)
			for _, p := range m.doc.byID[r].props {
				f := m.newField(r, p, false)
				f.onlyFor = tag
				t.fields = append(t.fields, f)
			}
			t.merged = spec.key
			continue
		}
		if spec.enum != "" {
			continue
		}
		for _, p := range a.props {
			if p.name == "_meta" {
				t.meta = true
				continue
			}
			f := m.newField(t.schema, p, false)
			if f.typ.kind == tDef && f.typ.def.kind == kindStruct {
				f.pointer = true
			}
			t.fields = append(t.fields, f)
			t.either = append(t.either, p.name)
		}
	}
}

func (m *model) newField(owner string, p prop, required bool) *field {
	f := &field{json: p.name, name: goName(p.name), required: required}
	f.doc = m.docs.get(m.version, owner+"."+p.name)
	key := owner + "." + p.name
	n := p.node
	f.onError, f.onNull = n.defaultOnError, n.defaultOnNull
	f.patch = m.tab.patch.has(key)
	if c, ok := m.tab.constants.get(key); ok {
		f.constant = c
		return f
	}
	f.typ, f.nullable = m.typeOf(key, n)
	if f.typ == nil {
		return nil
	}
	m.markers(key, n, f.typ)
	if required || f.patch {
		if f.patch && required {
			m.errorf("%s: a required member cannot be a patch", key)
		}
		return f
	}
	switch f.typ.kind {
	case tBool:
		f.pointer = string(n.deflt) != "false"
	case tInt32, tInt64, tUint16, tUint32, tUint64, tFloat:
		f.pointer = true
	case tDef:
		if f.typ.def.kind == kindStruct {
			f.pointer = n.deflt == nil
			f.always = !f.pointer
		}
	case tOrdered:
		f.always = true
	}
	if m.tab.pointers.has(key) {
		f.pointer = true
	}
	return f
}

// typeOf maps a property to a Go type; nullable when null is a legal value.
func (m *model) typeOf(key string, n *node) (t *typeRef, nullable bool) {
	if r := n.target(); r != "" {
		return m.refTo(key, r), false
	}
	if len(n.anyOf) == 2 && n.anyOf[1].hasType("null") && n.anyOf[0].ref != "" {
		return m.refTo(key, n.anyOf[0].ref), true
	}
	if len(n.alternatives()) > 0 {
		m.errorf("%s: no rule for these alternatives", key)
		return nil, false
	}
	types := slices.DeleteFunc(slices.Clone(n.types), func(s string) bool { return s == "null" })
	nullable = len(types) < len(n.types)
	if len(types) == 0 {
		return &typeRef{kind: tRaw}, true
	}
	if len(types) > 1 {
		m.errorf("%s: a value of several types", key)
		return nil, false
	}
	t = &typeRef{minimum: n.minimum, maximum: n.maximum, minLength: n.minLength, minItems: n.minItems}
	switch types[0] {
	case "string":
		t.kind = tString
	case "boolean":
		t.kind = tBool
	case "number":
		t.kind = tFloat
	case "integer":
		k, ok := map[string]typeKind{"int32": tInt32, "int64": tInt64, "uint16": tUint16, "uint32": tUint32, "uint64": tUint64}[n.format]
		if !ok {
			m.errorf("%s: integer format %q", key, n.format)
		}
		t.kind = k
	case "array":
		t.kind, t.skipInvalid = tSlice, n.skipInvalid
		if n.items == nil {
			m.errorf("%s: an array of anything", key)
			return nil, false
		}
		t.elem, _ = m.typeOf(key+"[]", n.items)
	case "object":
		switch {
		case n.values != nil:
			t.kind = tMap
			t.elem, _ = m.typeOf(key+"{}", n.values)
			if o, ok := m.tab.ordered.get(key); ok {
				t.kind, t.ordered = tOrdered, o.element
			}
		case n.open:
			t.kind = tRawObject
		default:
			m.errorf("%s: an object without a definition", key)
		}
	default:
		m.errorf("%s: type %v", key, types)
	}
	m.bounds(key, t, nullable)
	return t, nullable
}

func (m *model) refTo(key, name string) *typeRef {
	d := m.byName[name]
	if d == nil {
		m.errorf("%s: refers to %s, which is skipped or missing", key, name)
		return nil
	}
	if m.tab.formValues.has(name) {
		return &typeRef{kind: tForm}
	}
	if d.kind == kindAlias {
		m.finish(d) // it may come later in the schema
		switch d.alias {
		case "json.RawMessage":
			return &typeRef{kind: tRaw}
		case "string":
			return &typeRef{kind: tString}
		case "uint16":
			return &typeRef{kind: tUint16}
		case "jsonrpc.ID":
			return &typeRef{kind: tID}
		}
		i := slices.IndexFunc(m.types, func(t *goType) bool { return t.name == d.alias })
		if i < 0 {
			m.errorf("%s: alias of unknown type %s", name, d.alias)
			return nil
		}
		d = m.types[i]
	}
	d.plain = true
	return &typeRef{kind: tDef, def: d}
}
