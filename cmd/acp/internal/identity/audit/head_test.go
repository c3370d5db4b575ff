package audit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissing: entries that are missing at the end, and a log that is missing, are noticed without a hash that was noted
// elsewhere, also once the log has been continued.
func TestMissing(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(dir string) error
		want   string
		entry  string // of the next append
	}{
		"deleted":  {func(dir string) error { return os.Remove(filepath.Join(dir, File)) }, "its files are missing, and it had 5 entries", "entries 1 to 5 are missing"},
		"emptied":  {func(dir string) error { return os.WriteFile(filepath.Join(dir, File), nil, 0o600) }, "it is empty, and had 5 entries", "entries 1 to 5 are missing"},
		"cut off":  {func(dir string) error { return keepLines(dir, 3) }, "it ends with entry 3, and entry 5 was written", "entries 4 to 5 are missing"},
		"anew":     {anew, "entry 5 is another one than was written", ""},
		"the head": {func(dir string) error { return os.WriteFile(filepath.Join(dir, HeadFile), []byte("{"), 0o600) }, "does not say what the last entry is", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := Open(dir)
			write(t, l, 1, 5)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(dir, ""); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if tt.entry == "" {
				return
			}
			for range 2 { // by a process that has it open, and by another one
				write(t, l, 6, 6)
				l = Open(dir)
				if _, err := Verify(dir, ""); !errors.Is(err, ErrDamaged) {
					t.Errorf("after the next entry: %v", err)
				}
			}
			if got := read(t, dir); len(got) < 3 || got[len(got)-3].Action != actionLoss || got[len(got)-3].Seq != 6 {
				t.Errorf("it is not shown: %+v", got)
			}
			if data, err := os.ReadFile(filepath.Join(dir, File)); err != nil || bytes.Count(data, []byte(tt.entry)) != 1 {
				t.Errorf("%s, %v", data, err)
			}
		})
	}
}

// TestNone: a directory without a log, and none, are errors. A log from before there were heads is not.
func TestNone(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := Verify(d, ""); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err := Read(d, func(Entry) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	write(t, Open(dir), 1, 3)
	if err := os.Remove(filepath.Join(dir, HeadFile)); err != nil {
		t.Fatal(err)
	}
	for n := range int64(2) {
		if r, err := Verify(dir, ""); err != nil || r.Entries != 3+n {
			t.Error(r, err)
		}
		write(t, Open(dir), 4, 4)
	}
}

// TestBehind: an entry that was written, and its head not any more, is an entry like any other.
func TestBehind(t *testing.T) {
	dir := t.TempDir()
	write(t, Open(dir), 1, 3)
	file := filepath.Join(dir, HeadFile)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, Open(dir), 4, 4)
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range int64(2) {
		if r, err := Verify(dir, ""); err != nil || r.Entries != 4+n {
			t.Error(r, err)
		}
		write(t, Open(dir), 5, 5)
	}
}

// keepLines removes all but the first lines of a log.
func keepLines(dir string, n int) error {
	file := filepath.Join(dir, File)
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:n], nil), 0o600)
}

// anew writes a log anew, with other entries.
func anew(dir string) error {
	file := filepath.Join(dir, File)
	l := new(Log)
	var out []byte
	for range 5 {
		out = l.add(out, Entry{Action: "nothing"})
	}
	return os.WriteFile(file, out, 0o600)
}
