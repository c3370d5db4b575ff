package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// filesIn returns what the files in a directory have, by their names.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range list {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func put(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMoveJournals: what an earlier version has kept apart comes to the other conversations. What is there stays,
// whatever is moved, and nothing is removed that could not be moved.
func TestMoveJournals(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "sessions"), filepath.Join(t.TempDir(), "conversations")
	put(t, from, map[string]string{"s_1.jsonl": "old", "s_1.live": "l", "s_2.jsonl": "two", "s_2.lock": "x"})
	put(t, to, map[string]string{"s_1.jsonl": "newer", "abc.jsonl": "chat"})
	if err := moveJournals(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"s_1.jsonl": "newer", "s_1.jsonl.old": "old", "s_1.live": "l", "s_2.jsonl": "two", "abc.jsonl": "chat"}
	if diff := cmp.Diff(want, filesIn(t, to)); diff != "" {
		t.Error(diff)
	}
	if exists(from) {
		t.Error("the directory is still there")
	}
	if err := moveJournals(t.Context(), from, to); err != nil {
		t.Errorf("again: %v", err)
	}

	put(t, from, map[string]string{"s_3.jsonl": "three"})
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), map[string]string{"file": ""})
	if err := moveJournals(t.Context(), from, file); err == nil {
		t.Error("they are in a file")
	}
	if diff := cmp.Diff(map[string]string{"s_3.jsonl": "three"}, filesIn(t, from)); diff != "" {
		t.Errorf("what could not be moved: %s", diff)
	}
}

// TestRestoreElsewhere: a backup replaces what it has, and what gateways have begun, and leaves the other conversations
// of the directory. While a program has one open that is to be replaced, nothing changes.
func TestRestoreElsewhere(t *testing.T) {
	const chat, other = "abcdefghijklmnop", "bcdefghijklmnopq"
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "conversations")
	c := file.Open(at, file.Options{Who: "a chat"})
	defer c.Close()
	for _, id := range []string{"s_1", "s_2", chat} {
		w, err := c.Create(t.Context(), id, journal.Draft{Kind: journal.KindSession, Data: []byte(`{"agent":"a"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "backup")
	if err := os.Remove(filepath.Join(at, "s_2.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), at, name); err != nil {
		t.Fatal(err)
	}
	saved := filesIn(t, at)
	put(t, at, map[string]string{"s_3.jsonl": "later", other + ".jsonl": "another chat", "index.db": "words"})
	put(t, dir, map[string]string{"index.db": "rows", "node": "n"})
	if err := os.WriteFile(filepath.Join(at, chat+".jsonl"), []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	backup, err := file.OpenArchive(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()

	before := filesIn(t, at)
	w, err := c.Own(t.Context(), "s_1", func(*journal.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	open := (*journal.OwnedError)(nil)
	if _, err := Restore(t.Context(), backup, dir, at); !errors.As(err, &open) || open.ID != "s_1" {
		t.Errorf("while one is open: %v", err)
	}
	if err := w.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, filesIn(t, at)); diff != "" {
		t.Errorf("after a restore that was refused: %s", diff)
	}
	kept, err := Restore(t.Context(), backup, dir, at)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"s_1.jsonl": saved["s_1.jsonl"], chat + ".jsonl": saved[chat+".jsonl"], other + ".jsonl": "another chat", "index.db": "words",
	}
	if diff := cmp.Diff(want, filesIn(t, at)); diff != "" {
		t.Errorf("restored: %s", diff)
	}
	if got := filesIn(t, kept); got["s_3.jsonl"] != "later" || got[chat+".jsonl"] != "more" {
		t.Errorf("what was there is lost: %v", got)
	}
	if exists(filepath.Join(dir, "index.db")) || !exists(filepath.Join(dir, "node")) {
		t.Error("more was moved of the server, or less")
	}
}
