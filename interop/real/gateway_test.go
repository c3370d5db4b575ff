//go:build unix

package real

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// A gate is acp serve with a real agent, as a process that is killed and started again.
type gate struct {
	t   *testing.T
	h   *house
	cmd *exec.Cmd
	url string
	log bytes.Buffer // what it wrote to standard error; complete once it has ended
}

func newGate(t *testing.T, h *house) *gate {
	t.Helper()
	sockets, err := os.MkdirTemp("", "acpg") // short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	h.env = append(h.env, "XDG_RUNTIME_DIR="+sockets)
	g := &gate{t: t, h: h}
	g.start()
	t.Cleanup(func() {
		_ = g.cmd.Process.Signal(os.Interrupt) // which ends the agent as well
		_ = g.cmd.Wait()
		h.gone(t)
		if t.Failed() {
			t.Log(tail(g.log.String()))
		}
	})
	return g
}

func (g *gate) start() {
	g.t.Helper()
	g.cmd = exec.Command(program(g.t), slices.Concat([]string{"serve", "--verbose", "--no-auth", "--listen", "127.0.0.1:0", "--"}, g.h.agent)...)
	g.cmd.Dir, g.cmd.Env = g.h.work, g.h.env
	g.cmd.Stderr = &g.log
	out, err := g.cmd.StdoutPipe()
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		g.t.Fatal(err)
	}
	g.url = strings.TrimSpace(line)
}

// restart kills the gateway and starts it again. The agent does not end.
func (g *gate) restart() {
	g.t.Helper()
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.start()
}

// A guest is a client of the gateway.
type guest struct {
	conn *acp.ClientConn

	mu   sync.Mutex
	said strings.Builder
}

// connect connects a client. ask is called with what the agent asks.
func (g *gate) connect(ask func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error)) *guest {
	g.t.Helper()
	c := new(guest)
	client := &acp.Client{
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if v, ok := u.Update.(*acp.AgentMessageChunk); ok {
				if text, ok := v.Content.(*acp.TextContent); ok {
					c.mu.Lock()
					c.said.WriteString(text.Text)
					c.mu.Unlock()
				}
			}
		},
		RequestPermission: ask,
	}
	var err error
	if c.conn, err = client.Connect(limited(g.t), &acphttp.Transport{URL: g.url, RetryFor: -1}); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// TestGateway: a real agent behind a gateway. The gateway is killed while the agent waits for an answer, and started
// again: the agent is asked for nothing twice, the client is asked again, and the answer reaches the agent, which
// finishes its turn and remembers it.
func TestGateway(t *testing.T) {
	each(t, func(t *testing.T, a agent, version int) {
		if version != slices.Max(a.versions) {
			t.Skip("the gateway asks for the highest version")
		}
		h := newHouse(t, a)
		g := newGate(t, h)
		asked := make(chan struct{}, 8)
		first := g.connect(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			asked <- struct{}{}
			<-ctx.Done() // nobody answers
			return acp.PermissionDecision{}, context.Cause(ctx)
		})
		s, err := first.conn.NewSession(limited(t), acp.SessionConfig{Cwd: h.work})
		if err != nil {
			t.Fatal(err)
		}
		if text, _, err := s.Prompt(limited(t), acp.Text("standin: say one two three")).Text(); err != nil || text != "one two three" {
			t.Fatalf("%q, %v", text, err)
		}
		running := s.Prompt(limited(t), acp.Text("standin: run echo hello >> ran.txt"))
		select {
		case <-asked:
		case <-running.Done():
			_, err := running.Wait()
			t.Fatalf("the turn has ended without a question: %v", err)
		case <-limited(t).Done():
			t.Fatal("the agent asks nothing")
		}
		g.restart()
		if _, err := running.Wait(); !errors.Is(err, acp.ErrOutcomeUnknown) {
			t.Errorf("the prompt of the connection that broke: %v", err)
		}
		again := make(chan struct{}, 8)
		second := g.connect(func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			again <- struct{}{}
			return r.Allow(), nil
		})
		theirs, err := second.conn.Load(limited(t), s.ID(), acp.SessionConfig{Cwd: h.work})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-again:
		case <-limited(t).Done():
			t.Fatal("the client is not asked again")
		}
		text, _, err := theirs.Prompt(limited(t), acp.Text("standin: history")).Text()
		if err != nil || !strings.Contains(text, "run echo hello") {
			t.Errorf("afterwards: %q, %v", text, err)
		}
		if got := h.file("ran.txt"); got != "hello" {
			t.Errorf("the command has left %q", got)
		}
		if n := len(again); n > 0 {
			t.Errorf("it is asked %d times more", n)
		}
		if second.mu.Lock(); !strings.Contains(second.said.String(), "one two three") {
			t.Errorf("the history has %q", second.said.String())
		}
		second.mu.Unlock()
	})
}
