package legacy

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fill makes a database with sessions of events of some size, and a turn each.
func fill(t *testing.T, path string, sessions, events, size int) {
	t.Helper()
	if err := Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(path, "immediate", "foreign_keys(1)"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	db.SetMaxOpenConns(1)
	do("BEGIN")
	for n := 1; n <= sessions; n++ {
		do(`INSERT INTO session (id, agent, sid, title, cwd, created, updated, events, seq) VALUES (?, 'a', ?, ?, '/p', 1, 1, ?, ?)`, n, fmt.Sprintf("s%d", n), fmt.Sprintf("Title %d", n), events+1, events+1)
		for i := 1; i <= events; i++ {
			do(`INSERT INTO event (session, seq, time, kind, data) VALUES (?, ?, 1, 'update', ?)`, n, i, fmt.Appendf(nil, `{"text":"%d %s"}`, i, strings.Repeat("x", size)))
		}
		do(`INSERT INTO event (session, seq, time, kind, data) VALUES (?, ?, 1, 'turn', 'null')`, n, events+1)
	}
	do("COMMIT")
}

// count returns what is in a database.
func count(t *testing.T, d *DB) (sessions int, events int64) {
	t.Helper()
	all, bad, err := d.Sessions(t.Context())
	if err != nil || bad > 0 {
		t.Fatal(bad, err)
	}
	for _, v := range all {
		for _, err := range d.Conversation(t.Context(), v) {
			if err != nil {
				t.Fatal(err)
			}
			events++
		}
	}
	return len(all), events
}

func TestBroken(t *testing.T) {
	const sessions, events = 5, 400
	overwrite := func(path string, at, n int) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		junk := make([]byte, n)
		r := rand.NewChaCha8([32]byte{1})
		_, _ = r.Read(junk)
		_, err = f.WriteAt(junk, int64(at))
		return err
	}
	tests := []struct {
		name        string
		breakIt     func(path string, size int) error
		minSessions int
		minEvents   int64
	}{
		{"empty", func(path string, _ int) error { return os.Truncate(path, 0) }, 0, 0},
		{"few bytes", func(path string, _ int) error { return os.Truncate(path, 50) }, 0, 0},
		{"not a database", func(path string, _ int) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database\n", 1000)), 0o600)
		}, 0, 0},
		{"first page cut", func(path string, _ int) error { return os.Truncate(path, 2000) }, 0, 0},
		{"cut in half", func(path string, size int) error { return os.Truncate(path, int64(size/2)) }, 1, 1},
		{"cut off page", func(path string, size int) error { return os.Truncate(path, int64(size-4096)) }, sessions, sessions * events / 2},
		{"garbage in the middle", func(path string, size int) error { return overwrite(path, size/2, 30_000) }, sessions, sessions * events / 2},
		{"garbage page", func(path string, size int) error { return overwrite(path, size/4096/3*4096, 4096) }, sessions - 1, sessions * events / 2},
		{"schema", func(path string, _ int) error { return overwrite(path, 100, 3996) }, sessions, sessions * events},
		{"first page", func(path string, _ int) error { return overwrite(path, 0, 4096) }, sessions, sessions * events},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			fill(t, path, sessions, events, 200)
			// On a machine that is busy the log is not always taken in when the store is closed.
			// Then it would mend what is broken here.
			db, err := sql.Open("sqlite", dsn(path, "immediate"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.breakIt(path, int(info.Size())); err != nil {
				t.Fatal(err)
			}
			broken, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, damage, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if damage == nil {
				t.Fatal("no damage was found")
			}
			t.Log(damage)
			if damage.Sessions < tt.minSessions || damage.Events < tt.minEvents {
				t.Errorf("%d sessions, %d events were saved, want %d and %d at least", damage.Sessions, damage.Events, tt.minSessions, tt.minEvents)
			}
			aside, err := os.ReadFile(damage.Aside)
			if err != nil || !bytes.Equal(aside, broken) {
				t.Errorf("what was set aside is not the broken file (%v)", err)
			}
			if n, events := count(t, d); n != damage.Sessions+damage.LostSessions || events != damage.Events {
				t.Errorf("%d sessions with %d events, damage says %+v", n, events, damage)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			d, damage, err = Open(t.Context(), path)
			if err != nil || damage != nil {
				t.Fatalf("after it was rebuilt: %v, %v", damage, err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRebuildCutOff: a rebuild that was cut off after the new file was complete is gone on with,
// wherever that was.
func TestRebuildCutOff(t *testing.T) {
	for name, at := range map[string]func(path string) error{
		"before the broken file was moved": func(path string) error { return os.WriteFile(path, []byte("broken"), 0o600) },
		"before the log was moved":         func(path string) error { return os.WriteFile(path+"-wal", []byte("old log"), 0o600) },
		"before the new file was moved":    func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			fill(t, path, 3, 5, 10)
			if err := errors.Join(os.Rename(path, rebuiltPath(path)), at(path)); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				d, damage, err := Open(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if n, _ := count(t, d); n != 3 {
					t.Errorf("%d sessions", n)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if i > 0 {
					if damage != nil {
						t.Errorf("told twice: %v", damage)
					}
					continue
				}
				if damage == nil || damage.Sessions != 3 || damage.Events == 0 || !strings.Contains(damage.Reason, "cut off") {
					t.Errorf("damage %v", damage)
				}
			}
			if _, err := os.Stat(rebuiltPath(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the new file is still there: %v", err)
			}
		})
	}
}

// TestSweep: what a process has left behind is removed once it is old.
func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	old, fresh := filepath.Join(filepath.Dir(path), ".new-store-1"), filepath.Join(filepath.Dir(path), ".new-store-2")
	for _, dir := range []string{old, fresh} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(old, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-2 * oldWork)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	fill(t, path, 1, 1, 1)
	d, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old work is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}
