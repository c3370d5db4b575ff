package packed

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// TestPack: files come out as they went in, each by itself, with a dictionary and without.
func TestPack(t *testing.T) {
	files := map[string]string{"a/b.txt": strings.Repeat("common words ", 50), "empty": "", "c": "others"}
	for _, dict := range []string{"", "common words common words"} {
		data, err := Pack(files, dict)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(string(data))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"a/b.txt", "c", "empty"}; !slices.Equal(f.Names(), want) {
			t.Errorf("%q", f.Names())
		}
		for name, want := range files {
			got, err := fs.ReadFile(f, name)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if _, err := fs.ReadFile(f, "b"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		info, err := fs.Stat(f, "a/b.txt")
		if err != nil || info.Name() != "a/b.txt" || !info.Mode().IsRegular() || info.IsDir() || !info.ModTime().IsZero() || info.Sys() != nil {
			t.Errorf("a file's status: %v, %v", info, err)
		}
		for i := range data {
			if f, err := Open(string(data[:i])); err == nil && len(f.Names()) == len(files) {
				t.Errorf("%d bytes of %d have all files", i, len(data))
			}
		}
	}
}

// TestOpenInvalid: what is no packed string is said to be none.
func TestOpenInvalid(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                 "",
		"a dictionary that ends":  "\x05ab",
		"no compressed text":      "\x02\xff\xff",
		"a name without contents": "\x02\x03\x00" + "\x01a",
	} {
		if f, err := Open(data); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// FuzzOpen: nothing panics, whatever the string is.
func FuzzOpen(f *testing.F) {
	data, err := Pack(map[string]string{"a": "text", "b": "more text"}, "text")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, data string) {
		files, err := Open(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Error(err)
			}
			return
		}
		for _, name := range files.Names() {
			_, _ = fs.ReadFile(files, name)
		}
	})
}
