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

// backend is a new database on a server.
func (s *server) backend(t testing.TB) (b enginetest.Backend, dsn string) {
	t.Helper()
	name := fmt.Sprintf("t%d", databases.Add(1))
	s.Query(t, "postgres", "CREATE DATABASE "+name)
	witness := filepath.Join(t.TempDir(), "heads.db")
	return enginetest.Backend{
		Open: func(t testing.TB) engine.Database {
			db, err := OpenDatabase(t.Context(), s.DSN(name))
			if err != nil {
				t.Fatal(err)
			}
			return db
		},
		Witness: func(t testing.TB) engine.Witness {
			w, err := sqlite.OpenWitness(t.Context(), witness)
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
		Exec: func(t testing.TB, query string, args ...any) { s.Query(t, name, query, args...) },
	}, name
}

func fresh(t testing.TB) enginetest.Backend {
	b, _ := shared(t).backend(t)
	return b
}

func TestSuite(t *testing.T) {
	shared(t) // or it is skipped as a whole
	enginetest.Run(t, fresh)
}

func BenchmarkSuite(b *testing.B) {
	shared(b)
	enginetest.Benchmark(b, fresh)
}
