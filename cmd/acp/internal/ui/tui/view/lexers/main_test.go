package main

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/packed"
)

// TestFresh holds that lexers.packed is of the version of chroma that go.mod names.
func TestFresh(t *testing.T) {
	data, err := os.ReadFile("../lexers.packed")
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	want, left, err := languages()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Error("lexers.packed is stale: run go generate in cmd/acp/internal/ui/tui/view")
	}
	// What is lost is in ADR 0031.
	if diff := cmp.Diff([]string{"Caddyfile", "Caddyfile Directives", "Go HTML Template", "Haxe", "Raku", "YAML+Jinja"}, left); diff != "" {
		t.Error(diff)
	}
}

// unpack returns the files of the archive.
func unpack(data []byte) (map[string][]byte, error) {
	all, err := packed.Open(string(data))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range all.Names() {
		if files[name], err = fs.ReadFile(all, name); err != nil {
			return nil, err
		}
	}
	return files, nil
}
