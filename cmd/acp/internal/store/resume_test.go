package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRebuildCutOff: a rebuild that was cut off after the new file was complete is gone on with,
// wherever that was.
func TestRebuildCutOff(t *testing.T) {
	for name, at := range map[string]func(path string) error{
		"before the broken file was moved": func(path string) error { return os.WriteFile(path, []byte("broken"), 0o600) },
		"before the log was moved":         func(path string) error { return os.WriteFile(path+"-wal", []byte("old log"), 0o600) },
		"before the new file was moved":    func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			fill(t, path, 3, 5, 10)
			if err := errors.Join(os.Rename(path, rebuiltPath(path)), at(path)); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				s, damage, err := Open(t.Context(), Options{Path: path})
				if err != nil {
					t.Fatal(err)
				}
				all, err := s.List(t.Context(), Query{})
				if err != nil || len(all) != 3 {
					t.Errorf("%d sessions, %v", len(all), err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if i > 0 {
					if damage != nil {
						t.Errorf("told twice: %v", damage)
					}
					continue
				}
				if damage == nil || damage.Sessions != 3 || damage.Events == 0 || !strings.Contains(damage.Reason, "cut off") {
					t.Errorf("damage %v", damage)
				}
			}
			if _, err := os.Stat(rebuiltPath(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the new file is still there: %v", err)
			}
		})
	}
}

// TestSweep: what a process has left behind is removed once it is old.
func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	old, fresh := filepath.Join(filepath.Dir(path), ".new-store-1"), filepath.Join(filepath.Dir(path), ".new-store-2")
	for _, dir := range []string{old, fresh} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(old, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-2 * oldWork)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	s, _, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old work is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}
