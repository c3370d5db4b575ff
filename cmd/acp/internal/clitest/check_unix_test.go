//go:build !windows

package clitest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestCheckEnds interrupts a check while an agent does not end its turn: once, and there is a report of
// what was tried; twice, and it ends at once. Neither leaves the agent, and only the second, which does
// not wait, may leave the directory of the sessions.
func TestCheckEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mode    string
		signals int
		report  bool
	}{
		{"once", "slow-turn", 1, true},
		{"twice", "deaf", 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, tmp := t.TempDir(), t.TempDir()
			pid, seen := filepath.Join(home, "pid"), filepath.Join(home, "seen")
			// What the agent is sent is copied, to know how far the check is.
			script := `echo $$ >"$PID"; tee "$SEEN" | "$@"; sleep 1000`
			if tt.signals == 1 {
				script = `echo $$ >"$PID"; tee "$SEEN" | "$@"`
			}
			cmd := acpCommand(t, home, "check", "agent", "--protocol", "1", "--only", "agent/dispatch/unknown-request", "--only", "agent/prompt/ends",
				"--prompt", "text=hello", "--timeout", "5m", "--json", "--junit", "report.xml", "-o", "talk.acptrace", "--",
				"env", "PID="+pid, "SEEN="+seen, "sh", "-c", script, "sh", "env", "CLITEST_RUN=fake-agent", os.Args[0], tt.mode)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
			wait := func(what string, done func() bool) {
				t.Helper()
				for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s: not within 30 s; stderr: %s", what, &errs)
					}
				}
			}
			want := "session/prompt"
			if tt.signals == 2 {
				want = "_check/" // the agent of this test answers turns, and then does not end
			}
			wait("the agent is asked", func() bool {
				data, _ := os.ReadFile(seen)
				return bytes.Contains(data, []byte(want))
			})
			for range tt.signals {
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(tt.signals-1) * 50 * time.Millisecond) // else both are one
			}
			wait("the end", func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
			if code := cmd.ProcessState.ExitCode(); code != int(exitcode.Cancelled) {
				t.Errorf("status %d; stderr: %s", code, &errs)
			}
			text, err := os.ReadFile(pid)
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			wait("the end of the agent", func() bool { return syscall.Kill(n, 0) == syscall.ESRCH })
			if !tt.report {
				return
			}
			var report struct {
				Interrupted bool
				Left        int
				Results     []struct{ Rule, Status string }
			}
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if !report.Interrupted || report.Left != 1 || len(report.Results) != 1 || report.Results[0].Status != "pass" {
				t.Errorf("%+v", report)
			}
			if got, want := errs.String(), "acp: the check was interrupted after 1 of 2 trials\n"; got != want {
				t.Errorf("stderr %q, want %q", got, want)
			}
			if data, err := os.ReadFile(filepath.Join(home, "report.xml")); err != nil || !bytes.Contains(data, []byte("interrupted after 1 of 2 trials")) {
				t.Errorf("%v: %s", err, data)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}
