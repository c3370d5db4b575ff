package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// daemon is a script that starts, forked twice, a process in a session of its own, which writes its number
// to the file daemon.
const daemon = `(setsid sh -c 'echo $$ >daemon.new; mv daemon.new daemon; exec sleep 100000' &); `

// isThere reports whether a process is there and has not ended.
func isThere(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := bytes.TrimLeft(data[bytes.LastIndexByte(data, ')')+1:], " ")
	return len(state) > 0 && state[0] != 'Z' && state[0] != 'X'
}

// TestDaemonsEnd: what an agent, or a command that it has run, has cut loose from itself ends with it,
// however the program ends, and a process whose environment has no mark any more stays.
func TestDaemonsEnd(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	const wait = `while [ ! -e daemon ]; do sleep 0.01; done; `
	agent := func(mode, script string) []string {
		return []string{"--", "sh", "-c", script + wait + `CLITEST_RUN=fake-agent exec "$0" "$1"`, os.Args[0], mode}
	}
	builtin := func(line string) []string { return []string{"--allow", "*", "/run " + line} }
	for _, tt := range []struct {
		name   string
		args   []string
		signal syscall.Signal // once the daemon is there
		code   exitcode.Code  // -1: killed
		stays  bool
	}{
		{"at the end", append([]string{"exec", "go"}, agent("ok", daemon)...), 0, 0, false},
		{"terminated", append([]string{"exec", "go"}, agent("slow-turn", daemon)...), syscall.SIGTERM, exitcode.Cancelled, false},
		{"killed", append([]string{"exec", "go"}, agent("slow-turn", daemon)...), syscall.SIGKILL, -1, false},
		{"out of time", append([]string{"exec", "--timeout", "5s", "go"}, agent("slow-turn", daemon)...), 0, exitcode.Timeout, false},
		{"of a command", append([]string{"exec", "--no-stdin"}, builtin(daemon+wait+"echo done")...), 0, 0, false},
		{"of a command that runs", append([]string{"exec", "--no-stdin"}, builtin(daemon+"sleep 100000")...), syscall.SIGTERM, exitcode.Cancelled, false},
		{"without the mark", append([]string{"exec", "go"}, agent("ok", strings.Replace(daemon, "setsid", "env -u ACP_TREE setsid", 1))...), 0, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			cmd := acpCommand(t, home, tt.args...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := 0
			await(t, "the daemon", func() bool {
				data, err := os.ReadFile(filepath.Join(home, "daemon"))
				if err != nil {
					return false
				}
				pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
				return err == nil
			})
			if tt.signal != 0 {
				_ = cmd.Process.Signal(tt.signal)
			}
			_ = cmd.Wait()
			if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != tt.code {
				t.Errorf("status %d, want %d; stderr: %s", got, tt.code, &errs)
			}
			if tt.stays {
				if !isThere(pid) {
					t.Error("the daemon has ended")
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
			await(t, "the end of the daemon", func() bool { return !isThere(pid) })
		})
	}
}
