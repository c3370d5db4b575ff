package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upstream writes the four schemas of an upstream release.
func upstream(t *testing.T, schema string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, s := range sources {
		put(t, filepath.Join(dir, s.upstream), schema)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const prose = `
{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Some protocol", "description": "Many words.", "$comment": "and more",
  "$defs": {
    "Zebra": {
      "title": "A zebra", "description": "An animal.", "type": "object", "x-docs-ignore": true, "examples": [{"title": "x"}],
      "properties": {
        "title": {"title": "Title", "description": "What it is called.", "type": ["string", "null"], "default": {"title": "kept", "description": "kept"}},
        "description": {"description": "Words.", "type": "string"},
        "properties": {"type": "object", "additionalProperties": {"description": "One.", "type": "string"}},
        "$comment": {"type": "array", "items": {"title": "Item", "type": "string"}},
        "examples": {"anyOf": [{"title": "First", "$ref": "#/$defs/Aardvark"}, {"description": "Or none.", "type": "null"}]},
        "default": {"type": "integer", "format": "int64", "description": "A number.", "default": 9007199254740993}
      },
      "required": ["title", "description"]
    },
    "Aardvark": {"oneOf": [{"description": "The word title.", "type": "string", "const": "title"}], "discriminator": {"propertyName": "title"}}
  },
  "anyOf": [{"title": "Agent"}]
}
`

const stripped = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"$defs": {
		"Zebra": {
			"type": "object",
			"properties": {
				"title": {
					"type": [
						"string",
						"null"
					],
					"default": {
						"title": "kept",
						"description": "kept"
					}
				},
				"description": {
					"type": "string"
				},
				"properties": {
					"type": "object",
					"additionalProperties": {
						"type": "string"
					}
				},
				"$comment": {
					"type": "array",
					"items": {
						"type": "string"
					}
				},
				"examples": {
					"anyOf": [
						{
							"$ref": "#/$defs/Aardvark"
						},
						{
							"type": "null"
						}
					]
				},
				"default": {
					"type": "integer",
					"format": "int64",
					"default": 9007199254740993
				}
			},
			"required": [
				"title",
				"description"
			]
		},
		"Aardvark": {
			"oneOf": [
				{
					"type": "string",
					"const": "title"
				}
			],
			"discriminator": {
				"propertyName": "title"
			}
		}
	},
	"anyOf": [
		{}
	]
}
`

// TestSync: the structure is kept in its order, the sentences are not, and
// SOURCE says what it was made from.
func TestSync(t *testing.T) {
	dir, root := upstream(t, prose), t.TempDir()
	put(t, filepath.Join(dir, "package.json"), `{"name":"@some/protocol","version":"1.2.3"}`)
	put(t, filepath.Join(root, "schema", "docs.txt"), "kept")
	var out bytes.Buffer
	if err := run([]string{"-root", root, "sync", dir}, &out, &out); err != nil {
		t.Fatal(err)
	}
	source := "version @some/protocol 1.2.3\n"
	for _, s := range sources {
		if diff := cmp.Diff(stripped, get(t, filepath.Join(root, "schema", s.ours))); diff != "" {
			t.Errorf("%s: %s", s.ours, diff)
		}
		source += fmt.Sprintf("sha256 %x %s\n", sha256.Sum256([]byte(prose)), s.upstream)
	}
	if diff := cmp.Diff(source, get(t, filepath.Join(root, "schema", "SOURCE"))); diff != "" {
		t.Error(diff)
	}
	if got := get(t, filepath.Join(root, "schema", "docs.txt")); got != "kept" {
		t.Errorf("docs.txt became %q", got)
	}
	want := ""
	for _, s := range sources {
		want += s.ours + ": 2 definitions, 2 differ\n  + Aardvark\n  + Zebra\n"
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	// Again, from a directory inside the package: nothing differs.
	put(t, filepath.Join(dir, "package.json"), `{}`)
	put(t, filepath.Join(filepath.Dir(dir), "package.json"), `{"name":"@some/protocol","version":"1.2.4"}`)
	out.Reset()
	if err := syncSchemas(dir, filepath.Join(root, "schema"), &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "+") || strings.Count(out.String(), "2 definitions, 0 differ\n") != len(sources) {
		t.Errorf("nothing changed, but: %s", out.String())
	}
	if got := get(t, filepath.Join(root, "schema", "SOURCE")); !strings.HasPrefix(got, "version @some/protocol 1.2.4\n") {
		t.Error(got)
	}
}

// TestSyncDiff: what changed, by definition and member.
func TestSyncDiff(t *testing.T) {
	const before = `{"$defs":{
		"Gone":{"type":"string"}, "Same":{"type":"string"},
		"Kind":{"type":"string"},
		"Thing":{"type":"object","properties":{"kept":{"type":"string"},"gone":{"type":"string"},"changed":{"type":"string"}},"required":["kept"]},
		"Order":{"type":"object","required":["a"]}}}`
	const after = `{"$defs":{
		"Same":{"description":"New words alone change nothing.","type":"string"},
		"New":{"type":"string"},
		"Kind":{"type":"integer","format":"int32"},
		"Thing":{"type":"object","properties":{"kept":{"title":"New","type":"string"},"new":{"type":"string"},"changed":{"type":"boolean"}},"required":["kept"]},
		"Order":{"type":"object","required":["b"]}}}`
	out := t.TempDir()
	if err := syncSchemas(upstream(t, before), out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	if err := syncSchemas(upstream(t, after), out, &report); err != nil {
		t.Fatal(err)
	}
	want := "v1.json: 5 definitions, 5 differ\n  - Gone\n  ~ Kind\n  + New\n  ~ Order: required\n  ~ Thing: +new -gone ~changed\n"
	if got, _, _ := strings.Cut(report.String(), "v1.unstable.json"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !strings.HasPrefix(get(t, filepath.Join(out, "SOURCE")), "version unknown\n") {
		t.Error("a version out of nowhere")
	}
}

func TestSyncErrors(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                  "",
		"blank":                  "\n",
		"not JSON":               `{"$defs":`,
		"more behind it":         `{"$defs":{"A":{"type":"string"}}} x`,
		"a list":                 `[]`,
		"no definitions":         `{}`,
		"an unknown keyword":     `{"$defs":{"A":{"type":"string","maxLength":1}}}`,
		"an unknown annotation":  `{"$defs":{"A":{"type":"string","x-new":true}}}`,
		"malformed definitions":  `{"$defs":[]}`,
		"a malformed definition": `{"$defs":{"A":{"properties":7}}}`,
	} {
		out := t.TempDir()
		if err := syncSchemas(upstream(t, text), out, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "v1/schema.json") {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(out); len(left) > 0 {
			t.Errorf("%s: %s was written in spite of the error", name, left[0].Name())
		}
	}
	ok := upstream(t, prose)
	if err := syncSchemas(t.TempDir(), t.TempDir(), &bytes.Buffer{}); err == nil {
		t.Error("a directory without schemas is accepted")
	}
	if err := syncSchemas(ok, filepath.Join(t.TempDir(), "missing"), &bytes.Buffer{}); err == nil {
		t.Error("a directory that is not there is written to")
	}
	out := t.TempDir()
	put(t, filepath.Join(out, "v1.json"), "{")
	if err := syncSchemas(ok, out, &bytes.Buffer{}); err == nil {
		t.Error("a broken schema is overwritten without a word")
	}
	if err := os.Mkdir(filepath.Join(out, "v1.unstable.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(out, "v1.json"))
	if err := syncSchemas(ok, out, &bytes.Buffer{}); err == nil {
		t.Error("a directory in the place of a schema is no error")
	}
}
