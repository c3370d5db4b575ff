package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// types are those of JSON Schema, with the names by which servers mean them.
var types = map[string]string{
	"object": "object", "array": "array", "string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "null": "null",
	"int": "integer", "float": "number", "double": "number", "bool": "boolean", "str": "string", "list": "array", "dict": "object",
}

// What the value of a keyword is.
const (
	isSchema  = iota // or true or false
	isSchemas        // a list of them
	isNamed          // an object of them
	isString
	isNumber
	isCount
	isBool
	isNames
	isList // that is not empty
	isAny
)

// keywords are those that are passed on. Interfaces check that their values are as JSON Schema 2020-12 says, and
// many servers write those of earlier drafts, or of none. All others are left out.
var keywords = map[string]int{
	"type": isAny, "title": isString, "description": isString, "default": isAny, "examples": isList, "enum": isList, "const": isAny,
	"properties": isNamed, "patternProperties": isNamed, "required": isNames, "additionalProperties": isSchema,
	"minProperties": isCount, "maxProperties": isCount, "propertyNames": isSchema,
	"items": isSchema, "prefixItems": isSchemas, "contains": isSchema, "minItems": isCount, "maxItems": isCount, "uniqueItems": isBool,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
	"minLength": isCount, "maxLength": isCount, "pattern": isString, "format": isString,
	"anyOf": isSchemas, "oneOf": isSchemas, "allOf": isSchemas, "not": isSchema,
}

// plainKeywords are those of them that a plain dialect has.
var plainKeywords = []string{
	"type", "description", "enum", "properties", "required", "items", "anyOf", "minimum", "maximum", "minItems", "maxItems",
}

// schema makes a schema within another one fit.
func (w *walker) schema(v any, depth int) *object {
	w.steps++
	o, ok := v.(*object)
	if !ok || depth > maxDepth || w.steps > maxSteps {
		return &object{}
	}
	v, _ = o.get("$ref")
	ref, ok := v.(string)
	if !ok {
		return w.object(o, depth)
	}
	to, found := w.find(ref)
	name, isDefinition := defined(ref)
	switch {
	case !found:
		return w.object(o, depth) // what is said beside it
	case isDefinition && !w.d.Plain:
		if !slices.Contains(w.defs, ref) {
			w.defs = append(w.defs, ref)
		}
		made := w.object(o, depth)
		made.set("$ref", "#/$defs/"+name)
		return made
	case slices.Contains(w.open, ref): // it refers to itself
		return &object{[]member{{"type", "object"}}}
	}
	w.open = append(w.open, ref)
	made := w.schema(to, depth+1)
	w.open = w.open[:len(w.open)-1]
	for _, m := range w.object(o, depth).members { // what is said beside it
		made.set(m.name, m.value)
	}
	return made
}

// defined returns the name of the definition at the top that a reference leads to; ok is false if it leads elsewhere.
func defined(ref string) (name string, ok bool) {
	name, ok = strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		name, ok = strings.CutPrefix(ref, "#/definitions/")
	}
	return name, ok && name != "" && strings.Trim(name, nameChars) == ""
}

// object makes a schema fit but for its $ref.
func (w *walker) object(o *object, depth int) *object {
	made := &object{}
	if list, ok := mustList(o, "items"); ok { // as earlier drafts describe tuples
		o = o.clone()
		o.remove("items")
		if _, has := o.get("prefixItems"); !has {
			o.set("prefixItems", list)
		}
	}
	for _, m := range o.members {
		kind, known := keywords[m.name]
		if !known {
			continue
		}
		if v, ok := w.keyword(kind, m.value, depth); ok {
			made.set(m.name, v)
		}
	}
	if t, ok := made.get("type"); ok {
		if t, ok = typeOf(t); ok {
			made.set("type", t)
		} else {
			made.remove("type")
		}
	}
	if w.d.Plain {
		made = simple(made)
	}
	if t, ok := made.get("type"); ok && includes(t, "array") {
		if _, has := made.get("items"); !has {
			items := &object{}
			if w.d.Plain {
				items.set("type", "string")
			}
			made.set("items", items)
		}
	}
	return made
}

func mustList(o *object, name string) ([]any, bool) {
	v, _ := o.get(name)
	list, ok := v.([]any)
	return list, ok
}

// keyword makes the value of a keyword fit; ok says that it is one.
func (w *walker) keyword(kind int, v any, depth int) (any, bool) {
	switch kind {
	case isSchema:
		if b, ok := v.(bool); ok {
			return b, true
		}
		o, ok := v.(*object)
		return w.schema(o, depth+1), ok
	case isSchemas:
		list, ok := v.([]any)
		all := make([]any, 0, len(list))
		for _, v := range list {
			all = append(all, w.schema(v, depth+1))
		}
		return all, ok && len(all) > 0
	case isNamed:
		o, ok := v.(*object)
		if !ok {
			return nil, false
		}
		all := &object{}
		for _, m := range o.members {
			all.set(m.name, w.schema(m.value, depth+1))
		}
		return all, true
	case isNames:
		list, ok := v.([]any)
		all := []any{}
		for _, n := range list {
			if _, ok := n.(string); ok && !contains(all, n) {
				all = append(all, n)
			}
		}
		return all, ok && (len(all) > 0 || len(list) == 0)
	case isList:
		list, ok := v.([]any)
		return v, ok && len(list) > 0
	case isString:
		_, ok := v.(string)
		return v, ok
	case isBool:
		_, ok := v.(bool)
		return v, ok
	case isNumber:
		_, ok := v.(json.Number)
		return v, ok
	case isCount:
		n, ok := v.(json.Number)
		i, err := n.Int64()
		return v, ok && err == nil && i >= 0
	}
	return v, true
}

// typeOf returns the types that are known.
func typeOf(t any) (any, bool) {
	switch t := t.(type) {
	case string:
		name, ok := types[strings.ToLower(t)]
		return name, ok
	case []any:
		all := []any{}
		for _, v := range t {
			s, _ := v.(string)
			if name, ok := types[strings.ToLower(s)]; ok && !contains(all, name) {
				all = append(all, name)
			}
		}
		if len(all) == 1 {
			return all[0], true
		}
		return all, len(all) > 0
	}
	return nil, false
}

// simple makes a plain schema of one whose parts are plain.
func simple(o *object) *object {
	if list, ok := mustList(o, "allOf"); ok {
		for _, v := range list {
			if b, ok := v.(*object); ok {
				o = join(o, b, "anyOf")
			}
		}
	}
	if list, ok := mustList(o, "oneOf"); ok {
		if _, has := o.get("anyOf"); !has {
			o.set("anyOf", list)
		}
	}
	if list, ok := mustList(o, "prefixItems"); ok {
		if _, has := o.get("items"); !has {
			o.set("items", &object{[]member{{"anyOf", list}}})
		}
	}
	if v, ok := o.get("const"); ok {
		if _, has := o.get("enum"); !has {
			o.set("enum", []any{v})
		}
	}
	made := &object{}
	for _, m := range o.members {
		if slices.Contains(plainKeywords, m.name) {
			made.set(m.name, m.value)
		}
	}
	if t, ok := mustList(made, "type"); ok {
		one(made, t)
	}
	enumerate(made)
	if items, ok := made.get("items"); ok {
		if _, isObject := items.(*object); !isObject {
			made.remove("items")
		}
	}
	if list, ok := mustList(made, "required"); ok {
		p, _ := made.get("properties")
		properties, _ := p.(*object)
		list = slices.DeleteFunc(slices.Clone(list), func(n any) bool { _, ok := properties.get(n.(string)); return !ok })
		if made.set("required", list); len(list) == 0 {
			made.remove("required")
		}
	}
	if _, ok := made.get("anyOf"); ok { // which is refused beside others
		for _, k := range plainKeywords {
			if k != "anyOf" && k != "description" {
				made.remove(k)
			}
		}
	}
	return made
}

// one leaves one type of several.
func one(o *object, list []any) {
	var alternatives []any
	for _, t := range list {
		if t != "null" {
			alternatives = append(alternatives, &object{[]member{{"type", t}}})
		}
	}
	switch len(alternatives) {
	case 0:
		o.remove("type")
	case 1:
		t, _ := alternatives[0].(*object).get("type")
		o.set("type", t)
	default:
		o.remove("type")
		if _, has := o.get("anyOf"); !has {
			for _, a := range alternatives {
				if a, items := a.(*object), any(nil); includes(a.members[0].value, "array") {
					if items, _ = o.get("items"); items == nil {
						items = &object{[]member{{"type", "string"}}}
					}
					a.set("items", items)
				}
			}
			o.set("anyOf", alternatives)
		}
	}
}

// enumerate leaves enumerations of strings, and writes others into the description.
func enumerate(o *object) {
	list, ok := mustList(o, "enum")
	if !ok {
		return
	}
	isOther := func(v any) bool { _, ok := v.(string); return !ok }
	if t, has := o.get("type"); slices.ContainsFunc(list, isOther) || has && t != "string" {
		o.remove("enum")
		text, err := Marshal(list)
		about, _ := o.get("description")
		said, _ := about.(string)
		if err == nil && len(text) < 400 {
			o.set("description", strings.TrimSpace(said+" One of "+string(text)+"."))
		}
		return
	}
	o.set("type", "string")
}
