package main

import (
	"fmt"
	"slices"
	"strings"
)

// checkSubset verifies that the unstable schema only adds to the stable one:
// one Go type serves both.
func (m *model) checkSubset() {
	for _, d := range m.stable.defs {
		if m.tab.skip.has(d.name) {
			continue
		}
		u := m.doc.byID[d.name]
		if u == nil {
			m.errorf("%s is in the stable schema only", d.name)
			continue
		}
		for _, p := range d.node.props {
			up := u.prop(p.name)
			switch {
			case up == nil:
				m.errorf("%s.%s is in the stable schema only", d.name, p.name)
			case fingerprint(p.node) != fingerprint(up):
				m.errorf("%s.%s differs between the stable and the unstable schema", d.name, p.name)
			}
		}
		if !slices.Equal(d.node.required, u.required) {
			m.errorf("%s requires other members in the stable schema", d.name)
		}
		if d.node.side != u.side || d.node.method != u.method {
			m.errorf("%s belongs to another method in the stable schema", d.name)
		}
		for _, a := range d.node.alternatives() {
			if !slices.ContainsFunc(u.alternatives(), func(b *node) bool { return identity(a) == identity(b) }) {
				m.errorf("%s: %s is in the stable schema only", d.name, identity(a))
			}
		}
	}
}

// identity tells the alternatives of a union or enum apart.
func identity(a *node) string {
	key, tag := constProp(a)
	return strings.TrimSpace(fmt.Sprint(string(a.constant), " ", key, " ", tag, " ", a.target()))
}

// fingerprint describes a property without its default, which may grow.
func fingerprint(n *node) string {
	if n == nil {
		return ""
	}
	s := fmt.Sprint(n.ref, n.types, n.format, string(n.constant), string(n.minimum), string(n.maximum), n.minLength, n.minItems,
		n.defaultOnError, n.skipInvalid, n.defaultOnNull, fingerprint(n.items), fingerprint(n.values))
	for _, a := range slices.Concat(n.anyOf, n.oneOf, n.allOf) {
		s += "|" + fingerprint(a)
	}
	return s
}
