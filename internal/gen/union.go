package main

import (
	"cmp"
	"slices"
	"strings"
)

// buildUnion reads the alternatives of n.
func (m *model) buildUnion(t *goType, n *node, inline bool) *union {
	if t.union == nil {
		t.union = &union{typ: t}
	}
	u := t.union
	u.inline, u.exactly = inline, len(n.oneOf) > 0
	key := t.schema
	if inline {
		key, _, _ = strings.Cut(t.schema, "+")
	}
	alts := n.alternatives()
	for _, a := range alts {
		if k, _ := constProp(a); k != "" {
			u.key = k
		}
	}
	if u.key == "" {
		m.memberUnion(u, key, alts)
		return u
	}
	uses := map[string]int{}
	for _, a := range alts {
		if _, tag := constProp(a); tag != "" {
			uses[a.target()]++
		}
	}
	stableTags := map[string]bool{}
	if s := m.stable.byID[key]; s != nil {
		for _, a := range s.alternatives() {
			_, tag := constProp(a)
			stableTags[tag] = true
		}
	}
	for _, a := range alts {
		k, tag := constProp(a)
		switch {
		case a.not != nil:
			m.catchAll(u, key, a)
		case k == u.key:
			v := &variant{union: u, tag: tag, experimental: !t.experimental && !stableTags[tag]}
			if v.experimental {
				m.experimental(key + "=" + tag)
			}
			v.typ = m.variantType(u, key, a, tag, uses[a.target()] > 1)
			if v.typ == nil {
				continue
			}
			m.attach(v)
			u.variants = append(u.variants, v)
		default:
			alias, _ := m.tab.untagged.get(key)
			v := &variant{union: u, tag: alias.tag}
			u.anyTag = alias.anyTag
			v.typ = m.variantType(u, key, a, alias.tag, false)
			if v.typ == nil {
				continue
			}
			m.attach(v)
			u.untagged = v
		}
	}
	if u.catchAll == nil && !u.anyTag {
		// The reference treats this union as closed; a newer peer must not
		// break us all the same (S79, design §3).
		u.catchAll = &catchAll{name: m.catchAllName(u)}
	}
	return u
}

func (m *model) catchAllName(u *union) string {
	if n, ok := m.tab.names.get(u.typ.name + "=*"); ok {
		return n
	}
	return "Unknown" + u.typ.name
}

// attach ties a variant to its type.
func (m *model) attach(v *variant) {
	t := v.typ
	if t.kind == kindUnion {
		t.union.outer = v
		return
	}
	if t.variant != nil {
		m.errorf("%s is a variant of two unions", t.schema)
	}
	t.variant = v
}

// constProp returns the property of an alternative that is a constant string.
func constProp(a *node) (key, tag string) {
	for _, p := range a.props {
		if p.node.constant != nil {
			return p.name, strings.Trim(string(p.node.constant), `"`)
		}
	}
	return "", ""
}

// variantType returns the Go type of one alternative: the definition it names,
// a type of its own over that one's fields when several tags share it, or a
// new struct when it names none.
func (m *model) variantType(u *union, key string, a *node, tag string, shared bool) *goType {
	ref := a.target()
	own := key + "=" + tag
	if ref != "" && !shared {
		t := m.byName[ref]
		if t == nil || t.kind != kindStruct && t.kind != kindUnion {
			m.errorf("%s: variant %s is no object", key, ref)
			return nil
		}
		return t
	}
	t := &goType{schema: own, name: goName(tag), kind: kindStruct, file: key, experimental: u.typ.experimental}
	if n, ok := m.tab.names.get(own); ok {
		t.name = n
	}
	t.doc = m.typeDoc(own, t.name)
	if ref != "" {
		if t.payload = m.byName[ref]; t.payload == nil || t.payload.kind != kindStruct {
			m.errorf("%s: variant %s is no object", key, ref)
			return nil
		}
		t.payload.shared, t.payload.sharedKey = true, u.key
		m.types = append(m.types, t)
		return t
	}
	t.unknown = !u.inline
	for _, p := range a.props {
		if p.name == u.key {
			continue
		}
		if f := m.newField(own, p, a.requires(p.name)); f != nil {
			t.fields = append(t.fields, f)
		}
	}
	m.types = append(m.types, t)
	return t
}

// catchAll reads the alternative for tags the schema does not know.
func (m *model) catchAll(u *union, key string, a *node) {
	c := &catchAll{name: m.catchAllName(u)}
	for _, p := range a.props {
		if p.name == u.key || u.inline && p.node.types == nil && p.node.target() == "" {
			continue
		}
		f := m.newField(key, p, true)
		if f == nil {
			continue
		}
		f.doc = ""
		c.fields = append(c.fields, f)
	}
	if u.inline {
		for _, p := range a.props {
			if p.name != u.key && p.node.types == nil && p.node.target() == "" {
				c.fields = append(c.fields, &field{json: p.name, name: goName(p.name), required: true, typ: &typeRef{kind: tRaw}})
			}
		}
	}
	if len(a.alternatives()) > 0 {
		spec, ok := m.tab.inline.get(key + "=*")
		if !ok {
			m.errorf("%s: the catch-all's alternatives need an entry in the table", key)
			return
		}
		c.inline = m.inlineUnion(spec, &goType{schema: key}, a)
	}
	u.catchAll = c
}

// memberUnion is a union without discriminator: each variant is recognised by
// a member the table names.
func (m *model) memberUnion(u *union, key string, alts []*node) {
	spec, ok := m.tab.byMember.get(u.typ.name)
	if !ok {
		m.errorf("%s: a union without discriminator needs an entry in the table", key)
		return
	}
	if len(spec) != len(alts) {
		m.errorf("%s: %d variants, %d members in the table", key, len(alts), len(spec))
		return
	}
	u.byMember = spec
	u.exactly = u.exactly && u.inline
	for _, a := range alts {
		v := &variant{union: u, typ: m.byName[a.target()]}
		if v.typ == nil || v.typ.kind != kindStruct {
			m.errorf("%s: variant %s is no object", key, a.target())
			continue
		}
		m.attach(v)
		u.variants = append(u.variants, v)
	}
}

// A method is one method of the protocol on one side.
type method struct {
	name, side   string
	goName       string
	params       *goType
	result       *goType // nil for notifications
	doc          string
	experimental bool
}

func (m *model) buildMethods() {
	type slot struct{ request, response, notification string }
	slots := map[[2]string]*slot{}
	var order [][2]string
	for _, d := range m.doc.defs {
		if d.node.method == "" {
			continue
		}
		if m.byName[d.name] == nil {
			m.errorf("%s belongs to method %s but is skipped", d.name, d.node.method)
			continue
		}
		k := [2]string{d.node.side, d.node.method}
		if slots[k] == nil {
			slots[k] = &slot{}
			order = append(order, k)
		}
		s := slots[k]
		switch {
		case strings.HasSuffix(d.name, "Request"):
			s.request = d.name
		case strings.HasSuffix(d.name, "Response"):
			s.response = d.name
		case strings.HasSuffix(d.name, "Notification"):
			s.notification = d.name
		default:
			m.errorf("%s: neither request, response nor notification of %s", d.name, d.node.method)
		}
	}
	slices.SortFunc(order, func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[1], b[1]), strings.Compare(a[0], b[0]))
	})
	for _, k := range order {
		s := slots[k]
		if (s.request == "") != (s.response == "") || s.request == "" && s.notification == "" {
			m.errorf("method %s of the %s is not mapped: request %q, response %q, notification %q", k[1], k[0], s.request, s.response, s.notification)
			continue
		}
		if s.request != "" {
			m.addMethod(k, "Method", s.request, s.response)
		}
		if s.notification != "" {
			m.addMethod(k, "Notification", s.notification, "")
		}
	}
}

func (m *model) addMethod(k [2]string, prefix, params, result string) {
	x := &method{name: k[1], side: k[0], goName: prefix + goName(k[1]), params: m.byName[params]}
	if result != "" {
		x.result = m.byName[result]
	}
	x.experimental = m.stable.byID[params] == nil
	if x.experimental {
		m.experimental(k[1])
	}
	if prefix == "Notification" {
		x.doc = m.docs.get(m.version, "notification "+k[1])
	}
	if x.doc == "" {
		x.doc = m.docs.get(m.version, "method "+k[1])
	}
	if x.doc == "" {
		m.errorf("docs.txt has no entry for method %s", k[1])
	}
	m.methods = append(m.methods, x)
}

func (m *model) assignFiles() {
	for _, t := range m.types {
		key := t.schema
		if t.file != "" {
			key = t.file
		}
		key, _, _ = strings.Cut(key, "=")
		key, _, _ = strings.Cut(key, "+")
		t.file = m.tab.fileOf(key)
		if t.file == "" {
			m.errorf("%s: no file in the table", t.schema)
		}
	}
}

func (m *model) checkNames() {
	seen := map[string]string{}
	check := func(name, what string) {
		if other, dup := seen[name]; dup {
			m.errorf("Go name %s for both %s and %s", name, other, what)
		}
		seen[name] = what
	}
	for _, t := range m.types {
		check(t.name, t.schema)
		m.checkFields(t)
		for _, v := range t.values {
			check(v.name, t.schema+"="+v.json)
		}
		if t.union != nil && t.union.catchAll != nil {
			check(t.union.catchAll.name, t.schema+"=*")
		}
		if t.kind == kindListUnion {
			for _, v := range t.union.variants {
				check(v.typ.name, t.schema)
			}
		}
	}
	for _, x := range m.methods {
		check(x.goName, x.name)
	}
}

// checkFields reports Go field names that collide, also with those that the
// generator adds.
func (m *model) checkFields(t *goType) {
	seen := map[string]bool{"Meta": t.meta, "Unknown": t.unknown}
	for _, f := range t.fields {
		if f.constant == "" && seen[f.name] {
			m.errorf("%s: two fields called %s", t.schema, f.name)
		}
		seen[f.name] = true
	}
	if t.inline != nil && seen[t.inline.field] {
		m.errorf("%s: two fields called %s", t.schema, t.inline.field)
	}
	if t.union == nil || t.union.catchAll == nil {
		return
	}
	for _, f := range t.union.catchAll.fields {
		if f.name == "Type" || f.name == "Raw" {
			m.errorf("%s: the catch-all has a field %s already", t.schema, f.name)
		}
	}
}

// settleInline takes the unknown members away from inline variants: the struct
// around them keeps those.
func (m *model) settleInline() {
	for _, t := range m.types {
		if t.kind != kindUnion || !t.union.inline {
			continue
		}
		for _, v := range t.union.all() {
			v.typ.unknown = false
			if v.typ.payload != nil {
				v.typ.payload.unknown = false
			}
		}
	}
}

// all returns the variants, the untagged one included.
func (u *union) all() []*variant {
	if u.untagged != nil {
		return append(slices.Clone(u.variants), u.untagged)
	}
	return u.variants
}
