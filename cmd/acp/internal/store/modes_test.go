package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestModes: what the store makes can be read by its owner only, through links, too.
func TestModes(t *testing.T) {
	base := t.TempDir()
	links := filepath.Join(base, "links")
	if err := os.Symlink(filepath.Join(base, "far", "away"), links); err != nil {
		t.Skip(err)
	}
	s := openTest(t, links)
	if err := os.Symlink(filepath.Join(base, "far", "elsewhere.db"), filepath.Join(links, indexName)); err != nil {
		t.Fatal(err)
	}
	write(t, s, Session{Key: key}, Event{Kind: journal.KindEnd})
	if found, err := s.List(t.Context(), Query{}); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	seen := 0
	err := filepath.WalkDir(filepath.Join(base, "far"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		seen++
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", strings.TrimPrefix(name, base), info.Mode())
		}
		return err
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files, %v", seen, err)
	}
}
