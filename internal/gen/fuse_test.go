package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuseErrors: a message is not read again only if nothing but a free text
// can differ.
func TestFuseErrors(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "union_shared.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := parseArchive(string(b)).files
	for _, x := range []struct{ name, old, new, text, want string }{
		{"fine", "", "", "text", ""},
		{"no such text", "", "", "gone", "Text.gone: no text to tell messages apart"},
		{"a text with bounds", "\"text\": {\n     \"type\": \"string\"", "\"text\": {\n     \"type\": \"string\",\n     \"minLength\": 1", "text", "Text.text: no text to tell messages apart"},
		{"another kind of member", "\"sessionId\": {\n     \"type\": \"string\"", "\"sessionId\": {\n     \"type\": \"boolean\"", "text", "Message.sessionId: a fused message cannot hold this"},
	} {
		schema := strings.Replace(files["schema.json"], x.old, x.new, 1)
		if x.old != "" && schema == files["schema.json"] {
			t.Fatal(x.name, "changes nothing")
		}
		_, err := tiny{version: "v2", schema: schema, docs: files["docs.txt"], table: small(func(t *table) {
			t.coalloc = entries("coalloc", map[string]coalloc{"Chunk": {"content", "Text", x.text}})
			t.fuse = names("fuse", "Message")
		})}.generate()
		if x.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), x.want) || x.want == "" {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}
