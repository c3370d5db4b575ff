package main

import (
	"fmt"
	"strings"
)

// unionCodec writes how a union is read: find the discriminator, then read the
// variant it names. Encoding is the variants' own business.
func (m *model) unionCodec(w *writer, t *goType) {
	u := t.union
	if !u.inline {
		w.p("// Unmarshal%s reads one [%s], for callers with JSON of their own.", t.name, t.name)
		decode := "decode" + t.name
		if u.outer != nil {
			decode = fmt.Sprintf("func(v *%s, d *wire.Decoder) { decode%sIn(v, d, true) }", t.name, t.name)
		}
		w.p("func Unmarshal%s(data []byte) (%s, error) { return wire.UnmarshalUnion(data, %s) }\n", t.name, t.name, decode)
		call := "AppendJSON"
		if u.outer != nil {
			call = "appendPlain"
		}
		if m.usedAsItem(t) {
			w.p("func append%s(v *%s, dst []byte) ([]byte, error) {", t.name, t.name)
			w.p("\tif *v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}\n\treturn (*v).%s(dst)\n}\n", call)
		}
	}
	if u.key == "" {
		m.memberUnionDecoder(w, t)
	} else {
		m.taggedDecoder(w, t)
	}
	if u.catchAll != nil {
		m.catchAllCodec(w, t)
	}
}

func (m *model) taggedDecoder(w *writer, t *goType) {
	u := t.union
	params, spare := "", ""
	if u.inline && u.catchAll != nil {
		params = ", base ...string"
	}
	if c := m.coallocFor(t); c != nil {
		w.p("func decode%s(v *%s, d *wire.Decoder) { decode%sSpare(v, d, nil) }\n", t.name, t.name, t.name)
		w.p("// decode%sSpare uses spare for a variant of its type, so that the caller can", t.name)
		w.p("// allocate both at once.")
		params, spare = ", spare *"+c.typ, "Spare"
	}
	if m.sharedPayload(t) != nil {
		w.p("func decode%s(v *%s, d *wire.Decoder) { decode%sSpare(v, d, nil, nil) }\n", t.name, t.name, t.name)
		w.p("// decode%sSpare uses payload and spare for the variants that share that payload,", t.name)
		w.p("// so that the caller can allocate them together with its own value.")
		params, spare = m.spares(t), "Spare"
	}
	if u.outer != nil {
		w.p("func decode%s(v *%s, d *wire.Decoder) { decode%sIn(v, d, false) }\n", t.name, t.name, t.name)
		params, spare = ", outer bool", "In"
	}
	w.p("func decode%s%s(v *%s, d *wire.Decoder%s) {", t.name, spare, t.name, params)
	w.p("\ttag := d.Open(%q)\n\tswitch string(tag) {", u.key)
	for _, x := range u.variants {
		w.p("\tcase %q:", x.tag)
		m.decodeVariant(w, t, x)
	}
	if u.untagged != nil && u.untagged.tag != "" && !u.anyTag {
		w.p("\tcase %q: // what the untagged variant is called elsewhere", u.untagged.tag)
		m.decodeUntagged(w, u)
	}
	w.p("\tdefault:")
	switch {
	case u.anyTag:
		m.decodeUntagged(w, u)
	case u.untagged != nil:
		w.p("\t\tif tag == nil {")
		m.decodeUntagged(w, u)
		w.p("\t\t\treturn\n\t\t}")
	default:
		w.p("\t\tif tag == nil {\n\t\t\td.Mismatch(%q)\n\t\t\treturn\n\t\t}", "expected an object with a string "+u.key)
	}
	if u.catchAll != nil {
		w.p("\t\tx := &%s{Type: string(tag)}", u.catchAll.name)
		if u.inline {
			w.p("\t\tx.decode(d, base)")
		} else if u.outer != nil {
			w.p("\t\tx.decode(d, outer)")
		} else {
			w.p("\t\tx.decode(d)")
		}
		w.p("\t\t*v = x")
	}
	w.p("\t}\n}\n")
}

// coallocFor returns the co-allocation whose type is a variant of t.
func (m *model) coallocFor(t *goType) *coalloc {
	for _, o := range m.types {
		if o.coalloc == nil {
			continue
		}
		for _, v := range t.union.variants {
			if v.typ.name == o.coalloc.typ {
				return o.coalloc
			}
		}
	}
	return nil
}

func (m *model) decodeVariant(w *writer, t *goType, x *variant) {
	n := x.typ.name
	c := m.coallocFor(t)
	switch {
	case x.typ.kind == kindUnion:
		w.p("\t\tvar x %s\n\t\tdecode%sIn(&x, d, true)\n\t\tif x != nil {\n\t\t\t*v = x\n\t\t}", n, n)
	case x.typ.payload != nil && x.typ.payload.coalloc != nil:
		p := x.typ.payload
		w.p("\t\tif payload == nil {\n\t\t\tx := new(struct {\n\t\t\t\tpayload %s\n\t\t\t\tspare %s\n\t\t\t})", p.name, p.coalloc.typ)
		w.p("\t\t\tpayload, spare = &x.payload, &x.spare\n\t\t}")
		w.p("\t\tpayload.decode(d, %q, spare)\n\t\t*v = (*%s)(payload)", x.tag, n)
	case x.typ.payload != nil:
		w.p("\t\tx := new(%s)\n\t\t(*%s)(x).decode(d, %q)\n\t\t*v = x", n, x.typ.payload.name, x.tag)
	case x.union.outer != nil:
		w.p("\t\tx := new(%s)\n\t\tx.decode(d, outer)\n\t\t*v = x", n)
	case c != nil && c.typ == n:
		w.p("\t\tx := spare\n\t\tif x == nil {\n\t\t\tx = new(%s)\n\t\t}\n\t\tx.decodeJSON(d)\n\t\t*v = x", n)
	default:
		w.p("\t\tx := new(%s)\n\t\tx.decodeJSON(d)\n\t\t*v = x", n)
	}
}

func (m *model) decodeUntagged(w *writer, u *union) {
	w.p("\t\td.Reopen()\n\t\tx := new(%s)\n\t\tx.decodeJSON(d)\n\t\t*v = x", u.untagged.typ.name)
}

// memberUnionDecoder is for unions without discriminator: the first variant
// whose selecting member is there is meant, else the last one.
func (m *model) memberUnionDecoder(w *writer, t *goType) {
	u := t.union
	w.p("func decode%s(v *%s, d *wire.Decoder) {", t.name, t.name)
	if u.exactly {
		var parts []string
		for _, k := range u.byMember {
			parts = append(parts, fmt.Sprintf("d.Kind(%q) != 0", k))
		}
		w.p("\tif %s {\n\t\td.Mismatch(%q)\n\t\treturn\n\t}", strings.Join(parts, " && "), "expected exactly one of "+strings.Join(u.byMember, " and "))
	}
	for i, x := range u.variants {
		body := fmt.Sprintf("\t\tx := new(%s)\n\t\tx.decodeJSON(d)\n\t\t*v = x", x.typ.name)
		if i < len(u.variants)-1 {
			cond := fmt.Sprintf("d.Kind(%q) == '\"'", u.byMember[i])
			if u.exactly {
				cond = fmt.Sprintf("d.Kind(%q) != 0", u.byMember[i])
			}
			w.p("\tif %s {\n%s\n\t\treturn\n\t}", cond, body)
		} else {
			w.p("%s\n}\n", body)
		}
	}
}

func (m *model) catchAllCodec(w *writer, t *goType) {
	u, c := t.union, t.union.catchAll
	if u.inline {
		w.p("func (v *%s) decode(d *wire.Decoder, base []string) {", c.name)
	} else if u.outer != nil {
		w.p("func (v *%s) decode(d *wire.Decoder, outer bool) {", c.name)
	} else {
		w.p("func (v *%s) decode(d *wire.Decoder) {", c.name)
	}
	if len(c.fields) > 0 || c.inline != nil {
		w.p("\tstart := d.At()\n\td.Reopen()\n\towned := d.NotOwned()")
	}
	if c.inline != nil {
		w.p("\tdecode%s(&v.%s, d)\n\td.Seek(start)", c.inline.union.typ.name, c.inline.field)
	}
	if len(c.fields) > 0 {
		w.p("\tvar seen uint64\n\tfor k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {\n\t\tswitch string(k) {")
		var names []string
		mask := 0
		for i, f := range c.fields {
			mask |= 1 << i
			names = append(names, f.json)
			w.p("\t\tcase %q:", f.json)
			m.seen(w, i)
			m.decodeValue(w, f, "v."+f.name, "\t\t\t")
		}
		w.p("\t\tdefault:\n\t\t\td.Skip()\n\t\t}\n\t}")
		w.p("\tif seen&%#x != %#x {\n\t\td.MissingOf(start, %#x&^seen, %q)\n\t}", mask, mask, mask, strings.Join(names, ","))
		w.p("\td.Seek(start)")
	}
	if len(c.fields) > 0 || c.inline != nil {
		w.p("\td.Owned(owned)")
	}
	switch {
	case u.inline:
		w.p("\td.Reopen()\n\tv.Raw = d.Rest(%q, base...)\n}\n", u.key)
	case u.outer != nil:
		w.p("\tif outer {\n\t\td.Reopen()\n\t\tv.Raw = d.Rest(%q, %q)\n\t} else {\n\t\tv.Raw = d.RawVariant(%q)\n\t}\n}\n", u.key, u.outer.union.key, u.key)
	default:
		w.p("\tv.Raw = d.RawVariant(%q)\n}\n", u.key)
	}
	plain := "AppendJSON"
	if u.outer != nil {
		plain = "appendPlain"
		w.p("// AppendJSON appends v.Raw with the discriminator of [%s] to dst, after checking", u.outer.union.typ.name)
		w.p("// it.\nfunc (v *%s) AppendJSON(dst []byte) ([]byte, error) {", c.name)
		w.p("\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}")
		w.p("\tif err := wire.CheckVariant(v.Raw, %q, v.Type); err != nil {\n\t\treturn dst, err\n\t}", u.key)
		w.p("\tdst, err := wire.AppendMembers(append(dst, %s...), v.Raw, %q)", quote(fmt.Sprintf("{%q:%q,", u.outer.union.key, u.outer.tag)), u.outer.union.key)
		w.p("\treturn wire.CloseObject(dst), err\n}\n")
	} else {
		w.p("// AppendJSON appends v.Raw to dst after checking it.")
	}
	w.p("func (v *%s) %s(dst []byte) ([]byte, error) {", c.name, plain)
	w.p("\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}\n\treturn wire.AppendVariant(dst, v.Raw, %q, v.Type)\n}\n", u.key)
	w.p("// MarshalJSON implements [json.Marshaler].")
	w.p("func (v %s) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil) }\n", c.name)
	w.p("// UnmarshalJSON implements [json.Unmarshaler]. It takes any variant, known or not.")
	w.p("func (v *%s) UnmarshalJSON(data []byte) error {\n\treturn wire.UnmarshalVariant(data, %q, func(d *wire.Decoder, tag string) {", c.name, u.key)
	arg := ""
	switch {
	case u.inline:
		arg = ", nil"
	case u.outer != nil:
		arg = ", true"
	}
	w.p("\t\t*v = %s{Type: tag}\n\t\tv.decode(d%s)\n\t})\n}\n", c.name, arg)
	if u.inline {
		base := ""
		if u.owner != nil {
			base = m.baseKeys(u.owner)
		}
		if u.severalOwners() {
			base = ", base..."
		}
		w.p("func (v *%s) appendMembers(dst []byte%s) ([]byte, error) {", c.name, u.baseParam("base"))
		w.p("\tif err := wire.CheckVariant(v.Raw, %q, v.Type); err != nil {\n\t\treturn dst, err\n\t}", u.key)
		w.p("\treturn wire.AppendMembers(dst, v.Raw%s)\n}\n", base)
		w.p("func (*%s) knows(string) bool { return true }\n", c.name)
	}
	w.p("func (*%s) is%s() {}\n", c.name, t.name)
	if u.outer != nil {
		w.p("func (*%s) is%s() {}\n", c.name, u.outer.union.typ.name)
	}
}

// listUnionCodec is for a value that is one of several kinds of list, told
// apart by a member of the first item.
func (m *model) listUnionCodec(w *writer, t *goType) {
	u := t.union
	w.p("// Unmarshal%s reads one [%s], for callers with JSON of their own.", t.name, t.name)
	w.p("func Unmarshal%s(data []byte) (%s, error) { return wire.UnmarshalUnion(data, decode%s) }\n", t.name, t.name, t.name)
	first, second := u.variants[0], u.variants[1]
	limited := first.typ.fields[0].typ.minItems > 0
	w.p("func decode%s(v *%s, d *wire.Decoder) {", t.name, t.name)
	if limited {
		w.p("\tat, n := d.At(), 0")
	}
	for i, x := range []*variant{first, second} {
		if i == 0 {
			w.p("\tif d.ElemKind(%q) == '\"' || d.ElemKind(%q) != '\"' {", first.tag, second.tag)
		} else {
			w.p("\t} else {")
		}
		w.p("\t\tlist := wire.Slice(d, (*%s).decodeJSON)\n\t\t*v = %s(list)", x.typ.payload.name, x.typ.name)
		if limited {
			w.p("\t\tn = len(list)")
		}
	}
	w.p("\t}")
	if limited {
		w.p("\tif n == 0 && !d.Bad() {\n\t\td.Invalid(at, \"must not be empty\")\n\t}")
	}
	w.p("}\n")
	for _, x := range u.variants {
		w.p("// AppendJSON appends v to dst.")
		w.p("func (v %s) AppendJSON(dst []byte) ([]byte, error) {", x.typ.name)
		if limited {
			w.p("\tif len(v) < 1 {\n\t\treturn dst, wire.Limit(\"must not be empty\")\n\t}")
		}
		w.p("\treturn wire.AppendSlice(dst, v, (*%s).AppendJSON)\n}\n", x.typ.payload.name)
		w.p("// MarshalJSON implements [json.Marshaler].")
		w.p("func (v %s) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil) }\n", x.typ.name)
		w.p("func (%s) is%s() {}\n", x.typ.name, t.name)
	}
}

// memberName is what an error calls the union when it is flattened into an
// object.
func (u *union) memberName() string {
	if u.key != "" {
		return u.key
	}
	return u.byMember[0]
}
