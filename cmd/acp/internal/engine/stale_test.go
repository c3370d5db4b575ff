package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A server answers reads as of some time before, like one that was the primary before another, or not at all.
type server struct {
	engine.Database
	older atomic.Pointer[engine.State]
	away  atomic.Bool
}

var errAway = errors.New("on purpose: no reads")

func (s *server) State(ctx context.Context, id string) (engine.State, error) {
	if s.away.Load() {
		return engine.State{}, errAway
	}
	if st := s.older.Load(); st != nil {
		return *st, nil
	}
	return s.Database.State(ctx, id)
}

func (s *server) Records(ctx context.Context, key int64, from uint64, n, size int) ([]engine.Record, error) {
	all, err := s.Database.Records(ctx, key, from, n, size)
	if st := s.older.Load(); st != nil {
		for len(all) > 0 && all[len(all)-1].Seq > st.Seq {
			all = all[:len(all)-1]
		}
	}
	return all, err
}

// onServer is an engine on a database that a test owns, and what it has raised.
func onServer(t *testing.T, db engine.Database, dir string) (*engine.Engine, *engine.Lease, chan error) {
	t.Helper()
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(dir, "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	alarms := make(chan error, 10)
	e := engine.New(db, w, engine.Options{LeaseTTL: time.Hour, Alarm: func(_ string, err error) { alarms <- err }})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	l, err := e.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return e, l, alarms
}

// TestStale: what a server lacks that is not the primary any more is neither damage nor alarming, and cannot be read; what the
// primary lacks is both.
func TestStale(t *testing.T) {
	open, dir := inFile(t), t.TempDir()
	s := &server{Database: open(t)}
	e, l, alarms := onServer(t, s, dir)
	o := owns(t, e, l, "s")
	if _, err := o.Append(t.Context(), end("1")); err != nil {
		t.Fatal(err)
	}
	older, err := s.State(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(t.Context(), end("2")); err != nil {
		t.Fatal(err)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothing := func(engine.Record) error { return nil }
	s.older.Store(&older)
	for range 2 {
		if err := e.Read(t.Context(), "s", 0, nothing); !errors.Is(err, engine.ErrStale) || errors.As(err, new(*engine.DamageError)) {
			t.Errorf("read: %v", err)
		}
	}
	if err := e.Fold(t.Context(), "s", 0, nothing); !errors.Is(err, engine.ErrStale) {
		t.Errorf("fold: %v", err)
	}
	if _, err := e.Claim(t.Context(), "s", l); !errors.Is(err, engine.ErrStale) {
		t.Errorf("claim: %v", err)
	}
	for _, err := range e.Follow(t.Context(), "s", 1) {
		if err != nil && !errors.Is(err, engine.ErrStale) {
			t.Errorf("follow: %v", err)
		}
	}
	if len(alarms) > 0 {
		t.Errorf("alarm: %v", <-alarms)
	}
	s.older.Store(nil)
	if err := e.Read(t.Context(), "s", 0, nothing); err != nil {
		t.Errorf("it does not pass: %v", err)
	}
	o, err = e.Claim(t.Context(), "s", l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(t.Context(), end("3")); err != nil || o.Damage() != nil {
		t.Errorf("append: %v; damage: %v", err, o.Damage())
	}
}

// TestPublished: what another node publishes is followed without asking the database.
func TestPublished(t *testing.T) {
	open := inFile(t)
	a, l, _ := onServer(t, open(t), t.TempDir())
	o := owns(t, a, l, "s")
	first, err := o.Append(t.Context(), end("1"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Database: open(t)}
	c, _, _ := onServer(t, s, t.TempDir())
	var got []uint64
	for r, err := range c.Follow(t.Context(), "s", first[0].Seq-1) {
		if err != nil {
			t.Fatalf("after %d: %v", got, err)
		}
		if got = append(got, r.Seq); len(got) == 4 {
			break
		}
		s.away.Store(true)
		next, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate})
		if err != nil {
			t.Fatal(err)
		}
		c.Publish("s", next)
	}
}
