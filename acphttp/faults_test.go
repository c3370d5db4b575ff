package acphttp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

// faulty starts a proxy in front of a server.
func faulty(t *testing.T, target string, fault func(r *http.Request, n int) acptest.NetFault) string {
	t.Helper()
	transport := &http.Transport{}
	web := httptest.NewServer(&acptest.FaultProxy{Target: target, Fault: fault, Transport: transport})
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		transport.CloseIdleConnections()
	})
	return web.URL + "/acp"
}

// turn connects, opens a session and has the agent count.
func turn(t *testing.T, transport acp.Transport, n int) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // only against hanging
	defer cancel()
	conn, err := new(acp.Client).Connect(ctx, transport)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
	if err != nil {
		return "", fmt.Errorf("new session: %w", err)
	}
	text, _, err := session.Prompt(ctx, acp.Text(fmt.Sprint(n))).Text()
	if ctx.Err() != nil {
		t.Fatal("the client hangs")
	}
	return text, err
}

// TestResumed: with resumption, a turn loses, doubles and reorders nothing, wherever
// its streams are cut.
func TestResumed(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 20}}
	target := serve(t, s)
	step := 3
	if !long.All() {
		step = 17
	}
	for after := 0; after < 1500; after += step {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			cuts := 0
			url := faulty(t, target, func(r *http.Request, _ int) acptest.NetFault {
				if r.Method != http.MethodGet || cuts == 4 {
					return acptest.NetFault{}
				}
				cuts++
				return acptest.NetFault{Break: acptest.Cut, After: int64(after)}
			})
			text, err := turn(t, acphttp.NewTransport(url), 40)
			if err != nil || text != remotetest.Numbers(40) {
				t.Fatalf("cut after %d bytes: %q, %v", after, text, err)
			}
			if cuts == 0 {
				t.Error("nothing was cut")
			}
		})
	}
}

// TestCutAtRandom cuts one long turn a thousand times.
func TestCutAtRandom(t *testing.T) {
	cuts, updates := 1000, 10000
	if !long.All() {
		cuts, updates = 100, 2000
	}
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 4 << 20}}
	target := serve(t, s)
	random := rand.New(rand.NewPCG(1, 2))
	done := 0
	url := faulty(t, target, func(r *http.Request, n int) acptest.NetFault {
		if r.Method != http.MethodGet || done == cuts {
			return acptest.NetFault{}
		}
		done++
		return acptest.NetFault{Break: acptest.Cut, After: random.Int64N(3000)}
	})
	text, err := turn(t, acphttp.NewTransport(url), updates)
	if err != nil || text != remotetest.Numbers(updates) {
		t.Fatalf("got %d bytes, want %d: %v", len(text), len(remotetest.Numbers(updates)), err)
	}
	if done < cuts/2 {
		t.Errorf("only %d cuts", done)
	}
}

// TestCutForGood: without resumption a cut ends the connection, and the error says
// that the outcome is unknown; the answer is never silently incomplete.
func TestCutForGood(t *testing.T) {
	target := serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve})
	for after := int64(1); after < 1500; after += 7 {
		url := faulty(t, target, func(r *http.Request, n int) acptest.NetFault {
			if r.Method == http.MethodGet && r.Header.Get(acphttp.HeaderSessionID) != "" {
				return acptest.NetFault{Break: acptest.Cut, After: after}
			}
			return acptest.NetFault{}
		})
		text, err := turn(t, acphttp.NewTransport(url), 100)
		switch {
		case err == nil && text == remotetest.Numbers(100):
		case err == nil:
			t.Fatalf("cut after %d bytes: %q without an error", after, text)
		case !errors.Is(err, jsonrpc.ErrOutcomeUnknown):
			t.Fatalf("cut after %d bytes: %v", after, err)
		}
	}
}

// TestPostsGoWrong: what happens to a request with a message makes a prompt run
// neither twice nor not at all.
func TestPostsGoWrong(t *testing.T) {
	faults := map[string]acptest.NetFault{
		"twice":     {Twice: true},
		"502 after": {Replace: http.StatusBadGateway},
		"503 first": {Refuse: http.StatusServiceUnavailable, RetryAfter: time.Second},
		"delay":     {Delay: 20 * time.Millisecond},
		"cut":       {Break: acptest.Cut}, // the answer does not arrive
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			var prompts atomic.Int64
			agent := remotetest.Counting(t)
			prompt := agent.Prompt
			agent.Prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				prompts.Add(1)
				return prompt(ctx, turn)
			}
			target := serve(t, &acphttp.Server{Serve: agent.Serve})
			n := 0
			url := faulty(t, target, func(r *http.Request, _ int) acptest.NetFault {
				if r.Method == http.MethodPost && r.Header.Get(acphttp.HeaderConnectionID) != "" {
					if n++; n%2 == 1 || fault.Twice {
						return fault
					}
				}
				return acptest.NetFault{}
			})
			text, err := turn(t, acphttp.NewTransport(url), 10)
			if err != nil || text != remotetest.Numbers(10) {
				t.Fatalf("%q, %v", text, err)
			}
			if n := prompts.Load(); n != 1 {
				t.Errorf("the prompt ran %d times", n)
			}
		})
	}
}
