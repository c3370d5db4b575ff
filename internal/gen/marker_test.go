package main

import (
	"strings"
	"testing"
)

// TestMarkers: a keyword the codec would not honour is an error.
func TestMarkers(t *testing.T) {
	for _, tt := range []struct{ prop, want string }{
		{`"a":{"type":["string","integer","null"]}`, "several types"},
		{`"a":{"type":["boolean","string"]}`, "several types"},
		{`"a":{"type":"string","const":"x"}`, "constant needs an entry"},
		{`"a":{"type":"string","not":{}}`, "not is not checked"},
		{`"a":{"type":"string","x-deserialize-skip-invalid-items":true}`, "only lists skip"},
		{`"a":{"type":"string","x-deserialize-default-on-null":true}`, "empty on null"},
		{`"a":{"type":"array","items":{"type":"string","x-deserialize-default-on-error":true}}`, "items have no default"},
		{`"a":{"type":"string","minimum":1}`, "limit for numbers"},
		{`"a":{"allOf":[{"$ref":"#/$defs/S"}],"minLength":1}`, "beside a reference"},
		{`"a":{"type":"boolean","default":true}`, "default true"},
		{`"a":{"type":"string","default":"x"}`, `default "x"`},
		{`"unknown":{"type":"string"}`, "two fields called Unknown"},
		{`"meta":{"type":"string"},"_meta":{"type":["object","null"],"x-deserialize-default-on-error":true,"additionalProperties":true}`, "two fields called Meta"},
	} {
		schema := `{"$defs":{"S":{"type":"string"},"T":{"type":"object","properties":{` + tt.prop + `}}}}`
		doc, err := parseDocument([]byte(schema))
		if err != nil {
			t.Fatalf("%s: %v", tt.prop, err)
		}
		dd, err := parseDocs("== common\nS: is a string.\nT: is a thing.\n")
		if err != nil {
			t.Fatal(err)
		}
		_, err = buildModel("v1", doc, doc, &table{files: []fileRule{{"all", []string{"S", "T"}}}}, dd)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.prop, err, tt.want)
		}
	}
}
