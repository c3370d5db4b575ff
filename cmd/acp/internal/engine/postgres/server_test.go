package postgres

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/internal/long"
)

// servers are those that run.
var servers struct {
	sync.Mutex
	shared *server
	all    []*server
}

// A server is a PostgreSQL of the tests' own.
type server struct{ *pgtest.Server }

// newServer starts a server; the test is skipped where that cannot be done.
func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{pgtest.New(t)}
	servers.all = append(servers.all, s)
	s.Init(t)
	s.Start(t)
	return s
}

// stopServers stops all servers and removes their files.
func stopServers() {
	for _, s := range servers.all {
		s.Remove()
	}
}

// shared returns the server that tests share which do not hurt it.
func shared(t testing.TB) *server {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	if servers.shared == nil {
		servers.shared = newServer(t)
	}
	return servers.shared
}

var databases atomic.Int64

// fixture is a new database on a server.
func (s *server) fixture(t testing.TB) (f enginetest.Fixture, name string) {
	t.Helper()
	name = fmt.Sprintf("t%d", databases.Add(1))
	s.Query(t, "postgres", "CREATE DATABASE "+name)
	heads := filepath.Join(t.TempDir(), "heads.db")
	return enginetest.SQL(func(t testing.TB) engine.Database { return s.open(t, name) }, func(t testing.TB) engine.Witness {
		w, err := sqlite.OpenWitness(t.Context(), heads)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}, func(t testing.TB, query string, args ...any) { s.Query(t, name, query, args...) }), name
}

func (s *server) open(t testing.TB, name string) *Database {
	t.Helper()
	db, err := OpenDatabase(t.Context(), s.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestSuite(t *testing.T) {
	long.Test(t)
	s := shared(t) // or it is skipped as a whole
	enginetest.Run(t, func(t testing.TB) enginetest.Fixture {
		f, _ := s.fixture(t)
		return f
	})
}
