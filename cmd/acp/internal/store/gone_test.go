package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeletedIsGone: what was deleted is not in the files any more, be it ever so long.
func TestDeletedIsGone(t *testing.T) {
	dir := t.TempDir()
	s, _, err := Open(t.Context(), Options{Path: filepath.Join(dir, "s.db")})
	if err != nil {
		t.Fatal(err)
	}
	k := Key{"a", "s1"}
	word := "unforgettable"
	for range 8 {
		data := []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat(word+" ", 4000) + `"}}`)
		if err := s.Append(t.Context(), k, []Event{{Kind: EventUpdate, Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), Session{Key: k, Title: word}); err != nil {
		t.Fatal(err)
	}
	if found, err := s.List(t.Context(), Query{Text: word}); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	before := size(t, dir)
	if err := s.Delete(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if found, err := s.List(t.Context(), Query{Text: word}); err != nil || len(found) != 0 {
		t.Fatal(found, err)
	}
	holds(t, dir, word, "while the store is open")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, word, "when it is closed")
	if after := size(t, dir); after > before/2 {
		t.Errorf("the files have %d bytes, and had %d before", after, before)
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

func holds(t *testing.T, dir, word, when string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && bytes.Contains(data, []byte(word)) {
			t.Errorf("%s: %s still holds it %d times, in %d bytes", when, e.Name(), bytes.Count(data, []byte(word)), len(data))
		}
	}
}
