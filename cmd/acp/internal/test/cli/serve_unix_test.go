//go:build !windows

package cli

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestServeEnds ends a server during a turn, in every way: no agent is left, and the client reports the end. It
// is ended twice where the agent does not end by itself.
func TestServeEnds(t *testing.T) {
	for _, tt := range []struct {
		name, mode string
		signal     syscall.Signal
		client     bool // the client is ended, not the server
	}{
		{"interrupt", "slow-turn", syscall.SIGINT, false},
		{"terminate", "slow-turn", syscall.SIGTERM, false},
		{"an agent that does not end", "ignore-cancel", syscall.SIGINT, false},
		{"the client is killed", "slow-turn", syscall.SIGKILL, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			server := acpCommand(t, home, append([]string{"serve", "--stateless", "--listen", "127.0.0.1:0"}, fake(tt.mode)...)...)
			out, errs := begin(t, server)
			t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
			url, err := out.ReadString('\n')
			if err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			// WebSocket, since the end of such a connection is noticed at once.
			client := acpCommand(t, home, "exec", "--no-store", "--agent", "ws"+strings.TrimPrefix(strings.TrimSpace(url), "http"), "go")
			said, told := begin(t, client)
			t.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() })
			line, err := said.ReadString('\n')
			if err != nil {
				t.Fatalf("%v: %s", err, told)
			}
			agent, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "working "))
			if err != nil {
				t.Fatal(err)
			}
			if tt.client {
				_ = client.Process.Kill()
				_ = client.Wait()
				tt.signal = syscall.SIGINT
			}
			if err := server.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			_ = server.Wait()
			if got := exitcode.Code(server.ProcessState.ExitCode()); got != exitcode.Done {
				t.Errorf("the server has status %d: %s", got, errs)
			}
			if err := syscall.Kill(agent, 0); err != syscall.ESRCH {
				t.Errorf("the agent, process %d, is left: %v", agent, err)
			}
			if tt.client {
				return
			}
			_ = client.Wait()
			if got := exitcode.Code(client.ProcessState.ExitCode()); got != exitcode.Agent || strings.Count(told.String(), "\n") != 1 {
				t.Errorf("the client has status %d: %s", got, told)
			}
		})
	}
}
