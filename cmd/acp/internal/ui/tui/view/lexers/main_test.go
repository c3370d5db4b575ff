package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFresh holds that lexers.zip is of the version of chroma that go.mod names.
func TestFresh(t *testing.T) {
	data, err := os.ReadFile("../lexers.zip")
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
		t.Error("lexers.zip is stale: run go generate in cmd/acp/internal/ui/tui/view")
	}
	// What is lost is in ADR 0031.
	if diff := cmp.Diff([]string{"Caddyfile", "Caddyfile Directives", "Go HTML Template", "Haxe", "Raku", "YAML+Jinja"}, left); diff != "" {
		t.Error(diff)
	}
}

// unpack returns the files of an archive.
func unpack(data []byte) (map[string][]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	dict, err := io.ReadAll(flate.NewReader(strings.NewReader(r.Comment)))
	if err != nil {
		return nil, err
	}
	r.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser { return flate.NewReaderDict(r, dict) })
	files := map[string][]byte{}
	for _, f := range r.File {
		if files[f.Name], err = fs.ReadFile(r, f.Name); err != nil {
			return nil, err
		}
	}
	return files, nil
}
