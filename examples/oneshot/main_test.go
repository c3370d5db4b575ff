package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestMain makes the test binary the program and its agent as well.
func TestMain(m *testing.M) {
	switch os.Getenv("ONESHOT_ROLE") {
	case "program":
		_ = os.Setenv("ONESHOT_ROLE", "agent") // for the agent it starts
		main()
		os.Exit(0)
	case "agent":
		agent := acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			t.Think("hidden")
			return acp.StopEndTurn, t.Say("You said: " + t.Text() + " in " + t.Session().Cwd())
		}}
		if agent.Serve(context.Background(), acp.Stdio()) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOneshot(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ agent, want string }{
		{self, "You said: hi there in " + cwd},
		{filepath.Join(t.TempDir(), "missing"), ""},
	} {
		cmd := exec.Command(self, "hi there", c.agent)
		cmd.Env = append(os.Environ(), "ONESHOT_ROLE=program")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if string(out) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, %s", c.agent, out, err, &stderr)
		}
	}
}
