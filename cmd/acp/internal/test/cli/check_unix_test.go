//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestCheckEnds interrupts a check while an agent does not end its turn: once, and there is a report of
// what was tried; twice, and it ends at once. Neither leaves the agent, or the directory of the sessions.
func TestCheckEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mode    string
		first   string // the rule that is tried before the one about a turn
		signals int
		report  bool
	}{
		{"once", "slow-turn", "agent/prompt/audio-not-offered", 1, true}, // on the same connection
		{"twice", "deaf", "agent/dispatch/unknown-request", 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, tmp := t.TempDir(), t.TempDir()
			// What the agent is sent is copied, to know how far the check is. The copy ends with the last
			// process that the check has started.
			seen := newCopy(t, filepath.Join(home, "seen"))
			script := `exec 3>"$SEEN"; { tee /dev/fd/3; echo no more >&3; } | "$@"`
			if tt.signals > 1 {
				script += `; sleep 1000`
			}
			cmd := acpCommand(t, home, "check", "agent", "--protocol", "1", "--only", tt.first, "--only", "agent/prompt/ends",
				"--prompt", "text=hello", "--timeout", "5m", "--json", "--junit", "report.xml", "-o", "talk.acptrace", "--",
				"env", "SEEN="+seen.name, "sh", "-c", script, "sh", "env", "CLITEST_RUN=fake-agent", os.Args[0], tt.mode)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); _ = cmd.Wait(); _ = seen.writer.Close() }()
			t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
			want := `"text":"hello"`
			if tt.signals == 2 {
				want = "_check/" // the agent of this test answers turns, and then does not end
			}
			seen.until(t, want)
			if left, err := os.ReadDir(tmp); err != nil || len(left) != 1 {
				t.Errorf("while it runs: %v, %v", left, err)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
			if tt.signals > 1 {
				seen.until(t, "no more") // the first was taken; else both are one
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Error(err)
				}
			}
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != int(exitcode.Cancelled) {
				t.Errorf("status %d; stderr: %s", code, &errs)
			}
			seen.until(t, "") // the end of the agent
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
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
		})
	}
}

// A copyOf is a pipe with a name, into which processes copy what they read.
type copyOf struct {
	name   string
	reader *bufio.Reader
	writer *os.File // lets it be opened before there is a process, and keeps it open until somebody writes
}

func newCopy(t *testing.T, name string) *copyOf {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return &copyOf{name, bufio.NewReader(r), w}
}

// until reads lines until one has a text, or for "" to the end of all who write.
func (c *copyOf) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := c.reader.ReadString('\n')
		_ = c.writer.Close() // somebody writes, or nobody will: the end is the end
		if text == "" && err == io.EOF || text != "" && strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("there was no %q: %v", text, err)
		}
	}
}
