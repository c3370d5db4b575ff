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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/long"
)

const (
	// serveVar makes the test binary serve a gateway in that directory, until it is killed.
	serveVar = "GATEWAY_TEST_SERVE"
	// holdVar makes such a gateway start agents that outlive it.
	holdVar = "GATEWAY_TEST_HOLD"
	// agentVar makes the test binary an agent, of that version of the protocol.
	agentVar = "GATEWAY_TEST_AGENT"
)

func TestMain(m *testing.M) {
	if version, _ := strconv.Atoi(os.Getenv(agentVar)); version > 0 {
		agent := questioning()
		agent.MinVersion, agent.MaxVersion = version, version
		_ = agent.Serve(context.Background(), acp.Stdio())
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		if err := holder.Main(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(serveVar); dir != "" {
		if err := serveIn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

// counting is an agent that counts up to the number in the prompt.
func counting() *acp.Agent {
	return &acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			var n int
			_, _ = fmt.Sscan(asked(t), &n)
			for i := range n {
				if err := t.Say(fmt.Sprintf("%d,", i)); err != nil {
					return "", err
				}
				if os.Getenv(serveVar) != "" && i%50 == 49 {
					time.Sleep(50 * time.Millisecond) // or the turn might end before a slow client has the server killed
				}
			}
			return acp.StopEndTurn, nil
		},
	}
}

func serveIn(dir string) error {
	ctx := context.Background()
	log, err := sqlite.Open(ctx, dir, "test", engine.Options{Says: Says})
	if err != nil {
		return err
	}
	lease, err := log.Lease(ctx, "node")
	if err != nil {
		return err
	}
	agent := counting()
	cfg := Config{Log: log, Lease: lease, Agent: "test", Start: func(context.Context, string, string) (acp.Transport, error) {
		return acp.InProcess(agent), nil
	}}
	if version := os.Getenv(holdVar); version != "" {
		env := append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GATEWAY_TEST_") }), agentVar+"="+version)
		cfg.Hold = func(ctx context.Context, _, cwd string) (Held, error) {
			return holder.Start(ctx, holder.Spec{
				Program: []string{os.Args[0], "hold"},
				Config:  holder.Config{Dir: filepath.Join(dir, "h"), Command: holder.Command{Path: os.Args[0], Dir: cwd, Env: env}, Lease: time.Minute},
			})
		}
		cfg.Rehold = func(ctx context.Context, socket, token string, seq uint64) (Held, error) {
			return holder.Attach(ctx, socket, token, holder.State{Seq: seq})
		}
	}
	g := New(cfg)
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
func startServer(t *testing.T, dir string, env ...string) (url string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serveVar+"="+dir), env...)
	cmd.Stderr = t.Output()
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
	rounds := 15
	if !long.All() {
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
		session := enter(t, round, conn, id)
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

// enter opens the session of the rounds before, or begins one in the first.
func enter(t *testing.T, round int, conn *acp.ClientConn, id acp.SessionID) *acp.ClientSession {
	t.Helper()
	cfg := acp.SessionConfig{Cwd: "/"}
	var s *acp.ClientSession
	var err error
	if id == "" {
		s, err = conn.NewSession(t.Context(), cfg)
	} else {
		s, err = conn.Load(t.Context(), id, cfg)
	}
	if err != nil {
		t.Fatal(round, err)
	}
	return s
}

// check compares a history with what was seen of it.
func check(t *testing.T, round int, history, saw []string) {
	t.Helper()
	if len(history) < len(saw) {
		t.Fatalf("round %d: %d updates are kept of %d that were seen", round, len(history), len(saw))
	}
	next, prompts := 0, 0
	defer func() {
		if prompts > round { // one in each round before
			t.Errorf("round %d: %d prompts have run", round, prompts)
		}
	}()
	for i, text := range history {
		if i < len(saw) && text != saw[i] {
			t.Fatalf("round %d: %d is %q, seen was %q", round, i, text, saw[i])
		}
		switch {
		case text == "user: 500":
			prompts++
			next = 0
		case strings.HasPrefix(text, "agent: The gateway was restarted."), strings.HasPrefix(text, "agent: The agent does not remember"):
		case text != fmt.Sprintf("agent: %d,", next):
			t.Fatalf("round %d: %q, want %d", round, text, next)
		default:
			next++
		}
	}
}

// questioning is counting, and asks for a permission after every hundred.
func questioning() *acp.Agent {
	agent := counting()
	agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		var n int
		_, _ = fmt.Sscan(asked(t), &n)
		for i := range n {
			if err := t.Say(fmt.Sprintf("%d,", i)); err != nil {
				return "", err
			}
			if i%100 == 99 {
				answer, err := t.Ask(acp.Permission{Title: fmt.Sprint("question ", i)})
				if err != nil {
					return "", err
				}
				if err := t.Say(fmt.Sprintf("%d %v,", i, answer.Allowed)); err != nil {
					return "", err
				}
			}
		}
		return acp.StopEndTurn, nil
	}
	return agent
}

// TestHeldKilled kills the gateway again and again in one turn. The agent does not notice, the turn ends
// as if nothing had happened, and every question gets one answer.
func TestHeldKilled(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			kills := 30
			if !long.All() {
				kills = 5
			}
			dir := t.TempDir()
			random := rand.New(rand.NewPCG(5, uint64(version)))
			total := kills * 100
			var want []string
			want = append(want, fmt.Sprintf("user: %d", total))
			for i := range total {
				want = append(want, fmt.Sprintf("agent: %d,", i))
				if i%100 == 99 {
					want = append(want, fmt.Sprintf("agent: %d true,", i))
				}
			}
			var id acp.SessionID
			var history []string
			for round := 0; ; round++ {
				url, kill := startServer(t, dir, holdVar+"="+strconv.Itoa(version))
				var mu sync.Mutex
				var live []string
				ended := make(chan struct{}, 1)
				limit := len(history) + random.IntN(150)
				seen := make(chan struct{})
				var once sync.Once
				stop := func() { once.Do(func() { close(seen) }) }
				client := &acp.Client{
					MinVersion: 2, MaxVersion: 2,
					Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
						mu.Lock()
						defer mu.Unlock()
						if text := describe(u); strings.HasPrefix(text, "end: ") {
							ended <- struct{}{}
						} else if text != "" {
							live = append(live, text)
						}
						if round < kills && len(live) > limit {
							stop()
						}
					},
					RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
						if round < kills && random.IntN(3) == 0 {
							stop()
						}
						return r.Allow(), nil
					},
				}
				conn, err := client.Connect(t.Context(), &acphttp.Transport{URL: url, RetryFor: -1})
				if err != nil {
					t.Fatal(err)
				}
				session := enter(t, round, conn, id)
				if id == "" {
					session.Prompt(t.Context(), acp.Text(fmt.Sprint(total)))
				}
				id = session.ID()
				over := false
				select {
				case <-seen:
				case <-ended:
					over = true
				}
				kill()
				_ = conn.Close()
				mu.Lock()
				history = live
				mu.Unlock()
				if len(history) > len(want) || !slices.Equal(history, want[:len(history)]) {
					for i := range history {
						if i >= len(want) || history[i] != want[i] {
							t.Fatalf("round %d: %d is %q", round, i, history[i])
						}
					}
				}
				if over {
					if len(history) != len(want) {
						t.Fatalf("round %d: the turn has ended after %d of %d", round, len(history), len(want))
					}
					t.Logf("%d kills", round)
					return
				}
			}
		})
	}
}
