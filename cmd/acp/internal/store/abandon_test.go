package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/transcript"
)

// A stalledReads is a file system that does not answer readers while stall is not nil.
type stalledReads struct {
	file.System
	mu    sync.Mutex
	stall chan struct{}
}

func (f *stalledReads) set(stall chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stall = stall
}

func (f *stalledReads) wait() {
	f.mu.Lock()
	stall := f.stall
	f.mu.Unlock()
	if stall != nil {
		<-stall
	}
}

func (f *stalledReads) ReadDir(name string) ([]fs.DirEntry, error) {
	f.wait()
	return f.System.ReadDir(name)
}

func (f *stalledReads) Open(name string, flag int) (file.File, error) {
	f.wait()
	return f.System.Open(name, flag)
}

// found returns an error that is not ErrNotFound.
func found(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// TestAbandon: on a disk that does not answer every method that has a context returns when that is done,
// however many calls there are, and none of what it leaves behind stays when the disk answers again.
func TestAbandon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		disk := new(stalledReads)
		s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
		defer s.Close()
		id := write(t, s, Session{Key: Key{"a", "s"}}, chunk("agent", "m", "word"))
		doomed := write(t, s, Session{Key: Key{"a", "doomed"}}, chunk("agent", "m", "word"))
		calls := map[string]func(context.Context) error{
			"List":     func(ctx context.Context) error { _, err := s.List(ctx, Query{}); return err },
			"search":   func(ctx context.Context) error { _, err := s.List(ctx, Query{Text: "word"}); return err },
			"Find":     func(ctx context.Context) error { _, err := s.Find(ctx, "", "s"); return err },
			"Latest":   func(ctx context.Context) error { _, err := s.Latest(ctx, Key{"a", "s"}); return err },
			"Session":  func(ctx context.Context) error { _, err := s.Session(ctx, id); return err },
			"Names":    func(ctx context.Context) error { _, err := s.Names(ctx); return err },
			"Snapshot": func(ctx context.Context) error { _, _, err := s.Snapshot(ctx, id, transcript.Config{}); return err },
			"Writing":  func(ctx context.Context) error { _, err := s.Writing(ctx, id); return err },
			"Child":    func(ctx context.Context) error { _, err := s.Child(ctx, id, "s"); return found(err) },
			"Delete":   func(ctx context.Context) error { return found(s.Delete(ctx, doomed)) },
			"Events": func(ctx context.Context) error {
				for _, err := range s.Events(ctx, id) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"Open": func(ctx context.Context) error {
				s, err := Open(ctx, Options{Path: dir, Normal: true, Disk: disk})
				if err == nil {
					err = s.Close()
				}
				return err
			},
		}
		for name, call := range calls {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		stall := make(chan struct{})
		disk.set(stall)
		for name, call := range calls {
			for range maxAbandoned/2 + 1 { // together more than may be left behind
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				begin := time.Now()
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
				if took := time.Since(begin); took != time.Second { // of the bubble's clock
					t.Errorf("%s returned after %v", name, took)
				}
				cancel()
			}
		}
		if n := len(s.reading); n != maxAbandoned {
			t.Errorf("%d calls are left behind", n)
		}
		disk.set(nil)
		close(stall)
		synctest.Wait()
		if n := len(s.reading); n != 0 {
			t.Errorf("%d calls are left behind in the end", n)
		}
		for name, call := range calls {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s again: %v", name, err)
			}
		}
	})
}

// TestNoTurnLeft: when as many calls as may be left behind wait for a disk that does not answer, a further one
// fails with ErrStalled, whatever its context, and works when the disk answers again.
func TestNoTurnLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		disk := new(stalledReads)
		s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
		defer s.Close()
		id := write(t, s, Session{Key: key}, chunk("agent", "m", "word"))
		stall := make(chan struct{})
		disk.set(stall)
		var waiting sync.WaitGroup
		for range maxAbandoned {
			waiting.Go(func() {
				if _, err := s.Session(t.Context(), id); err != nil {
					t.Errorf("a call that the disk answered late: %v", err)
				}
			})
		}
		synctest.Wait()
		events := func(ctx context.Context) (err error) {
			for _, err = range s.Events(ctx, id) {
			}
			return err
		}
		for name, call := range map[string]func(context.Context) error{
			"Session": func(ctx context.Context) error { _, err := s.Session(ctx, id); return err },
			"Delete":  func(ctx context.Context) error { return s.Delete(ctx, id) },
			"Events":  events,
		} {
			begin := time.Now()
			if err := call(context.Background()); !errors.Is(err, ErrStalled) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begin); took != abandonWait { // of the bubble's clock
				t.Errorf("%s failed after %v", name, took)
			}
		}
		disk.set(nil)
		close(stall)
		waiting.Wait()
		if err := events(context.Background()); err != nil {
			t.Errorf("Events again: %v", err)
		}
	})
}

// A counting is a disk that counts the files that are open.
type counting struct {
	file.System
	mu   sync.Mutex
	open int
}

type countedFile struct {
	file.File
	c *counting
}

func (c *counting) Open(name string, flag int) (file.File, error) {
	f, err := c.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return &countedFile{f, c}, nil
}

func (c *counting) Lock(f file.File, exclusive bool) (bool, error) {
	return c.System.Lock(f.(*countedFile).File, exclusive)
}

func (f *countedFile) Close() error {
	f.c.mu.Lock()
	f.c.open--
	f.c.mu.Unlock()
	return f.File.Close()
}

// TestEventsEndEarly: a loop over events that ends early, or whose context is done in the middle of it,
// leaves no file open and no goroutine behind.
func TestEventsEndEarly(t *testing.T) {
	files := new(counting)
	s := openWith(t, Options{Path: t.TempDir(), Normal: true, Disk: files})
	const many = 3000
	id := write(t, s, Session{Key: key}, slices.Repeat([]Event{chunk("agent", "m", "word")}, many)...)
	for name, stop := range map[string]func(context.CancelFunc) (more bool){
		"break":   func(context.CancelFunc) bool { return false },
		"context": func(cancel context.CancelFunc) bool { cancel(); return true },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		var last error
		for _, err := range s.Events(ctx, id) {
			n++
			if last = err; err == nil && !stop(cancel) {
				break
			}
		}
		if want := name == "context"; errors.Is(last, context.Canceled) != want || n > many/2 {
			t.Errorf("%s: %d events, %v", name, n, last)
		}
		if name == "context" { // else they are closed when the loop ends
			for range maxAbandoned { // as many as can be under way: then those that were have ended
				s.reading <- struct{}{}
			}
			for range maxAbandoned {
				<-s.reading
			}
		}
		files.mu.Lock()
		if files.open != 0 {
			t.Errorf("%s: %d files are open", name, files.open)
		}
		files.mu.Unlock()
		cancel()
	}
}

// TestIndexMadeAnew: an index that is damaged is made anew; one that is in use, or full, or that cannot be
// written, and one of which something is asked that does not exist, is not.
func TestIndexMadeAnew(t *testing.T) {
	run := func(lines ...string) func(context.Context, *sql.DB) error {
		return func(ctx context.Context, db *sql.DB) (err error) {
			for _, line := range lines {
				if _, err = db.ExecContext(ctx, line); err != nil {
					break
				}
			}
			return err
		}
	}
	insert := `INSERT INTO chunk (id, last, text) VALUES (77 << 24, '', hex(randomblob(1000000)))`
	for name, tt := range map[string]struct {
		f    func(context.Context, *sql.DB) error
		anew bool
	}{
		"error":      {run(`SELECT * FROM nothing`), false},
		"bad search": {run(`SELECT * FROM chunk_text WHERE chunk_text MATCH '"'`), false},
		"full":       {run(`PRAGMA max_page_count = 1`, insert), false},
		"readonly":   {run(`PRAGMA query_only = 1`, insert), false},
		"busy": {func(ctx context.Context, db *sql.DB) error {
			var path string
			if err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list`).Scan(&path); err != nil {
				return err
			}
			other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
			if err != nil {
				return err
			}
			defer other.Close()
			tx, err := other.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			return run(`PRAGMA busy_timeout = 0`, insert)(ctx, db)
		}, false},
		"table gone":       {run(`DROP TABLE chunk`, `SELECT * FROM chunk`), true},
		"column gone":      {run(`ALTER TABLE session RENAME COLUMN turns TO x`, `SELECT turns FROM session`), true},
		"contradicts":      {run(`INSERT INTO session SELECT * FROM session`), true},
		"value of no type": {func(context.Context, *sql.DB) error { return errIndexBroken }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, filepath.Join(t.TempDir(), "kept"))
			write(t, s, Session{Key: Key{"a", "s"}}, chunk("agent", "m", "word"))
			if _, err := s.List(t.Context(), Query{}); err != nil {
				t.Fatal(err)
			}
			calls := 0
			err := s.index.use(t.Context(), time.Minute, func(ctx context.Context, x *index) error {
				if calls++; calls > 1 {
					return nil
				}
				return tt.f(ctx, x.db)
			})
			if (err == nil) != tt.anew {
				t.Errorf("%v", err)
			}
			if anew := calls > 1; anew != tt.anew {
				t.Errorf("made anew: %v", anew)
			}
			if found, err := s.List(t.Context(), Query{}); err != nil || len(found) != 1 {
				t.Errorf("%d sessions, %v", len(found), err)
			}
		})
	}
}
