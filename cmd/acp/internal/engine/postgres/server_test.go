package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
)

// A server is a PostgreSQL of the tests' own, reached over a socket in its directory.
type server struct {
	bin, dir string
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the server has closed its standard error

	mu   sync.Mutex
	last []string // lines of its standard error
}

// servers are those that run.
var servers struct {
	sync.Mutex
	shared *server
	all    []*server
}

// find returns the directory with the programs of PostgreSQL.
func find() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(dirs) // the newest first, near enough
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append([]string{filepath.Dir(path)}, dirs...)
		}
	}
	for _, dir := range dirs {
		_, e1 := os.Stat(filepath.Join(dir, "initdb"))
		_, e2 := os.Stat(filepath.Join(dir, "postgres"))
		if e1 == nil && e2 == nil {
			return dir, nil
		}
	}
	return "", errors.New("PostgreSQL is not installed: there are no initdb and postgres in PATH or /usr/lib/postgresql")
}

// newServer starts a server; the test is skipped where that cannot be done.
func newServer(t testing.TB) *server {
	t.Helper()
	bin, err := find()
	if err != nil {
		t.Skip(err)
	}
	s := &server{bin: bin}
	if s.dir, err = os.MkdirTemp("", "acp-pg"); err != nil { // short: a socket's path has a limit
		t.Fatal(err)
	}
	servers.all = append(servers.all, s)
	if err := ownedByServer(s.dir); err != nil {
		t.Skipf("PostgreSQL does not run as root, and there is no other user: %v", err)
	}
	init := exec.Command(filepath.Join(bin, "initdb"), "-k", "-D", s.data(), "-U", "acp", "-A", "trust", "-E", "UTF8", "--locale=C")
	asServer(init)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.start(t)
	return s
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// start starts the server and waits until it accepts connections.
func (s *server) start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=300")
	asServer(s.cmd)
	// PostgreSQL says there when it is ready.
	out, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		told := false
		for in := bufio.NewScanner(out); in.Scan(); {
			if !told && strings.Contains(in.Text(), "database system is ready to accept connections") {
				told = true
				close(ready)
			}
			s.mu.Lock()
			s.last = append(s.last, in.Text())
			s.last = s.last[max(0, len(s.last)-20):]
			s.mu.Unlock()
		}
	}()
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("the server does not start:\n%s", strings.Join(s.last, "\n"))
	}
}

// stop stops the server, at once and without a checkpoint, as a crash does.
func (s *server) stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(quit)
		<-s.ended // its children have ended, too
		s.cmd.Wait()
		s.cmd = nil
	}
}

// stopServers stops all servers and removes their files.
func stopServers() {
	for _, s := range servers.all {
		s.stop()
		os.RemoveAll(s.dir)
	}
}

func (s *server) dsn(database string) string {
	return fmt.Sprintf("host=%s user=acp database=%s", s.dir, database)
}

// query runs a statement as the administrator.
func (s *server) query(t testing.TB, database, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn(database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// value is query for one value.
func (s *server) value(t testing.TB, database, query string, into any, args ...any) {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn(database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(into); err != nil {
		t.Fatalf("%s: %v", query, err)
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
	s.query(t, "postgres", "CREATE DATABASE "+name)
	witness := filepath.Join(t.TempDir(), "heads.db")
	return enginetest.Backend{
		Open: func(t testing.TB) engine.Database {
			db, err := OpenDatabase(t.Context(), s.dsn(name))
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
		Exec: func(t testing.TB, query string, args ...any) { s.query(t, name, query, args...) },
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
