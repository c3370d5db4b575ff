package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// A place is where records are kept, which fails, or answers nothing, on demand.
type place struct {
	mu   sync.Mutex
	err  error
	wait chan struct{} // until it is closed, or nil
	met  chan struct{} // gets a value when somebody waits, or has failed
}

func (p *place) set(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.met = err, make(chan struct{}, 1)
}

// failed waits until something has failed since the last set.
func (p *place) failed() {
	p.mu.Lock()
	met := p.met
	p.mu.Unlock()
	<-met
}

// hang has writes wait until resume is called.
func (p *place) hang() (resume func()) {
	wait := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.met = wait, make(chan struct{}, 100)
	return sync.OnceFunc(func() { close(wait) })
}

func (p *place) fails() error {
	p.mu.Lock()
	err, wait, met := p.err, p.wait, p.met
	p.mu.Unlock()
	if wait != nil || err != nil {
		select {
		case met <- struct{}{}:
		default:
		}
	}
	if wait != nil {
		<-wait
	}
	return err
}

// A disk is the machine's, and fails as a place does.
type disk struct {
	file.System
	p *place
}

func (d *disk) Open(name string, flag int) (file.File, error) {
	if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL {
		if err := d.p.fails(); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	f, err := d.System.Open(name, flag)
	if err != nil || filepath.Ext(name) != ".jsonl" {
		return f, err
	}
	return &diskFile{f, d.p}, nil
}

type diskFile struct {
	file.File
	p *place
}

func (f *diskFile) Write(b []byte) (int, error) {
	if err := f.p.fails(); err != nil {
		return 0, &fs.PathError{Op: "write", Path: "the journal", Err: err}
	}
	return f.File.Write(b)
}

// A database fails as a place does.
type database struct {
	engine.Database
	p    *place
	says map[error]error
}

func (d *database) CreateSession(ctx context.Context, s engine.Session) error {
	if err := d.p.fails(); err != nil {
		return d.says[err]
	}
	return d.Database.CreateSession(ctx, s)
}

func (d *database) Append(ctx context.Context, b []engine.Batch) ([]bool, error) {
	if err := d.p.fails(); err != nil {
		return nil, d.says[err]
	}
	return d.Database.Append(ctx, b)
}

// says has ends say states.
func says(r *engine.Record) (said engine.Said) {
	switch r.Kind {
	case journal.KindEnd:
		said.State = string(r.Data)
	case journal.KindShared:
		said.Share = new(engine.Share)
		_ = json.Unmarshal(r.Data, said.Share)
	}
	return said
}

// An alarm is what an engine has raised.
type alarm struct {
	session string
	err     error
}

// both runs a test with records in files and in a database.
func both(t *testing.T, run func(t *testing.T, p *place, e *engine.Engine, l *engine.Lease, alarms <-chan alarm)) {
	for _, where := range []string{"files", "database"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			alarms := make(chan alarm, 100)
			o := engine.Options{LeaseTTL: time.Hour, Says: says, CommitTimeout: time.Hour, Alarm: func(id string, err error) { alarms <- alarm{id, err} }}
			w, err := sqlite.OpenWitness(t.Context(), filepath.Join(dir, "heads.db"))
			if err != nil {
				t.Fatal(err)
			}
			p := &place{}
			var e *engine.Engine
			if where == "files" {
				o.CommitTimeout = 300 * time.Millisecond // how long it waits for a session to be given up
				x, err := sqlite.OpenIndex(t.Context(), filepath.Join(dir, "index.db"))
				if err != nil {
					t.Fatal(err)
				}
				if e, err = engine.OnDisk(t.Context(), &disk{p: p}, filepath.Join(dir, "sessions"), "a", x, w, o); err != nil {
					t.Fatal(err)
				}
			} else {
				e = engine.New(&database{inFile(t)(t), p, map[error]error{syscall.ENOSPC: engine.ErrFull, syscall.EROFS: engine.ErrReadOnly}}, w, o)
			}
			defer func() {
				if err := e.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			l, err := e.Lease(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			run(t, p, e, l, alarms)
		})
	}
}

func owns(t *testing.T, e *engine.Engine, l *engine.Lease, id string) *engine.Owned {
	t.Helper()
	if _, err := e.Create(t.Context(), engine.Session{ID: id}); err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), id, l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func end(state string) engine.Record {
	return engine.Record{Kind: journal.KindEnd, Data: []byte(`"` + state + `"`)}
}

// wantState fails unless a session has a state, and says so in its last record.
func wantState(t *testing.T, e *engine.Engine, id, want string) {
	t.Helper()
	s, err := e.Session(t.Context(), id)
	if err != nil || s.State != want {
		t.Errorf("state %s, want %s, %v", s.State, want, err)
	}
	last := ""
	if err := e.Read(t.Context(), id, 0, func(r engine.Record) error {
		if said := says(&r).State; said != "" {
			last = said
		}
		return nil
	}); err != nil || last != want {
		t.Errorf("the last record says %s, want %s, %v", last, want, err)
	}
}

// TestFull: while nothing can be written nothing is created, what is appended waits, which the alarm says, and is kept in order
// once that can be. A release gives it up.
func TestFull(t *testing.T) {
	for fault, want := range map[error]error{syscall.ENOSPC: engine.ErrFull, syscall.EROFS: engine.ErrReadOnly} {
		both(t, func(t *testing.T, p *place, e *engine.Engine, l *engine.Lease, alarms <-chan alarm) {
			const id = "s"
			o := owns(t, e, l, id)
			if _, err := o.Append(t.Context(), end("before")); err != nil {
				t.Fatal(err)
			}
			p.set(fault)
			if _, err := e.Create(t.Context(), engine.Session{ID: "none"}); !errors.Is(err, want) {
				t.Errorf("create: %v, want %v", err, want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := o.Append(ctx, end("first"))
				done <- err
			}()
			if a := <-alarms; a.session != id || !errors.Is(a.err, want) {
				t.Errorf("alarm %+v, want %v", a, want)
			}
			wantState(t, e, id, `"before"`)
			cancel()
			if err := <-done; !errors.Is(err, engine.ErrUnknown) || !errors.Is(err, context.Canceled) {
				t.Errorf("somebody who gives up learns %v", err)
			}
			go func() {
				_, err := o.Append(t.Context(), end("second"))
				done <- err
			}()
			p.set(nil)
			if err := <-done; err != nil {
				t.Errorf("append: %v", err)
			}
			wantState(t, e, id, `"second"`)

			p.set(fault)
			go func() {
				_, err := o.Append(t.Context(), end("given up"))
				done <- err
			}()
			p.failed() // which need not alarm again: perhaps nobody has noticed that all was kept
			if err := o.Release(t.Context()); !errors.Is(err, journal.ErrUnsaved) {
				t.Errorf("release: %v", err)
			}
			if err := <-done; !errors.Is(err, journal.ErrUnsaved) || !errors.Is(err, want) {
				t.Errorf("what was given up: %v", err)
			}
			p.set(nil)
			wantState(t, e, id, `"second"`)
			if o, err := e.Claim(t.Context(), id, l); err != nil || o.Damage() != nil {
				t.Errorf("claim: %v", err)
			}
			wantState(t, e, id, `"second"`)
			if _, err := e.Session(t.Context(), "none"); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("what was not created: %v", err)
			}
			if _, err := e.Create(t.Context(), engine.Session{ID: "none"}); err != nil {
				t.Errorf("create: %v", err)
			}
			for len(alarms) > 0 {
				if a := <-alarms; a.session != id || !errors.Is(a.err, want) {
					t.Errorf("alarm %+v, want %v", a, want)
				}
			}
		})
	}
}

// TestHangs: while the disk does not answer nobody waits longer than they want to, and what was given to it counts once it does.
func TestHangs(t *testing.T) {
	both(t, func(t *testing.T, p *place, e *engine.Engine, l *engine.Lease, alarms <-chan alarm) {
		o := owns(t, e, l, "s")
		other := owns(t, e, l, "t")
		if _, err := e.Create(t.Context(), engine.Session{ID: "free"}); err != nil {
			t.Fatal(err)
		}
		resume := p.hang()
		defer resume()
		changes := make(chan struct{}, 10)
		update := func(ctx context.Context, id, title string) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := e.Update(ctx, id, func(s *engine.Session) error {
					s.Title += title
					changes <- struct{}{}
					return nil
				})
				done <- err
			}()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		appended := make(chan error, 1)
		go func() {
			_, err := o.Append(ctx, end("x"))
			appended <- err
		}()
		<-p.met
		updated := update(ctx, "s", "1")
		<-changes
		if !e.Rows() { // an update of a row waits for nothing
			if err := <-updated; err != nil {
				t.Error(err)
			}
		} else if s, err := e.Session(t.Context(), "s"); err != nil || s.Title != "" || s.State != "" {
			t.Errorf("meanwhile: %+v, %v", s, err)
		}
		cancel()
		if err := <-appended; !errors.Is(err, engine.ErrUnknown) {
			t.Errorf("append: %v", err)
		}
		if e.Rows() {
			if err := <-updated; !errors.Is(err, context.Canceled) {
				t.Errorf("update: %v", err)
			}
		}
		short, cancel := context.WithCancel(t.Context())
		cancel()
		if err := o.Release(short); !errors.Is(err, context.Canceled) {
			t.Errorf("release: %v", err)
		}
		if _, err := e.Claim(short, "s", l); err == nil {
			t.Error("it has another owner while the disk may still write")
		}
		if e.Rows() { // a session that nobody owns is held up as little
			ctx, cancel := context.WithCancel(t.Context())
			updated := update(ctx, "free", "3")
			<-changes
			cancel()
			if err := <-updated; !errors.Is(err, engine.ErrUnknown) {
				t.Errorf("update: %v", err)
			}
		}
		resume()
		if err := o.Release(t.Context()); err != nil { // once the first has ended
			t.Errorf("release: %v", err)
		}
		wantState(t, e, "s", `"x"`)
		if s, err := e.Session(t.Context(), "s"); err != nil || s.Title != "1" {
			t.Errorf("afterwards: %+v, %v", s, err)
		}
		if err := <-update(t.Context(), "t", "2"); err != nil {
			t.Errorf("update: %v", err)
		}
		if _, err := other.Append(t.Context(), end("y")); err != nil {
			t.Error(err)
		}
		wantState(t, e, "t", `"y"`)
	})
}
