package store

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// opens counts the files that are opened.
type opens struct {
	file.System
	n atomic.Int64
}

func (o *opens) Open(name string, flag int) (file.File, error) {
	o.n.Add(1)
	return o.System.Open(name, flag)
}

// TestSearchOpensNothing searches with an index that is up to date: no log is opened for that.
func TestSearchOpensNothing(t *testing.T) {
	files := new(opens)
	s := openWith(t, Options{Path: t.TempDir(), Normal: true, Disk: files})
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
