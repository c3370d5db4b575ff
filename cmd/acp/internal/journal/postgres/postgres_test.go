package postgres

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/journaltest"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var nodes atomic.Int64

// fixture is a fixture of what opens a database once more.
func fixture(open func(testing.TB) engine.Database) journaltest.Fixture {
	return journaltest.Fixture{Real: true, Open: func(t testing.TB) journal.Backend {
		return NewBackend(open(t), fmt.Sprint("node", nodes.Add(1)), time.Hour)
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

// TestSQLite runs the suite where no server is needed.
func TestSQLite(t *testing.T) {
	journaltest.Run(t, func(t testing.TB) journaltest.Fixture { return fixture(inFile(t)) })
}

func TestPostgres(t *testing.T) {
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
	a := journal.New(NewBackend(open(t), "a", time.Hour), journal.Options{})
	defer a.Close()
	w, err := a.Create(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t)
	c := journal.New(NewBackend(db, "c", time.Hour), journal.Options{})
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
