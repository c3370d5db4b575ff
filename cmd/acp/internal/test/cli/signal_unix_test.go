//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// acpCommand returns the program as a process with a home of its own; the agent is the fake one.
func acpCommand(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "CLITEST_RUN=acp", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
		"XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	return cmd
}

func fake(mode string) []string {
	return []string{"--", "env", "CLITEST_RUN=fake-agent", os.Args[0], mode}
}

// begin starts the program. What it writes to standard error is complete once it was waited for.
func begin(t *testing.T, cmd *exec.Cmd) (out *bufio.Reader, errs *bytes.Buffer) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs = new(bytes.Buffer)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(stdout), errs
}

// TestEnds ends the program during a turn in every way: the status tells, what was shown is kept, and
// the agent is gone.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name, mode string
		signals    []syscall.Signal
		code       exitcode.Code // -1: killed
	}{
		{"interrupt", "slow-turn", []syscall.Signal{syscall.SIGINT}, exitcode.Cancelled},
		{"terminate", "slow-turn", []syscall.Signal{syscall.SIGTERM}, exitcode.Cancelled},
		{"hang up", "slow-turn", []syscall.Signal{syscall.SIGHUP}, exitcode.Cancelled},
		{"interrupt twice", "ignore-cancel", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, exitcode.Cancelled},
		{"kill", "slow-turn", []syscall.Signal{syscall.SIGKILL}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			cmd := acpCommand(t, home, append([]string{"exec", "go"}, fake(tt.mode)...)...)
			out, errs := begin(t, cmd)
			line, err := out.ReadString('\n')
			if err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				t.Fatalf("%v; stderr: %s", err, errs)
			}
			agent, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "working "))
			if err != nil {
				t.Error(err)
			}
			var list []byte
			kept := func() bool {
				list, err = acpCommand(t, home, "sessions", "search", "working").CombinedOutput()
				return err == nil && bytes.Contains(list, []byte("working"))
			}
			if tt.code < 0 { // a write that takes longer than 100 ms is not waited for
				await(t, "what was shown", kept)
			}
			if err := cmd.Process.Signal(tt.signals[0]); err != nil {
				t.Error(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait() }()
			// Signals of one kind that wait are one, so the second is sent until it is taken.
			again := make(<-chan time.Time)
			if len(tt.signals) > 1 {
				ticker := time.NewTicker(50 * time.Millisecond)
				defer ticker.Stop()
				again = ticker.C
			}
			for waiting := true; waiting; {
				select {
				case <-again:
					_ = cmd.Process.Signal(tt.signals[1])
				case <-ended:
					waiting = false
				}
			}
			if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != tt.code {
				t.Errorf("status %d, want %d; stderr: %s", got, tt.code, errs)
			}
			if n := strings.Count(errs.String(), "\n"); n > 1 {
				t.Errorf("more than a line on standard error: %s", errs)
			}
			for end := time.Now().Add(time.Minute); syscall.Kill(agent, 0) == nil; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the agent, process %d, has survived", agent)
				}
			}
			// What was shown is kept.
			if !kept() {
				t.Errorf("what was shown is not found: %v: %s", err, list)
			}
		})
	}
}
