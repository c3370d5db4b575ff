package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/goacp/acp"
)

// TestMain makes the test binary the bridge and the agents behind it as well.
func TestMain(m *testing.M) {
	switch os.Getenv("BRIDGE_ROLE") {
	case "bridge":
		_ = os.Setenv("BRIDGE_ROLE", os.Getenv("BRIDGE_AGENT")) // for the agent it starts
		main()
		os.Exit(0)
	case "1":
		serve(1)
	case "2":
		serve(2)
	}
	os.Exit(m.Run())
}

// serve is an agent that knows one version and says which.
func serve(version int) {
	agent := acp.Agent{
		MinVersion: version, MaxVersion: version,
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say(fmt.Sprintf("version %d heard %s", version, t.Text()))
		},
	}
	if agent.Serve(context.Background(), acp.Stdio()) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestBridge lets clients of both versions talk to agents of both, all of them
// processes.
func TestBridge(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][2]int{{1, 2}, {2, 1}} {
		t.Run(fmt.Sprintf("client v%d agent v%d", v[0], v[1]), func(t *testing.T) {
			bridge := acp.Command(self, self)
			bridge.Env = append(os.Environ(), "BRIDGE_ROLE=bridge", fmt.Sprintf("BRIDGE_AGENT=%d", v[1]))
			client := acp.Client{MinVersion: v[0], MaxVersion: v[0]}
			conn, err := client.Connect(t.Context(), bridge)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			var said string
			for u, err := range session.Prompt(t.Context(), acp.Text("hello")).Updates() {
				if err != nil {
					t.Fatal(err)
				}
				said += u.Text()
			}
			if want := fmt.Sprintf("version %d heard hello", v[1]); said != want {
				t.Errorf("said %q, want %q", said, want)
			}
		})
	}
}
