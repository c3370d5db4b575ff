package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/store/legacy"
	"github.com/goacp/acp/transcript"
)

// openOld opens a database of an earlier version with SQL.
func openOld(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file://"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// makeOld makes a database of the last earlier version with a number of sessions, each with five
// messages in which its number is.
func makeOld(t *testing.T, path string, sessions int) {
	t.Helper()
	if err := legacy.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db := openOld(t, path)
	do(t, db, "BEGIN")
	for i := 1; i <= sessions; i++ {
		do(t, db, `INSERT INTO session (id, agent, sid, command, cwd, title, protocol, created, updated, turns, events, seq) VALUES (?, 'a', ?, '["a","--acp"]', '/p', ?, 2, ?, ?, 7, 6, 6)`,
			i, fmt.Sprintf("s%d", i), fmt.Sprintf("Title %d", i), int64(i)*1e9, int64(i+100)*1e9)
		for n := 1; n <= 5; n++ {
			do(t, db, `INSERT INTO event (session, seq, time, kind, data) VALUES (?, ?, ?, 'update', ?)`, i, n, int64(i+n)*1e9, []byte(chunk("agent", "m", fmt.Sprintf("<%d.%d>", i, n)).Data))
		}
		do(t, db, `INSERT INTO event (session, seq, time, kind, data) VALUES (?, 6, ?, 'turn', '{"stopReason":"end_turn"}')`, i, int64(i+100)*1e9)
	}
	do(t, db, "COMMIT")
	do(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTakeOver: all that was in a database of an earlier version is there, once.
func TestTakeOver(t *testing.T) {
	base := t.TempDir()
	old := filepath.Join(base, "conversations.db")
	makeOld(t, old, 3)
	db := openOld(t, old)
	// A subagent's session; a history that was replaced, and one that was broken off; questions.
	do(t, db, `INSERT INTO child (session, parent) VALUES (2, 1)`)
	do(t, db, `DELETE FROM event WHERE session = 3`)
	for seq, e := range map[int]struct{ kind, data string }{
		5:  {"replayed", string(chunk("user", "1", "told").Data)},
		6:  {"reset", `{"from":5}`},
		7:  {"asked", `{"sessionId":"s3","title":"first","subject":{"type":"tool_call","toolCall":{"toolCallId":"c"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}`},
		9:  {"answered", `{"asked":7,"outcome":{"outcome":"selected","optionId":"y"}}`},
		10: {"replayed", string(chunk("user", "1", "broken off").Data)},
	} {
		do(t, db, `INSERT INTO event (session, seq, time, kind, data) VALUES (3, ?, ?, ?, ?)`, seq, int64(seq)*1e9, e.kind, []byte(e.data))
	}
	do(t, db, `UPDATE session SET first = 5, reset = 6, seq = 10 WHERE id = 3`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	dir, file := Directory(old)
	if dir != filepath.Join(base, "conversations") || file != old {
		t.Fatalf("%s, %s", dir, file)
	}
	o := Options{Path: dir, Old: file, Normal: true}
	s, taken, err := Open(t.Context(), o)
	if err != nil || taken == nil || taken.Err != nil || taken.Sessions != 3 || taken.Left != 0 || taken.Damage != nil {
		t.Fatalf("%+v, %v", taken, err)
	}
	defer s.Close()
	if !strings.Contains(taken.String(), "3 earlier conversations were taken over") || !strings.Contains(taken.String(), taken.File) {
		t.Error(taken)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file is there: %v", err)
	}
	if info, err := os.Stat(taken.File); err != nil || info.Size() == 0 {
		t.Errorf("it is not kept: %v", err)
	}
	got, err := s.Latest(t.Context(), Key{"a", "s1"})
	want := Session{
		Key: Key{"a", "s1"}, Conversation: got.Conversation, Command: []string{"a", "--acp"}, Cwd: "/p", Title: "Title 1", Protocol: 2,
		Created: time.Unix(1, 0).UTC(), Updated: time.Unix(101, 0).UTC(), Turns: 7, Events: 6,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	if said, damage := messages(t, s, got.Conversation); !cmp.Equal(said, []string{"agent: <1.1><1.2><1.3><1.4><1.5>"}) || damage != nil {
		t.Errorf("%q, %v", said, damage)
	}
	if child, err := s.Child(t.Context(), got.Conversation, "s2"); err != nil || child.Title != "Title 2" {
		t.Errorf("the child: %+v, %v", child, err)
	}
	listed, err := s.List(t.Context(), Query{})
	if err != nil || len(listed) != 2 || listed[0].ID != "s3" {
		t.Errorf("%+v, %v", listed, err)
	}
	snapshot, damage, err := s.Snapshot(t.Context(), listed[0].Conversation, transcript.Config{})
	if err != nil || damage != nil {
		t.Fatal(damage, err)
	}
	asked := 0
	for e := range snapshot.Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			if e.Text() != "told" {
				t.Errorf("message %q", e.Text())
			}
		case *transcript.Permission:
			asked++
			if e.Outcome == nil {
				t.Error("a question has lost its answer")
			}
		}
	}
	if asked != 1 {
		t.Errorf("%d questions", asked)
	}
	if again, taken, err := Open(t.Context(), o); err != nil || taken != nil {
		t.Errorf("again: %v, %v", taken, err)
	} else {
		again.Close()
	}
}

// TestTakeOverVersions: databases of all earlier versions are taken over.
func TestTakeOverVersions(t *testing.T) {
	for v := 1; v <= 3; v++ {
		text, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("v%d.sql", v)))
		if err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(t.TempDir(), "file")
		db := openOld(t, old)
		do(t, db, string(text))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		dir, file := Directory(old)
		s, taken, err := Open(t.Context(), Options{Path: dir, Old: file, Normal: true})
		if err != nil || taken == nil || taken.Sessions != 1 {
			t.Fatalf("version %d: %+v, %v", v, taken, err)
		}
		found, err := s.List(t.Context(), Query{Text: "answer"})
		if err != nil || len(found) != 1 || found[0].Key != (Key{"gemini", "s1"}) {
			t.Fatalf("version %d: %+v, %v", v, found, err)
		}
		if said, _ := messages(t, s, found[0].Conversation); !cmp.Equal(said, []string{"agent: an old answer"}) {
			t.Errorf("version %d: %q", v, said)
		}
		s.Close()
		// The same setting means the same directory from now on.
		if again, _ := Directory(old); again != dir {
			t.Errorf("version %d: then %s, now %s", v, dir, again)
		}
	}
}

// TestTakeOverCutOff: what is cut off is done again, and nothing is there twice.
func TestTakeOverCutOff(t *testing.T) {
	old := filepath.Join(t.TempDir(), "conversations.db")
	makeOld(t, old, 5)
	dir, file := Directory(old)
	first := openTest(t, dir)
	db, _, err := legacy.Open(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	sessions, _, err := db.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range sessions[:3] {
		if err := first.takeOne(t.Context(), db, takenID(v.Agent, v.ID), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, takeName+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, taken, err := Open(t.Context(), Options{Path: dir, Old: file, Normal: true})
	if err != nil || taken == nil || taken.Sessions != 5 {
		t.Fatalf("%+v, %v", taken, err)
	}
	defer s.Close()
	if found, err := s.List(t.Context(), Query{}); err != nil || len(found) != 5 {
		t.Errorf("%d, %v", len(found), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, takeName+"*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// TestTakeOverBroken: what can be read of a broken database is taken over.
func TestTakeOverBroken(t *testing.T) {
	for name, f := range map[string]struct {
		breakIt func(t *testing.T, path string)
		want    int
	}{
		"garbage": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"cut off": {func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()*3/4)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 30},
		"a value of another type": {func(t *testing.T, path string) {
			db := openOld(t, path)
			do(t, db, `UPDATE session SET protocol = 'x', turns = x'00' WHERE id = 3`)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			old := filepath.Join(t.TempDir(), "conversations.db")
			makeOld(t, old, 40)
			f.breakIt(t, old)
			dir, file := Directory(old)
			s, taken, err := Open(t.Context(), Options{Path: dir, Old: file, Normal: true})
			if err != nil || taken == nil || taken.Err != nil || taken.Sessions < f.want {
				t.Fatalf("%v, %v", taken, err)
			}
			defer s.Close()
			t.Log(taken)
			if found, err := s.List(t.Context(), Query{Limit: -1}); err != nil || len(found) != taken.Sessions {
				t.Errorf("%d, %v, want %d", len(found), err, taken.Sessions)
			}
			if taken.Damage != nil {
				if _, err := os.Stat(taken.Damage.Aside); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTakeOverLater: a database that an earlier version of the program has open, or that is not ours, is
// left alone, and conversations are kept all the same.
func TestTakeOverLater(t *testing.T) {
	old := filepath.Join(t.TempDir(), "conversations.db")
	makeOld(t, old, 2)
	dir, file := Directory(old)
	lock, err := os.OpenFile(old+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ok, err := filelock.TryLock(lock, false); err != nil || !ok {
		t.Skip(err)
	}
	o := Options{Path: dir, Old: file, Normal: true}
	pragma := func(query string) {
		t.Helper()
		db := openOld(t, old)
		do(t, db, query)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []error{legacy.ErrInUse, legacy.ErrNewer, legacy.ErrForeign, nil} {
		switch want {
		case legacy.ErrNewer:
			lock.Close()
			pragma(`PRAGMA user_version = 99`)
		case legacy.ErrForeign:
			pragma(`PRAGMA application_id = 7`)
		case nil:
			pragma(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = 4`, 0x61637053))
		}
		s, taken, err := Open(t.Context(), o)
		if err != nil || taken == nil || !errors.Is(taken.Err, want) {
			t.Fatalf("%v: %+v, %v", want, taken, err)
		}
		write(t, s, Session{Key: key}, Event{Kind: EventTurn})
		if want == nil && taken.Sessions != 2 {
			t.Errorf("%+v", taken)
		}
		s.Close()
	}
}
