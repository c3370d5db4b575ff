package pgtest

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
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// A Server is a PostgreSQL server that listens on a socket in a directory of its own. Its methods must not be called
// concurrently, apart from Value, Query and Log.
type Server struct {
	bin, dir string
	port     string // after which the socket is named
	unmount  func() // the file system of the data; or nil
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the server and its children have closed their standard error

	mu   sync.Mutex
	last []string // lines of its standard error
}

// lines bounds what is kept of a server's log.
const lines = 200

// Find returns the directory that has the programs of PostgreSQL.
func Find() (string, error) {
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

// New makes a server that has no data yet. The test is skipped where there cannot be one. [Server.Remove] must be
// called in the end.
func New(t testing.TB) *Server {
	t.Helper()
	bin, err := Find()
	if err != nil {
		t.Skip(err)
	}
	s := &Server{bin: bin, port: "5432"}
	if s.dir, err = os.MkdirTemp("", "acp-pg"); err != nil { // short: a socket's path has a limit
		t.Fatal(err)
	}
	if err := ownedByServer(s.dir); err != nil {
		s.Remove()
		t.Skipf("PostgreSQL does not run as root, and there is no other user: %v", err)
	}
	return s
}

// Init makes an empty database cluster, whose administrator is the user acp.
func (s *Server) Init(t testing.TB) {
	t.Helper()
	s.Run(t, "initdb", "-k", "-D", s.Data(), "-U", "acp", "-A", "trust", "-E", "UTF8", "--locale=C")
}

// Run runs a program of PostgreSQL as the user of the server.
func (s *Server) Run(t testing.TB, name string, args ...string) {
	t.Helper()
	if err := s.Try(name, args...); err != nil {
		t.Fatal(err)
	}
}

// Try is Run for a program that may fail.
func (s *Server) Try(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	asServer(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Dir returns the directory that has the socket and the data.
func (s *Server) Dir() string { return s.dir }

// Data returns the directory that has the data.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Socket returns the path of the socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL."+s.port) }

// DSN returns the connection string for a database of the server.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("host=%s port=%s user=acp database=%s", s.dir, s.port, database)
}

// Start starts the server and waits until it accepts connections. Settings are like "max_connections=300".
func (s *Server) Start(t testing.TB, settings ...string) {
	t.Helper()
	if err := s.TryStart(settings...); err != nil {
		t.Fatal(err)
	}
}

// TryStart is Start for a server that may fail to start.
func (s *Server) TryStart(settings ...string) error {
	args := []string{"-D", s.Data(), "-k", s.dir, "-c", "listen_addresses="}
	for _, setting := range append([]string{"max_connections=300"}, settings...) {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	asServer(s.cmd)
	// PostgreSQL says there when it is ready.
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		said := false
		for in := bufio.NewScanner(out); in.Scan(); {
			if !said && strings.Contains(in.Text(), "database system is ready to accept") { // "read-only connections", if it is a standby
				said = true
				close(ready)
			}
			s.mu.Lock()
			s.last = append(s.last, in.Text())
			s.last = s.last[max(0, len(s.last)-lines):]
			s.mu.Unlock()
		}
	}()
	select {
	case <-ready:
		return nil
	case <-ended:
		_ = s.cmd.Wait()
		s.cmd = nil
		return fmt.Errorf("the server does not start:\n%s", s.Log())
	}
}

// Log returns the last lines of what the server has logged.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.last, "\n")
}

// Runs reports whether the server was started and not stopped.
func (s *Server) Runs() bool { return s.cmd != nil }

// Stop stops the server at once and without a checkpoint, as a crash does. A server that does not run is left alone.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(quit)
		s.wait()
	}
}

// Kill kills the server and all its processes, paused or not.
func (s *Server) Kill() {
	if s.cmd != nil {
		signalAll(s.cmd.Process.Pid, kill)
		s.wait()
	}
}

func (s *Server) wait() {
	<-s.ended // its children have ended, too
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Remove stops the server and removes its files.
func (s *Server) Remove() {
	s.Kill()
	if s.unmount != nil {
		s.unmount()
	}
	_ = os.RemoveAll(s.dir)
}

// Query runs a statement as the administrator.
func (s *Server) Query(t testing.TB, database, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("pgx", s.DSN(database)+" synchronous_commit=local") // there may be no standby
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Value is Query for one value.
func (s *Server) Value(t testing.TB, database, query string, into any, args ...any) {
	t.Helper()
	db, err := sql.Open("pgx", s.DSN(database)+" synchronous_commit=local") // there may be no standby
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(into); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
