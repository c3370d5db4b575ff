//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Cluster is PostgreSQL servers that Patroni manages: it elects the primary, promotes a standby when that is gone, and
// makes the old one a standby. All of them, and the etcd in which they agree, are processes of this machine.
type Cluster struct {
	Version string // of Patroni
	API     string // of etcd, which Patroni uses: "etcd" is version 2, "etcd3" version 3
	Servers []*Server
	// Via returns an address that leads to another one: it is by the first that server i reaches etcd, and others reach the
	// server and its Patroni. Set it before Start; nil is the same address.
	Via func(i int, address string) string

	etcd    *Server // for its directory
	patroni string
	http    http.Client
	rest    []string // where each Patroni is asked
	url     string   // of etcd, for clients
	peer    string   // and for other members
}

// fixed is the first version of Patroni that does not overwrite another one's leader key in etcd 3.
var fixed = [3]int{3, 0, 3}

// NewCluster prepares n servers. The test is skipped where Patroni, etcd or PostgreSQL is not installed. Each has a
// directory of its own, which all its processes work in, or below it. api says how Patroni uses etcd; "" is the one that
// is safe with the version that is installed.
func NewCluster(t testing.TB, n int, api string) *Cluster {
	t.Helper()
	c := &Cluster{API: api, http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	var err error
	if c.patroni, err = exec.LookPath("patroni"); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		t.Skipf("processes cannot be found: %v", err)
	}
	out, err := exec.Command(c.patroni, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	c.Version = strings.TrimPrefix(strings.TrimSpace(string(out)), "patroni ")
	if c.API == "" {
		c.API = "etcd3"
		var v [3]int
		if _, err := fmt.Sscanf(c.Version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
			t.Fatalf("the version of Patroni is %q: %v", c.Version, err)
		}
		for i := range v {
			if v[i] != fixed[i] {
				if v[i] < fixed[i] {
					c.API = "etcd"
				}
				break
			}
		}
	}
	c.etcd = New(t)
	t.Cleanup(func() { c.etcd.remove(t) })
	c.url, c.peer = "http://"+freeAddress(t), "http://"+freeAddress(t)
	for range n {
		s := New(t)
		t.Cleanup(func() { s.remove(t) })
		_, s.port, _ = net.SplitHostPort(freeAddress(t))
		c.Servers = append(c.Servers, s)
		c.rest = append(c.rest, freeAddress(t))
	}
	return c
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// remove kills what works in the directory of a server, and removes it.
func (s *Server) remove(t testing.TB) {
	s.KillAll(t)
	_ = os.RemoveAll(s.dir)
}

// Start starts etcd and all servers, and waits until one of them is the primary and a standby confirms its commits.
func (c *Cluster) Start(t testing.TB) (primary int) {
	t.Helper()
	c.run(t, c.etcd, exec.Command("etcd", "--name", "one", "--data-dir", filepath.Join(c.etcd.dir, "etcd"), "--enable-v2=true", "--log-level", "warn",
		"--listen-client-urls", c.url, "--advertise-client-urls", c.url, "--listen-peer-urls", c.peer,
		"--initial-advertise-peer-urls", c.peer, "--initial-cluster", "one="+c.peer))
	c.await(t, "etcd", func() bool {
		res, err := c.http.Get(c.url + "/health")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	for i := range c.Servers {
		c.configure(t, i)
		c.StartServer(t, i)
	}
	c.AwaitWhole(t)
	return c.Primary(t, -1)
}

// StartServer starts the Patroni of a server, which starts that.
func (c *Cluster) StartServer(t testing.TB, i int) {
	t.Helper()
	s := c.Servers[i]
	c.run(t, s, exec.Command(c.patroni, filepath.Join(s.dir, "patroni.json")))
}

// run starts a program in the directory of a server, as its user. What it says goes to a file there.
func (c *Cluster) run(t testing.TB, s *Server, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	asServer(cmd)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // it ends with KillAll
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// configure writes the settings of a Patroni. Those below dcs are of all servers, and are what docs/gateway.md demands.
func (c *Cluster) configure(t testing.TB, i int) {
	t.Helper()
	type m = map[string]any
	s := c.Servers[i]
	address := net.JoinHostPort("127.0.0.1", s.port)
	via := func(address string) string {
		if c.Via == nil {
			return address
		}
		return c.Via(i, address)
	}
	data, err := json.MarshalIndent(m{ // which is YAML
		"scope": "acp", "namespace": "/service/", "name": name(i),
		"restapi": m{"listen": c.rest[i], "connect_address": via(c.rest[i])},
		c.API:     m{"host": via(strings.TrimPrefix(c.url, "http://")), "use_proxies": true}, // or it asks etcd for its own address
		"bootstrap": m{
			"dcs": m{
				"ttl": 10, "loop_wait": 2, "retry_timeout": 3, "maximum_lag_on_failover": 1 << 20, "check_timeline": true,
				"synchronous_mode": true, "synchronous_mode_strict": true, "synchronous_node_count": 1,
				"postgresql": m{
					"use_pg_rewind": true, "use_slots": true, "remove_data_directory_on_rewind_failure": true,
					"parameters": m{
						"max_connections": 300, "max_wal_senders": 10, "wal_keep_size": "128MB", "wal_log_hints": "on", "synchronous_commit": "on",
						"wal_retrieve_retry_interval": "500ms", "wal_receiver_timeout": "5s", "wal_receiver_status_interval": "1s",
						"wal_sender_timeout": "5s", "max_slot_wal_keep_size": "1GB",
					},
				},
			},
			"initdb": []any{"data-checksums", m{"encoding": "UTF8"}, m{"locale": "C"}},
		},
		"postgresql": m{
			"listen": address, "connect_address": via(address), "data_dir": s.Data(), "bin_dir": s.bin, "pgpass": filepath.Join(s.dir, "pgpass"),
			"authentication": m{"superuser": m{"username": "acp"}, "replication": m{"username": "replicator"}},
			"parameters":     m{"unix_socket_directories": s.dir},
			"pg_hba":         []string{"local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
		},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, "patroni.json")
	if err := errors.Join(os.WriteFile(path, data, 0o600), ownedByServer(path)); err != nil {
		t.Fatal(err)
	}
}

// name is that of a server in the cluster.
func name(i int) string { return "db" + strconv.Itoa(i) }

// A member is what Patroni says of a server.
type member struct{ Name, Role, State string }

func (m *member) leads() bool { return m.Role == "leader" }

// follows reports whether it is a standby that works; what that is called depends on the version.
func (m *member) follows() bool {
	return !m.leads() && (m.State == "running" || m.State == "streaming")
}

// members asks one Patroni after the other which servers there are. That of the server without is not asked.
func (c *Cluster) members(without int) (all []member) {
	for i := range c.rest {
		if i == without {
			continue
		}
		var answer struct{ Members []member }
		data, err := c.call(http.MethodGet, i, "/cluster", nil)
		if err == nil && json.Unmarshal(data, &answer) == nil {
			return answer.Members
		}
	}
	return nil
}

// call sends a request to a Patroni.
func (c *Cluster) call(method string, i int, path string, body any) ([]byte, error) {
	limit := time.Second
	if method != http.MethodGet { // it answers once it is done
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.rest[i]+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return data, err
}

// await asks until something is so.
func (c *Cluster) await(t testing.TB, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for limit := time.Now().Add(2 * time.Minute); !is(); <-again.C {
		if time.Now().After(limit) || t.Context().Err() != nil {
			t.Fatalf("%s is not there: %+v\n%s", what, c.members(-1), c.Logs())
		}
	}
}

// Primary waits until a server other than old is the primary, and returns its number. The Patroni
// of old is not asked: it may not know it yet.
func (c *Cluster) Primary(t testing.TB, old int) (primary int) {
	t.Helper()
	c.await(t, "another primary", func() bool {
		for _, m := range c.members(old) {
			if i, err := strconv.Atoi(strings.TrimPrefix(m.Name, "db")); err == nil && m.leads() && m.State == "running" && i != old {
				primary = i
				return true
			}
		}
		return false
	})
	return primary
}

// AwaitWhole waits until one server is the primary, all others follow it, and one of them confirms its commits.
func (c *Cluster) AwaitWhole(t testing.TB) {
	t.Helper()
	c.await(t, "a cluster that is whole", func() bool {
		leads, follow, confirms, streams := 0, 0, 0, 0
		for _, m := range c.members(-1) {
			switch {
			case m.leads() && m.State == "running":
				leads++
				if i, err := strconv.Atoi(strings.TrimPrefix(m.Name, "db")); err == nil {
					streams = c.Servers[i].streams(t.Context())
				}
			case m.follows():
				follow++
			}
			if m.Role == "sync_standby" {
				confirms++
			}
		}
		return leads == 1 && follow == len(c.Servers)-1 && streams == follow && confirms > 0
	})
}

// streams returns how many standbys a primary has; 0 if it does not say.
func (s *Server) streams(ctx context.Context) (n int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	db, err := sql.Open("pgx", s.DSN("postgres"))
	if err != nil {
		return 0
	}
	defer db.Close()
	_ = db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`).Scan(&n)
	return n
}

// Switch has another server become the primary while all of them work.
func (c *Cluster) Switch(t testing.TB, primary int) {
	t.Helper()
	if data, err := c.call(http.MethodPost, primary, "/switchover", map[string]string{"leader": name(primary)}); err != nil {
		t.Fatalf("switchover: %v: %s\n%s", err, data, c.Logs())
	}
}

// Logs returns the last of what Patroni, PostgreSQL and etcd have said.
func (c *Cluster) Logs() string {
	var all strings.Builder
	for i, s := range append([]*Server{c.etcd}, c.Servers...) {
		data, _ := os.ReadFile(s.logFile())
		fmt.Fprintf(&all, "%d:\n%s\n", i, data[max(0, len(data)-8<<10):])
	}
	return all.String()
}

// processes returns those that work in the directory of the server, or below it. One that has ended does not.
func (s *Server) processes() (all []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, file := range files {
		dir, err := os.Readlink(file)
		if err != nil || dir != s.dir && !strings.HasPrefix(dir, s.dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			all = append(all, pid)
		}
	}
	return all
}

// SignalAll sends a signal to all processes of the server, also to those that have begun meanwhile.
func (s *Server) SignalAll(signal syscall.Signal) {
	for range 2 {
		for _, pid := range s.processes() {
			_ = syscall.Kill(pid, signal)
		}
	}
}

// KillAll kills all processes of the server, paused or not, and waits until they have ended.
func (s *Server) KillAll(t testing.TB) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); len(s.processes()) > 0; {
		s.SignalAll(syscall.SIGKILL)
		if time.Now().After(limit) {
			t.Errorf("processes do not end: %v", s.processes())
			return
		}
	}
}
