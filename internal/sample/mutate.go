package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Mutate returns a copy of the value with one to three breakages placed by the schema: a
// wrong type, a missing member, a null, a number out of range, a bad list item, an unknown
// or another tag, an unknown word of an enum, a malformed optional, an empty list or string,
// a repeated member. The result is always a JSON text; it may by chance still be valid. It
// is deterministic for a state of rng. It panics when the definition does not exist or data
// is not JSON.
func (s *Schema) Mutate(rng *rand.Rand, name string, data []byte) []byte {
	n, err := s.def(name)
	if err != nil {
		panic(err)
	}
	v, err := parse(data)
	if err != nil {
		panic(fmt.Errorf("mutate %s: %w", name, err))
	}
	m := &mutator{generator: generator{s: s, rng: rng, plain: true}}
	v = v.clone()
	for range 1 + rng.IntN(3)*rng.IntN(2) {
		m.sites = nil
		root := &member{value: v}
		m.walk(n, root)
		m.breakOne()
		v = root.value
	}
	return v.bytes()
}

type mutator struct {
	generator
	sites []site
}

// site is a place of the value the schema has a word on.
type site struct {
	slot *member // holds the value; also used for list items and the root
	node *node
	tag  *tag // of the union the value stands in, when slot is the tag member
	// object the slot is a member of, and list the value is an item of
	parent *value
	list   *value
	index  int
}

func (m *mutator) walk(n *node, slot *member) { m.visit(n, site{slot: slot, node: n}) }

func (m *mutator) visit(n *node, at site) {
	n = m.s.resolve(n)
	at.node = n
	m.sites = append(m.sites, at)
	v := at.slot.value
	if n.any() {
		return
	}
	switch v.kind {
	case kindArray:
		items := n.items
		for _, b := range n.union() {
			if b = m.s.resolve(b); items == nil && b.items != nil && (m.s.fits(b, v) || b == m.s.resolve(n.union()[len(n.union())-1])) {
				items = b.items
			}
		}
		for i := range v.items {
			if items != nil {
				slot := &member{value: v.items[i]}
				m.visit(items, site{slot: slot, list: v, index: i})
			}
		}
	case kindObject:
		sh := shape{fields: map[string]field{}}
		// An object that fits no branch still has the fields next to the union.
		_ = m.s.shapeOf(n, v, &sh)
		t := m.tagOf(n)
		for _, x := range v.members {
			f, ok := sh.fields[x.name]
			if !ok {
				continue
			}
			child := site{slot: x, parent: v}
			if t != nil && t.key == x.name {
				child.tag = t
			}
			m.visit(f.node, child)
		}
	}
}

func (m *mutator) tagOf(n *node) *tag {
	if n.tag != nil {
		return n.tag
	}
	for _, b := range n.union() {
		if t := m.s.resolve(b).tag; t != nil {
			return t
		}
	}
	return nil
}

// put replaces the value of a site.
func (m *mutator) put(at site, v *value) {
	at.slot.value = v
	if at.list != nil {
		at.list.items[at.index] = v
	}
}

func (m *mutator) breakOne() {
	at := pick(m.rng, m.sites)
	if len(m.sites) > 1 && m.chance(2) {
		// The root is one site among many, yet its members matter most.
		at = m.sites[m.rng.IntN(min(len(m.sites), 8))]
	}
	v := at.slot.value
	switch {
	case at.tag != nil && !m.chance(3):
		m.put(at, m.otherTag(at.tag, v))
	case at.parent != nil && m.chance(4):
		m.breakMember(at)
	case at.list != nil && m.chance(4):
		i := m.rng.IntN(len(at.list.items) + 1)
		at.list.items = slices.Insert(at.list.items, i, m.wrong(at.node, nil))
	case m.chance(4):
		m.put(at, m.wrong(at.node, v))
	default:
		m.breakInside(at, v)
	}
}

// breakMember drops, repeats or nulls a member.
func (m *mutator) breakMember(at site) {
	switch m.rng.IntN(6) {
	case 0:
		twin := newMember(at.slot.name, at.slot.value.clone())
		if m.chance(2) {
			twin.value = m.wrong(at.node, at.slot.value)
		}
		at.parent.members = append(at.parent.members, twin)
	case 1:
		m.put(at, nullValue())
	default:
		at.parent.remove(at.slot.name)
	}
}

func (m *mutator) breakInside(at site, v *value) {
	n := at.node
	switch v.kind {
	case kindObject:
		m.addMember(n, v)
	case kindArray:
		switch m.rng.IntN(3) {
		case 0:
			m.put(at, emptyArray())
		case 1:
			m.put(at, nullValue())
		default:
			v.items = slices.Insert(v.items, m.rng.IntN(len(v.items)+1), m.wrong(n, nil))
		}
	case kindNumber:
		m.put(at, numberValue(pick(m.rng, []string{
			"-1", "0", "0.5", "1.5", "65536", "-2147483649", "2147483648", "4294967296", "9223372036854775808",
			"18446744073709551616", "-9223372036854775809", "1e30", "1e400", "-0", "1.0", "2", "1e2",
		})))
	case kindString:
		m.put(at, m.otherText(n))
	default:
		m.put(at, m.wrong(n, v))
	}
}

func (m *mutator) otherText(n *node) *value {
	if n.format != "" || m.chance(3) {
		return stringValue(pick(m.rng, []string{
			"", "relative/path", "http://", "1http://x", "2025-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2025-01-01T00:00:00",
			"2025-01-01 00:00:00Z", "2025-01-01T24:00:00Z", "not a date", "2025-01-01T00:00:00+0200", "https://ok.example/",
		}))
	}
	return stringValue(m.vendorWord(nil))
}

func (m *mutator) otherTag(t *tag, old *value) *value {
	if m.chance(3) {
		return m.wrong(&node{types: []string{"string"}}, old)
	}
	if m.chance(2) {
		return stringValue(pick(m.rng, t.known))
	}
	return stringValue(m.vendorWord(t.known))
}

// addMember sets a property the object may have to something malformed, or to a fresh value
// of its type.
func (m *mutator) addMember(n *node, v *value) {
	sh := shape{fields: map[string]field{}}
	_ = m.s.shapeOf(n, v, &sh)
	var names []string
	for name := range sh.fields {
		names = append(names, name)
	}
	for name := range m.s.siblings(n) {
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return
	}
	name := pick(m.rng, names)
	f, ok := sh.fields[name]
	if !ok {
		f.node = m.s.siblings(n)[name]
	}
	v.remove(name)
	fresh := m.wrong(f.node, nil)
	if m.chance(4) {
		fresh = m.typed(f.node, 3)
	}
	v.members = append(v.members, newMember(name, fresh))
}

// siblings are the properties of all branches of a union: a value may be given members of a
// branch it is not in.
func (s *Schema) siblings(n *node) map[string]*node {
	out := map[string]*node{}
	var add func(n *node, depth int)
	add = func(n *node, depth int) {
		n = s.resolve(n)
		for _, p := range n.props {
			out[p.name] = p.node
		}
		for _, b := range slices.Concat(n.union(), n.allOf) {
			if depth < 4 {
				add(b, depth+1)
			}
		}
	}
	add(n, 0)
	return out
}

// wrong is a value that most likely does not fit.
func (m *mutator) wrong(n *node, old *value) *value {
	for range 20 {
		var v *value
		switch m.rng.IntN(10) {
		case 0, 1:
			v = nullValue()
		case 2:
			v = boolValue(m.chance(2))
		case 3:
			v = numberValue(pick(m.rng, []string{"5", "-1", "1.5", "1e400"}))
		case 4, 5:
			v = stringValue(pick(m.rng, []string{"wrong", "", "5", "true"}))
		case 6:
			v = emptyArray()
		case 7:
			v = &value{kind: kindArray, items: []*value{numberValue("5"), nullValue(), stringValue("s")}}
		case 8:
			v = emptyObject()
		default:
			v = &value{kind: kindObject, members: []*member{newMember("type", numberValue("5")), newMember("x", nullValue())}}
		}
		if old != nil && v.kind == old.kind {
			continue
		}
		r := reader{s: m.s, lenient: true}
		if _, err := r.read(n, v); err != nil {
			return v
		}
	}
	return nullValue()
}
