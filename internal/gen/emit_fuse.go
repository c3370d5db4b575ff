package main

import (
	"fmt"
	"strings"
)

// fused writes how a message is read that nearly always holds the same two
// structs: all three are allocated at once, and a message whose text differs
// from an earlier one in one string only is not read again.
func (m *model) fused(w *writer, t *goType, f *field) {
	p := m.sharedPayload(f.typ.def)
	x := "fused" + t.name
	w.p("// newJSON makes and reads a value: what nearly every message holds is allocated")
	w.p("// together with it. The receiver is not used.")
	w.p("func (*%s) newJSON(d *wire.Decoder) any {", t.name)
	w.p("\tx := new(%s)\n\tif like, text := wire.Recall[%s](d); like != nil {", x, x)
	w.p("\t\tx.repeat(like, text)\n\t\treturn &x.v\n\t}\n\tat := d.At()")
	w.p("\tx.v.decode(d, &x.payload, &x.spare)\n\tif x.plain() {")
	w.p("\t\twire.Learn(d, at, x.form, %q, %q, %q)\n\t}\n\treturn &x.v\n}\n", f.json, p.coalloc.field, p.coalloc.text)
	w.p("type %s struct {\n\tv %s\n\tpayload %s\n\tspare %s\n}\n", x, t.name, p.name, p.coalloc.typ)

	var plain, repeat []string
	found := false
	for _, part := range []struct {
		name string
		typ  *goType
		own  string // the member that holds the next part
	}{{"v", t, f.json}, {"payload", p, p.coalloc.field}, {"spare", m.named(p.coalloc.typ), ""}} {
		for _, g := range part.typ.fields {
			member := part.name + "." + g.name
			switch {
			case g.json == part.own:
				if part.name == "payload" {
					plain = append(plain, fmt.Sprintf("x.%s == %s(&x.spare)", member, g.typ.def.name))
					repeat = append(repeat, fmt.Sprintf("x.%s = &x.spare", member))
				}
			case part.name == "spare" && g.json == p.coalloc.text && g.typ.kind == tString && !g.pointer && !g.onError && !g.typ.bounded():
				found = true
				repeat = append(repeat, fmt.Sprintf("x.%s = text", member))
			case g.pointer:
				plain = append(plain, fmt.Sprintf("x.%s == nil", member))
			case !g.patch && isText(g.typ):
				repeat = append(repeat, fmt.Sprintf("x.%[1]s = like.%[1]s", member))
			default:
				m.errorf("%s.%s: a fused message cannot hold this", part.typ.schema, g.json)
			}
		}
		if part.typ.meta {
			plain = append(plain, fmt.Sprintf("x.%s.Meta == nil", part.name))
		}
		if part.typ.unknown {
			plain = append(plain, fmt.Sprintf("x.%s.Unknown == nil", part.name))
		}
		if part.typ.inline != nil {
			m.errorf("%s: a fused message cannot hold this", part.typ.schema)
		}
	}
	if !found {
		m.errorf("%s.%s: no text to tell messages apart", p.coalloc.typ, p.coalloc.text)
	}
	w.p("// plain reports whether x holds nothing but what repeat copies.")
	w.p("func (x *%s) plain() bool {\n\treturn %s\n}\n", x, strings.Join(plain, " &&\n\t\t"))
	w.p("// form returns a copy of x that is nobody's but the decoder's.")
	w.p("func (x *%[1]s) form() *%[1]s {\n\tf := new(%[1]s)\n\tf.repeat(x, \"\")\n\treturn f\n}\n", x)
	w.p("// repeat makes x what like is, with another text.")
	w.p("func (x *%[1]s) repeat(like *%[1]s, text string) {\n\t%s\n\tswitch like.v.%s.(type) {", x, strings.Join(repeat, "\n\t"), f.name)
	for _, v := range f.typ.def.union.variants {
		if v.typ.payload == p {
			w.p("\tcase *%[1]s:\n\t\tx.v.%[2]s = (*%[1]s)(&x.payload)", v.typ.name, f.name)
		}
	}
	w.p("\t}\n}\n")
}

// named returns the type of a Go name.
func (m *model) named(name string) *goType {
	for _, t := range m.types {
		if t.name == name {
			return t
		}
	}
	m.errorf("no type %s", name)
	return &goType{}
}

// fusedField returns the field of a fused message that holds the union.
func (m *model) fusedField(t *goType) *field {
	if !t.fuse {
		return nil
	}
	for _, f := range t.fields {
		if f.typ != nil && f.typ.kind == tDef && f.typ.def.kind == kindUnion && m.sharedPayload(f.typ.def) != nil {
			return f
		}
	}
	m.errorf("%s: nothing to fuse", t.schema)
	return nil
}

// sharedPayload returns the payload shared by several tags of the union that is
// allocated together with something.
func (m *model) sharedPayload(t *goType) *goType {
	for _, v := range t.union.variants {
		if p := v.typ.payload; p != nil && p.coalloc != nil {
			return p
		}
	}
	return nil
}

// spares are the parameters by which memory for the payload is handed down.
func (m *model) spares(union *goType) string {
	p := m.sharedPayload(union)
	return fmt.Sprintf(", payload *%s, spare *%s", p.name, p.coalloc.typ)
}
