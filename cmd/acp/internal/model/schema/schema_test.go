package schema

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/standin"
)

// TestFit: what each kind of dialect makes of a schema.
func TestFit(t *testing.T) {
	names := Dialect{Names: Names64}
	for _, tt := range []struct {
		name, in string
		full     string // "" is the same as in
		plain    string // "" is the same as full
		note     string
		err      string // of a dialect with names
	}{
		{name: "fit", in: `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer","minimum":1}},"required":["b"]}`},
		{name: "nothing", in: ``, full: `{"type":"object","properties":{}}`},
		{name: "no type", in: `{"properties":{"a":{"type":"string"}}}`, full: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{name: "not an object", in: `{"type":"string"}`, err: "not an object"},
		{name: "a list", in: `[]`, err: "not an object"},
		{name: "no JSON", in: `{`, err: "not JSON"},
		{
			name: "oneOf at the top", in: `{"type":"object","oneOf":[{"properties":{"id":{"type":"string"},"x":{"type":"string"}},"required":["id","x"]},{"properties":{"name":{"type":"string"},"x":{"type":"integer"}},"required":["name","x"]}]}`,
			full: `{"type":"object","properties":{"id":{"type":"string"},"x":{"anyOf":[{"type":"string"},{"type":"integer"}]},"name":{"type":"string"}},"required":["x"]}`,
			note: "The input has one of these sets of members: id, x; name, x.",
		},
		{
			name: "anyOf of what is required", in: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			full: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
			note: "The input has one of these sets of members: a; b.",
		},
		{
			name: "allOf at the top with a reference", in: `{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"string"}},"required":["b"]}],"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			full: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]}`,
		},
		{
			name: "a reference at the top", in: `{"$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
			full: `{"type":"object","properties":{"a":{"type":"string"}}}`,
		},
		{
			name: "an alternative that is not an object", in: `{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"string"}}}]}`,
			full: `{"type":"object","properties":{"a":{"type":"string"}}}`,
		},
		{
			name: "references", in: `{"type":"object","properties":{"n":{"$ref":"#/definitions/N"},"far":{"$ref":"https://example.com/x","description":"d"}},"definitions":{"N":{"type":"object","properties":{"next":{"$ref":"#/definitions/N"}}}}}`,
			full:  `{"type":"object","properties":{"n":{"$ref":"#/$defs/N"},"far":{"description":"d"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`,
			plain: `{"type":"object","properties":{"n":{"type":"object","properties":{"next":{"type":"object"}}},"far":{"description":"d"}}}`,
		},
		{
			name: "of other drafts and of none", in: `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"required":true},"b":{"type":"array"},"c":{"type":"any"},"d":true,"e":{"type":"array","items":[{"type":"string"}]},"f":{"type":"int","x-y":1,"enum":[]}}}`,
			full:  `{"type":"object","properties":{"a":{"type":"number","minimum":0},"b":{"type":"array","items":{}},"c":{},"d":{},"e":{"type":"array","prefixItems":[{"type":"string"}],"items":{}},"f":{"type":"integer"}}}`,
			plain: `{"type":"object","properties":{"a":{"type":"number","minimum":0},"b":{"type":"array","items":{"type":"string"}},"c":{},"d":{},"e":{"type":"array","items":{"anyOf":[{"type":"string"}]}},"f":{"type":"integer"}}}`,
		},
		{
			name: "keywords that few know", in: `{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x$"},"b":{"const":"k"},"c":{"type":["string","array"]},"d":{"oneOf":[{"type":"string","format":"uri"},{"type":"integer","enum":[1,2]}],"type":"string"},"e":{"type":"object","additionalProperties":{"type":"string"},"required":["z"]}},"additionalProperties":false}`,
			full:  `{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x$"},"b":{"const":"k"},"c":{"type":["string","array"],"items":{}},"d":{"oneOf":[{"type":"string","format":"uri"},{"type":"integer","enum":[1,2]}],"type":"string"},"e":{"type":"object","additionalProperties":{"type":"string"},"required":["z"]}},"additionalProperties":false}`,
			plain: `{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["k"],"type":"string"},"c":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"d":{"anyOf":[{"type":"string"},{"type":"integer","description":"One of [1,2]."}]},"e":{"type":"object"}}}`,
		},
		{name: "a name that may be left out", in: `{"type":"object","properties":{"a b":{"type":"string"},"c":{"type":"string"}}}`},
		{name: "a name that is needed", in: `{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"]}`, err: `"a b"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := names.Fit(json.RawMessage(tt.in)); tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%v, want %s", err, tt.err)
			}
			if tt.err != "" {
				return
			}
			full := tt.full
			if full == "" {
				full = tt.in
			}
			plain := tt.plain
			if plain == "" {
				plain = full
			}
			for isPlain, want := range map[bool]string{false: full, true: plain} {
				d := Dialect{Plain: isPlain}
				got, note, err := d.Fit(json.RawMessage(tt.in))
				if err != nil || note != tt.note {
					t.Errorf("%v, %q", err, note)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("plain %t (-want +got)\n%s", d.Plain, diff)
				}
				if again, _, err := d.Fit(got); err != nil || string(again) != string(got) {
					t.Errorf("what is fit becomes %s, %v", again, err)
				}
			}
		})
	}
	got, _, err := names.Fit(json.RawMessage(`{"type":"object","properties":{"a b":{"type":"string"},"c":{"type":"string"}}}`))
	if want := `{"type":"object","properties":{"c":{"type":"string"}}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestBounds: schemas that refer to each other again and again, that are nested deep or are long end soon.
func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/x/0"}},"x":{`)
	for i := range 40 {
		next := strings.ReplaceAll(`{"properties":{"l":{"$ref":"#/x/N"},"r":{"$ref":"#/x/N"}}}`, "N", string(rune('0'+i+1)))
		b.WriteString(`"` + string(rune('0'+i)) + `":` + next + ",")
	}
	b.WriteString(`"z":{}}}`)
	deep := `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 300) + "{}" + strings.Repeat("}", 300) + `}}`
	long := `{"type":"object","description":"` + strings.Repeat("x", MaxSize) + `"}`
	for _, in := range []string{b.String(), deep, long} {
		for _, d := range []Dialect{{}, {Plain: true}} {
			if got, _, err := d.Fit(json.RawMessage(in)); err == nil && len(got) > MaxSize {
				t.Errorf("%d bytes", len(got))
			}
		}
	}
}

// TestNames: what a member of the input and a definition may be called.
func TestNames(t *testing.T) {
	member := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	reference := regexp.MustCompile(`^#/(\$defs|definitions)/[A-Za-z0-9_.-]+$`)
	names := []string{"", "a\n", "\na", "a b", "a/b", "a~1b", "é", "aéb", "\xff", "a\x00", strings.Repeat("x", 64), strings.Repeat("x", 65), "a.b_c-D9", "#/$defs/a"}
	for c := range 256 {
		names = append(names, string([]byte{byte(c)}), string([]byte{'a', byte(c), 'Z'}))
	}
	for _, n := range names {
		if got, want := Names64(n), member.MatchString(n); got != want {
			t.Errorf("%q is a name: %t", n, got)
		}
		for _, before := range []string{"#/$defs/", "#/definitions/", "#/", "", "#/$defs", "/$defs/", "#/definitions/#/$defs/", "#/$defs/$defs/"} {
			ref := before + n
			name, ok := defined(ref)
			if want := reference.MatchString(ref); ok != want || ok && name != ref[strings.LastIndexByte(ref, '/')+1:] {
				t.Errorf("%q leads to a definition: %t, %q", ref, ok, name)
			}
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte(`{"oneOf":[{"properties":{"a":{"const":1}}},{"$ref":"#"}],"required":[1,"a"],"type":["object"]}`))
	f.Add([]byte(`{"properties":{"a":{"items":[{"type":["x",2,"null"]}],"allOf":[{"enum":[{}]}]}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, d := range []Dialect{{}, {Plain: true}, {Names: Names64}} {
			got, _, err := d.Fit(in)
			if err != nil {
				continue
			}
			api := map[bool]string{true: "plain", false: "responses"}[d.Plain]
			if d.Names != nil {
				api = "messages"
			}
			if err := errors.Join(standin.JudgeSchema(api, got), standin.JudgeSchema("ollama", got)); err != nil {
				t.Errorf("%s\nbecomes\n%s\n%v", in, got, err)
			}
		}
	})
}
