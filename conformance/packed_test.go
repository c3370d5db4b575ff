package conformance

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/packed"
)

var repack = flag.Bool("update", false, "pack the rules anew")

// TestPacked: what the package has is the folder of the rules. With -update it is packed anew.
func TestPacked(t *testing.T) {
	want := textsOf(t, os.DirFS("."))
	if *repack {
		data, err := packed.Pack(want, "")
		if err == nil {
			err = os.WriteFile("rules.packed", data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := unpackRules()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules.packed is not what is in the folder: go test ./conformance -run TestPacked -update\n%s", diff)
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
