//go:build unix

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// An output is what a process writes, while it does.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	first chan struct{} // closed with the first byte
}

func newOutput() *output { return &output{first: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() == 0 && len(p) > 0 {
		close(o.first)
	}
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// client returns the command of a client of the gateways.
func (r *rig) client(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), os.Args[0], args...)
	home := r.t.TempDir()
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), runVar+"=acp", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
		"XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR=", "ACP_TOKEN=")
	return cmd
}

// said returns what the agent says in a turn in which it is not allowed what it asks for.
func said(prompt string) string {
	var b strings.Builder
	for i := range chunks {
		fmt.Fprintf(&b, "%s/%d", prompt, i)
		if i == chunks/2 {
			fmt.Fprintf(&b, "%s?%v", prompt, false)
		}
	}
	return b.String()
}

// TestTakeover: while a turn runs, another node takes the place of one that was killed, behind one address. Clients there
// return to it, and show everything once: the whole turn if it runs on a third node, and what was said if it has ended with
// the node.
func TestTakeover(t *testing.T) {
	if !*run {
		t.Skip("this takes minutes: use -cluster")
	}
	r := newRig(t)
	var mu sync.Mutex
	behind := r.nodes[0]
	front := newLink(t, func() (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		u, err := url.Parse(behind.address())
		if err != nil || u.Host == "" {
			return nil, net.ErrClosed
		}
		return net.Dial("tcp", u.Host)
	})
	at := "http://" + front.Addr() + "/acp"
	for _, tt := range []struct {
		name      string
		elsewhere bool // the sessions run on a third node
		status    int  // of acp exec
	}{
		{"the turn runs elsewhere", true, 0},
		{"the turn ends with the node", false, int(exitcode.Protocol)}, // it has failed, and nobody has cancelled it
	} {
		t.Run(tt.name, func(t *testing.T) {
			owner := behind
			if tt.elsewhere {
				owner = r.nodes[1]
			}
			type process struct {
				name, prompt string
				cmd          *exec.Cmd
				out, errs    *output
				done         chan error // gets how it has ended
			}
			var all []*process
			add := func(name string, args func(session, prompt string) []string) {
				begin := r.client("exec", "--at", owner.address(), "--json", "--deny-ok", "begin"+name)
				data, err := begin.Output()
				if err != nil {
					t.Fatalf("%s: %v\n%s", name, err, data)
				}
				var result struct{ SessionID string }
				lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
				if err := json.Unmarshal(lines[len(lines)-1], &result); err != nil || result.SessionID == "" {
					t.Fatalf("%s: %v\n%s", name, err, data)
				}
				p := &process{name: name, prompt: hold + name, cmd: r.client(args(result.SessionID, hold+name)...), out: newOutput(), errs: newOutput(), done: make(chan error, 1)}
				p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
				all = append(all, p)
			}
			add("exec", func(id, prompt string) []string {
				return []string{"exec", "--at", at, "--session", id, "--deny-ok", prompt}
			})
			add("socket", func(id, prompt string) []string {
				return []string{"exec", "--at", "ws" + strings.TrimPrefix(at, "http"), "--session", id, "--deny-ok", prompt}
			})
			add("connect", func(id, prompt string) []string {
				return []string{"exec", "--session", id, "--deny-ok", prompt, "--", "env", runVar + "=acp", os.Args[0], "connect", at}
			})
			_ = os.Remove(released(r.ledger)) // of the case before
			for _, p := range all {
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				go func() { p.done <- p.cmd.Wait() }()
			}
			for _, p := range all {
				select {
				case <-p.out.first:
				case err := <-p.done:
					t.Fatalf("%s: %v\n%s", p.name, err, p.errs)
				}
			}
			old, next := behind, r.nodes[2]
			if old == next {
				next = r.nodes[0]
			}
			r.kill(old)
			mu.Lock()
			behind = next
			mu.Unlock()
			if tt.elsewhere {
				if err := os.WriteFile(released(r.ledger), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range all {
				err := <-p.done
				status := 0
				if exit, ok := errors.AsType[*exec.ExitError](err); ok {
					status = exit.ExitCode()
				} else if err != nil {
					t.Error(err)
				}
				got, want := strings.TrimSuffix(p.out.String(), "\n"), said(p.prompt)
				if status != tt.status || tt.elsewhere && got != want || got == "" || !strings.HasPrefix(want, got) {
					t.Errorf("%s: status %d, %q\nwant %d, %q\n%s", p.name, status, got, tt.status, want, p.errs)
				}
			}
			r.start(old)
			if t.Failed() {
				for _, g := range r.nodes {
					t.Logf("%s:\n%s", g.name, g.log())
				}
			}
		})
	}
}
