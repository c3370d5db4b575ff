package acp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// served returns a transport to a proxy that serves over a pipe, as a program would.
func served(t *testing.T, p *Proxy) Transport {
	t.Helper()
	theirs, ours := Pipe()
	done := make(chan error, 1)
	go func() { done <- p.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		if s, err := ours.Open(context.Background()); err == nil {
			_ = s.Close()
		}
		if err := <-done; err != nil {
			t.Errorf("a proxy failed: %v", err)
		}
	})
	return ours
}

// conducted returns a transport to a conductor that serves one client.
func conducted(t *testing.T, c *Conductor) Transport {
	t.Helper()
	theirs, ours := Pipe()
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		if s, err := ours.Open(context.Background()); err == nil {
			_ = s.Close()
		}
		if err := <-done; err != nil {
			t.Errorf("the conductor failed: %v", err)
		}
	})
	return ours
}

// echoing is an agent that repeats what the user says.
func echoing() *Agent {
	return &Agent{
		Info: Implementation{Name: "echo", Version: "1"},
		Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
			return StopEndTurn, t.Say("You said: " + t.Text())
		},
	}
}

// TestChainPasses holds that a conversation is the same through chains of any length, in
// process and with proxies that are components of their own.
func TestChainPasses(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, n := range []int{0, 1, 3} {
			for _, remote := range []bool{false, true} {
				t.Run(fmt.Sprintf("v%d/%d/remote=%v", version, n, remote), func(t *testing.T) {
					agent := InProcess(echoing())
					var way Transport
					if remote {
						c := &Conductor{Agent: Component{Transport: agent}}
						for range n {
							c.Proxies = append(c.Proxies, Component{Transport: served(t, new(Proxy))})
						}
						way = conducted(t, c)
					} else {
						var proxies []*Proxy
						for range n {
							proxies = append(proxies, new(Proxy))
						}
						way = Chain(agent, proxies...)
					}
					client := &Client{MinVersion: version, MaxVersion: version}
					conn, err := client.Connect(t.Context(), way)
					if err != nil {
						t.Fatal(err)
					}
					if conn.Agent().Name != "echo" || conn.Version() != version {
						t.Errorf("agent %q, version %d", conn.Agent().Name, conn.Version())
					}
					s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
					if err != nil {
						t.Fatal(err)
					}
					text, _, err := s.Prompt(t.Context(), Text("hello")).Text()
					if err != nil || !strings.Contains(text, "You said: hello") {
						t.Errorf("text %q, error %v", text, err)
					}
					if err := conn.Close(); err != nil {
						t.Error(err)
					}
					if err := agent.Wait(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

var _ = jsonrpc.ErrClosed

// TestChainInnermost: a chain is closed before the agent's command is started again in another version, as the command
// itself would be.
func TestChainInnermost(t *testing.T) {
	if got, ok := innermost(Chain(Command("agent"), new(Proxy))).(*CommandTransport); !ok || got.Path != "agent" {
		t.Errorf("the transport that a chain opens is %v", got)
	}
}
