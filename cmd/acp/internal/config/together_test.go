package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestTrustTogether: who trusts a file does not undo what somebody else does at the same time.
func TestTrustTogether(t *testing.T) {
	dir := t.TempDir()
	c := &Config{Dirs: Dirs{State: filepath.Join(dir, "state")}}
	const n = 16
	var work sync.WaitGroup
	for i := range n {
		file := filepath.Join(dir, fmt.Sprint("f", i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			if err := c.Trust(file); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if files, err := c.TrustedFiles(); err != nil || len(files) != n {
		t.Errorf("%d of %d are trusted, %v", len(files), n, err)
	}
}

// TestEditTogether: an edit does not undo what was written since it was begun.
func TestEditTogether(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.toml")
	set := func(e *Edit, key, value string) error {
		if err := e.SetText(key, value); err != nil {
			t.Fatal(err)
		}
		return e.Save()
	}
	one, err := OpenEdit(name)
	if err != nil {
		t.Fatal(err)
	}
	two, err := OpenEdit(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := set(one, "agent", "a"); err != nil {
		t.Fatal(err)
	}
	if err := set(one, "ui.theme", "dark"); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := set(two, "agent", "b"); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), `agent = "a"`) {
		t.Errorf("%s, %v", data, err)
	}
}
