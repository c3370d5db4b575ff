package ramtemp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestMkdir: directories of tests that were killed go, those of tests that run stay.
func TestMkdir(t *testing.T) {
	base := t.TempDir()
	left := filepath.Join(base, "acpleft")
	if err := os.MkdirAll(filepath.Join(left, "some"), 0o700); err != nil {
		t.Fatal(err)
	}
	one, removeOne, err := mkdirIn(base)
	if err != nil {
		t.Fatal(err)
	}
	two, removeTwo, err := mkdirIn(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what was left behind: %v", err)
	}
	for _, dir := range []string{one, two} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(removeOne(), removeTwo()); err != nil {
		t.Error(err)
	}
	if all, err := os.ReadDir(base); err != nil || len(all) != 0 {
		t.Errorf("left behind: %v, %v", all, err)
	}
	if _, _, err := mkdirIn(filepath.Join(base, "none")); err == nil {
		t.Error("made a directory in none")
	}
	if _, err := lock(filepath.Join(base, "none")); err == nil {
		t.Error("locked a directory that does not exist")
	}
}

// TestSuits: only a file system in memory is used.
func TestSuits(t *testing.T) {
	if err := suits("/proc"); !errors.Is(err, errNoRoom) {
		t.Errorf("/proc: %v", err)
	}
	if err := suits(filepath.Join(t.TempDir(), "none")); err == nil || errors.Is(err, errNoRoom) {
		t.Errorf("no directory: %v", err)
	}
}
