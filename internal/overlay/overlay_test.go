package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	stableText = `{"$schema":"x","$defs":{
		"Known":{"type":"object","properties":{"a":{"type":"string"},"_meta":{}}},
		"Kind":{"anyOf":[{"type":"string","const":"one"},{"type":"string"}]},
		"Union":{"anyOf":[{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]}]}}}`
	unstableText = `{"$schema":"x","$defs":{
		"Known":{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/New"},"_meta":{}}},
		"Kind":{"anyOf":[{"type":"string","const":"one"},{"type":"string"}]},
		"New":{"type":"object","properties":{"far":{"$ref":"#/$defs/Far"},"_meta":{}},"required":["near"]},
		"Far":{"type":"string"},
		"Union":{"anyOf":[
			{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]},
			{"type":"object","properties":{"type":{"type":"string"}},"not":{"anyOf":[{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]}]}}]}}}`
)

// schemas writes both schemas of version 1 and overlays beside them.
func schemas(t *testing.T, overlays map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("v1.json", stableText)
	put("v1.unstable.json", unstableText)
	for name, text := range overlays {
		put(filepath.Join(Dir, name), text)
	}
	return dir
}

func file(v1 string) string {
	return `{"about":"a","seen":"s","certainty":"inferred","v1":` + v1 + `}`
}

func definition(t *testing.T, doc []byte, name string) string {
	t.Helper()
	var v struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	return compact(v.Defs[name])
}

// TestSchemas: what overlays add is where an official schema would have it.
func TestSchemas(t *testing.T) {
	set, err := Read(schemas(t, map[string]string{
		"a.json": file(`{"unstable":{"defs":{"More":{"type":"object","properties":{}}},"props":{"Known.c":{"type":"boolean"}},
			"variants":{"Union":[{"type":"object","properties":{"type":{"type":"string","const":"two"}},"required":["type"]}]},"values":{"Kind":["two"]}},
			"promote":["New","Known.b","Union=two","Kind=two"]}`),
		"b.json": file(`{"unstable":{"props":{"More.x":{"type":"string"}}}}`),
	}))
	if err != nil {
		t.Fatal(err)
	}
	stable, unstable, err := set.Schemas("v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		doc        []byte
		name, want string
	}{
		{unstable, "More", `{"type":"object","properties":{"x":{"type":"string"}}}`},
		{stable, "More", ``},
		{unstable, "Known", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/New"},"c":{"type":"boolean"},"_meta":{}}}`},
		{stable, "Known", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/New"},"_meta":{}}}`},
		{stable, "New", `{"type":"object","properties":{"_meta":{}},"required":["near"]}`}, // Far is not stable
		{stable, "Kind", `{"anyOf":[{"type":"string","const":"one"},{"type":"string","const":"two"},{"type":"string"}]}`},
		{stable, "Union", `{"anyOf":[{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]},` +
			`{"type":"object","properties":{"type":{"type":"string","const":"two"}},"required":["type"]}]}`},
		{unstable, "Union", `{"anyOf":[{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]},` +
			`{"type":"object","properties":{"type":{"type":"string","const":"two"}},"required":["type"]},` +
			`{"type":"object","properties":{"type":{"type":"string"}},"not":{"anyOf":[` +
			`{"type":"object","properties":{"type":{"type":"string","const":"one"}},"required":["type"]},` +
			`{"type":"object","properties":{"type":{"type":"string","const":"two"}},"required":["type"]}]}}]}`},
	} {
		if diff := cmp.Diff(x.want, definition(t, x.doc, x.name)); diff != "" {
			t.Errorf("%s: %s", x.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"Kind=two", "Known.c", "More", "More.x", "Union=two"}, set.Inferred("v1")); diff != "" {
		t.Error(diff)
	}
	if got := set.Inferred("v2"); got != nil {
		t.Errorf("of version 2: %q", got)
	}
	if got := set.Source(); strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, " overlay/b.json\n") {
		t.Errorf("%q", got)
	}
	for name, want := range map[string][]byte{"v1.json": stable, "v1.unstable.json": unstable} {
		if got, err := set.Schema(name); err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestNoOverlays: without overlays the schemas are what they are.
func TestNoOverlays(t *testing.T) {
	set, err := Read(schemas(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	stable, unstable, err := set.Schemas("v1")
	if err != nil || !equal(stable, []byte(stableText)) || !equal(unstable, []byte(unstableText)) {
		t.Errorf("%s\n%s\n%v", stable, unstable, err)
	}
	if set.Source() != "" {
		t.Errorf("%q", set.Source())
	}
}

// TestConflicts: what the schema has by now, and what does not fit it, is named.
func TestConflicts(t *testing.T) {
	for name, x := range map[string]struct{ v1, want string }{
		"equal definition":    {`{"unstable":{"defs":{"Far":{"type": "string"}}}}`, "overlay/x.json: v1.unstable.defs.Far: the schema has it, equal: delete this entry"},
		"other definition":    {`{"unstable":{"defs":{"Far":{"type":"integer"}}}}`, "overlay/x.json: v1.unstable.defs.Far: the schema has it, and it differs:\n\there   {\"type\":\"integer\"}\n\tschema {\"type\":\"string\"}"},
		"equal property":      {`{"unstable":{"props":{"Known.a":{"type":"string"}}}}`, "v1.unstable.props.Known.a: the schema has it, equal"},
		"other property":      {`{"unstable":{"props":{"Known.a":{}}}}`, "v1.unstable.props.Known.a: the schema has it, and it differs"},
		"equal variant":       {`{"unstable":{"variants":{"Union":[{"required":["type"],"type":"object","properties":{"type":{"type":"string","const":"one"}}}]}}}`, "v1.unstable.variants.Union: the schema has it, equal"},
		"other variant":       {`{"unstable":{"variants":{"Union":[{"type":"object","properties":{"type":{"type":"string","const":"one"}}}]}}}`, "v1.unstable.variants.Union: the schema has it, and it differs"},
		"equal value":         {`{"unstable":{"values":{"Kind":["one"]}}}`, "v1.unstable.values.Kind: the schema has it, equal"},
		"equal promotion":     {`{"promote":["Known.a"]}`, "v1.promote Known.a: the schema has it, equal"},
		"promoted value":      {`{"promote":["Kind=one"]}`, "v1.promote Kind=one: the schema has it, equal"},
		"promoted definition": {`{"promote":["Union"]}`, "v1.promote Union: the schema has it, and it differs"},
		"no such definition":  {`{"promote":["Nothing"]}`, "no such definition"},
		"no such property":    {`{"promote":["Known.z"]}`, "no such property"},
		"no such variant":     {`{"promote":["Union=z"]}`, "no such variant"},
		"property of nothing": {`{"unstable":{"props":{"Nothing.a":{}}}}`, "no definition Nothing"},
		"property without":    {`{"unstable":{"props":{"Known":{}}}}`, "named Type.property"},
		"not an object":       {`{"unstable":{"props":{"Far.a":{}}}}`, "has no properties"},
		"value of no enum":    {`{"unstable":{"values":{"Known":["x"]}}}`, "neither a union nor an enum"},
		"variant of nothing":  {`{"unstable":{"variants":{"Nothing":[{"const":"x"}]}}}`, "no definition Nothing"},
		"variant unnamed":     {`{"unstable":{"variants":{"Union":[{"type":"object"}]}}}`, "no constant"},
		"variants no list":    {`{"unstable":{"variants":{"Union":{}}}}`, "v1.unstable.variants.Union"},
		"values no list":      {`{"unstable":{"values":{"Kind":[1]}}}`, "v1.unstable.values.Kind"},
		"definition no node":  {`{"unstable":{"defs":{"X":7}}}`, "v1.unstable.defs.X"},
		"dangling promotion":  {`{"unstable":{"defs":{"X":{"type":"object","properties":{"f":{"$ref":"#/$defs/Far"}},"required":["f"]}}},"promote":["X"]}`, "refers to Far"},
	} {
		set, err := Read(schemas(t, map[string]string{"x.json": file(x.v1)}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, _, err := set.Schemas("v1"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v\nwant %s", name, err, x.want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for name, x := range map[string]struct{ file, text, want string }{
		"another name":   {"x.txt", `{}`, "its name must end in .json"},
		"no JSON":        {"x.json", `{`, "x.json"},
		"unknown member": {"x.json", `{"about":"a","seen":"s","certainty":"read","v3":{}}`, `unknown field "v3"`},
		"unknown inside": {"x.json", file(`{"unstable":{"methods":{}}}`), `unknown field "methods"`},
		"nothing said":   {"x.json", `{"certainty":"read"}`, "about and seen"},
		"no certainty":   {"x.json", `{"about":"a","seen":"s"}`, "certainty"},
		"two":            {"x.json", file(`{}`) + file(`{}`), "more follows"},
		"too large":      {"x.json", strings.Repeat(" ", maxFile) + file(`{}`), "larger than"},
		"a list":         {"x.json", file(`{"unstable":{"defs":[]}}`), "expected an object"},
	} {
		_, err := Read(schemas(t, map[string]string{x.file: x.text}))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	dir := schemas(t, nil)
	set, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[]", "{}", `{"$defs":{}}`, `{"$defs":7}`} {
		if err := os.WriteFile(filepath.Join(dir, "v1.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := set.Schemas("v1"); err == nil || !strings.Contains(err.Error(), "v1.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzOverlay: no overlay makes the merger panic, and what it returns without an error is JSON.
func FuzzOverlay(f *testing.F) {
	for _, text := range []string{`{}`, `{"promote":["New","Known.b"]}`, `{"unstable":{"values":{"Kind":["two"]}}}`,
		`{"unstable":{"variants":{"Union":[{"properties":{"type":{"const":"two"}}}]}}}`, `{"unstable":{"defs":{"X":{"properties":[]}}},"promote":["X"]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v Version
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		stable, err1 := parse([]byte(stableText))
		unstable, err2 := parse([]byte(unstableText))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if v.apply(stable, unstable, "x") == nil && (!json.Valid(stable.bytes()) || !json.Valid(unstable.bytes())) {
			t.Errorf("%s\n%s", stable.bytes(), unstable.bytes())
		}
	})
}
