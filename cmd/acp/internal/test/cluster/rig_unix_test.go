//go:build unix

package cluster

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
)

// How many there are.
const (
	databases = 3 // a primary and two standbys
	gateways  = 3
)

// disk is how large those of the databases are, in MiB.
const disk = 600

// A rig is the servers, and the network between them.
type rig struct {
	t       *testing.T
	dir     string
	ledger  string
	db      [databases]*pgtest.Server
	primary int
	cluster *pgtest.Cluster             // what promotes standbys; nil if the test does
	follow  [databases][databases]*link // from a standby to its primary
	around  [databases][]*link          // with Patroni: what a server is reached by, but for gateways, and reaches
	nodes   [gateways]*gateway
	loads   int // that were begun

	unlimited error // why disks cannot be full
}

// A gateway is acp serve.
type gateway struct {
	name, home string
	db         [databases]*link
	inbound    *link  // from other nodes
	port       string // that it leads to

	mu      sync.Mutex
	process *exec.Cmd
	url     string // "" if it does not run
}

// newRig starts everything. The test promotes standbys.
func newRig(t *testing.T) *rig {
	r := bareRig(t)
	for i := range r.db {
		r.db[i] = pgtest.New(t)
		t.Cleanup(r.db[i].Remove)
		if err := r.db[i].Limit(disk); err != nil {
			r.unlimited = err
		}
	}
	for i := range r.follow {
		for k := range r.follow[i] {
			r.follow[i][k] = newLink(t, r.dialDB(k))
		}
	}
	r.db[0].Init(t)
	r.db[0].Start(t, r.settings()...)
	r.db[0].Query(t, "postgres", `CREATE DATABASE acp`)
	r.moveClocks()
	for i := 1; i < databases; i++ {
		r.db[i].Clone(t, r.db[0], r.conninfo(i, 0))
		r.db[i].Start(t, r.settings()...)
	}
	r.startGateways()
	return r
}

// bareRig makes a rig in which nothing runs.
func bareRig(t *testing.T) *rig {
	r := &rig{t: t, dir: t.TempDir()}
	r.ledger = filepath.Join(r.dir, "ledger")
	if err := os.WriteFile(r.ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// startGateways starts the gateways, once there are databases.
func (r *rig) startGateways() {
	for i := range r.nodes {
		g := &gateway{name: fmt.Sprint("node", i), home: filepath.Join(r.dir, fmt.Sprint("home", i))}
		for k := range g.db {
			g.db[k] = newLink(r.t, r.dialDB(k))
		}
		g.port = freePort(r.t)
		g.inbound = newLink(r.t, func() (net.Conn, error) { return net.Dial("tcp", g.port) })
		if err := os.MkdirAll(g.home, 0o700); err != nil {
			r.t.Fatal(err)
		}
		r.nodes[i] = g
		r.t.Cleanup(func() { r.end(g) })
		r.start(g)
	}
}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// name is that of a database server as a standby.
func name(i int) string { return fmt.Sprint("db", i) }

func (r *rig) settings() []string {
	var names []string
	for i := range databases {
		names = append(names, name(i))
	}
	return pgtest.Settings(strings.Join(names, ","))
}

func (r *rig) dialDB(i int) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("unix", r.db[i].Socket()) }
}

// conninfo is how a standby finds its primary.
func (r *rig) conninfo(standby, primary int) string {
	host, port, _ := net.SplitHostPort(r.follow[standby][primary].Addr())
	return fmt.Sprintf("host=%s port=%s user=acp application_name=%s", host, port, name(standby))
}

// start starts a gateway and waits until it serves.
func (r *rig) start(g *gateway) {
	r.t.Helper()
	var hosts []string
	for _, l := range g.db {
		hosts = append(hosts, l.Addr())
	}
	url := "postgres://acp@" + strings.Join(hosts, ",") + "/acp?sslmode=disable&connect_timeout=2"
	cmd := exec.Command(os.Args[0], "serve", "--log", g.file(), "--db", url, "--node", g.name, "--node-listen", g.port, "--node-address", g.inbound.Addr(),
		"--node-lease", lease.String(), "--listen", "127.0.0.1:0", "--no-auth", "--", "env", runVar+"=agent", os.Args[0])
	cmd.Dir = r.dir
	cmd.Env = g.environment(runVar+"=acp", ledgerVar+"="+r.ledger)
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	errs, err := os.OpenFile(g.file()+".errors", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer errs.Close()
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		said, _ := os.ReadFile(errs.Name())
		r.t.Fatalf("%s: %v\n%s\n%s", g.name, err, said, g.log())
	}
	g.mu.Lock()
	g.process, g.url = cmd, strings.TrimSpace(line)
	g.mu.Unlock()
}

// file is where a gateway writes its log.
func (g *gateway) file() string { return filepath.Join(g.home, "log") }

// log returns the last warnings of a gateway, and errors.
func (g *gateway) log() string {
	data, err := os.ReadFile(g.file())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

// address returns where a gateway serves, or "".
func (g *gateway) address() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.url
}

// signal sends a signal to the process of a gateway.
func (g *gateway) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.process.Process.Signal(s)
}

// kill ends a gateway as a crash does. Its agents are still there.
func (r *rig) kill(g *gateway) {
	g.signal(syscall.SIGKILL)
	g.mu.Lock()
	cmd := g.process
	g.url = ""
	g.mu.Unlock()
	_ = cmd.Wait()
}

// end ends a gateway in an orderly way.
func (r *rig) end(g *gateway) {
	g.mu.Lock()
	cmd := g.process
	running := cmd != nil && g.url != ""
	g.url = ""
	g.mu.Unlock()
	if running {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// node runs acp node at a gateway, for itself.
func (r *rig) node(t *testing.T, g *gateway, verb string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "node", verb, "--timeout", "1m", "--at", g.address())
	if verb == "undrain" {
		cmd = exec.Command(os.Args[0], "node", verb, "--at", g.address())
	}
	cmd.Env = g.environment(runVar + "=acp")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("acp node %s: %v\n%s", verb, err, out)
	}
}

// environment returns that of the programs of a gateway.
func (g *gateway) environment(more ...string) []string {
	return append(append(os.Environ(), "HOME="+g.home, "XDG_CONFIG_HOME="+g.home, "XDG_DATA_HOME="+g.home,
		"XDG_STATE_HOME="+g.home, "XDG_CACHE_HOME="+g.home, "XDG_RUNTIME_DIR="), more...)
}

// cut cuts a gateway off from the databases, in one or both directions, or mends that.
func (g *gateway) cut(out, back bool) {
	for _, l := range g.db {
		l.cut(out, back)
	}
}

// failOver promotes the standby that has most of the log, and has the other one follow it.
func (r *rig) failOver(t *testing.T) {
	best, other := -1, -1
	var most int64
	// From now on the old primary can confirm nothing: nobody follows it.
	for i, s := range r.db {
		if i != r.primary {
			s.Follow(t, "host="+r.dir+" user=acp") // where nobody is
		}
	}
	for i, s := range r.db {
		if i == r.primary {
			continue
		}
		s.Until(t, "postgres", `SELECT NOT EXISTS (SELECT 1 FROM pg_stat_wal_receiver)`)
		if n := s.Received(t); best < 0 || n > most {
			best, other, most = i, best, n
		} else {
			other = i
		}
	}
	r.db[best].Promote(t)
	r.db[other].Follow(t, r.conninfo(other, best))
	r.primary = best
}

// comeBack makes the old primary a standby.
func (r *rig) comeBack(t *testing.T, old int) {
	r.db[old].Kill()
	r.db[old].Return(t, r.db[r.primary], r.conninfo(old, r.primary), r.settings()...)
}

// moveClocks gives the database a clock that can be moved: it shadows that of PostgreSQL for the user of the gateways.
func (r *rig) moveClocks() {
	for _, q := range []string{
		`CREATE SCHEMA moved`,
		`CREATE TABLE moved.by (seconds double precision NOT NULL)`,
		`INSERT INTO moved.by VALUES (0)`,
		`CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
			'SELECT pg_catalog.clock_timestamp() + (SELECT seconds FROM moved.by) * interval ''1 second'''`,
		`ALTER DATABASE acp SET search_path = public, moved, pg_catalog`,
	} {
		r.db[0].Query(r.t, "acp", q)
	}
}
