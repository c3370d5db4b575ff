// Package schema makes the schemas of tools fit for the interfaces of language models. Servers of tools may
// describe their input with all of JSON Schema; an interface refuses each request with a schema that it does not
// like, and does not say which part of it.
//
// A schema that is made fit says less, or the same. Whoever uses the tool checks its input against the whole one.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Dialect is what an interface takes of JSON Schema. All want an object at the top, and not
// a choice of several. The zero value takes $ref, and any name.
type Dialect struct {
	// Plain takes only the keywords that all servers understand: no $ref, no const, one type, no alternatives
	// but anyOf.
	Plain bool
	// Names reports whether a member of the input may have a name; nil is any.
	Names func(string) bool
}

// nameChars are what names may have.
const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// Names64 reports whether Messages takes a name of a member.
func Names64(n string) bool { return n != "" && len(n) <= 64 && strings.Trim(n, nameChars) == "" }

// Bounds.
const (
	maxDepth = 24
	// MaxSize is how long a schema may be that is made fit, in bytes.
	MaxSize = 64 << 10
	// maxSteps bounds the work: schemas can refer to each other again and again.
	maxSteps = 20_000
	maxNoted = 8 // alternatives that a note lists
)

// Fit returns a schema of the input of a tool as an interface takes it, byte for byte if it can be sent as it is.
// The note says in a sentence what it cannot express, for the description of the tool; it may be empty. The error
// says why the tool cannot be described.
func (d Dialect) Fit(raw json.RawMessage) (fitted json.RawMessage, note string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	v, err := parse(raw)
	if err != nil {
		return nil, "", errors.New("its input schema is not JSON")
	}
	root, ok := v.(*object)
	if !ok {
		return nil, "", errors.New("its input schema is not an object")
	}
	w := &walker{d: d, root: root}
	top, err := w.top(root)
	if err != nil {
		return nil, "", err
	}
	made, err := Marshal(top)
	switch {
	case err != nil:
		return nil, "", err
	case w.steps > maxSteps, len(made) > MaxSize:
		return nil, "", fmt.Errorf("its input schema is too long: it may have %d KiB", MaxSize>>10)
	}
	if was, err := Marshal(root); err == nil && bytes.Equal(was, made) {
		return raw, w.note, nil
	}
	return made, w.note, nil
}

// A walker makes one schema fit.
type walker struct {
	d     Dialect
	root  *object
	open  []string // references that are being followed
	steps int
	note  string
	defs  []string // the definitions that are referred to, for dialects with $ref
}

// top makes the schema of the whole input.
func (w *walker) top(root *object) (*object, error) {
	o, ok := w.flat(root, 0)
	if !ok {
		return nil, errors.New("its input is not an object")
	}
	all := w.object(o, 1)
	all.set("type", "object")
	for _, k := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "nullable"} {
		all.remove(k)
	}
	properties, ok := all.get("properties")
	if !ok {
		all.set("properties", &object{})
	}
	if p, ok := properties.(*object); ok && w.d.Names != nil {
		required, _ := all.get("required")
		for _, m := range slices.Clone(p.members) {
			if w.d.Names(m.name) {
				continue
			}
			if list, ok := required.([]any); ok && slices.Contains(list, any(m.name)) {
				return nil, fmt.Errorf("its input needs a member of the name %.80q, which the provider does not take", m.name)
			}
			p.remove(m.name)
		}
	}
	w.define(all)
	return all, nil
}

// define adds the definitions that are referred to, and those to which they refer.
func (w *walker) define(all *object) {
	if len(w.defs) == 0 {
		return
	}
	defs := &object{}
	for i := 0; i < len(w.defs); i++ { // it grows
		name, _ := defined(w.defs[i])
		to, _ := w.find(w.defs[i])
		defs.set(name, w.schema(to, 2))
	}
	all.remove("definitions")
	all.set("$defs", defs)
}

// flat merges the alternatives at the top of a schema into one object. ok says that it can be one.
func (w *walker) flat(v any, depth int) (o *object, ok bool) {
	w.steps++
	o, ok = v.(*object)
	if !ok {
		return &object{}, v == true
	}
	if depth > maxDepth || w.steps > maxSteps {
		return &object{}, true
	}
	if ref, ok := o.get("$ref"); ok {
		o = o.clone()
		o.remove("$ref")
		if name, ok := ref.(string); ok && !slices.Contains(w.open, name) {
			if to, ok := w.find(name); ok {
				w.open = append(w.open, name)
				under, isObject := w.flat(to, depth+1)
				w.open = w.open[:len(w.open)-1]
				if !isObject {
					return o, false
				}
				o = join(under, o, "allOf")
			}
		}
	}
	if t, ok := o.get("type"); ok && !includes(t, "object") {
		return o, false
	}
	for _, k := range []string{"allOf", "then", "else", "anyOf", "oneOf"} {
		inner, ok := o.get(k)
		if !ok {
			continue
		}
		o = o.clone()
		o.remove(k)
		list, isList := inner.([]any)
		if !isList {
			list = []any{inner}
		}
		if o, ok = w.merge(o, k, list, depth); !ok {
			return o, false
		}
	}
	return o, true
}

// merge merges the alternatives of a keyword, or what all hold that it lists, into an object.
func (w *walker) merge(o *object, k string, list []any, depth int) (*object, bool) {
	var branches []*object
	for _, v := range list {
		b, ok := w.flat(v, depth+1)
		if !ok && k != "anyOf" && k != "oneOf" {
			return o, false
		}
		if ok {
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		return o, len(list) == 0
	}
	if k == "allOf" {
		for _, b := range branches {
			o = join(o, b, "allOf")
		}
		return o, true
	}
	var common []any
	var sets []string
	for i, b := range branches {
		required, _ := b.get("required")
		names, _ := required.([]any)
		if i == 0 {
			common = slices.Clone(names)
		}
		common = slices.DeleteFunc(common, func(n any) bool { return !contains(names, n) })
		sets = append(sets, said(b, names))
		b = b.clone()
		b.remove("required")
		o = join(o, b, "anyOf")
	}
	if len(common) > 0 && k != "then" && k != "else" {
		o = join(o, &object{[]member{{"required", common}}}, "allOf")
	}
	if sets = slices.Compact(sets); depth == 0 && len(sets) > 1 && len(sets) <= maxNoted && k != "then" && k != "else" {
		w.note = "The input has one of these sets of members: " + strings.Join(sets, "; ") + "."
	}
	return o, true
}

// said names the members of an alternative.
func said(b *object, names []any) string {
	if len(names) == 0 {
		if p, ok := b.get("properties"); ok {
			if p, ok := p.(*object); ok {
				for _, m := range p.members {
					names = append(names, m.name)
				}
			}
		}
	}
	var all []string
	for _, n := range names {
		if n, ok := n.(string); ok {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// join returns the members of two schemas of objects in one. A property that both have is what how says: allOf
// of them, or anyOf.
func join(a, b *object, how string) *object {
	all := a.clone()
	for _, m := range b.members {
		was, both := all.get(m.name)
		switch {
		case !both:
			all.set(m.name, m.value)
		case m.name == "properties":
			p, ok := was.(*object)
			q, isObject := m.value.(*object)
			if !ok || !isObject {
				continue
			}
			p = p.clone()
			for _, n := range q.members {
				old, there := p.get(n.name)
				switch {
				case !there:
					p.set(n.name, n.value)
				case !same(old, n.value):
					p.set(n.name, &object{[]member{{how, alternatives(how, old, n.value)}}})
				}
			}
			all.set(m.name, p)
		case m.name == "required":
			list, _ := was.([]any)
			more, _ := m.value.([]any)
			list = slices.Clone(list)
			for _, n := range more {
				if !contains(list, n) {
					list = append(list, n)
				}
			}
			all.set(m.name, list)
		}
	}
	return all
}

// alternatives adds a schema to a list that an earlier join may have begun.
func alternatives(how string, old, more any) []any {
	if o, ok := old.(*object); ok && len(o.members) == 1 && o.members[0].name == how {
		if list, ok := o.members[0].value.([]any); ok {
			if slices.ContainsFunc(list, func(v any) bool { return same(v, more) }) {
				return list
			}
			return append(slices.Clone(list), more)
		}
	}
	return []any{old, more}
}

func same(a, b any) bool {
	x, errX := Marshal(a)
	y, errY := Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// contains reports whether a list has a name. Other values, which may not be comparable, count as not there.
func contains(list []any, name any) bool {
	n, ok := name.(string)
	return ok && slices.ContainsFunc(list, func(v any) bool { s, ok := v.(string); return ok && s == n })
}

func includes(t any, name string) bool {
	list, ok := t.([]any)
	if !ok {
		return t == any(name)
	}
	return contains(list, name)
}

// find returns what a reference within the schema leads to.
func (w *walker) find(ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	var v any = w.root
	for _, name := range strings.Split(path, "/")[1:] {
		o, ok := v.(*object)
		if !ok {
			return nil, false
		}
		if v, ok = o.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name)); !ok {
			return nil, false
		}
	}
	return v, true
}
