package interop

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processLimit bounds one conversation of two processes.
const processLimit = 30 * time.Second

func play(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), processLimit)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v\n%s", command, err, &stderr)
	}
	return string(out)
}

// The example client and agent hold a conversation with an agent and a client
// on the official SDK, in both protocol versions, and both ends exit.
func TestExamples(t *testing.T) {
	need(t)
	client, agent := example(t, "rawclient"), example(t, "rawagent")
	for _, version := range []int{1, 2} {
		v := strconv.Itoa(version)
		t.Run("our client v"+v, func(t *testing.T) {
			got := play(t, client, "-protocol", v, "-prompt", "hello from Go: é 😀", "node", "agent.mjs", v)
			if want := "hello from Go: é 😀\n"; got != want {
				t.Errorf("output %q, want %q", got, want)
			}
		})
		t.Run("our agent v"+v, func(t *testing.T) {
			got := play(t, "node", "client.mjs", v, "hello from TypeScript: é 😀", "--", agent, "-protocol", v)
			want := `{"said":"hello from TypeScript: é 😀","reason":"end_turn"}` + "\n" + `{"exit":0}` + "\n"
			if got != want {
				t.Errorf("output %q, want %q", got, want)
			}
		})
	}
}
