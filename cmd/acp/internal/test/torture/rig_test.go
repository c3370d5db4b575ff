//go:build unix

package torture

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/cli"
	"github.com/goacp/acp/internal/leaktest"
)

// TestMain makes the test binary the program, or a part of the tests, if its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		leaktest.Main(m)
		return
	}
	var err error
	switch os.Args[1] {
	case "play-agent":
		err = playAgent(os.Args[2])
	case "play-plain":
		err = playPlain(os.Args[2])
	case "play-screen":
		err = playScreen(os.Args[2])
	case "play-client":
		err = playClient()
	default:
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A rig is a server, its clients and its agent.
type rig struct {
	t       *testing.T
	home    string
	ledger  string
	session string
	names   []string // of the clients that watch
	db      string   // the URL of the database; "" is files
	agent   string   // which part of the tests is the agent; "" is play-agent
	url     string   // of the server, if that is always the same
	listen  string   // where the server listens; "" is a port of its own each time
	keeps   bool     // a server that is ended in an orderly way keeps its agents
	loses   bool     // the disk loses what was not synced
	server  *exec.Cmd
	stderr  bytes.Buffer // of all servers; to be read when none runs

	mu      sync.Mutex
	events  map[string][]event // of each client
	count   int                // of all events
	fresh   map[string]bool    // what was said, and by nobody seen before
	changed chan struct{}      // closed when there is another event
	client  *exec.Cmd          // the one that prompts
	input   io.Closer          // its standard input
	exited  chan struct{}      // closed when everything it has written was read
	next    int                // its next operation
}

// newRig starts a server. prepare gets the directory of its log before.
func newRig(t *testing.T, prepare ...func(dir string)) *rig {
	t.Helper()
	return newRigAt(t, "", prepare...)
}

// newRigOf is newRig for an agent, whose server has one address and keeps its agents.
func newRigOf(t *testing.T, agent string) *rig {
	t.Helper()
	r := prepareRig(t)
	r.agent, r.keeps = agent, true
	r.serve()
	t.Cleanup(r.kill)
	url, err := os.ReadFile(r.urls())
	if err != nil {
		t.Fatal(err)
	}
	r.url = strings.TrimSpace(string(url))
	r.listen, _, _ = strings.Cut(strings.TrimPrefix(r.url, "http://"), "/")
	return r
}

// newRigAt is newRig for a server whose log is in a PostgreSQL database, unless its URL is "".
func newRigAt(t *testing.T, db string, prepare ...func(dir string)) *rig {
	t.Helper()
	r := prepareRig(t)
	r.db = db
	for _, f := range prepare {
		if err := os.MkdirAll(r.logs(), 0o700); err != nil {
			t.Fatal(err)
		}
		f(r.logs())
	}
	r.serve()
	t.Cleanup(r.kill)
	return r
}

// prepareRig returns a rig whose server does not run yet.
func prepareRig(t *testing.T) *rig {
	t.Helper()
	home, err := os.MkdirTemp("", "acp") // short, for the sake of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	return &rig{t: t, home: home, ledger: filepath.Join(home, "ledger"), events: make(map[string][]event), fresh: make(map[string]bool), changed: make(chan struct{})}
}

// logs returns the directory of the log.
func (r *rig) logs() string { return filepath.Join(r.home, "acp", "gateway") }

func (r *rig) urls() string { return filepath.Join(r.home, "url") }

// serve starts the server.
func (r *rig) serve() {
	r.t.Helper()
	if err := r.tryServe(); err != nil {
		r.t.Fatalf("the server has not started: %v: %s", err, r.stderr.String())
	}
}

// tryServe starts the server, or returns why it has ended.
func (r *rig) tryServe() error {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	args := []string{"serve", "--no-auth", "--listen", cmp.Or(r.listen, "127.0.0.1:0")}
	if r.keeps {
		args = append(args, "--keep-agents")
	}
	if r.db != "" {
		args = append(args, "--db", r.db)
	}
	cmd := exec.Command(self, append(args, "--", self, cmp.Or(r.agent, "play-agent"), r.ledger)...)
	cmd.Dir = r.home
	cmd.Env = r.environ(r.home)
	cmd.Stderr = &r.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.server = cmd
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(err, cmd.Wait())
	}
	r.lead(url)
	return nil
}

// environ returns the environment of the program, with a directory of settings.
func (r *rig) environ(config string) []string {
	env := append(os.Environ(), "HOME="+r.home, "XDG_RUNTIME_DIR="+r.home, "GORACE=atexit_sleep_ms=0", "XDG_CONFIG_HOME="+config)
	for _, kind := range []string{"DATA", "STATE", "CACHE"} {
		env = append(env, "XDG_"+kind+"_HOME="+r.home)
	}
	return append(env, "ACP_STORE_PATH="+filepath.Join(r.logs(), "sessions")) // on the disk of the test
}

// lead has clients that connect from now on use a URL.
func (r *rig) lead(url string) {
	r.t.Helper()
	fresh := r.urls() + ".new"
	if err := errors.Join(os.WriteFile(fresh, []byte(url), 0o600), os.Rename(fresh, r.urls())); err != nil {
		r.t.Fatal(err)
	}
}

// kill kills the server.
func (r *rig) kill() {
	_ = r.server.Process.Kill()
	_ = r.server.Wait()
}

// stop ends the server in an orderly way.
func (r *rig) stop() {
	r.t.Helper()
	_ = r.server.Process.Signal(os.Interrupt)
	if err := r.server.Wait(); err != nil {
		r.t.Errorf("the server has ended with %v: %s", err, r.stderr.String())
	}
}

// begin makes a session.
func (r *rig) begin() {
	r.t.Helper()
	url, err := os.ReadFile(r.urls())
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := new(acp.Client).Connect(r.t.Context(), &acphttp.Transport{URL: strings.TrimSpace(string(url))})
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := conn.NewSession(r.t.Context(), acp.SessionConfig{Cwd: r.home})
	if err != nil {
		r.t.Fatal(err)
	}
	r.session = string(s.ID())
	if err := conn.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// add notes an event of a client.
func (r *rig) add(name string, e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[name] = append(r.events[name], e)
	r.count++
	if e.Kind == evSaid {
		r.fresh[e.Text] = true
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// patience is how long nothing may happen.
const patience = 90 * time.Second

// until waits until f, which is called with the lock held, is true, and fails if nothing happens for long.
func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ok, changed := f(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		timer.Reset(patience)
		select {
		case <-changed:
		case <-timer.C:
			_ = r.server.Process.Signal(syscall.SIGQUIT) // which writes its goroutines
			_ = r.server.Wait()
			r.t.Fatalf("%s: nothing has happened for %v: %s%s", what, patience, r.latest(), r.stderr.String())
		}
	}
}

// latest writes the last events of each client.
func (r *rig) latest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for name, events := range r.events {
		fmt.Fprintf(&b, "\n%s:", name)
		for _, e := range events[max(0, len(events)-12):] {
			fmt.Fprintf(&b, " %s %q %s;", e.Kind, e.Text, e.Result)
		}
	}
	return b.String() + "\n"
}

// progress waits until something is said that is new.
func (r *rig) progress(n int) {
	r.t.Helper()
	r.mu.Lock()
	target := len(r.fresh) + n
	r.mu.Unlock()
	r.until("progress", func() bool { return len(r.fresh) >= target })
}

// prompter starts the client that prompts.
func (r *rig) prompter() {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	w := watcher{Name: "prompter", Version: 1 + r.next%2, WS: r.next%3 == 0, Load: true, Session: r.session, Cwd: r.home, URLs: r.urls(), Next: r.next, Prompts: true}
	first, err := json.Marshal(&w)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(self, "play-client")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := in.Write(append(first, '\n')); err != nil {
		r.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				r.t.Errorf("the client writes %q", line)
				return
			}
			e.Version = w.Version
			r.add(w.Name, e)
			if n, ok := strings.CutPrefix(e.Text, "op-"); ok && e.Kind == evEnd {
				if n, err := strconv.Atoi(n); err == nil {
					r.mu.Lock()
					r.next = n + 1
					r.mu.Unlock()
				}
			}
		}
	}()
	r.client, r.input, r.exited = cmd, in, exited
}

// killClient kills the client that prompts, and starts it again.
func (r *rig) killClient() {
	_ = r.client.Process.Kill()
	<-r.exited
	_ = r.client.Wait()
	_ = r.input.Close()
	r.prompter()
}

// watch starts a client that only watches and answers, until ctx ends.
func (r *rig) watch(ctx context.Context, wg *sync.WaitGroup, name string, version int, ws, load bool) {
	r.run(ctx, wg, &watcher{Name: name, Version: version, WS: ws, Load: load})
}

// run starts a client that sees everything in the end, until ctx ends.
func (r *rig) run(ctx context.Context, wg *sync.WaitGroup, w *watcher) {
	r.names = append(r.names, w.Name)
	w.Session, w.Cwd, w.URLs = r.session, r.home, r.urls()
	w.sink = func(e event) {
		e.Version = w.Version
		r.add(w.Name, e)
	}
	wg.Go(func() { _ = w.run(ctx) })
}

// process returns the number of the agent that was started last, or of its holder.
func (r *rig) process(holder bool) int {
	r.t.Helper()
	lines, err := entries(r.ledger)
	if err != nil {
		r.t.Fatal(err)
	}
	pid := 0
	for _, l := range lines {
		if l[0] == "start" {
			pid, err = strconv.Atoi(l[1])
			if holder {
				pid, err = strconv.Atoi(l[2])
			}
			if err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return pid
}
