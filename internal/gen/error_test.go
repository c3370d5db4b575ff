package main

import (
	"fmt"
	"strings"
	"testing"
)

// thing is a schema of one struct, with more definitions behind it.
func thing(properties string, more ...string) string {
	return `{"$defs":{` + strings.Join(append([]string{`"Thing":{"type":"object","properties":{` + properties + `}}`}, more...), ",") + `}}`
}

const thingDocs = "== common\nThing: is a thing.\n"

// TestSchemaErrors: the generator never guesses. Each case is something it has
// no rule for, and what it says about it.
func TestSchemaErrors(t *testing.T) {
	const deep = `"Deep":{"type":"object","properties":{"x":{"type":"string"}}}`
	const deepDocs = thingDocs + "Deep: is inside.\n"
	tagged := func(key, tag, ref string) string {
		return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string","const":%q}},"required":[%q],"allOf":[{"$ref":"#/$defs/%s"}]}`, key, tag, key, ref)
	}
	for _, x := range []struct {
		name, schema, stable, docs string
		table                      func(*table)
		want                       string
	}{
		{"unknown keyword", thing(`"a":{"type":"string","maxLength":5}`), "", thingDocs, nil, "Thing: properties: a: maxLength: unknown keyword"},
		{"unknown keyword of a definition", thing(``, `"Other":{"type":"string","pattern":"x"}`), "", thingDocs, nil, "Other: pattern: unknown keyword"},
		{"unknown keyword of an item", thing(`"a":{"type":"array","items":{"type":"string","uniqueItems":true}}`), "", thingDocs, nil, "items: uniqueItems: unknown keyword"},
		{"unknown annotation", thing(`"a":{"type":"string","x-deserialize-default-on-missing":true}`), "", thingDocs, nil, "x-deserialize-default-on-missing: unknown keyword"},
		{"prose that sync should have dropped", thing(`"a":{"type":"string","description":"words"}`), "", thingDocs, nil, "description: unknown keyword"},
		{"enum keyword", thing(`"a":{"enum":["x"]}`), "", thingDocs, nil, "enum: unknown keyword"},
		{"foreign reference", thing(`"a":{"$ref":"other.json#/Deep"}`), "", thingDocs, nil, `unsupported reference "other.json#/Deep"`},
		{"malformed keyword", thing(`"a":{"type":"string","minLength":"x"}`), "", thingDocs, nil, "minLength"},
		{"malformed union", thing(`"a":{"anyOf":{}}`), "", thingDocs, nil, "anyOf"},
		{"malformed properties", `{"$defs":{"Thing":{"properties":[]}}}`, "", thingDocs, nil, "expected an object"},
		{"malformed definitions", `{"$defs":[]}`, "", thingDocs, nil, "expected an object"},
		{"malformed item", thing(`"a":{"type":"array","items":7}`), "", thingDocs, nil, "expected an object"},
		{"malformed alternative", thing(`"a":{"anyOf":[7]}`), "", thingDocs, nil, "expected an object"},
		{"no definitions", `{"title":"x"}`, "", thingDocs, nil, "no definitions"},
		{"not JSON", `{"$defs":{`, "", thingDocs, nil, "unexpected"},

		{"missing reference", thing(`"a":{"allOf":[{"$ref":"#/$defs/Gone"}]}`), "", thingDocs, nil, "Thing.a: refers to Gone, which is skipped or missing"},
		{"skipped reference", thing(`"a":{"allOf":[{"$ref":"#/$defs/Deep"}]}`, deep), "", thingDocs, func(t *table) { t.skip = names("skip", "Deep") }, "Thing.a: refers to Deep, which is skipped or missing"},
		{"missing variant", thing(``, `"U":{"anyOf":[`+tagged("type", "a", "Gone")+`]}`), "", thingDocs + "U: is a union.\n", nil, "U: variant Gone is no object"},
		{"missing shared variant", thing(``, `"U":{"anyOf":[`+tagged("type", "a", "Gone")+`,`+tagged("type", "b", "Gone")+`]}`), "", thingDocs + "U: is a union.\nU=a: is a.\nU=b: is b.\n", nil, "U: variant Gone is no object"},
		{"variant that is no object", thing(``, `"Id":{"type":"string"}`, `"U":{"anyOf":[`+tagged("type", "a", "Id")+`]}`), "", thingDocs + "U: is a union.\nId: is an id.\n", nil, "U: variant Id is no object"},
		{"untagged variant that is no object", thing(``, `"Id":{"type":"string"}`, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`,{"allOf":[{"$ref":"#/$defs/Id"}]}]}`), "", thingDocs + "U: is a union.\nId: is an id.\n", func(t *table) { t.untagged = entries("untagged", map[string]untaggedSpec{"U": {}}) }, "U: variant Id is no object"},
		{"variant of two unions", thing(``, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`]}`, `"W":{"anyOf":[`+tagged("kind", "a", "Thing")+`]}`), "", thingDocs + "U: is a union.\nW: is a union.\n", nil, "Thing is a variant of two unions"},
		{"alias of nothing", thing(``, `"Same":{"allOf":[{"$ref":"#/$defs/Gone"}]}`), "", thingDocs + "Same: is the same.\n", nil, "Same: alias of unknown Gone"},
		{"alias of an unknown Go type", thing(`"a":{"allOf":[{"$ref":"#/$defs/Id"}]}`, `"Id":{"type":"string"}`), "", thingDocs + "Id: is an id.\n", func(t *table) { t.aliases = entries("alias", map[string]string{"Id": "big.Int"}) }, "Id: alias of unknown type big.Int"},

		{"inline object", thing(`"a":{"type":"object","properties":{}}`), "", thingDocs, nil, "Thing.a: an object without a definition"},
		{"array of anything", thing(`"a":{"type":"array"}`), "", thingDocs, nil, "Thing.a: an array of anything"},
		{"integer without format", thing(`"a":{"type":"integer"}`), "", thingDocs, nil, `Thing.a: integer format ""`},
		{"strange type", thing(`"a":{"type":"date"}`), "", thingDocs, nil, "Thing.a: type [date]"},
		{"alternatives of a property", thing(`"a":{"anyOf":[{"type":"string"},{"type":"boolean"}]}`), "", thingDocs, nil, "Thing.a: no rule for these alternatives"},
		{"definition of a number", thing(``, `"N":{"type":"number"}`), "", thingDocs + "N: is a number.\n", nil, "N: no rule for this kind of definition"},
		{"list of lists", thing(`"a":{"type":"array","items":{"type":"array","items":{"type":"string"}}}`), "", thingDocs, nil, "no item decoder for []string"},
		{"list of booleans", thing(`"a":{"type":"array","items":{"type":"boolean"}}`), "", thingDocs, nil, "no item encoder for bool"},
		{"length beyond one", thing(`"a":{"type":"string","minLength":2}`), "", thingDocs, nil, "Thing.a: a length of more than one is not checked"},
		{"items beyond one", thing(`"a":{"type":"array","minItems":2,"items":{"type":"string"}}`), "", thingDocs, nil, "Thing.a: a length of more than one is not checked"},
		{"length of what may be null", thing(`"a":{"type":["string","null"],"minLength":1}`), "", thingDocs, nil, "Thing.a: minLength is not checked here"},
		{"length of a definition", thing(``, `"Id":{"type":"string","minLength":1}`), "", thingDocs + "Id: is an id.\n", nil, "Id: minLength is not checked here"},
		{"limits of items", thing(`"a":{"type":"array","items":{"type":"integer","format":"uint16","minimum":1}}`), "", thingDocs, nil, "Thing.a: limits of items are not checked"},
		{"limits of a patch", thing(`"a":{"type":["integer","null"],"format":"int64","minimum":0}`), "", thingDocs, func(t *table) { t.patch = properties("patch", "Thing: a") }, "Thing.a: limits of a patch are not checked"},
		{"required patch", `{"$defs":{"Thing":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, "", thingDocs, func(t *table) { t.patch = properties("patch", "Thing: a") }, "Thing.a: a required member cannot be a patch"},

		{"inline union without a decision", `{"$defs":{` + deep + `,"Thing":{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[` + tagged("type", "a", "Deep") + `]}}}`, "", deepDocs, nil, "Thing: alternatives beside properties need an entry in the table"},
		{"union without discriminator", thing(``, `"U":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Thing"}]}]}`), "", thingDocs + "U: is a union.\n", nil, "U: a union without discriminator needs an entry in the table"},
		{"union with more variants than decisions", thing(``, `"U":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Thing"}]}]}`), "", thingDocs + "U: is a union.\n", func(t *table) { t.byMember = entries("by member", map[string][]string{"U": {"a", "b"}}) }, "U: 1 variants, 2 members in the table"},
		{"member union of something missing", thing(``, `"U":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Gone"}]}]}`), "", thingDocs + "U: is a union.\n", func(t *table) { t.byMember = entries("by member", map[string][]string{"U": {"a"}}) }, "U: variant Gone is no object"},
		{"catch-all with alternatives", thing(``, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`,{"type":"object","properties":{"type":{"type":"string"}},"not":{"anyOf":[]},"oneOf":[{}]}]}`), "", thingDocs + "U: is a union.\n", nil, "U: the catch-all's alternatives need an entry in the table"},
		{"lists that do not fit", thing(``, `"L":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/Gone"}}]}`), "", thingDocs + "L: is a list.\n", func(t *table) { t.lists = entries("list", map[string]listSpec{"L": {[]string{"A"}, []string{"a"}}}) }, "L: the table does not fit its lists"},

		{"missing doc of a type", thing(``, deep), "", thingDocs, nil, "docs.txt has no entry for Deep"},
		{"missing doc of a value", thing(``, `"E":{"oneOf":[{"type":"string","const":"a"}]}`), "", thingDocs + "E: is an enum.\n", nil, "docs.txt has no entry for E=a"},
		{"missing doc of a variant", thing(``, `"U":{"anyOf":[{"type":"object","properties":{"type":{"type":"string","const":"a"}}}]}`), "", thingDocs + "U: is a union.\n", nil, "docs.txt has no entry for U=a"},
		{"unused doc of a type", thing(``), "", thingDocs + "Gone: was here.\n", nil, "docs.txt entries never used: common Gone"},
		{"unused doc of a member", thing(`"a":{"type":"string"}`), "", thingDocs + "Thing.b: was here.\n== v2\nThing.a: is here.\n", nil, "docs.txt entries never used: common Thing.b"},
		{"doc hidden by that of the version", thing(``), "", thingDocs + "== v2\nThing: is here.\n", nil, "docs.txt entries never used: common Thing"},
		{"doc twice", thing(``), "", thingDocs + "Thing: again.\n", nil, "line 3: second entry for common Thing"},
		{"doc that is none", thing(``), "", thingDocs + "Thing is a thing\n", nil, "line 3 is no entry"},
		{"doc without section", thing(``), "", "Thing: is a thing.\n", nil, "line 1 is no entry"},
		{"doc that continues nothing", thing(``), "", "== common\n    more\n", nil, "line 2 continues nothing"},

		{"stable-only definition", thing(``), thing(``, deep), thingDocs, nil, "Deep is in the stable schema only"},
		{"stable-only property", thing(``), thing(`"a":{"type":"string"}`), thingDocs, nil, "Thing.a is in the stable schema only"},
		{"property of another type", thing(`"a":{"type":"string"}`), thing(`"a":{"type":"boolean"}`), thingDocs, nil, "Thing.a differs between the stable and the unstable schema"},
		{"property with another item", thing(`"a":{"type":"array","items":{"type":"string"}}`), thing(`"a":{"type":"array","items":{}}`), thingDocs, nil, "Thing.a differs between the stable and the unstable schema"},
		{"property of another leniency", thing(`"a":{"type":"string"}`), thing(`"a":{"type":"string","x-deserialize-default-on-error":true}`), thingDocs, nil, "Thing.a differs between the stable and the unstable schema"},
		{"other required members", thing(`"a":{"type":"string"}`), `{"$defs":{"Thing":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, thingDocs, nil, "Thing requires other members in the stable schema"},
		{"stable-only value", thing(``, `"E":{"anyOf":[{"type":"string","const":"a"}]}`), thing(``, `"E":{"anyOf":[{"type":"string","const":"a"},{"type":"string","const":"b"}]}`), thingDocs + "E: is an enum.\nE=a: is a.\n", nil, `E: "b" is in the stable schema only`},
		{"stable-only variant", thing(``, deep, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`]}`), thing(``, deep, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`,`+tagged("type", "b", "Deep")+`]}`), deepDocs + "U: is a union.\n", nil, "U: type b Deep is in the stable schema only"},
		{"another method when stable", thing(``, `"DoNotification":{"type":"object","properties":{},"x-side":"agent","x-method":"do"}`), thing(``, `"DoNotification":{"type":"object","properties":{},"x-side":"client","x-method":"do"}`), thingDocs + "DoNotification: does.\nmethod do: does.\n", nil, "DoNotification belongs to another method in the stable schema"},

		{"no file", thing(``), "", thingDocs, func(t *table) { t.files = nil }, "Thing: no file in the table"},
		{"two types of one name", thing(``, `"thing":{"type":"object","properties":{}}`), "", thingDocs + "thing: is another.\n", nil, "Go name Thing for both Thing and thing"},
		{"type named like a value", thing(``, `"E":{"oneOf":[{"type":"string","const":"x"}]}`, `"EX":{"type":"object","properties":{}}`), "", thingDocs + "E: is an enum.\nE=x: is x.\nEX: is another.\n", nil, "Go name EX for both"},
		{"two values of one name", thing(``, `"E":{"oneOf":[{"type":"string","const":"a_b"},{"type":"string","const":"a-b"}]}`), "", thingDocs + "E: is an enum.\nE=a_b: is one.\nE=a-b: is two.\n", nil, `Go name EAB for both E="a_b" and E="a-b"`},
		{"type named like a catch-all", thing(``, `"U":{"anyOf":[`+tagged("type", "a", "Thing")+`]}`, `"UnknownU":{"type":"object","properties":{}}`), "", thingDocs + "U: is a union.\nUnknownU: is another.\n", nil, "Go name UnknownU for both"},
	} {
		t.Run(x.name, func(t *testing.T) {
			files, err := tiny{version: "v2", schema: x.schema, stable: x.stable, docs: x.docs, table: small(x.table)}.generate()
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q", err, x.want)
			}
			if files != nil {
				t.Error("files in spite of the error")
			}
		})
	}
}

// TestAllErrorsAtOnce: a new schema shows every decision it asks for.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := tiny{version: "v1", schema: thing(`"a":{"type":"date"},"b":{"allOf":[{"$ref":"#/$defs/Gone"}]}`), docs: "== common\n", table: small(nil)}.generate()
	want := "v1: docs.txt has no entry for Thing\nv1: Thing.a: type [date]\nv1: Thing.b: refers to Gone, which is skipped or missing"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestUnusedTableEntries: every kind of entry that nothing asks for is an error.
func TestUnusedTableEntries(t *testing.T) {
	for want, change := range map[string]func(*table){
		"skip Gone":           func(t *table) { t.skip = names("skip", "Gone") },
		"name Gone":           func(t *table) { t.names = entries("name", map[string]string{"Gone": "X"}) },
		"value Gone=x":        func(t *table) { t.values = entries("value", map[string]string{"Gone=x": "X"}) },
		"alias Gone":          func(t *table) { t.aliases = entries("alias", map[string]string{"Gone": "string"}) },
		"patch Thing.gone":    func(t *table) { t.patch = properties("patch", "Thing: gone") },
		"meta patch Thing":    func(t *table) { t.metaPatch = names("meta patch", "Thing") }, // it has no _meta
		"pointer Thing.gone":  func(t *table) { t.pointers = properties("pointer", "Thing: gone") },
		"constant Thing.gone": func(t *table) { t.constants = entries("constant", map[string]string{"Thing.gone": "x"}) },
		"inline Thing":        func(t *table) { t.inline = entries("inline", map[string]inlineSpec{"Thing": {}}) },
		"merge Gone":          func(t *table) { t.merge = entries("merge", map[string]mergeSpec{"Gone": {}}) },
		"untagged Gone":       func(t *table) { t.untagged = entries("untagged", map[string]untaggedSpec{"Gone": {}}) },
		"by member Gone":      func(t *table) { t.byMember = entries("by member", map[string][]string{"Gone": nil}) },
		"list Gone":           func(t *table) { t.lists = entries("list", map[string]listSpec{"Gone": {}}) },
		"ordered Thing.gone":  func(t *table) { t.ordered = entries("ordered", map[string]orderedSpec{"Thing.gone": {}}) },
		"coalloc Gone":        func(t *table) { t.coalloc = entries("coalloc", map[string]coalloc{"Gone": {}}) },
		"form value Gone":     func(t *table) { t.formValues = names("form value", "Gone") },
		"closed Gone":         func(t *table) { t.closed = names("closed", "Gone") },
		"file things: Gone":   func(t *table) { t.files[0].defs = append(t.files[0].defs, "Gone") },
		"file things: Gone*":  func(t *table) { t.files[0].defs = append(t.files[0].defs, "Gone*") },
		"file more: *":        func(t *table) { t.files = append(t.files, fileRule{"more", []string{"*"}}) },
		"file things: Th*":    func(t *table) { t.files[0].defs = []string{"Thing", "Th*"} },
	} {
		_, err := tiny{version: "v2", schema: thing(`"a":{"type":"string"}`), docs: thingDocs, table: small(change)}.generate()
		if err == nil || err.Error() != "v2: table entry never used: "+want {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestMethodErrors: a definition that belongs to a method but fits no call.
func TestMethodErrors(t *testing.T) {
	def := func(name, side string) string {
		return fmt.Sprintf(`%q:{"type":"object","properties":{},"x-side":%q,"x-method":"do"}`, name, side)
	}
	docs := func(names ...string) string {
		text := "== common\n"
		for _, n := range names {
			text += n + ": does.\n"
		}
		return text
	}
	for _, x := range []struct {
		defs, docs string
		table      func(*table)
		want       string
	}{
		{def("DoRequest", "agent"), docs("DoRequest"), nil, `method do of the agent is not mapped: request "DoRequest", response "", notification ""`},
		{def("DoResponse", "agent"), docs("DoResponse"), nil, `method do of the agent is not mapped: request "", response "DoResponse", notification ""`},
		{def("DoRequest", "agent") + "," + def("DoResponse", "client"), docs("DoRequest", "DoResponse"), nil, "method do of the client is not mapped"},
		{def("DoThing", "agent"), docs("DoThing"), nil, "DoThing: neither request, response nor notification of do"},
		{def("DoNotification", "agent"), docs("DoNotification"), nil, "docs.txt has no entry for method do"},
		{def("DoNotification", "agent") + `,"Other":{"type":"string"}`, docs("Other"), func(t *table) { t.skip = names("skip", "DoNotification") }, "DoNotification belongs to method do but is skipped"},
		{def("DoNotification", "agent") + "," + def("DoNotification2", "client"), docs("DoNotification", "DoNotification2", "method do"), func(t *table) {}, "DoNotification2: neither request"},
	} {
		_, err := tiny{version: "v2", schema: `{"$defs":{` + x.defs + `}}`, docs: x.docs, table: small(x.table)}.generate()
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
	// The same method on two sides would be one Go name.
	_, err := tiny{version: "v2", schema: `{"$defs":{` + def("DoNotification", "agent") + "," + def("UndoNotification", "client") + `}}`,
		docs: docs("DoNotification", "UndoNotification", "method do"), table: small(nil)}.generate()
	if err == nil || !strings.Contains(err.Error(), "Go name NotificationDo for both do and do") {
		t.Errorf("%v", err)
	}
}

// TestFileTooLong: a file beyond the limit has to be divided by hand.
func TestFileTooLong(t *testing.T) {
	var defs []string
	docs := thingDocs
	for i := range 50 {
		defs = append(defs, fmt.Sprintf(`"T%d":{"type":"object","properties":{"a":{"type":"string"}}}`, i))
		docs += fmt.Sprintf("T%d: is one of many.\n", i)
	}
	_, err := tiny{version: "v2", schema: thing(``, defs...), docs: docs, table: small(nil)}.generate()
	if err == nil || !strings.Contains(err.Error(), "acpv2/things_gen.go has ") || !strings.HasSuffix(err.Error(), " lines: divide it in the table") {
		t.Errorf("%v", err)
	}
	files, err := tiny{version: "v2", schema: thing(``, defs...), docs: docs, table: small(func(t *table) {
		t.files = []fileRule{{"things", []string{"Thing", "T1*", "T2*", "T30"}}, {"more", []string{"*"}}}
	})}.generate()
	if err != nil || files["acpv2/more_gen.go"] == nil {
		t.Errorf("divided: %v", err)
	}
}
