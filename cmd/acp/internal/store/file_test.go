package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// makeSQL makes a file from the SQL text in testdata.
func makeSQL(t *testing.T, path, name string, more string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", dsn(path, "immediate"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(text) + more); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate(t *testing.T) {
	for v := 1; v < len(migrations); v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			makeSQL(t, path, fmt.Sprintf("v%d.sql", v), "")
			s := openTest(t, path)
			for words, want := range map[string]int{"": 1, "answer": 1, "title": 1, "none": 0} {
				found, err := s.List(t.Context(), Query{Text: words})
				if err != nil || len(found) != want {
					t.Errorf("%q finds %v, %v, want %d", words, found, err, want)
				}
			}
			k := Key{"gemini", "s1"}
			appendTo(t, s, k, chunk("agent", "m", " goes on"))
			if diff := cmp.Diff([]string{"agent: an old answer goes on"}, texts(t, s, k)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLeftAlone(t *testing.T) {
	tests := []struct {
		name string
		sql  string
		want error
	}{
		{"newer", "PRAGMA user_version = 99; CREATE TABLE later (a)", ErrNewer},
		{"foreign", "PRAGMA application_id = 7", ErrForeign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			makeSQL(t, path, "v1.sql", tt.sql)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Open(t.Context(), Options{Path: path})
			if !errors.Is(err, tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %v in one line", err, tt.want)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// TestNewerInLog has a file that a later version changed and that was then not closed.
func TestNewerInLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	openTest(t, path).Close()
	db, err := sql.Open("sqlite", dsn(path, "immediate"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	path := filepath.Join(t.TempDir(), "a", "b", "s.db")
	s := openTest(t, path)
	appendTo(t, s, Key{"a", "x"}, Event{Kind: EventTurn})
	for name, want := range map[string]fs.FileMode{path: 0o600, path + "-wal": 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// fill puts sessions with events of some size into a new file and closes it.
func fill(t *testing.T, path string, sessions, events, size int) {
	t.Helper()
	s, _, err := Open(t.Context(), Options{Path: path, Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range sessions {
		k := Key{"a", fmt.Sprintf("s%d", n)}
		if err := s.Put(t.Context(), Session{Key: k, Title: fmt.Sprintf("Title %d", n), Cwd: "/p"}); err != nil {
			t.Fatal(err)
		}
		batch := make([]Event, events)
		for i := range batch {
			batch[i] = chunk("agent", "m", fmt.Sprintf("%d %s", i, strings.Repeat("x", size)))
		}
		batch = append(batch, Event{Kind: EventTurn})
		appendTo(t, s, k, batch...)
	}
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
			s, damage, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
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
			found, err := s.List(t.Context(), Query{})
			if err != nil || len(found) != damage.Sessions+damage.LostSessions {
				t.Errorf("%d sessions, %v; damage says %d and %d", len(found), err, damage.Sessions, damage.LostSessions)
			}
			var n int64
			for _, m := range found {
				got := all(t, s, m.Key, 0)
				n += int64(len(got))
				if m.Events != int64(len(got)) {
					t.Errorf("%s has %d events and says %d", m.ID, len(got), m.Events)
				}
				texts(t, s, m.Key)
			}
			if n != damage.Events {
				t.Errorf("%d events, damage says %d", n, damage.Events)
			}
			appendTo(t, s, Key{"a", "s1"}, chunk("user", "new", "after"))
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			again := openTest(t, path)
			if found, err := again.List(t.Context(), Query{Text: "after"}); err != nil || len(found) != 1 {
				t.Errorf("after it was rebuilt: %v, %v", found, err)
			}
		})
	}
}

// TestBrokenLog has a store that was not closed, so what is in the log beside the file counts.
func TestBrokenLog(t *testing.T) {
	dir := t.TempDir()
	live, path := filepath.Join(dir, "live.db"), filepath.Join(dir, "s.db")
	s := openTest(t, live)
	appendTo(t, s, Key{"a", "x"}, chunk("user", "1", "in the log"))
	for _, tail := range []string{"", "-wal"} {
		data, err := os.ReadFile(live + tail)
		if err != nil {
			t.Fatal(err)
		}
		if tail == "" {
			data = data[:len(data)-4096]
		}
		if err := os.WriteFile(path+tail, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if diff := cmp.Diff([]string{"user: in the log"}, texts(t, got, Key{"a", "x"})); diff != "" {
		t.Error(diff)
	}
}

// TestReadFails has damage that only a read notices; the next start sees to it.
func TestReadFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	fill(t, path, 40, 80, 3000) // more than smallFile
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() <= smallFile {
		t.Fatalf("the file has only %d bytes", info.Size())
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := info.Size() / 2 / 4096 * 4096; at < info.Size()*3/4; at += 4096 {
		if _, err := f.WriteAt(make([]byte, 4096), at); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	s, damage, err := Open(t.Context(), Options{Path: path})
	if err != nil || damage != nil {
		t.Fatalf("a large file that was closed is not checked in full; got %v, %v", damage, err)
	}
	failed := false
	for n := range 40 {
		for _, err := range s.Events(t.Context(), Key{"a", fmt.Sprintf("s%d", n)}, 0) {
			if err != nil {
				failed = true
				if !errors.Is(err, ErrBroken) {
					t.Errorf("error %v, want ErrBroken", err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !failed {
		t.Fatal("all could be read")
	}
	s, damage, err = Open(t.Context(), Options{Path: path})
	if err != nil || damage == nil {
		t.Fatalf("damage %v, error %v", damage, err)
	}
	t.Log(damage)
	s.Close()
	openTest(t, path)
}

// TestBrokenInUse has a broken file that another store has open: it must not be taken away from it.
func TestBrokenInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openTest(t, path)
	appendTo(t, s, Key{"a", "x"}, chunk("user", "1", "q"))
	if err := os.WriteFile(path+".copy", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".copy", path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrBroken) {
		t.Errorf("error %v, want ErrBroken", err)
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
}

func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(file, "s.db")} {
		s, _, err := Open(t.Context(), Options{Path: path})
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", path)
		} else if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
			t.Errorf("error %q", err)
		}
	}
	if os.Getuid() > 0 {
		locked := filepath.Join(dir, "locked")
		if err := os.Mkdir(locked, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(t.Context(), Options{Path: filepath.Join(locked, "s.db")}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error %v, want a permission error", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Open(ctx, Options{Path: filepath.Join(dir, "s.db")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
}

// TestFull has a store that cannot grow any more: what does not fit is refused as a whole and the
// store goes on.
func TestFull(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "s.db"))
	k := Key{"a", "x"}
	appendTo(t, s, k, chunk("user", "1", "q"))
	if _, err := s.write.Exec("PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	big := []Event{chunk("agent", "2", "a"), chunk("agent", "2", strings.Repeat("x", 1<<20))}
	if err := s.Append(t.Context(), k, big); err == nil || errors.Is(err, ErrBroken) {
		t.Errorf("error %v, want one that says that it is full", err)
	}
	if big[0].Seq != 0 {
		t.Error("a number for an event that was not kept")
	}
	appendTo(t, s, k, chunk("agent", "2", "b"))
	if diff := cmp.Diff([]string{"user: q", "agent: b"}, texts(t, s, k)); diff != "" {
		t.Error(diff)
	}
}

// TestBrokenIndex has an index of texts that is broken, though the file is sound.
func TestBrokenIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, _, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, Key{"a", "x"}, chunk("user", "1", "needle"))
	find := func() (int, error) {
		found, err := s.List(t.Context(), Query{Text: "needle"})
		return len(found), err
	}
	if n, err := find(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := s.write.Exec(`UPDATE message_text_data SET block = x'ffffffffffffffff'`); err != nil {
		t.Fatal(err)
	}
	if _, err := find(); !errors.Is(err, ErrBroken) {
		t.Fatalf("error %v, want ErrBroken", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The index is made anew, if need be with everything else.
	if s, _, err = Open(t.Context(), Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := find(); n != 1 || err != nil {
		t.Errorf("%d, %v: the index was not made anew", n, err)
	}
}
