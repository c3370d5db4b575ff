package main

import (
	"fmt"
	"slices"
	"strings"
)

// emitCodec writes how a type is decoded and encoded.
func (m *model) emitCodec(w *writer, t *goType) {
	switch t.kind {
	case kindEnum:
		m.enumCodec(w, t)
	case kindStruct:
		m.structCodec(w, t)
	case kindUnion:
		m.unionCodec(w, t)
	case kindListUnion:
		m.listUnionCodec(w, t)
	}
}

func (m *model) enumCodec(w *writer, t *goType) {
	w.p("// intern%s avoids an allocation for the values the schema knows.", t.name)
	w.p("func intern%s(b []byte) %s {\n\tswitch string(b) {", t.name, t.name)
	for _, v := range t.values {
		w.p("\tcase %s:\n\t\treturn %s", v.json, v.name)
	}
	w.p("\t}\n\treturn %s(b)\n}\n", t.name)
	if m.usedAsItem(t) {
		w.p("func decode%s(v *%s, d *wire.Decoder) { *v = intern%s(d.Bytes()) }\n", t.name, t.name, t.name)
	}
}

func (m *model) usedAsItem(t *goType) bool {
	for _, o := range m.types {
		for _, f := range o.fields {
			if f.typ != nil && f.typ.elem != nil && f.typ.elem.def == t {
				return true
			}
		}
	}
	return false
}

// A shape says how the struct's discriminators are treated.
type shape struct {
	key      string // own discriminator, or empty
	tag      string
	tagParam bool   // the tag is a parameter, empty where the struct stands alone
	outerKey string // discriminator of the union around the struct's union
	outerTag string
	plain    bool // there is a way to read it without discriminator
}

func shapeOf(t *goType) shape {
	var s shape
	if t.shared {
		s.tagParam, s.key = true, t.sharedKey
		return s
	}
	if t.variant == nil || t.variant.tag == "" || t.variant == t.variant.union.untagged {
		return s
	}
	s.key, s.tag = t.variant.union.key, t.variant.tag
	if o := t.variant.union.outer; o != nil {
		s.outerKey, s.outerTag = o.union.key, o.tag
	}
	s.plain = t.plain && !t.variant.union.inline
	return s
}

func (m *model) structCodec(w *writer, t *goType) {
	if t.payload != nil {
		m.perTagCodec(w, t)
		return
	}
	if len(t.fields) == 0 && t.inline == nil && t.unknown && shapeOf(t).key == "" {
		m.markerCodec(w, t)
		return
	}
	m.structDecoder(w, t)
	m.structEncoder(w, t)
	m.marshalers(w, t)
}

// markerCodec is for the many objects that say all by being there.
func (m *model) markerCodec(w *writer, t *goType) {
	meta, call := "nil", "wire.AppendBare(dst, v.Unknown)"
	if t.meta {
		meta, call = "&v.Meta", "wire.AppendMarker(dst, v.Meta, v.Unknown)"
	}
	w.p("func (v *%s) decodeJSON(d *wire.Decoder) { d.Marker(%s, &v.Unknown) }\n", t.name, meta)
	w.p("// AppendJSON appends v to dst.")
	w.p("func (v *%s) AppendJSON(dst []byte) ([]byte, error) {\n\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}\n\treturn %s\n}\n", t.name, call)
	m.marshalers(w, t)
	m.variantMarkers(w, t)
}

func (m *model) marshalers(w *writer, t *goType) {
	w.p("// MarshalJSON implements [json.Marshaler].")
	w.p("func (v %s) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil) }\n", t.name)
	w.p("// UnmarshalJSON implements [json.Unmarshaler].")
	w.p("func (v *%s) UnmarshalJSON(data []byte) error {\n\t*v = %s{}\n\treturn wire.Unmarshal(data, v.decodeJSON)\n}\n", t.name, t.name)
}

// perTagCodec is for a type that shares its fields with other tags.
func (m *model) perTagCodec(w *writer, t *goType) {
	p, v := t.payload, t.variant
	w.p("// decodeJSON reads v; its discriminator may be missing.")
	if v.union.inline {
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { (*%s)(v).decode(d, %q) }\n", t.name, p.name, v.tag)
	} else {
		w.p("func (v *%s) decodeJSON(d *wire.Decoder) { (*%s)(v).decode(d, %q%s) }\n", t.name, p.name, v.tag, nilSpare(p))
	}
	w.p("// AppendJSON appends v with its discriminator to dst.")
	w.p("func (v *%s) AppendJSON(dst []byte) ([]byte, error) {", t.name)
	w.p("\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}")
	if p.unknown {
		m.without(w, v.union.key)
	}
	w.p("\tdst, err := (*%s)(v).appendFields(append(dst, %s...))", p.name, quote(fmt.Sprintf("{%q:%q,", v.union.key, v.tag)))
	w.p("\treturn wire.CloseObject(dst), err\n}\n")
	if v.union.inline {
		w.p("func (v *%s) appendMembers(dst []byte%s) ([]byte, error) {", t.name, v.union.baseParam("_"))
		w.p("\treturn (*%s)(v).appendFields(append(dst, %s...))\n}\n", p.name, quote(fmt.Sprintf("%q:%q,", v.union.key, v.tag)))
		w.p("func (v *%s) knows(member string) bool { return member == %q || (*%s)(v).knows(member) }\n", t.name, v.union.key, p.name)
	}
	m.marshalers(w, t)
	m.variantMarkers(w, t)
}

// without refuses the discriminator among the unknown members, where it may be
// when the struct was read standing alone.
func (m *model) without(w *writer, key string) {
	w.p("\tif err := wire.Without(v.Unknown, %q); err != nil {\n\t\treturn dst, err\n\t}", key)
}

func nilSpare(p *goType) string {
	if p.coalloc != nil {
		return ", nil"
	}
	return ""
}

// variantMarkers writes the methods that make t a variant of its unions.
func (m *model) variantMarkers(w *writer, t *goType) {
	if t.variant == nil {
		return
	}
	u := t.variant.union
	w.p("func (*%s) is%s() {}\n", t.name, u.typ.name)
	if u.outer != nil {
		w.p("func (*%s) is%s() {}\n", t.name, u.outer.union.typ.name)
	}
}

func quote(s string) string {
	if strings.Contains(s, "`") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

func (m *model) structEncoder(w *writer, t *goType) {
	s := shapeOf(t)
	inlineVariant := t.variant != nil && t.variant.union.inline
	own := ""
	if s.key != "" && !s.tagParam {
		own = fmt.Sprintf("%q:%q,", s.key, s.tag)
	}
	prefix := "{"
	if s.outerKey != "" {
		prefix += fmt.Sprintf("%q:%q,", s.outerKey, s.outerTag)
	}
	prefix += own
	if own != "" {
		w.p("// AppendJSON appends v with its discriminator to dst.")
	} else {
		w.p("// AppendJSON appends v to dst.")
	}
	w.p("func (v *%s) AppendJSON(dst []byte) ([]byte, error) {", t.name)
	w.p("\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}")
	if t.unknown && s.plain && s.outerKey == "" {
		m.without(w, s.key)
	}
	if t.unknown && s.outerKey != "" {
		m.without(w, s.outerKey)
	}
	w.p("\tdst, err := v.appendFields(append(dst, %s...))", quote(prefix))
	w.p("\treturn wire.CloseObject(dst), err\n}\n")
	if s.plain || s.outerKey != "" {
		plain := "{"
		if s.outerKey != "" {
			plain += own
		}
		w.p("func (v *%s) appendPlain(dst []byte) ([]byte, error) {", t.name)
		w.p("\tif v == nil {\n\t\treturn dst, wire.ErrNoValue\n\t}")
		w.p("\tdst, err := v.appendFields(append(dst, %s...))", quote(plain))
		w.p("\treturn wire.CloseObject(dst), err\n}\n")
	}
	if inlineVariant {
		if own == "" {
			w.p("func (v *%s) appendMembers(dst []byte%s) ([]byte, error) { return v.appendFields(dst) }\n", t.name, t.variant.union.baseParam("_"))
		} else {
			w.p("func (v *%s) appendMembers(dst []byte%s) ([]byte, error) {\n\treturn v.appendFields(append(dst, %s...))\n}\n", t.name, t.variant.union.baseParam("_"), quote(own))
		}
	}
	if inlineVariant || t.shared && !t.unknown {
		m.knows(w, t, s)
	}
	w.p("// appendFields appends the members of v, each followed by a comma.")
	w.p("func (v *%s) appendFields(dst []byte) (_ []byte, err error) {", t.name)
	for _, f := range t.fields {
		m.encodeField(w, t, f)
	}
	if t.inline != nil {
		w.p("\tif v.%s == nil {\n\t\treturn dst, wire.In(%q, wire.ErrNoValue)\n\t}", t.inline.field, t.inline.union.memberName())
		base := ""
		if t.inline.union.severalOwners() {
			base = m.baseKeys(t)
		}
		w.p("\tif dst, err = v.%s.appendMembers(dst%s); err != nil {\n\t\treturn dst, err\n\t}", t.inline.field, base)
	}
	if t.meta {
		f := "AppendMeta"
		if t.patch {
			f = "AppendMetaPatch"
		}
		w.p("\tif len(v.Meta) > 0 {\n\t\tif dst, err = wire.%s(dst, v.Meta); err != nil {\n\t\t\treturn dst, err\n\t\t}\n\t}", f)
	}
	if t.unknown {
		knows := "nil"
		if t.inline != nil {
			knows = fmt.Sprintf("v.%s.knows", t.inline.field)
		}
		w.p("\tif len(v.Unknown) > 0 {\n\t\tif dst, err = wire.AppendUnknown(dst, v.Unknown, %s, %q); err != nil {", knows, m.knownKeys(t, s))
		w.p("\t\t\treturn dst, err\n\t\t}\n\t}")
	}
	w.p("\treturn dst, nil\n}\n")
	m.variantMarkers(w, t)
}

// knownKeys lists the members that must not stand among the unknown ones, each followed by a comma.
func (m *model) knownKeys(t *goType, s shape) string {
	var b strings.Builder
	for _, f := range t.fields {
		if f.onlyFor == "" {
			b.WriteString(f.json + ",")
		}
	}
	if t.meta {
		b.WriteString("_meta,")
	}
	if s.key != "" && !s.tagParam && (!s.plain || s.outerKey != "") {
		b.WriteString(s.key + ",")
	}
	return b.String()
}

// knows tells the struct around an inline variant which members are taken.
func (m *model) knows(w *writer, t *goType, s shape) {
	var keys []string
	if s.key != "" && !s.tagParam {
		keys = append(keys, fmt.Sprintf("%q", s.key))
	}
	for _, f := range t.fields {
		keys = append(keys, fmt.Sprintf("%q", f.json))
	}
	w.p("func (v *%s) knows(member string) bool {", t.name)
	if len(keys) > 0 {
		w.p("\tswitch member {\n\tcase %s:\n\t\treturn true\n\t}", strings.Join(keys, ", "))
	}
	if t.inline != nil {
		w.p("\treturn v.%s != nil && v.%s.knows(member)\n}\n", t.inline.field, t.inline.field)
	} else {
		w.p("\treturn false\n}\n")
	}
}

func (m *model) encodeField(w *writer, t *goType, f *field) {
	key := fmt.Sprintf("%q:", f.json)
	if f.constant != "" {
		w.p("\tdst = append(dst, %s...)", quote(key+fmt.Sprintf("%q,", f.constant)))
		return
	}
	x := "v." + f.name
	if len(t.either) > 0 {
		m.encodeEither(w, t, f, key)
		return
	}
	m.checkEncoded(w, f, x)
	switch {
	case f.patch:
		w.p("\tswitch %s.state {", x)
		w.p("\tcase patchCleared:\n\t\tdst = append(dst, %s...)", quote(key+"null,"))
		w.p("\tcase patchSet:\n\t\tx := %s.value", x)
		m.encodeValue(w, t, f, key, "x", "\t\t")
		w.p("\t}")
		return
	case f.required, f.always:
		m.encodeValue(w, t, f, key, x, "\t")
		return
	}
	cond := x + " != nil"
	switch {
	case f.pointer:
	case isText(f.typ):
		cond = x + ` != ""`
	case f.typ.kind == tBool:
		cond = x
	case f.typ.kind == tRaw || f.typ.kind == tRawObject || f.typ.kind == tForm:
		cond = "len(" + x + ") > 0"
	case f.typ.kind == tID:
		cond = "!" + x + ".IsZero()"
	}
	w.p("\tif %s {", cond)
	if f.pointer && !(f.typ.kind == tDef && f.typ.def.kind == kindStruct) {
		x = "*" + x
	}
	m.encodeValue(w, t, f, key, x, "\t\t")
	w.p("\t}")
}

// checkEncoded refuses to send what the schema's limits do not allow.
func (m *model) checkEncoded(w *writer, f *field, x string) {
	if f.onError && f.typ.minItems > 0 {
		return // a malformed list is read as an empty one, which has to be sendable
	}
	m.limits(f, x, func(cond, reason string) {
		w.p("\tif %s {\n\t\treturn dst, wire.In(%q, wire.Limit(%q))\n\t}", cond, f.json, reason)
	})
}

// encodeEither is for an object of which one of several members must be there:
// the first that has a value is sent, and null for the first when none has.
func (m *model) encodeEither(w *writer, t *goType, f *field, key string) {
	x := "v." + f.name
	if f.json == t.either[0] {
		var others []string
		for _, o := range t.fields[1:] {
			others = append(others, "v."+o.name+" == nil")
		}
		w.p("\tswitch {\n\tcase len(%s) > 0:", x)
		m.encodeValue(w, t, f, key, x, "\t\t")
		w.p("\tcase %s:\n\t\tdst = append(dst, %s...)", strings.Join(others, " && "), quote(key+"null,"))
		w.p("\t}")
		return
	}
	w.p("\tif %s != nil {", x)
	m.encodeValue(w, t, f, key, x, "\t\t")
	w.p("\t}")
}

// hot reports whether streams consist of t. What it appends is inlined, which costs size.
func (m *model) hot(t *goType) bool {
	return t.fuse || t.coalloc != nil || slices.ContainsFunc(m.types, func(o *goType) bool {
		return o.coalloc != nil && o.coalloc.typ == t.name
	})
}

// encodeValue appends key, value and comma.
func (m *model) encodeValue(w *writer, in *goType, f *field, key, x, ind string) {
	t, hot := f.typ, m.hot(in)
	fallible := func(call string) {
		if hot {
			w.p("%sif dst, err = %s; err != nil {\n%s\treturn dst, wire.In(%q, err)\n%s}", ind, call, ind, f.json, ind)
			w.p("%sdst = append(dst, ',')", ind)
			return
		}
		w.p("%sif dst, err = wire.Comma(%s); err != nil {\n%s\treturn dst, wire.In(%q, err)\n%s}", ind, call, ind, f.json, ind)
	}
	simple := func(call string) { w.p("%sdst = append(%s, ',')", ind, call) }
	k := fmt.Sprintf("wire.Key(dst, %s)", quote(key))
	text := func(x string) { w.p("%sdst = wire.AppendStringMember(dst, %s, %s)", ind, quote(key), x) }
	if hot {
		k = fmt.Sprintf("append(dst, %s...)", quote(key))
		text = func(x string) { simple(fmt.Sprintf("wire.AppendString(%s, %s)", k, x)) }
	}
	switch t.kind {
	case tString:
		text(x)
	case tBool:
		simple(fmt.Sprintf("wire.AppendBool(%s, %s)", k, x))
	case tInt32:
		simple(fmt.Sprintf("wire.AppendInt(%s, int64(%s))", k, x))
	case tInt64:
		simple(fmt.Sprintf("wire.AppendInt(%s, %s)", k, x))
	case tUint16, tUint32:
		simple(fmt.Sprintf("wire.AppendUint(%s, uint64(%s))", k, x))
	case tUint64:
		simple(fmt.Sprintf("wire.AppendUint(%s, %s)", k, x))
	case tFloat:
		fallible(fmt.Sprintf("wire.AppendFloat(%s, %s)", k, x))
	case tRaw, tForm:
		fallible(fmt.Sprintf("wire.AppendRaw(%s, %s)", k, x))
	case tRawObject:
		fallible(fmt.Sprintf("wire.AppendRawObject(%s, %s)", k, x))
	case tID:
		fallible(fmt.Sprintf("%s.AppendJSON(%s)", x, k))
	case tSlice:
		fallible(fmt.Sprintf("wire.AppendSlice(%s, %s, %s)", k, x, m.itemEncoder(t.elem)))
	case tMap:
		fallible(fmt.Sprintf("wire.AppendMap(%s, %s, %s)", k, x, m.itemEncoder(t.elem)))
	case tOrdered:
		fallible(fmt.Sprintf("append%s(%s, %s)", t.ordered, k, x))
	case tDef:
		switch t.def.kind {
		case kindString, kindEnum:
			text("string(" + x + ")")
		case kindIntEnum:
			simple(fmt.Sprintf("wire.AppendInt(%s, int64(%s))", k, x))
		case kindStruct:
			fallible(fmt.Sprintf("%s.%s(%s)", x, encodeMethod(t.def), k))
		case kindUnion, kindListUnion:
			w.p("%sif %s == nil {\n%s\treturn dst, wire.In(%q, wire.ErrNoValue)\n%s}", ind, x, ind, f.json, ind)
			call := "AppendJSON"
			if t.def.union.outer != nil {
				call = "appendPlain"
			}
			fallible(fmt.Sprintf("%s.%s(%s)", x, call, k))
		}
	}
}
