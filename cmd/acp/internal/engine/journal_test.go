package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/journaltest"
	"github.com/goacp/acp/internal/long"
)

var nodes atomic.Int64

// backend keeps journals in a database, as one more node does.
func backend(t testing.TB, db engine.Database, node string) journal.Backend {
	t.Helper()
	l, err := engine.NewLease(t.Context(), db, node, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewBackend(db, l)
}

// fixture is a fixture of what opens a database once more.
func fixture(open func(testing.TB) engine.Database) journaltest.Fixture {
	return journaltest.Fixture{Real: true, Open: func(t testing.TB) journal.Backend {
		return backend(t, open(t), fmt.Sprint("node", nodes.Add(1)))
	}}
}

func inFile(t testing.TB) func(testing.TB) engine.Database {
	name := filepath.Join(t.TempDir(), "log.db")
	return func(t testing.TB) engine.Database {
		db, err := sqlite.OpenDatabase(t.Context(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
}

// TestJournals runs the suite of journals where no server is needed.
func TestJournals(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journaltest.Fixture { return fixture(inFile(t)) })
}

func TestJournalsPostgres(t *testing.T) {
	long.Test(t)
	s := pgtest.New(t)
	defer s.Remove()
	s.Init(t)
	s.Start(t)
	databases := 0
	journaltest.Run(t, func(t testing.TB) journaltest.Fixture {
		databases++
		name := fmt.Sprint("t", databases)
		s.Query(t, "postgres", "CREATE DATABASE "+name)
		return fixture(func(t testing.TB) engine.Database {
			db, err := postgres.OpenDatabase(t.Context(), s.DSN(name))
			if err != nil {
				t.Fatal(err)
			}
			return db
		})
	})
}

// TestLapsed: another node owns a journal once the lease of its owner has lapsed, who is fenced then.
func TestLapsed(t *testing.T) {
	open := inFile(t)
	a := journal.New(backend(t, open(t), "a"), journal.Options{})
	defer a.Close()
	w, err := a.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t)
	c := journal.New(backend(t, db, "c"), journal.Options{})
	defer c.Close()
	_, err = c.Own(t.Context(), "s", nil)
	if e, ok := errors.AsType[*journal.OwnedError](err); !ok || e.Who != "a" {
		t.Errorf("owned by %v", err)
	}
	if err := db.TakeLease(t.Context(), "a", 1, -time.Hour); err != nil { // as if it had lapsed
		t.Fatal(err)
	}
	next, err := c.Own(t.Context(), "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	draft := []journal.Draft{{Kind: journal.KindPrompt, Data: []byte(`"x"`)}}
	done := make(chan error, 1)
	if err := w.Append(draft, func(_ []*journal.Record, err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append of the old owner: %v", err)
	}
	if err := next.Append(draft, nil); err != nil {
		t.Error(err)
	}
	if err := next.Sync(t.Context()); err != nil || next.Epoch() != 2 || next.Head().Seq != 2 {
		t.Errorf("the next owner has epoch %d, head %d, %v", next.Epoch(), next.Head().Seq, err)
	}
}

// A doubtful database does what it is asked, or not, and returns an error.
type doubtful struct {
	engine.Database
	mu     sync.Mutex
	doubts []string
}

func (d *doubtful) next(of string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.doubts) == 0 || d.doubts[0] != of {
		return false
	}
	d.doubts = d.doubts[1:]
	return true
}

func (d *doubtful) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	if d.next("lost") {
		return nil, errors.New("on purpose: not committed")
	}
	ok, err := d.Database.Append(ctx, batches)
	if d.next("committed") {
		return nil, errors.New("on purpose: committed")
	}
	return ok, err
}

func (d *doubtful) Confirm(ctx context.Context, id string) (engine.State, error) {
	if d.next("away") {
		return engine.State{}, errors.New("on purpose: the database does not answer")
	}
	return d.Database.Confirm(ctx, id)
}

// TestDoubt: what may be committed is neither lost nor written twice, and what is not is tried again.
func TestDoubt(t *testing.T) {
	db := &doubtful{Database: inFile(t)(t)}
	var told atomic.Int64
	c := journal.New(backend(t, db, "a"), journal.Options{Trouble: func(string, error) { told.Add(1) }})
	defer c.Close()
	w, err := c.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for n, doubts := range [][]string{{"committed"}, {"committed", "away", "away"}, {"lost", "away"}, {"lost", "lost", "committed"}} {
		db.mu.Lock()
		db.doubts = doubts
		db.mu.Unlock()
		if err := w.Append([]journal.Draft{{Kind: journal.KindPrompt, Data: fmt.Appendf(nil, "%d", n)}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := db.doubts; len(left) > 0 {
			t.Errorf("%v were not reached", left)
		}
	}
	var got []string
	err = c.Read(t.Context(), "s", 1, func(r *journal.Record) error {
		got = append(got, string(r.Data))
		return nil
	})
	// Twice something was lost. That it is over again may be told later, or not in between.
	if n := told.Load(); err != nil || !slices.Equal(got, []string{"0", "1", "2", "3"}) || n < 1 || n > 4 {
		t.Errorf("%q, %v, Trouble was called %d times", got, err, n)
	}
}
