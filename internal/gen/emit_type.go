package main

import (
	"fmt"
	"strings"
)

// emitType writes the declaration of a type, without its codec.
func (m *model) emitType(w *writer, t *goType) {
	w.doc("", t.doc, t.experimental)
	switch t.kind {
	case kindString:
		w.p("type %s string\n", t.name)
	case kindAlias:
		w.p("type %s = %s\n", t.name, t.alias)
	case kindEnum:
		m.emitEnum(w, t, "string")
	case kindIntEnum:
		m.emitEnum(w, t, "int32")
	case kindStruct:
		m.emitStruct(w, t)
	case kindUnion:
		m.emitUnion(w, t)
	case kindListUnion:
		w.WriteString("//\n" + comment("", "It is one of "+variantNames(t.union)+"."))
		w.p("type %s interface {", t.name)
		w.p("\tAppendJSON(dst []byte) ([]byte, error)")
		w.p("\tis%s()\n}\n", t.name)
		for _, v := range t.union.variants {
			w.p("// %s is %s of %s items.", v.typ.name, anyOf(t.name), v.typ.payload.name)
			w.p("type %s []%s\n", v.typ.name, v.typ.payload.name)
		}
	}
}

func variantNames(u *union) string {
	var names []string
	add := func(n string) { names = append(names, n) }
	for _, v := range u.variants {
		switch v.typ.kind {
		case kindUnion, kindListUnion:
			add("[" + v.typ.name + "]")
		default:
			add("*[" + v.typ.name + "]")
		}
	}
	if u.untagged != nil {
		add("*[" + u.untagged.typ.name + "]")
	}
	if u.catchAll != nil {
		add("*[" + u.catchAll.name + "]")
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func (m *model) emitEnum(w *writer, t *goType, base string) {
	if base == "string" {
		w.p("//\n// Values that this package does not know are kept as they are; Known tells them apart.")
	}
	w.p("type %s %s\n", t.name, base)
	w.p("// The values of %s that the schema knows.", t.name)
	w.p("const (")
	for _, v := range t.values {
		w.doc("\t", v.doc, v.experimental)
		w.p("\t%s %s = %s", v.name, t.name, v.json)
	}
	w.p(")\n")
	var names []string
	for _, v := range t.values {
		names = append(names, v.name)
	}
	w.p("// Known reports whether the schema knows the value.")
	w.p("func (v %s) Known() bool {", t.name)
	w.p("\tswitch v {\n\tcase %s:\n\t\treturn true\n\t}\n\treturn false\n}\n", strings.Join(names, ", "))
}

func (m *model) emitStruct(w *writer, t *goType) {
	if t.payload != nil {
		w.p("type %s %s\n", t.name, t.payload.name)
		return
	}
	w.p("type %s struct {", t.name)
	for i, f := range t.fields {
		if f.constant != "" {
			continue
		}
		if f.doc != "" && i > 0 {
			w.p("")
		}
		w.doc("\t", f.doc, f.experimental)
		w.p("\t%s %s", f.name, m.fieldType(f))
	}
	if t.inline != nil {
		w.doc("\t", t.inline.doc, false)
		w.p("\t%s %s", t.inline.field, t.inline.union.typ.name)
	}
	if len(t.fields) > 0 && (t.meta || t.unknown) {
		w.p("")
	}
	if t.meta {
		switch {
		case t.patch && m.version == "v1":
			w.p("\tMeta json.RawMessage // _meta: an object that replaces what is stored, or null, which removes it")
		case t.patch:
			w.p("\tMeta json.RawMessage // _meta: an object that patches what is stored key by key, or null, which clears it")
		default:
			w.p("\tMeta json.RawMessage // _meta: an object, or nil")
		}
	}
	if t.unknown {
		w.p("\tUnknown json.RawMessage // members the schema does not know, as an object; sent again after the others")
	}
	w.p("}\n")
	for _, f := range t.fields {
		if f.typ == nil || f.typ.kind != tOrdered {
			continue
		}
		w.p("// %s is one member of %s.%s, which keeps the order of the wire.", f.typ.ordered, t.name, f.name)
		w.p("type %s struct {\n\tName string\n\tSchema %s\n}\n", f.typ.ordered, m.goTypeOf(f.typ.elem))
	}
}

func (m *model) emitUnion(w *writer, t *goType) {
	u := t.union
	w.WriteString("//\n" + comment("", "It is one of "+variantNames(u)+"."))
	w.p("type %s interface {", t.name)
	switch {
	case u.outer != nil:
		w.p("\t%s", u.outer.union.typ.name)
		w.p("\tappendPlain(dst []byte) ([]byte, error)")
	default:
		w.p("\tAppendJSON(dst []byte) ([]byte, error)")
	}
	if u.inline {
		w.p("\tappendMembers(dst []byte%s) ([]byte, error)", u.baseParam("base"))
		w.p("\tknows(member string) bool")
	}
	w.p("\tis%s()\n}\n", t.name)
	if u.catchAll == nil {
		return
	}
	c := u.catchAll
	text := fmt.Sprintf("%s is %s of a kind that this package does not know; Raw keeps it byte for byte.", c.name, anyOf(t.name))
	if u.inline {
		text = fmt.Sprintf("%s is %s of a kind that this package does not know; Raw keeps the members that are particular to it byte for byte.", c.name, anyOf(t.name))
	}
	w.WriteString(comment("", text))
	w.p("type %s struct {", c.name)
	w.p("\tType string // the discriminator %s, the same as in Raw", u.key)
	for _, f := range c.fields {
		w.p("\t%s %s // as in Raw, which is what is sent", f.name, m.fieldType(f))
	}
	if c.inline != nil {
		w.p("\t%s %s // as in Raw, which is what is sent", c.inline.field, c.inline.union.typ.name)
	}
	w.p("\tRaw json.RawMessage\n}\n")
}

func (m *model) fieldType(f *field) string {
	t := m.goTypeOf(f.typ)
	switch {
	case f.patch:
		return "Patch[" + t + "]"
	case f.pointer:
		return "*" + t
	}
	return t
}

func (m *model) goTypeOf(t *typeRef) string {
	switch t.kind {
	case tString:
		return "string"
	case tBool:
		return "bool"
	case tInt32:
		return "int32"
	case tInt64:
		return "int64"
	case tUint16:
		return "uint16"
	case tUint32:
		return "uint32"
	case tUint64:
		return "uint64"
	case tFloat:
		return "float64"
	case tDef:
		return t.def.name
	case tSlice:
		return "[]" + m.goTypeOf(t.elem)
	case tMap:
		return "map[string]" + m.goTypeOf(t.elem)
	case tOrdered:
		return "[]" + t.ordered
	case tID:
		return "RequestID"
	}
	return "json.RawMessage"
}

// isText reports whether values of the type are JSON strings.
func isText(t *typeRef) bool {
	return t.kind == tString || t.kind == tDef && (t.def.kind == kindString || t.def.kind == kindEnum)
}

// decodeExpr returns an expression that reads a value, for types that have one.
func (m *model) decodeExpr(t *typeRef) string {
	switch t.kind {
	case tString:
		return "d.Str()"
	case tBool:
		return "d.Bool()"
	case tInt32:
		return "d.Int32()"
	case tInt64:
		return "d.Int64()"
	case tUint16:
		return "d.Uint16()"
	case tUint32:
		return "d.Uint32()"
	case tUint64:
		return "d.Uint64()"
	case tFloat:
		return "d.Float64()"
	case tRaw:
		return "d.RawCopy()"
	case tRawObject:
		return "d.RawObject()"
	case tForm:
		return "d.FormValue()"
	case tSlice:
		f := "wire.Slice"
		if t.skipInvalid {
			f = "wire.SliceSkip"
		}
		return fmt.Sprintf("%s(d, %s)", f, m.itemDecoder(t.elem))
	case tMap:
		return fmt.Sprintf("wire.Map(d, %s)", m.itemDecoder(t.elem))
	case tDef:
		switch t.def.kind {
		case kindString:
			return fmt.Sprintf("%s(d.ID())", t.def.name)
		case kindEnum:
			return fmt.Sprintf("intern%s(d.Bytes())", t.def.name)
		case kindIntEnum:
			return fmt.Sprintf("%s(d.Int32())", t.def.name)
		}
	}
	return ""
}

// itemDecoder returns a function that reads one item of the type.
func (m *model) itemDecoder(t *typeRef) string {
	switch t.kind {
	case tString:
		return "wire.String[string]"
	case tUint16:
		return "wire.Uint16Item"
	case tRaw:
		return "wire.RawItem"
	case tForm:
		return "wire.FormItem"
	case tDef:
		switch t.def.kind {
		case kindString:
			return fmt.Sprintf("wire.String[%s]", t.def.name)
		case kindEnum:
			return fmt.Sprintf("decode%s", t.def.name)
		case kindUnion, kindListUnion:
			return "decode" + t.def.name
		case kindStruct:
			return fmt.Sprintf("(*%s).%s", t.def.name, decodeMethod(t.def))
		}
	}
	m.errorf("no item decoder for %v", m.goTypeOf(t))
	return "nil"
}

// decodeMethod returns the method that reads the struct outside a union.
func decodeMethod(t *goType) string {
	if t.tagged() {
		return "decodePlain"
	}
	return "decodeJSON"
}

// itemEncoder returns a function that appends one item of the type.
func (m *model) itemEncoder(t *typeRef) string {
	switch t.kind {
	case tString:
		return "wire.AppendText[string]"
	case tUint16:
		return "wire.AppendUint16Item"
	case tRaw, tForm:
		return "wire.AppendRawItem"
	case tDef:
		switch t.def.kind {
		case kindString, kindEnum:
			return fmt.Sprintf("wire.AppendText[%s]", t.def.name)
		case kindUnion, kindListUnion:
			return "append" + t.def.name
		case kindStruct:
			return fmt.Sprintf("(*%s).%s", t.def.name, encodeMethod(t.def))
		}
	}
	m.errorf("no item encoder for %v", m.goTypeOf(t))
	return "nil"
}

// encodeMethod returns the method that appends the struct outside a union.
func encodeMethod(t *goType) string {
	if t.tagged() {
		return "appendPlain"
	}
	return "AppendJSON"
}

// tagged reports whether the struct's own methods read and write a
// discriminator, which it does not have outside its union.
func (t *goType) tagged() bool {
	v := t.variant
	return v != nil && !v.union.inline && v.union.key != "" && v.tag != ""
}
