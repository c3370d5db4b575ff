package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConversations lists so many logs that several goroutines ask for their sizes, with parts and with names
// that are no logs among them.
func TestConversations(t *testing.T) {
	dir := t.TempDir()
	want := map[string][]part{}
	put := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * statters * statAtOnce {
		id := namedID("a", fmt.Sprint(i))
		put(logName(id, 1), i)
		want[id] = []part{{1, int64(i)}}
		if i%97 == 0 {
			for _, n := range []int{10, 2} {
				put(logName(id, n), n)
			}
			want[id] = append(want[id], part{2, 2}, part{10, 10})
		}
	}
	put("index.db", 1)
	put("0000000000000000.jsonl", 1) // no letters of an id
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, logName(namedID("b", "directory"), 1)), 0o700),
		os.Symlink("nowhere", filepath.Join(dir, logName(namedID("b", "link"), 1))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &Store{dir: dir, files: System{}}
	got, err := s.conversations()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(part{})); diff != "" {
		t.Error(diff)
	}
}

// opens counts the files that are opened.
type opens struct {
	System
	n atomic.Int64
}

func (o *opens) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	o.n.Add(1)
	return o.System.OpenFile(name, flag, perm)
}

// TestSearchOpensNothing searches with an index that is up to date: no log is opened for that.
func TestSearchOpensNothing(t *testing.T) {
	files := new(opens)
	s := openWith(t, Options{Path: t.TempDir(), Normal: true, Files: files})
	for i := range 20 {
		write(t, s, Session{Key: Key{"a", fmt.Sprint(i)}}, chunk("agent", "m", fmt.Sprintf("common words and rarity%d", i)))
	}
	search := func(want int, text string) {
		t.Helper()
		if found, err := s.List(t.Context(), Query{Text: text}); err != nil || len(found) != want {
			t.Fatalf("%q: %d found, %v", text, len(found), err)
		}
	}
	search(20, "common")
	before := files.n.Load()
	search(1, "rarity7")
	search(20, "words")
	if n := files.n.Load() - before; n > 0 {
		t.Errorf("%d logs were opened", n)
	}
}
