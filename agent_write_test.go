package acp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func always() error { return nil }

// TestReplaceFile: a file that is not what it was is left as it is, also if it changes, or comes
// to be, while the new text is made ready.
func TestReplaceFile(t *testing.T) {
	old := "old"
	for _, tc := range []struct {
		name  string
		has   string // "" is no file
		old   *string
		links int
		then  string // what somebody else writes meanwhile
		want  string
		err   error
	}{
		{"as it was", "old", &old, 0, "", "new", nil},
		{"changed", "other", &old, 0, "", "other", ErrFileChanged},
		{"gone", "", &old, 0, "", "", ErrFileChanged},
		{"new", "", nil, 0, "", "new", nil},
		{"there", "other", nil, 0, "", "other", ErrFileChanged},
		{"changed meanwhile", "old", &old, 0, "theirs", "theirs", ErrFileChanged},
		{"made meanwhile", "", nil, 0, "theirs", "theirs", ErrFileChanged},
		{"two names", "old", &old, 1, "", "new", nil},
		{"two names, changed meanwhile", "old", &old, 1, "theirs", "theirs", ErrFileChanged},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if tc.has != "" {
			if err := os.WriteFile(path, []byte(tc.has), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range tc.links {
			if err := os.Link(path, filepath.Join(t.TempDir(), "other")); err != nil {
				t.Skip(err)
			}
		}
		meanwhile := tc.then
		err := writeFile(path, "new", func() error {
			look := func() error {
				data, err := readRegular(path)
				return has(string(data), err, tc.old)
			}
			err := look()
			if meanwhile != "" { // with errNew it comes after the look, or else before it
				if e := os.WriteFile(path, []byte(meanwhile), 0o600); e != nil {
					t.Fatal(e)
				}
				if !errors.Is(err, errNew) {
					err = look()
				}
			}
			return err
		})
		data, _ := os.ReadFile(path)
		if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) || string(data) != tc.want {
			t.Errorf("%s: %q, %v", tc.name, data, err)
		}
		if tc.want != "" {
			alone(t, path)
		}
	}
}

// TestWriteFileWhole: whoever reads a file while it is written sees all of the old text or
// all of the new one.
func TestWriteFileWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is being read cannot be replaced there")
	}
	path := filepath.Join(t.TempDir(), "f")
	texts := []string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20+1)}
	if err := writeFile(path, texts[0], always); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range 40 {
			if err := writeFile(path, texts[(i+1)%2], always); err != nil {
				t.Error(err)
			}
		}
	})
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		data, err := os.ReadFile(path)
		if got := string(data); err != nil || got != texts[0] && got != texts[1] {
			t.Fatalf("a part was read: %d bytes, %v", len(data), err)
		}
	}
	wg.Wait()
	alone(t, path)
}

// alone holds that nothing but a file is in its directory.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestWriteFileKeeps: the mode and links stay.
func TestWriteFileKeeps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of another kind")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	link, other := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "nothing")
	if err := errors.Join(os.Symlink(path, link), os.Symlink(filepath.Join(dir, "none"), other)); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, "new", always); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %s, %v", target, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
	alone(t, path)
	if err := writeFile(other, "made", always); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "none")); err != nil || string(data) != "made" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestWriteFileNames: all names of a file lead to the new text, whether it is longer or
// shorter.
func TestWriteFileNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names are not counted there")
	}
	path, other := filepath.Join(t.TempDir(), "f"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(path, []byte("old text"), 0o640), os.Link(path, other)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a much longer text\n", "new", ""} {
		if err := writeFile(path, text, always); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(other); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
	alone(t, path)
}

// TestWriteFileRefused: what is no file is not written, and a directory that is missing is
// not made.
func TestWriteFileRefused(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(dir, "x", always); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	if err := writeFile(filepath.Join(dir, "none", "f"), "x", always); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		return
	}
	path := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o400)); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, "x", always); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	// A directory that cannot be written: the file is written in place.
	if err := errors.Join(os.Chmod(path, 0o600), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o700) }()
	if err := writeFile(path, "in place", always); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "in place" {
		t.Errorf("%q, %v", data, err)
	}
}
