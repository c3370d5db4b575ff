package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// opens opens a database that is closed with the test.
func opens(t testing.TB, path string) *Database {
	t.Helper()
	d, err := OpenDatabase(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-d.closed: // it is closed once
		default:
			_ = d.Close()
		}
	})
	return d
}

// filled makes sessions with records in a database.
func filled(t testing.TB, d *Database, records int, ids ...string) {
	t.Helper()
	if err := d.TakeLease(t.Context(), "n", 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := d.CreateSession(t.Context(), engine.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
		st, err := d.Claim(t.Context(), id, "n", 1)
		if err != nil {
			t.Fatal(err)
		}
		b := engine.Batch{Session: id, Key: st.Key, Epoch: st.Epoch, Claim: st.Claim, New: engine.Head{Seq: uint64(records)}}
		for i := range records {
			b.Records = append(b.Records, engine.Record{Seq: uint64(i + 1), Kind: "k"})
		}
		if ok, err := d.Append(t.Context(), []engine.Batch{b}); err != nil || !ok[0] {
			t.Fatal(ok, err)
		}
	}
}

// TestFenced: a session that is fenced does not hurt those with which it is committed, and nothing is committed twice.
func TestFenced(t *testing.T) {
	d := opens(t, filepath.Join(t.TempDir(), "log.db"))
	filled(t, d, 1, "a", "b", "c")
	var group []engine.Batch
	for i, id := range []string{"a", "b", "c"} {
		st, err := d.State(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			st.Claim++
		}
		group = append(group, engine.Batch{Session: id, Key: st.Key, Epoch: st.Epoch, Claim: st.Claim, Old: st.Head,
			New: engine.Head{Seq: 2}, Records: []engine.Record{{Seq: 2, Kind: "k"}}})
	}
	for _, want := range []string{"[true false true]", "[false false false]"} {
		if ok, err := d.Append(t.Context(), group); err != nil || fmt.Sprint(ok) != want {
			t.Errorf("%v, want %v, %v", ok, want, err)
		}
	}
	for i, id := range []string{"a", "b", "c"} {
		if all, err := d.Records(t.Context(), group[i].Key, 1, 10, 1000); err != nil || len(all) != 2-i%2 {
			t.Errorf("%s has %d records, %v", id, len(all), err)
		}
	}
}

// TestPurge: a session whose records cannot be deleted is deleted all the same, and its owner is known; they are deleted
// with the next try, or when the database is opened.
func TestPurge(t *testing.T) {
	for _, opened := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "log.db")
		d := opens(t, path)
		filled(t, d, 5, "a", "b")
		execute(t, path, `CREATE TRIGGER keep BEFORE DELETE ON acp_record BEGIN SELECT RAISE(ABORT, 'kept'); END`)
		if owner, err := d.DeleteSession(t.Context(), "a"); owner != "n" || !errors.Is(err, engine.ErrUnpurged) {
			t.Errorf("owner %q: %v", owner, err)
		}
		if _, err := d.Session(t.Context(), "a"); !errors.Is(err, engine.ErrDeleted) {
			t.Errorf("session: %v", err)
		}
		execute(t, path, `DROP TRIGGER keep`)
		if opened {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			opens(t, path)
		} else if _, err := d.DeleteSession(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		execute(t, path, `CREATE TABLE check_left (n CHECK (n = 5))`)
		execute(t, path, `INSERT INTO check_left SELECT count(*) FROM acp_record`)
	}
}

// TestErrors: what a database cannot do it says in the words of package engine.
func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	d, err := OpenDatabase(t.Context(), path, 100<<10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.read.ExecContext(t.Context(), `DELETE FROM acp_head`); !errors.Is(wrap(err), engine.ErrReadOnly) {
		t.Errorf("write while reading: %v", err)
	}
	err = nil
	for i := 0; err == nil && i < 1000; i++ {
		err = d.CreateSession(t.Context(), engine.Session{ID: fmt.Sprint(i), Title: string(make([]byte, 1000))})
	}
	if !errors.Is(err, engine.ErrFull) {
		t.Errorf("without space: %v", err)
	}
	if _, err := d.Session(t.Context(), "0"); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.CreateSession(t.Context(), engine.Session{ID: "s"}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestWitness: what is behind is ignored, what is damaged says nothing.
func TestWitness(t *testing.T) {
	path := filepath.Join(t.TempDir(), witnessName)
	w, err := OpenWitness(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	h3, h5 := engine.Head{Seq: 3, Hash: [32]byte{3}}, engine.Head{Seq: 5, Hash: [32]byte{5}}
	note := func(h engine.Head) {
		t.Helper()
		if err := w.Note(t.Context(), map[string]engine.Head{"s": h, "other": h3}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(session string, want engine.Head) {
		t.Helper()
		if got, err := w.Seen(t.Context(), session); err != nil || got != want {
			t.Errorf("%s: seen %v, %v; want %v", session, got, err, want)
		}
	}
	want("s", engine.Head{})
	note(h5)
	note(h3)
	want("s", h5)
	execute(t, path, `UPDATE head SET seq = 1000 WHERE session = 's'`)
	want("s", engine.Head{})
	note(h3)
	want("s", h3)
	want("other", h3)
	if err := w.Forget(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	want("s", engine.Head{})
	want("other", h3)
}
