package ramtemp

import (
	"os"
	"path/filepath"
	"testing"
)

// A runner is the tests of a package.
type runner func() int

func (r runner) Run() int { return r() }

// TestRun: tests have a temporary directory of their own, which is gone after them, and one that was said is left alone.
func TestRun(t *testing.T) {
	said := t.TempDir()
	t.Setenv("TMPDIR", said)
	if code := Run(runner(func() int {
		if os.TempDir() != said {
			t.Errorf("TMPDIR is %s, not %s", os.TempDir(), said)
		}
		return 3
	})); code != 3 {
		t.Errorf("code %d", code)
	}

	t.Setenv("TMPDIR", "")
	_, remove, err := mkdir()
	if err != nil {
		t.Skip(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	dir := ""
	code := Run(runner(func() int {
		dir = os.TempDir()
		if dir == "/tmp" || dir == said {
			t.Errorf("TMPDIR is %s", dir)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
		return 0
	}))
	if _, err := os.Stat(dir); code != 0 || !os.IsNotExist(err) {
		t.Errorf("code %d, left behind: %v", code, err)
	}
}
