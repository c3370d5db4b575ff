package conformance

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var repack = flag.Bool("update", false, "pack the rules anew")

// TestPacked: what the package has is the folder of the rules. With -update it is packed anew.
func TestPacked(t *testing.T) {
	want := textsOf(t, os.DirFS("."))
	if *repack {
		if err := os.WriteFile("rules.zip", pack(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := zip.NewReader(strings.NewReader(packedRules), int64(len(packedRules)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, textsOf(t, files)); diff != "" {
		t.Errorf("rules.zip is not what is in the folder: go test ./conformance -run TestPacked -update\n%s", diff)
	}
}

// textsOf returns the files of the rules.
func textsOf(t *testing.T, from fs.FS) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := fs.WalkDir(from, "rules", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".txtar" {
			return err
		}
		text, err := fs.ReadFile(from, name)
		texts[name] = strings.ReplaceAll(string(text), "\r\n", "\n") // as Git may write them
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// pack packs files, without their times.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
