//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// asTimeout signals a process as GNU timeout does: first the process, at once its whole group.
func asTimeout(pid int, sig syscall.Signal) error {
	return errors.Join(syscall.Kill(pid, sig), syscall.Kill(-pid, sig))
}

// runs is how often each way to signal is tried.
const runs = 8

// await waits until ok, which something outside of this process brings about.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestSignalledTwice signals commands the way GNU timeout does. What follows the first signal within a
// moment is no second wish: the result, the report, and the recording are written, and the status says
// that the command was cancelled.
func TestSignalledTwice(t *testing.T) {
	started := func(home string) bool { _, err := os.Stat(filepath.Join(home, "started")); return err == nil }
	agent := func(home, mode string) []string {
		return []string{"--", "sh", "-c", `: >"$1"; CLITEST_RUN=fake-agent exec "$2" "$3"`, "sh", filepath.Join(home, "started"), os.Args[0], mode}
	}
	for _, tt := range []struct {
		name  string
		mode  string
		args  []string
		ready string // in the output, or "" if the start of the agent is enough
		check func(t *testing.T, out, errs []byte)
	}{
		{"exec", "slow-turn", []string{"exec", "--json", "go"}, "working", func(t *testing.T, out, _ []byte) {
			lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
			var last struct {
				Type     string
				ExitCode int
			}
			if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Type != "result" || last.ExitCode != int(exitcode.Cancelled) {
				t.Errorf("the last line is %s, %v", lines[len(lines)-1], err)
			}
		}},
		{"check", "ok", []string{"check", "agent", "--json"}, "", func(t *testing.T, out, errs []byte) {
			var report struct{ Interrupted bool }
			if err := json.Unmarshal(out, &report); err != nil || !report.Interrupted {
				t.Errorf("report %.200q, %v; %s", out, err, errs)
			}
		}},
		{"chat", "slow-turn", []string{"chat", "--plain"}, "working", func(t *testing.T, out, _ []byte) {
			if !bytes.Contains(out, []byte("working")) {
				t.Errorf("%s", out)
			}
		}},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if tt.name == "chat" && sig == syscall.SIGINT {
				continue // it cancels the turn and the conversation goes on: TestInterruptedTwice
			}
			t.Run(tt.name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				for range runs {
					home := t.TempDir()
					cmd := acpCommand(t, home, append(tt.args, agent(home, tt.mode)...)...)
					cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					out, err := os.Create(filepath.Join(home, "out"))
					if err != nil {
						t.Fatal(err)
					}
					var errs bytes.Buffer
					cmd.Stdout, cmd.Stderr = out, &errs
					in, err := cmd.StdinPipe()
					if err != nil {
						t.Fatal(err)
					}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					if tt.name == "chat" {
						_, _ = io.WriteString(in, "go\n")
					} else {
						_ = in.Close()
					}
					said := func() []byte { b, _ := os.ReadFile(out.Name()); return b }
					await(t, "the turn", func() bool {
						return started(home) && bytes.Contains(said(), []byte(tt.ready))
					})
					if err := asTimeout(cmd.Process.Pid, sig); err != nil {
						t.Error(err)
					}
					_ = cmd.Wait()
					_ = out.Close()
					if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != exitcode.Cancelled {
						t.Errorf("status %d; stderr: %s", got, &errs)
					}
					tt.check(t, said(), errs.Bytes())
				}
			})
		}
	}
}

// TestInterruptedTwice interrupts a plain chat as GNU timeout does: its turn is cancelled, once, and the
// conversation goes on.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	for range runs {
		home := t.TempDir()
		cmd := acpCommand(t, home, append([]string{"chat", "--plain", "--no-store"}, fake("slow-turn")...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(home, "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := func(text string) func() bool {
			return func() bool { b, _ := os.ReadFile(out.Name()); return strings.Contains(string(b), text) }
		}
		_, _ = io.WriteString(in, "go\n")
		await(t, "the turn", said("working"))
		if err := asTimeout(cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Error(err)
		}
		await(t, "the end of the turn", said("Cancelled."))
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v, want status 0", err)
		}
	}
}

// TestTerminalClosed closes the terminal a command runs in, while its output goes to a file: the last
// line is there.
func TestTerminalClosed(t *testing.T) {
	t.Parallel()
	for range runs {
		home := t.TempDir()
		cmd := acpCommand(t, home, append([]string{"exec", "--json", "go"}, fake("slow-turn")...)...)
		out, err := os.Create(filepath.Join(home, "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
		tty, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		said := func() string { b, _ := os.ReadFile(out.Name()); return string(b) }
		await(t, "the turn", func() bool { return strings.Contains(said(), "working") })
		_ = tty.Close()
		_ = cmd.Wait()
		if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != exitcode.Cancelled {
			t.Errorf("status %d", got)
		}
		lines := strings.Split(strings.TrimSpace(said()), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, `"type":"result"`) {
			t.Errorf("the last line is %s", last)
		}
	}
}
