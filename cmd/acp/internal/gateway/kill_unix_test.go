//go:build unix

package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/internal/leaktest"
)

// serveVar makes the test binary serve a gateway in that directory, until it is killed.
const serveVar = "GATEWAY_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVar); dir != "" {
		if err := serveIn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

// counting is an agent that counts up to what it is told.
func counting() *acp.Agent {
	return &acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			var n int
			_, _ = fmt.Sscan(t.Text(), &n)
			for i := range n {
				if err := t.Say(fmt.Sprintf("%d,", i)); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		},
	}
}

func serveIn(dir string) error {
	ctx := context.Background()
	log, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	lease, err := log.Lease(ctx, "node")
	if err != nil {
		return err
	}
	agent := counting()
	g := New(Config{Log: log, Lease: lease, Agent: "test", Start: func(context.Context, string, string) (acp.Transport, error) {
		return acp.InProcess(agent), nil
	}})
	if err := g.Recover(ctx); err != nil {
		return err
	}
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // the test has ended
		os.Exit(0)
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String() + "/acp")
	return http.Serve(l, &acphttp.Server{Serve: g.Serve})
}

// startServer starts a process that serves a gateway.
func startServer(t *testing.T, dir string) (url string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVar+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	})
	t.Cleanup(kill)
	return strings.TrimSpace(line), kill
}

// TestKilled kills the gateway at random moments of a turn. What a client has seen is in the log, each
// thing once and in order; the turn has ended; and nothing has run twice.
func TestKilled(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	var id acp.SessionID
	random := rand.New(rand.NewPCG(3, 4))
	cut := 0
	var saw []string // in the turns so far, apart from what was cut off
	for round := range rounds {
		url, kill := startServer(t, dir)
		var live []string
		var updates atomic.Int64
		limit := random.Int64N(400)
		client := &acp.Client{MaxVersion: 1, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if text := describe(u); text != "" && !u.Synthetic {
				live = append(live, text)
				if !u.Replayed && updates.Add(1) == limit {
					go kill()
				}
			}
		}}
		transport := &acphttp.Transport{URL: url, RetryFor: -1}
		conn, err := client.Connect(t.Context(), transport)
		if err != nil {
			t.Fatal(err)
		}
		var session *acp.ClientSession
		if id == "" {
			session, err = conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
		} else {
			session, err = conn.Load(t.Context(), id, acp.SessionConfig{Cwd: "/"})
		}
		if err != nil {
			t.Fatal(round, err)
		}
		id = session.ID()
		check(t, round, live, saw)
		history := len(live)
		if limit == 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(3*time.Millisecond))), kill)
		}
		_, err = session.Prompt(t.Context(), acp.Text("500")).Wait()
		switch {
		case err == nil: // it was quicker
		case !errors.Is(err, acp.ErrOutcomeUnknown):
			t.Fatal(round, limit, err)
		default:
			cut++
		}
		_ = conn.Close()
		kill()
		saw = live[:history:history]
		if len(live) > history { // otherwise the prompt may not have arrived
			saw = append(append(saw, "user: 500"), live[history:]...)
		}
	}
	if cut < rounds/2 {
		t.Errorf("only %d of %d turns were cut", cut, rounds)
	}
}

// check compares a history with what was seen of it.
func check(t *testing.T, round int, history, saw []string) {
	t.Helper()
	if len(history) < len(saw) {
		t.Fatalf("round %d: %d updates are kept of %d that were seen", round, len(history), len(saw))
	}
	next := 0
	for i, text := range history {
		if i < len(saw) && text != saw[i] {
			t.Fatalf("round %d: %d is %q, seen was %q", round, i, text, saw[i])
		}
		switch {
		case text == "user: 500":
			next = 0
		case strings.HasPrefix(text, "agent: The turn was interrupted."):
		case text != fmt.Sprintf("agent: %d,", next):
			t.Fatalf("round %d: %q, want %d", round, text, next)
		default:
			next++
		}
	}
}
