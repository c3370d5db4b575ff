package main

import (
	"fmt"
	"strings"
)

// structDecoder writes how a struct is read: one loop over the members, a
// switch over their names, a bit for each that was seen.
func (m *model) structDecoder(w *writer, t *goType) {
	s := shapeOf(t)
	required := m.requiredMask(t)
	m.decodeEntries(w, t, s)
	params, name := m.decoderParams(t, s)
	w.p("func (v *%s) %s(d *wire.Decoder%s) {", t.name, name, params)
	m.decodeBegin(w, t, s, required)
	w.p("\tfor k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {\n\t\tswitch string(k) {")
	m.decodeMembers(w, t)
	m.decodeTags(w, t, s)
	w.p("\t\tdefault:")
	switch {
	case t.inline != nil && t.unknown:
		w.p("\t\t\tif v.%s != nil && v.%s.knows(string(k)) {\n\t\t\t\td.Skip()\n\t\t\t} else {\n\t\t\t\td.Keep(&v.Unknown)\n\t\t\t}", t.inline.field, t.inline.field)
	case t.unknown && !inlineVariant(t, s):
		w.p("\t\t\td.Keep(&v.Unknown)")
	default:
		w.p("\t\t\td.Skip()")
	}
	w.p("\t\t}\n\t}")
	m.decodeEnd(w, t, required)
	w.p("}\n")
	for _, f := range t.fields {
		if f.typ != nil && f.typ.kind == tOrdered {
			m.orderedCodec(w, f)
		}
	}
}

// decoderParams returns the parameters of a struct's decoder behind the first,
// and its name.
func (m *model) decoderParams(t *goType, s shape) (params, name string) {
	params, name = "", "decodeJSON"
	switch {
	case s.tagParam:
		params, name = ", tag string", "decode"
		if t.coalloc != nil {
			params += ", spare *" + t.coalloc.typ
		}
	case s.outerKey != "":
		params, name = ", outer bool", "decode"
	case s.plain:
		params, name = ", tagged bool", "decode"
	}
	if f := m.fusedField(t); f != nil {
		params, name = m.spares(f.typ.def), "decode"
	}
	return params, name
}

// inlineVariant reports whether the object that a struct is read from holds
// members of another one as well.
func inlineVariant(t *goType, s shape) bool {
	return t.variant != nil && t.variant.union.inline || s.tagParam && !t.unknown
}

// decodeBegin writes what comes before the loop over the members.
func (m *model) decodeBegin(w *writer, t *goType, s shape, required int) {
	if required != 0 || t.inline != nil || len(t.either) > 0 {
		w.p("\tstart := d.At()")
	}
	if t.inline != nil {
		w.p("\towned := d.NotOwned() // the object is read more than once")
		m.decodeInline(w, t, t.inline)
		w.p("\td.Seek(start)")
	}
	if t.merged != "" {
		w.p("\tmember := d.Member(%q)", t.merged)
	}
	if len(t.either) > 0 {
		w.p("\tmalformed := -1")
	}
	if s.key != "" {
		w.p("\tseen := d.Opened(1 << %d)", len(t.fields))
	} else {
		w.p("\tvar seen uint64")
	}
}

// decodeMembers writes the cases of the members that become fields.
func (m *model) decodeMembers(w *writer, t *goType) {
	for i, f := range t.fields {
		w.p("\t\tcase %q:", f.json)
		if f.onlyFor != "" {
			w.p("\t\t\tif member != %q {\n\t\t\t\td.Keep(&v.Unknown)\n\t\t\t\tcontinue\n\t\t\t}", f.onlyFor)
		}
		m.seen(w, i)
		if len(t.either) > 0 && i > 0 {
			w.p("\t\t\tat, was := d.At(), d.Try()")
			m.decodeField(w, t, f)
			w.p("\t\t\tif d.Failed(was) {\n\t\t\t\tv.%s, malformed = nil, at\n\t\t\t}", f.name)
			continue
		}
		m.decodeField(w, t, f)
	}
	if t.meta {
		w.p("\t\tcase \"_meta\":")
		m.seen(w, len(t.fields)+2)
		if t.patch {
			w.p("\t\t\tv.Meta = d.MetaPatch()")
		} else {
			w.p("\t\t\tv.Meta = d.Meta()")
		}
	}
}

// decodeTags writes the cases of the discriminators.
func (m *model) decodeTags(w *writer, t *goType, s shape) {
	bits := len(t.fields)
	if s.key != "" {
		w.p("\t\tcase %q:", s.key)
		switch {
		case s.tagParam:
			m.otherwise(w, t, "tag == \"\"", inlineVariant(t, s))
			m.seen(w, bits)
			w.p("\t\t\td.Tag(tag)")
		case s.plain && s.outerKey == "":
			m.otherwise(w, t, "!tagged", inlineVariant(t, s))
			m.seen(w, bits)
			w.p("\t\t\td.Tag(%q)", s.tag)
		default:
			m.seen(w, bits)
			w.p("\t\t\td.Tag(%q)", s.tag)
		}
	}
	if s.outerKey != "" {
		w.p("\t\tcase %q:", s.outerKey)
		m.otherwise(w, t, "!outer", inlineVariant(t, s))
		m.seen(w, bits+1)
		w.p("\t\t\td.Tag(%q)", s.outerTag)
	}
}

// decodeEnd writes what comes behind the loop over the members: what must have
// been there.
func (m *model) decodeEnd(w *writer, t *goType, required int) {
	if t.inline != nil {
		w.p("\td.Owned(owned)")
	}
	if required != 0 {
		var names []string
		for _, f := range t.fields {
			names = append(names, f.json)
		}
		w.p("\tif seen&%#x != %#x {\n\t\td.MissingOf(start, %#x&^seen, %q)\n\t}", required, required, required, strings.Join(names, ","))
	}
	if len(t.either) > 0 {
		w.p("\tif seen&%#x == 0 {\n\t\td.Missing(start, %q)\n\t}", 1<<len(t.either)-1, t.either[0])
		w.p("\tif seen&1 == 0 && malformed >= 0 {\n\t\td.Invalid(malformed, %q)\n\t}", "malformed")
	}
	for i, f := range t.fields {
		if f.always && f.typ != nil && f.typ.kind == tOrdered {
			w.p("\tif seen&(1<<%d) == 0 {\n\t\tv.%s = []%s{}\n\t}", i, f.name, f.typ.ordered)
		}
	}
}

// decodeEntries writes the methods by which a struct with several shapes is
// entered.
func (m *model) decodeEntries(w *writer, t *goType, s shape) {
	if f := m.fusedField(t); f != nil {
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { v.decode(d, nil, nil) }\n", t.name)
		m.fused(w, t, f)
		return
	}
	switch {
	case s.tagParam:
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { v.decode(d, \"\"%s) }\n", t.name, nilSpare(t))
	case s.outerKey != "":
		w.p("// decodeJSON reads v; its discriminators may be missing.")
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { v.decode(d, true) }\n", t.name)
	case s.plain:
		w.p("// decodeJSON reads v; its discriminator may be missing.")
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { v.decode(d, true) }\n", t.name)
		w.p("func (v *%s) decodePlain(d *wire.Decoder) { v.decode(d, false) }\n", t.name)
	}
}

// otherwise treats the discriminator as the unknown member it is where the
// struct stands alone.
func (m *model) otherwise(w *writer, t *goType, cond string, inlineVariant bool) {
	keep := "d.Keep(&v.Unknown)"
	if !t.unknown || inlineVariant {
		keep = "d.Skip()"
	}
	w.p("\t\t\tif %s {\n\t\t\t\t%s\n\t\t\t\tcontinue\n\t\t\t}", cond, keep)
}

func (m *model) requiredMask(t *goType) int {
	mask := 0
	for i, f := range t.fields {
		if f.required {
			mask |= 1 << i
		}
	}
	return mask
}

func (m *model) seen(w *writer, bit int) {
	w.p("\t\t\tif !d.Once(&seen, 1<<%d) {\n\t\t\t\tcontinue\n\t\t\t}", bit)
}

// decodeInline reads the union that is flattened into the object at the cursor.
func (m *model) decodeInline(w *writer, t *goType, in *inlineUnion) {
	u := in.union
	args := ""
	if u.catchAll != nil {
		args = m.baseKeys(t)
	}
	w.p("\tdecode%s(&v.%s, d%s)", u.typ.name, in.field, args)
}

// severalOwners reports whether the union is flattened into objects of more than one type,
// and has a catch-all: then each says which members are its own.
func (u *union) severalOwners() bool { return u.inline && u.catchAll != nil && u.owner == nil }

// baseParam is the parameter for those members.
func (u *union) baseParam(name string) string {
	if u.severalOwners() {
		return ", " + name + " ...string"
	}
	return ""
}

// baseKeys lists the members of the struct around an inline union.
func (m *model) baseKeys(t *goType) string {
	var b strings.Builder
	for _, f := range t.fields {
		fmt.Fprintf(&b, ", %q", f.json)
	}
	if t.meta {
		b.WriteString(`, "_meta"`)
	}
	return b.String()
}

func (m *model) decodeField(w *writer, t *goType, f *field) {
	const ind = "\t\t\t"
	if f.constant != "" {
		if f.onError {
			w.p("%swas := d.Try()\n%sd.Tag(%q)\n%sd.Failed(was)", ind, ind, f.constant, ind)
		} else {
			w.p("%sd.Tag(%q)", ind, f.constant)
		}
		return
	}
	x := "v." + f.name
	if f.onError {
		w.p("%swas := d.Try()", ind)
	}
	checked := f.typ.bounded()
	if checked {
		w.p("%sat := d.At()", ind)
	}
	raw := f.typ.kind == tRaw || f.typ.kind == tRawObject
	switch {
	case f.patch:
		w.p("%sif d.Null() {\n%s\t%s = Clear[%s]()\n%s} else {", ind, ind, x, m.goTypeOf(f.typ), ind)
		if e := m.decodeExpr(f.typ); e != "" {
			w.p("%s\t%s = Set(%s)\n%s}", ind, x, e, ind)
		} else {
			w.p("%s\tvar x %s", ind, m.goTypeOf(f.typ))
			m.decodeValue(w, f, "x", ind+"\t")
			w.p("%s\t%s = Set(x)\n%s}", ind, x, ind)
		}
	case f.onNull:
		w.p("%sif d.Null() {\n%s\t%s = %s{}\n%s} else {", ind, ind, x, m.fieldType(f), ind)
		m.decodeValue(w, f, x, ind+"\t")
		w.p("%s}", ind)
	case f.nullable && !raw && f.typ.kind != tForm && !(f.typ.kind == tID):
		w.p("%sif !d.Null() {", ind)
		m.decodePointer(w, t, f, x, ind+"\t")
		w.p("%s}", ind)
	default:
		m.decodePointer(w, t, f, x, ind)
	}
	if checked {
		m.checks(w, f, x, ind)
	}
	if f.onError {
		w.p("%sif d.Failed(was) {\n%s\t%s = %s\n%s}", ind, ind, x, m.zero(f), ind)
	}
}

// zero is what a lenient field becomes when it is malformed (S67).
func (m *model) zero(f *field) string {
	t := m.fieldType(f)
	switch {
	case f.patch:
		return t + "{}"
	case f.pointer:
		return "nil"
	case f.typ.kind == tSlice && !f.nullable:
		return t + "{}"
	case isText(f.typ):
		return `""`
	case f.typ.kind == tBool:
		return "false"
	case f.typ.kind == tDef && f.typ.def.kind == kindStruct:
		return t + "{}"
	}
	return "nil"
}

func (m *model) decodePointer(w *writer, t *goType, f *field, x, ind string) {
	if !f.pointer {
		if t.coalloc != nil && t.coalloc.field == f.json {
			w.p("%sdecode%sSpare(&%s, d, spare)", ind, f.typ.def.name, x)
			return
		}
		if f == m.fusedField(t) {
			w.p("%sdecode%sSpare(&%s, d, payload, spare)", ind, f.typ.def.name, x)
			return
		}
		m.decodeValue(w, f, x, ind)
		return
	}
	if e := m.decodeExpr(f.typ); e != "" {
		w.p("%s%s = new(%s)", ind, x, e)
		return
	}
	w.p("%s%s = new(%s)", ind, x, m.goTypeOf(f.typ))
	m.decodeValue(w, f, x, ind)
}

func (m *model) decodeValue(w *writer, f *field, x, ind string) {
	if e := m.decodeExpr(f.typ); e != "" {
		w.p("%s%s = %s", ind, x, e)
		return
	}
	switch f.typ.kind {
	case tID:
		w.p("%sdecodeRequestID(&%s, d)", ind, x)
	case tOrdered:
		w.p("%s%s = decode%s(d)", ind, x, f.typ.ordered)
	case tDef:
		switch f.typ.def.kind {
		case kindStruct:
			w.p("%s%s.%s(d)", ind, x, decodeMethod(f.typ.def))
		case kindUnion, kindListUnion:
			w.p("%sdecode%s(&%s, d)", ind, f.typ.def.name, x)
		}
	}
}

// checks verifies the bounds that the Go type does not.
func (m *model) checks(w *writer, f *field, x, ind string) {
	m.limits(f, x, func(cond, reason string) {
		w.p("%sif %s {\n%s\td.Invalid(at, %q)\n%s}", ind, cond, ind, reason, ind)
	})
}

// limits calls emit with the condition that a value breaks a limit, and what
// to say of it.
func (m *model) limits(f *field, x string, emit func(cond, reason string)) {
	guard, v := "", x
	if f.pointer {
		guard, v = x+" != nil && ", "*"+x
	}
	if lo := f.typ.minimum; lo != nil {
		emit(guard+v+" < "+string(lo), "must be at least "+string(lo))
	}
	if hi := f.typ.maximum; hi != nil {
		emit(guard+v+" > "+string(hi), "must be at most "+string(hi))
	}
	if f.typ.minLength > 0 {
		emit("len("+x+") < 1", "must not be empty")
	}
	if f.typ.minItems > 0 {
		guard := ""
		if f.nullable || !f.required {
			guard = x + " != nil && "
		}
		emit(guard+"len("+x+") < 1", "must not be empty")
	}
}

// orderedCodec is for an object that is a list to people.
func (m *model) orderedCodec(w *writer, f *field) {
	o, item := f.typ.ordered, f.typ.elem.def.name
	w.p(`func decode%[1]s(d *wire.Decoder) []%[1]s {
	out := []%[1]s{}
	seen := map[string]bool{}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		p := %[1]s{Name: string(k)}
		if seen[p.Name] {
			d.Duplicate()
			continue
		}
		seen[p.Name] = true
		decode%[2]s(&p.Schema, d)
		out = append(out, p)
	}
	return out
}

func append%[1]s(dst []byte, list []%[1]s) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for i := range list {
		dst = append(wire.AppendString(dst, list[i].Name), ':')
		if dst, err = append%[2]s(&list[i].Schema, dst); err != nil {
			return dst, wire.In(list[i].Name, err)
		}
		dst = append(dst, ',')
	}
	return wire.CloseObject(dst), nil
}
`, o, item)
}
