package sample

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tiny has one of everything the protocol schemas use.
const tiny = `{"$defs": {
	"Word": {"oneOf": [{"type": "string", "const": "a"}, {"const": "b", "type": "string"}]},
	"ListedWord": {"type": "string", "enum": ["a", "b"]},
	"OpenWord": {"anyOf": [{"type": "string", "const": "a"}, {"type": "string"}]},
	"Code": {"anyOf": [{"type": "integer", "format": "int32", "const": -1}, {"type": "integer", "format": "int32"}]},
	"Wide": {"type": "integer", "format": "int64"},
	"Size": {"type": "integer", "format": "uint64", "minimum": 0},
	"Port": {"type": "integer", "format": "uint16", "minimum": 1, "maximum": 65535},
	"Share": {"type": ["number", "null"], "format": "double", "minimum": 0, "maximum": 1},
	"Link": {"type": "string", "format": "uri"},
	"When": {"type": "string", "format": "date-time"},
	"Title": {"type": "string", "minLength": 2},
	"Some": {"type": "array", "items": {"type": "string"}, "minItems": 1},
	"Free": {"type": "object"},
	"Any": {},
	"Env": {"type": "object", "additionalProperties": {"type": "string"}},
	"Item": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
	"Forgiving": {"type": "object", "required": ["must"], "properties": {
		"must": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "x-deserialize-default-on-error": true, "x-deserialize-skip-invalid-items": true},
		"text": {"type": ["string", "null"], "x-deserialize-default-on-error": true},
		"flag": {"type": "boolean", "default": false, "x-deserialize-default-on-error": true},
		"list": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "x-deserialize-default-on-error": true, "x-deserialize-skip-invalid-items": true},
		"all": {"type": ["array", "null"], "items": {"$ref": "#/$defs/Item"}, "x-deserialize-default-on-error": true},
		"args": {"type": "array", "items": {"type": "string"}, "x-deserialize-default-on-null": true},
		"env": {"type": "object", "additionalProperties": {"type": "string"}, "x-deserialize-default-on-null": true},
		"word": {"x-deserialize-default-on-error": true, "allOf": [{"$ref": "#/$defs/Word"}]},
		"raw": {"x-deserialize-default-on-error": true},
		"_meta": {"type": ["object", "null"], "x-deserialize-default-on-error": true, "additionalProperties": true}}},
	"Open": {"type": "object", "required": ["name"], "properties": {
			"name": {"type": "string"}, "note": {"type": ["string", "null"], "x-deserialize-default-on-error": true}},
		"anyOf": [
		{"type": "object", "properties": {"type": {"type": "string", "const": "item"}}, "required": ["type"], "allOf": [{"$ref": "#/$defs/Item"}]},
		{"type": "object", "properties": {"type": {"type": "string"}, "hint": {"type": ["string", "null"], "x-deserialize-default-on-error": true}},
			"required": ["type"], "additionalProperties": true, "not": {"anyOf": [{"type": "object", "properties": {"type": {"type": "string", "const": "item"}}, "required": ["type"]}]}}]},
	"Closed": {"oneOf": [
		{"type": "object", "properties": {"type": {"type": "string", "const": "item"}}, "required": ["type"], "allOf": [{"$ref": "#/$defs/Item"}]},
		{"type": "object", "properties": {"type": {"type": "string", "const": "env"}, "env": {"$ref": "#/$defs/Env"}}, "required": ["type", "env"]}],
		"discriminator": {"propertyName": "type"}},
	"Left": {"anyOf": [
		{"type": "object", "properties": {"type": {"type": "string", "const": "env"}, "env": {"$ref": "#/$defs/Env"}}, "required": ["type", "env"]},
		{"allOf": [{"$ref": "#/$defs/Item"}]}]},
	"Scope": {"type": "object", "properties": {"more": {"type": "boolean"}}, "oneOf": [
		{"allOf": [{"$ref": "#/$defs/Item"}]},
		{"type": "object", "properties": {"ref": {"type": ["string", "null"]}}, "required": ["ref"]}]},
	"Idle": {"type": "object", "properties": {"why": {"type": ["string", "null"], "x-deserialize-default-on-error": true}}, "anyOf": [
		{"type": "object", "properties": {"why": {"type": "string", "const": "done"}}, "required": ["why"]},
		{"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"], "additionalProperties": true,
			"not": {"anyOf": [{"type": "object", "properties": {"why": {"type": "string", "const": "done"}}, "required": ["why"]}]}},
		{"type": "object", "properties": {"why": {"type": "null"}}}]},
	"Some2": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
	"Last": {"anyOf": [{"allOf": [{"$ref": "#/$defs/Item"}]}, {}]},
	"Lists": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Item"}}, {"type": "array", "items": {"type": "string"}}]}
}}`

func load(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoadRefuses(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{`, "not a JSON text"},
		{`{"x": 1}`, "no $defs"},
		{`{"$defs": {"A": {"patternProperties": {}}}}`, "A: patternProperties: unknown keyword"},
		{`{"$defs": {"A": {"properties": {"b": {"x-new": true}}}}}`, "A: properties: b: x-new: unknown keyword"},
		{`{"$defs": {"A": {"items": {"$ref": "#/$defs/B"}}}}`, `missing definition "B"`},
		{`{"$defs": {"A": {"$ref": "http://x"}}}`, "not to a definition"},
		{`{"$defs": {"A": {"type": "string", "format": "colour"}}}`, `unknown format "colour"`},
		{`{"$defs": {"A": {"type": "object", "additionalProperties": false}}}`, "closed objects"},
		{`{"$defs": {"A": {"minLength": "2"}}}`, "minLength"},
		{`{"$defs": {"A": {"minimum": "x"}}}`, "minimum"},
		{`{"$defs": {"A": {"anyOf": [false]}}}`, "a schema is an object"},
	} {
		if _, err := Load(strings.NewReader(tt.schema)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error = %v, want %q", tt.schema, err, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	s := load(t, tiny)
	for _, tt := range []struct{ typ, good, bad string }{
		{"Word", `"a" "b" "\u0061"`, `"c" 1 null {}`},
		{"ListedWord", `"a"`, `"c" 1`},
		{"OpenWord", `"a" "c" ""`, `1 null`},
		{"Code", `-1 5 2147483647 -2147483648 5.0 5e0`, `2147483648 1.5 "1" 1e400`},
		{"Wide", `9223372036854775807 -9223372036854775808 1e2 -0`, `9223372036854775808 0.5 1e30 9007199254740992.5`},
		{"Size", `0 18446744073709551615 -0.0`, `-1 18446744073709551616`},
		{"Port", `1 65535`, `0 65536`},
		{"Share", `0 1 0.5 null 1e-400`, `1.1 -0.1 "0" 1e400`},
		{"Link", `"a:b" "http://x" "file:foo" "C:\\x"`, `"" "x" "http://" "1x:y" "https://a_b^c/" 5`},
		{"When", `"2024-02-29T00:00:00Z" "2025-12-31T23:59:59.1+23:59"`, `"2025-02-29T00:00:00Z" "2025-01-01T00:00Z" "2025-13-01T00:00:00Z" "2025-04-31T00:00:00Z" "2025-01-00T00:00:00Z" "x"`},
		{"Title", `"ab" "éé"`, `"a" "é" ""`},
		{"Some", `["a"]`, `[] [1] {} "a"`},
		{"Free", `{} {"a":{}}`, `[] 1 null`},
		{"Any", `{} null 1 "a" []`, ``},
		{"Env", `{} {"a":"b"}`, `{"a":1} {"a":null} []`},
		{"Item", `{"id":"a"} {"id":"a","x":1}`, `{} {"id":1} {"id":null} {"id":"a","id":"a"} [] "a"`},
		{"Forgiving", `{"must":[]} {"must":[{"id":"a"}],"text":null,"raw":null,"_meta":{"a":1},"word":"a"}`,
			`{} {"must":null} {"must":[5]} {"must":[],"text":5} {"must":[],"word":"z"} {"must":[],"args":null} {"must":[],"_meta":[]}`},
		{"Open", `{"name":"n","type":"x","id":5} {"name":"n","type":"item","id":"i"}`,
			`{"name":"n"} {"name":"n","type":"item","id":5} {"type":"x"} {"name":"n","type":5} {"name":"n","type":"x","note":5}`},
		{"Closed", `{"type":"item","id":"i"} {"env":{},"type":"env"}`, `{"type":"x","id":"i"} {"id":"i"} {"type":"env"} 5`},
		{"Left", `{"type":"env","env":{}} {"id":"i"}`, `{"type":"env"} {}`},
		{"Scope", `{"id":"a"} {"ref":null,"more":true}`, `{} {"id":"a","ref":"b"} {"id":null} {"id":"a","ref":null} {"ref":"a","more":1}`},
		{"Lists", `[] [{"id":"a"}] ["a"]`, `["a",{"id":"a"}] [1] {}`},
	} {
		for _, text := range split(t, tt.good) {
			if err := s.Check(tt.typ, []byte(text)); err != nil {
				t.Errorf("%s %s: %v", tt.typ, text, err)
			}
		}
		for _, text := range split(t, tt.bad) {
			if err := s.Check(tt.typ, []byte(text)); err == nil {
				t.Errorf("%s %s: accepted", tt.typ, text)
			}
		}
	}
	for _, tt := range []struct{ typ, text string }{{"Nope", `1`}, {"Any", `{`}, {"Any", `"` + "\xff" + `"`}, {"Any", `1 2`}} {
		if err := s.Check(tt.typ, []byte(tt.text)); err == nil {
			t.Errorf("%s %q: accepted", tt.typ, tt.text)
		}
	}
}

// split cuts JSON texts written one after the other.
func split(t *testing.T, texts string) []string {
	t.Helper()
	if texts == "" {
		return nil
	}
	v, err := parse([]byte("[" + join(texts) + "]"))
	if err != nil {
		t.Fatalf("%s: %v", texts, err)
	}
	var out []string
	for _, it := range v.items {
		out = append(out, string(it.bytes()))
	}
	return out
}

// join puts commas at the spaces between texts, which hold no spaces themselves.
func join(texts string) string { return strings.ReplaceAll(texts, " ", ",") }

func TestSalvage(t *testing.T) {
	s := load(t, tiny)
	const refused = "refused"
	for _, tt := range []struct {
		typ, in, want string
		dev           Deviation
	}{
		// S67, S68: what falls back to what
		{"Forgiving", `{"must":null,"text":5,"flag":"x","list":5,"all":[5],"word":"z","_meta":[]}`, `{"list":[],"must":[]}`, 0},
		{"Forgiving", `{"must":[{"id":"a"},{"id":1},5],"list":[{"id":"b","x":1},null]}`, `{"list":[{"id":"b"}],"must":[{"id":"a"}]}`, 0},
		{"Forgiving", `{"text":"a"}`, refused, 0},
		{"Forgiving", `{"must":[],"text":null,"raw":null,"_meta":{"n":1.50},"x":1}`, `{"_meta":{"n":1.50},"must":[],"raw":null,"text":null}`, 0},
		// S70
		{"Forgiving", `{"must":[],"args":null,"env":null}`, `{"args":[],"env":{},"must":[]}`, 0},
		{"Forgiving", `{"must":[],"args":5}`, refused, 0},
		{"Forgiving", `{"must":[],"env":{"a":5}}`, refused, 0},
		// S72: all or nothing without the skip marker
		{"Forgiving", `{"must":[],"all":[{"id":"a"},5]}`, `{"must":[]}`, 0},
		// closed enums and unions, and readers that keep them
		{"Word", `"z"`, refused, 0},
		{"Word", `"z"`, `"z"`, OpenEnums},
		{"ListedWord", `"z"`, `"z"`, OpenEnums},
		{"Word", `5`, refused, OpenEnums},
		{"Forgiving", `{"must":[],"word":"z"}`, `{"must":[],"word":"z"}`, OpenEnums},
		{"Closed", `{"type":"z","id":5}`, refused, 0},
		{"Closed", `{"type":"z","id":5}`, `{"id":5,"type":"z"}`, OpenUnions},
		{"Closed", `{"type":"item","id":5}`, refused, OpenUnions},
		{"Closed", `{"type":5,"id":"i"}`, refused, OpenUnions},
		// S81-S83: payload of a catch-all stays, members beside the union are still judged
		{"Open", `{"name":"n","type":"z","id":5,"note":5}`, `{"id":5,"name":"n","type":"z"}`, 0},
		{"Open", `{"name":"n","type":"item","id":"i","x":5}`, `{"id":"i","name":"n","type":"item"}`, 0},
		{"Open", `{"name":"n","type":"item","id":5}`, refused, 0},
		{"Open", `{"name":"n","type":"item","id":5}`, refused, OpenEnums | OpenUnions | TagDecides},
		{"Open", `{"name":"n","type":"z","note":5,"hint":5}`, `{"name":"n","type":"z"}`, 0},
		{"Open", `{"name":"n","type":"z","note":5,"hint":5}`, `{"hint":5,"name":"n","type":"z"}`, RawVariants},
		{"Idle", `{"why":"","x":1}`, `{"why":"","x":1}`, 0},
		{"Idle", `{"why":"","x":1}`, `{}`, EmptyTag},
		{"Idle", `{"why":5,"x":1}`, `{}`, 0},
		{"Idle", `{"why":"done","x":1}`, `{"why":"done"}`, EmptyTag},
		{"Open", `{"name":"n","type":"item","id":"i","note":5}`, `{"id":"i","name":"n","type":"item"}`, RawVariants},
		{"Open", `{"name":5,"type":"z"}`, refused, RawVariants},
		{"Last", `{"id":"i","x":1}`, `{"id":"i"}`, 0},
		{"Last", `{"id":"i","x":1}`, `{"id":"i","x":1}`, RawAny},
		{"Last", `{"id":5,"x":1}`, `{"id":5,"x":1}`, 0},
		// S80
		{"Left", `{"type":"env","id":"i"}`, `{"id":"i"}`, 0},
		{"Left", `{"type":"env","id":"i"}`, refused, TagDecides},
		{"Left", `{"type":"z","id":"i"}`, `{"id":"i"}`, 0},
		{"Left", `{"type":"z","id":"i"}`, `{"id":"i","type":"z"}`, TagDecides},
		{"Left", `{"type":5,"id":"i"}`, `{"id":"i"}`, TagDecides},
		// S73
		{"Wide", `9223372036854775808`, `9223372036854775808`, 0},
		{"Wide", `9223372036854775808`, refused, IntRange},
		{"Wide", `9007199254740992.5`, `9007199254740992.5`, 0},
		{"Wide", `9007199254740992.5`, refused, IntRange},
		{"Wide", `1.5`, refused, 0},
		// S77
		{"Scope", `{"id":"a","ref":null}`, refused, 0},
		// duplicates
		{"Item", `{"id":1,"id":"b"}`, `{"id":"b"}`, 0},
		{"Item", `{"id":"b","id":"b"}`, refused, UniqueNames},
		{"Forgiving", `{"must":[{"id":"a","id":"a"},{"id":"b"}]}`, `{"must":[{"id":"b"}]}`, UniqueNames},
		{"Forgiving", `{"must":[],"must":[]}`, refused, UniqueNames},
		{"Env", `{"a":"x","a":"y"}`, `{"a":"y"}`, 0},
		{"Env", `{"a":"x","a":"y"}`, refused, UniqueNames},
		{"Forgiving", `{"must":[],"x":1,"x":2}`, `{"must":[]}`, UniqueNames},
		{"Any", `{"x":1,"x":2}`, `{"x":2}`, 0},
		// formats
		{"Link", `"x"`, refused, 0},
		{"Link", `"x"`, `"x"`, AnyURI},
		{"When", `"x"`, refused, 0},
		{"When", `"x"`, `"x"`, AnyTime},
	} {
		got := refused
		if out, err := s.Salvage(tt.typ, []byte(tt.in), tt.dev); err == nil {
			got = sorted(t, out)
		}
		if got != tt.want {
			t.Errorf("%s %s as %s:\n got %s\nwant %s", tt.typ, tt.in, tt.dev, got, tt.want)
		}
	}
	for _, tt := range []struct{ typ, text string }{{"Nope", `1`}, {"Any", `{`}} {
		if _, err := s.Salvage(tt.typ, []byte(tt.text), 0); err == nil {
			t.Errorf("%s %s: accepted", tt.typ, tt.text)
		}
	}
}

// sorted puts the members of the outermost object in order.
func sorted(t *testing.T, data []byte) string {
	t.Helper()
	v, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	out := emptyObject()
	if v.kind != kindObject {
		return string(data)
	}
	for _, name := range memberNames(v) {
		out.members = append(out.members, newMember(name, v.get(name)))
	}
	return string(out.bytes())
}

func TestDeviationNames(t *testing.T) {
	var got []string
	for _, d := range Deviations() {
		got = append(got, d.String())
	}
	want := []string{"open-enum", "open-union", "tag-decides", "int-range", "unique-names", "any-uri", "any-date-time", "raw-variant", "raw-any", "empty-tag"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := (OpenEnums | IntRange).String(); got != "open-enum+int-range" {
		t.Errorf("set prints as %s", got)
	}
	if got := Deviation(0).String(); got != "reference" {
		t.Errorf("empty set prints as %s", got)
	}
}

func TestNullable(t *testing.T) {
	s := load(t, tiny)
	want := []string{"Forgiving._meta", "Forgiving.all", "Forgiving.text"}
	if diff := cmp.Diff(want, s.Nullable("Forgiving")); diff != "" {
		t.Error(diff)
	}
	if got := s.Nullable("Nope"); got != nil {
		t.Errorf("unknown type has %v", got)
	}
}
