package sample

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	s := load(t, tiny)
	patch := map[string]bool{"Forgiving.text": true, "Forgiving.list": true}
	for _, tt := range []struct {
		name, typ, a, b string
		opt             Options
		same            bool
	}{
		{"order and space", "Item", `{"id":"a","x":1}`, ` { "x" : 1 , "id" : "a" } `, Options{}, true},
		{"escapes in typed text", "Item", `{"id":"a\u00e9\/"}`, `{"\u0069d":"aé/"}`, Options{}, true},
		{"lone surrogate reads as U+FFFD", "Item", `{"id":"\ud83d"}`, `{"id":"\ufffd"}`, Options{}, true},
		{"different text", "Item", `{"id":"a"}`, `{"id":"b"}`, Options{}, false},
		{"unknown member", "Item", `{"id":"a","x":1}`, `{"id":"a"}`, Options{}, false},
		{"unknown member stripped", "Item", `{"id":"a","x":1}`, `{"id":"a"}`, Options{Strip: true}, true},
		{"raw number spelling", "Item", `{"id":"a","x":1.50}`, `{"id":"a","x":1.5}`, Options{}, false},
		{"raw number, JavaScript", "Item", `{"id":"a","x":1.50}`, `{"id":"a","x":1.5}`, Options{JavaScript: true}, true},
		{"raw order", "Item", `{"id":"a","x":{"a":1,"b":2}}`, `{"id":"a","x":{"b":2,"a":1}}`, Options{}, false},
		{"raw order, JavaScript", "Item", `{"id":"a","x":{"a":[1],"b":2}}`, `{"id":"a","x":{"b":2,"a":[1]}}`, Options{JavaScript: true}, true},
		{"raw escapes", "Item", `{"id":"a","x":"\u0061"}`, `{"id":"a","x":"a"}`, Options{}, false},
		{"raw escapes, JavaScript", "Item", `{"id":"a","x":"\u0061"}`, `{"id":"a","x":"a"}`, Options{JavaScript: true}, true},
		{"raw space", "Item", `{"id":"a","x":[1 , 2]}`, `{"id":"a","x":[1,2]}`, Options{}, true},
		{"raw, beyond JavaScript", "Any", `1e400`, `null`, Options{JavaScript: true}, true},
		{"typed number spelling", "Wide", `1.0`, `1`, Options{}, true},
		{"typed exponent", "Wide", `2e1`, `20`, Options{}, true},
		{"typed wide", "Wide", `9007199254740993`, `9007199254740992`, Options{}, false},
		{"typed wide, JavaScript", "Wide", `9007199254740993`, `9007199254740992`, Options{JavaScript: true}, true},
		{"typed double", "Share", `0.50`, `5e-1`, Options{}, true},
		{"minus zero", "Share", `-0.0`, `0`, Options{}, true},
		{"different double", "Share", `0.5`, `0.51`, Options{}, false},
		{"null of an optional", "Forgiving", `{"must":[],"text":null}`, `{"must":[]}`, Options{}, true},
		{"null kept", "Forgiving", `{"must":[],"text":null}`, `{"must":[]}`, Options{KeepNull: true}, false},
		{"null of a patch", "Forgiving", `{"must":[],"text":null}`, `{"must":[]}`, Options{Patch: patch}, false},
		{"null in a raw place", "Forgiving", `{"must":[],"raw":null}`, `{"must":[]}`, Options{}, false},
		{"null of a required member", "Scope", `{"ref":null}`, `{"ref":"a"}`, Options{}, false},
		{"default", "Forgiving", `{"must":[],"flag":false}`, `{"must":[]}`, Options{}, true},
		{"default kept", "Forgiving", `{"must":[],"flag":false}`, `{"must":[]}`, Options{KeepDefault: true}, false},
		{"not the default", "Forgiving", `{"must":[],"flag":true}`, `{"must":[]}`, Options{}, false},
		{"empty text", "Forgiving", `{"must":[],"text":""}`, `{"must":[]}`, Options{}, true},
		{"empty text kept", "Forgiving", `{"must":[],"text":""}`, `{"must":[]}`, Options{KeepEmpty: true}, false},
		{"empty text of a patch", "Forgiving", `{"must":[],"text":""}`, `{"must":[]}`, Options{Patch: patch}, false},
		{"empty list", "Forgiving", `{"must":[],"args":[],"env":{}}`, `{"must":[]}`, Options{}, true},
		{"empty list of a patch", "Forgiving", `{"must":[],"list":[]}`, `{"must":[]}`, Options{Patch: patch}, false},
		{"empty list that says something", "Forgiving", `{"must":[],"args":[]}`, `{"must":[]}`, Options{Present: map[string]bool{"Forgiving.args": true}}, false},
		{"empty raw text", "Forgiving", `{"must":[],"raw":""}`, `{"must":[]}`, Options{}, false},
		{"empty raw list", "Forgiving", `{"must":[],"raw":[]}`, `{"must":[]}`, Options{}, false},
		{"empty raw object", "Forgiving", `{"must":[],"_meta":{}}`, `{"must":[]}`, Options{}, false},
		{"empty required list", "Forgiving", `{"must":[]}`, `{"must":[{"id":""}]}`, Options{}, false},
		{"empty required text", "Item", `{"id":""}`, `{"id":"a"}`, Options{}, false},
		{"items", "Lists", `["a"]`, `["b"]`, Options{}, false},
		{"items in order", "Lists", `["a","b"]`, `["b","a"]`, Options{}, false},
		{"items of the second branch", "Lists", `["\u0061"]`, `["a"]`, Options{}, true},
		{"map", "Env", `{"a":"x","b":""}`, `{"b":"","a":"\u0078"}`, Options{Strip: true}, true},
		{"map value", "Env", `{"a":""}`, `{}`, Options{}, false},
		{"payload is not stripped", "Open", `{"name":"n","type":"z","p":1}`, `{"name":"n","type":"z"}`, Options{Strip: true}, false},
		{"known variant is stripped", "Open", `{"name":"n","type":"item","id":"i","p":1}`, `{"id":"i","name":"n","type":"item"}`, Options{Strip: true}, true},
		{"beside the union", "Open", `{"name":"n","type":"z","note":null}`, `{"name":"n","type":"z"}`, Options{}, true},
		{"unknown tag of a closed union", "Closed", `{"type":"z","p":1.0}`, `{"type":"z","p":1}`, Options{Strip: true}, false},
		{"unknown tag with a leftover branch", "Left", `{"type":"z","id":"i"}`, `{"id":"i"}`, Options{Strip: true}, false},
		{"before the last resort", "Last", `{"id":"i","x":1}`, `{"id":"i"}`, Options{Strip: true}, true},
		{"last resort", "Last", `{"id":5,"x":1}`, `{"id":5}`, Options{Strip: true}, false},
		{"malformed beside an unknown variant", "Open", `{"name":"n","type":"z","note":5}`, `{"note":5.0,"name":"n","type":"z"}`, Options{JavaScript: true}, true},
		{"tag of a variant alone", "Item", `{"id":"a","type":"item"}`, `{"id":"a"}`, Options{}, false},
		{"tag of a variant alone, dropped", "Item", `{"id":"a","type":"item"}`, `{"id":"a"}`, Options{DropTags: true}, true},
		{"tag of a variant below, kept", "Some2", `[{"id":"a","type":"item"}]`, `[{"id":"a"}]`, Options{DropTags: true}, false},
		{"tag of a union, kept", "Open", `{"name":"n","type":"y"}`, `{"name":"n","type":"z"}`, Options{DropTags: true}, false},
		{"unknown word", "Word", `"\u007a"`, `"z"`, Options{}, true},
		{"boolean", "Scope", `{"id":"a","more":true}`, `{"id":"a","more":false}`, Options{}, false},
		{"free object", "Free", `{"a":1.0}`, `{"a":1}`, Options{Strip: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := tt.opt.Canonical(s, tt.typ, []byte(tt.a))
			if err != nil {
				t.Fatal(err)
			}
			b, err := tt.opt.Canonical(s, tt.typ, []byte(tt.b))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(a, b) != tt.same {
				t.Errorf("%s\n%s\nsame = %v, want %v", a, b, !tt.same, tt.same)
			}
			again, err := tt.opt.Canonical(s, tt.typ, a)
			if err != nil || !bytes.Equal(again, a) {
				t.Errorf("not a fixed point: %s -> %s, %v", a, again, err)
			}
		})
	}
}

// Defaults apply within defaults: an absent object equals one that spells them all out.
func TestCanonicalNestedDefault(t *testing.T) {
	s := load(t, `{"$defs": {
		"Inner": {"type": "object", "properties": {"on": {"type": "boolean", "default": false}}},
		"Outer": {"type": "object", "properties": {"inner": {"allOf": [{"$ref": "#/$defs/Inner"}], "default": {"on": false}}}}}}`)
	want, err := s.Canonical("Outer", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, same := range map[string]bool{`{"inner":{}}`: true, `{"inner":{"on":false}}`: true, `{"inner":{"on":true}}`: false} {
		got, err := s.Canonical("Outer", []byte(text))
		if err != nil || bytes.Equal(got, want) != same {
			t.Errorf("%s -> %s, %v; equal to {} should be %v", text, got, err, same)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	s := load(t, tiny)
	for _, tt := range []struct{ typ, text string }{
		{"Nope", `1`}, {"Item", `{`}, {"Item", `{"id":5}`}, {"Item", `[]`}, {"Item", `null`}, {"Word", `5`}, {"Wide", `"a"`},
		{"Some", `[5]`}, {"Lists", `[5]`}, {"Open", `{"name":"n"}`}, {"Scope", `{}`}, {"Closed", `{"type":"item"}`}, {"Port", `0`},
	} {
		if got, err := s.Canonical(tt.typ, []byte(tt.text)); err == nil {
			t.Errorf("%s %s -> %s, want an error", tt.typ, tt.text, got)
		}
	}
}

// The normal form does not depend on how a value is written down.
func TestCanonicalOfRewritten(t *testing.T) {
	for _, file := range schemaFiles {
		s := loadFile(t, file)
		rng := rand.New(rand.NewPCG(7, 7))
		for _, typ := range s.Names() {
			if n := s.resolve(s.defs[typ]); n.raw() || slices.ContainsFunc(n.union(), (*node).raw) {
				continue // the order of raw members counts
			}
			for range 6 {
				data := s.Valid(rng, typ)
				want, err := s.Canonical(typ, data)
				if err != nil {
					t.Fatalf("%s %s %s: %v", file, typ, data, err)
				}
				v, err := parse(data)
				if err != nil {
					t.Fatal(err)
				}
				rng.Shuffle(len(v.members), func(i, j int) { v.members[i], v.members[j] = v.members[j], v.members[i] })
				spaced := v.append(nil, func() string { return " \n" })
				got, err := s.Canonical(typ, spaced)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%s %s\n%s\n%s\n%v", file, typ, want, got, err)
				}
				again, err := s.Canonical(typ, want)
				if err != nil || !bytes.Equal(again, want) {
					t.Fatalf("%s %s: not a fixed point\n%s\n%s\n%v", file, typ, want, again, err)
				}
			}
		}
	}
}

func TestParseKeepsSpelling(t *testing.T) {
	const text = `{"a":[1.50,-0,1E+3,"\u0061\"\\",true,null,{}],"a":{"":[]},"\u0062":""}`
	v, err := parse([]byte(strings.ReplaceAll(text, ",", " ,\n\t")))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.bytes()); got != text {
		t.Errorf("\n got %s\nwant %s", got, text)
	}
	if v.get("b") == nil || v.get("a").kind != kindObject {
		t.Error("names are not decoded, or the last of two does not count")
	}
}
