//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// lastLine is the result line of acp exec --json.
type lastLine struct {
	Type     string
	ExitCode int
	Error    struct{ Message string }
	Text     string
}

func readLast(t *testing.T, out []byte) (l lastLine) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &l); err != nil || l.Type != "result" {
		t.Errorf("the last line is %s, %v", lines[len(lines)-1], err)
	}
	return l
}

// TestTimeoutProgram runs the program under the timeout program of the system, which ends it during a
// turn: the result line is written, and the status is that of timeout.
func TestTimeoutProgram(t *testing.T) {
	program, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(program, "1", "true").CombinedOutput(); err != nil {
		t.Skipf("%s works otherwise: %v: %s", program, err, out)
	}
	for _, flags := range [][]string{nil, {"-s", "INT"}, {"-k", "60"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			// How long it takes until the turn has begun is not known.
			for seconds := 2; seconds <= 128; seconds *= 2 {
				home := t.TempDir()
				acp := acpCommand(t, home, append([]string{"exec", "--json", "go"}, fake("slow-turn")...)...)
				args := append(append([]string{}, flags...), strconv.Itoa(seconds))
				cmd := exec.Command(program, append(args, acp.Args...)...)
				cmd.Dir, cmd.Env = acp.Dir, acp.Env
				// It signals its whole group, in which the test must not be.
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run()
				if !strings.Contains(out.String(), "working") {
					continue
				}
				if got := cmd.ProcessState.ExitCode(); got != 124 {
					t.Errorf("status %d; %s", got, &errs)
				}
				if l := readLast(t, out.Bytes()); l.ExitCode != int(exitcode.Cancelled) {
					t.Errorf("%+v", l)
				}
				return
			}
			t.Error("the turn has not begun")
		})
	}
}

// TestAgentKilled kills the agent in the middle of a turn: the result and the line on standard error say
// what happened, and what it has said is kept.
func TestAgentKilled(t *testing.T) {
	home := t.TempDir()
	cmd := acpCommand(t, home, append([]string{"exec", "--json", "go"}, fake("slow-turn")...)...)
	lines, errs := begin(t, cmd)
	var out bytes.Buffer
	for {
		line, err := lines.ReadBytes('\n')
		out.Write(line)
		if err != nil {
			break
		}
		if _, after, ok := bytes.Cut(line, []byte("working ")); ok {
			digits := after[:len(after)-len(bytes.TrimLeft(after, "0123456789"))]
			agent, err := strconv.Atoi(string(digits))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if p, err := os.FindProcess(agent); err == nil {
				_ = p.Kill()
			}
		}
	}
	_ = cmd.Wait()
	l := readLast(t, out.Bytes())
	if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != exitcode.Agent || l.ExitCode != int(exitcode.Agent) {
		t.Errorf("status %d, %+v", got, l)
	}
	if !strings.Contains(l.Error.Message, "was ended by SIGKILL") || !strings.Contains(l.Text, "working") || !strings.Contains(errs.String(), "was ended by SIGKILL") {
		t.Errorf("%+v\n%s", l, errs)
	}
	if kept, err := acpCommand(t, home, "sessions", "search", "working").CombinedOutput(); err != nil || !bytes.Contains(kept, []byte("working")) {
		t.Errorf("what was said is not kept: %v: %s", err, kept)
	}
}
