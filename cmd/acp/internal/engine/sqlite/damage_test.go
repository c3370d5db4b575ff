package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// opened is an engine that is closed with the test, and its lease.
func opened(t *testing.T, dir string, o Options) (*engine.Engine, *engine.Lease) {
	t.Helper()
	o.LeaseTTL = time.Hour // nobody renews it
	e, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	return e, l
}

// fill creates sessions with records whose data begins with the session's id.
func fill(t *testing.T, e *engine.Engine, l *engine.Lease, records int, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := e.Create(t.Context(), engine.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
		o, err := e.Claim(t.Context(), id, l)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			text := fmt.Sprintf("<%s-%d>%s", id, i+1, strings.Repeat(".", 700))
			if _, err := o.Append(t.Context(), engine.Record{Data: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func count(t *testing.T, e *engine.Engine, id string) (n int, err error) {
	t.Helper()
	err = e.Read(t.Context(), id, 0, func(engine.Record) error { n++; return nil })
	return n, err
}

// change modifies the file of a log where a text is.
func change(t *testing.T, dir, text string, f func(file []byte, at int)) {
	t.Helper()
	path := filepath.Join(dir, logName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(text))
	if at < 0 {
		t.Fatalf("%q is not in the file", text)
	}
	f(data, at)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFile: a byte that was flipped in a record, and a page that is overwritten, cost their
// session and nothing else, also after a restart.
func TestDamagedFile(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     func(file []byte, at int)
		why   error
		whole func(n int) bool
	}{
		{"a byte", func(file []byte, at int) { file[at+20] ^= 4 }, engine.ErrChain, func(n int) bool { return n == 29 }},
		{"a page", func(file []byte, at int) {
			page := file[at/pageSize*pageSize:][:pageSize]
			for i := range page {
				page[i] = 0xee
			}
		}, engine.ErrCorrupt, func(n int) bool { return n < 30 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			e, l := opened(t, dir, Options{})
			fill(t, e, l, 60, "a", "b", "c")
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			change(t, dir, "<b-30>", test.f)
			alarms := make(chan error, 10)
			for range 2 {
				e, l := opened(t, dir, Options{Options: engine.Options{Alarm: func(_ string, err error) { alarms <- err }}})
				n, err := count(t, e, "b")
				bad, ok := errors.AsType[*engine.DamageError](err)
				if !ok || !errors.Is(err, test.why) || bad.Session != "b" || !test.whole(n) {
					t.Errorf("%d records, then %v", n, err)
				}
				if _, err := e.Claim(t.Context(), "b", l); !errors.Is(err, test.why) {
					t.Errorf("claim: %v", err)
				}
				for _, id := range []string{"a", "c"} {
					o, err := e.Claim(t.Context(), id, l)
					if err != nil {
						t.Fatal(err)
					}
					recs, err := o.Append(t.Context(), engine.Record{})
					if n, e := count(t, e, id); err != nil || e != nil || n != int(recs[0].Seq) {
						t.Errorf("session %s: %d records, %v, %v", id, n, err, e)
					}
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if len(alarms) != 1 {
				t.Errorf("%d alarms", len(alarms))
			}
		})
	}
}

// TestOlderFile: a copy of the log that was put back lacks its end, and the witness knows.
func TestOlderFile(t *testing.T) {
	dir := t.TempDir()
	e, l := opened(t, dir, Options{})
	fill(t, e, l, 5, "a", "b")
	e.Close()
	path := filepath.Join(dir, logName)
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, l = opened(t, dir, Options{})
	o, err := e.Claim(t.Context(), "b", l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(t.Context(), engine.Record{}, engine.Record{}); err != nil {
		t.Fatal(err)
	}
	e.Close()
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	e, l = opened(t, dir, Options{})
	n, err := count(t, e, "b")
	if bad, ok := errors.AsType[*engine.DamageError](err); !ok || n != 5 || bad.Seq != 7 || !errors.Is(err, engine.ErrLost) {
		t.Errorf("%d records, then %v", n, err)
	}
	if _, err := e.Claim(t.Context(), "b", l); !errors.Is(err, engine.ErrLost) {
		t.Errorf("claim: %v", err)
	}
	if n, err := count(t, e, "a"); n != 5 || err != nil {
		t.Errorf("the other session: %d records, %v", n, err)
	}
}

// TestFull: when no space is left appends say so at once, nothing that was acknowledged is lost, and
// they succeed again when there is space.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	e, l := opened(t, dir, Options{MaxBytes: 400 << 10})
	fill(t, e, l, 150, "old")
	fill(t, e, l, 0, "a", "b")
	var all [2]*engine.Owned
	for i, id := range []string{"a", "b"} {
		var err error
		if all[i], err = e.Claim(t.Context(), id, l); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for i := 0; refused < 6; i++ {
		o := all[i%2]
		before := o.Head()
		_, err := o.Append(t.Context(), engine.Record{Data: make([]byte, 5000)})
		switch {
		case err == nil && refused > 2:
			t.Fatal("there is space again")
		case err == nil && i > 1000:
			t.Fatal("it is never full")
		case err == nil:
		case !errors.Is(err, engine.ErrFull) || o.Head() != before:
			t.Fatalf("append: %v, head %v", err, o.Head())
		default:
			refused++
		}
	}
	for i, id := range []string{"a", "b"} {
		if n, err := count(t, e, id); err != nil || uint64(n) != all[i].Head().Seq {
			t.Errorf("session %s: %d records of %d, %v", id, n, all[i].Head().Seq, err)
		}
	}
	if _, err := e.Delete(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"a", "b"} {
		if _, err := all[i].Append(t.Context(), engine.Record{Data: make([]byte, 5000)}); err != nil {
			t.Errorf("when there is space: %v", err)
		}
		if n, err := count(t, e, id); err != nil || uint64(n) != all[i].Head().Seq {
			t.Errorf("session %s: %d records, %v", id, n, err)
		}
	}
}

// TestForeignFile: a file that is not a log is not touched.
func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, logName)
	execute(t, path, `CREATE TABLE x (y)`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("a database of another program: %v", err)
	}
	// That it is in WAL mode now is all.
	if after, err := os.ReadFile(path); err != nil || len(after) != len(before) {
		t.Errorf("it has %d bytes, had %d (%v)", len(after), len(before), err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("no database: %v", err)
	}
	dir = t.TempDir()
	e, _ := opened(t, dir, Options{})
	e.Close()
	execute(t, filepath.Join(dir, logName), `INSERT INTO acp_meta VALUES (99)`)
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("a later version: %v", err)
	}
}

// TestReadOnly: a database that cannot be written says so.
func TestReadOnly(t *testing.T) {
	db, err := OpenDatabase(t.Context(), filepath.Join(t.TempDir(), logName), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.read.ExecContext(t.Context(), `DELETE FROM acp_head`)
	if !errors.Is(wrap(err), engine.ErrReadOnly) {
		t.Errorf("write while reading: %v", err)
	}
}

// TestClosed: nobody waits for a database that was closed.
func TestClosed(t *testing.T) {
	e, _ := opened(t, t.TempDir(), Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Create(t.Context(), engine.Session{ID: "s"}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("create: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

// TestPurgeResumed: a deletion that was cut off ends when the log is opened.
func TestPurgeResumed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, logName)
	e, l := opened(t, dir, Options{})
	fill(t, e, l, 3, "a", "b")
	e.Close()
	execute(t, path, `INSERT INTO acp_tombstone SELECT id, n, 0, 0 FROM acp_head WHERE id = 'a'`)
	execute(t, path, `DELETE FROM acp_head WHERE id = 'a'`)
	execute(t, path, `DELETE FROM acp_session WHERE id = 'a'`)
	e, _ = opened(t, dir, Options{})
	if _, err := e.Session(t.Context(), "a"); !errors.Is(err, engine.ErrDeleted) {
		t.Errorf("session: %v", err)
	}
	if n, err := count(t, e, "b"); n != 3 || err != nil {
		t.Errorf("the other session: %d, %v", n, err)
	}
	e.Close()
	execute(t, path, `CREATE TABLE check_left (n CHECK (n = 3))`)
	execute(t, path, `INSERT INTO check_left SELECT count(*) FROM acp_record`)
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
