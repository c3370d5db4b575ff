//go:build !windows

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/trace"
)

// tapped is an acp tap that runs, as its editor sees it.
type tapped struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	file string
}

func startTap(t *testing.T, script string, flags ...string) *tapped {
	t.Helper()
	home := t.TempDir()
	p := &tapped{file: filepath.Join(home, "t.acptrace")}
	args := append([]string{"tap", "-o", p.file}, flags...)
	p.Cmd = acpCommand(t, home, append(args, "--", "sh", "-c", script)...)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

// line reads a line.
func (p *tapped) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// records reads the trace, of which nothing may be broken but the end.
func (p *tapped) records(t *testing.T) (got []string) {
	t.Helper()
	f, err := os.Open(p.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		var cut *trace.CutError
		switch {
		case err == io.EOF:
			return got
		case errors.As(err, &cut):
			got = append(got, "cut")
		case err != nil:
			t.Fatal(err)
		case rec.Kind == trace.Event:
			got = append(got, rec.Name)
		default:
			got = append(got, string(rec.Dir)+string(rec.Data))
		}
	}
}

// TestTapKilled kills acp tap: the editor sees the end, the agent and what it has started are gone, and
// what was said is in the trace.
func TestTapKilled(t *testing.T) {
	for _, flags := range [][]string{nil, {"--allow", "*"}} {
		p := startTap(t, `sleep 1000 & echo $$ $!; while read -r x; do echo "{\"got\":$x}"; done; sleep 1000`, flags...)
		var pids []int
		for word := range strings.FieldsSeq(p.line(t)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		want := []string{"start", fmt.Sprintf("<%d %d", pids[0], pids[1])}
		for i := range 100 {
			_, _ = fmt.Fprintln(p.in, i)
			line := p.line(t)
			want = append(want, fmt.Sprint(">", i), "<"+line)
		}
		// The trace follows closely; there is nothing else that says how far it is.
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if got := p.records(t); len(got) == len(want) {
				break
			} else if time.Now().After(end) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
		}
		if err := p.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(p.out); len(rest) > 0 || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
		_ = p.Wait()
		for _, pid := range pids {
			awaitGone(t, pid)
		}
		got := p.records(t)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("record %d: %q, want %q", i, got[i], want[i])
			}
		}
	}
}

// awaitGone waits until a process has ended.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if ended(pid) {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// ended reports whether a process is gone or only waits to be reaped.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// TestTapSignals holds that signals reach the agent, and that its status is the status.
func TestTapSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := startTap(t, `trap 'echo bye; exit 9' INT TERM HUP; echo ready; while :; do sleep 0.01; done`)
		if got := p.line(t); got != "ready" {
			t.Fatal(got)
		}
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if got := p.line(t); got != "bye" {
			t.Fatal(got)
		}
		_ = p.Wait()
		if got := p.ProcessState.ExitCode(); got != 9 {
			t.Errorf("%v: status %d", sig, got)
		}
		if got := strings.Join(p.records(t), ","); got != "start,<ready,signal,<bye,close,exit" {
			t.Errorf("%v: %s", sig, got)
		}
	}
}

// TestTapTwice holds that two taps do not write into one file.
func TestTapTwice(t *testing.T) {
	p := startTap(t, `echo ready; read -r x`)
	p.line(t)
	again := acpCommand(t, filepath.Dir(p.file), "tap", "-o", p.file, "--", "echo", "other")
	if out, err := again.Output(); err != nil || string(out) != "other\n" {
		t.Fatalf("%q, %v", out, err)
	}
	other, err := os.ReadFile(strings.TrimSuffix(p.file, ".acptrace") + "-" + strconv.Itoa(again.Process.Pid) + ".acptrace")
	if err != nil || !strings.Contains(string(other), `"text":"other"`) {
		t.Errorf("%q, %v", other, err)
	}
	_ = p.in.Close()
	_ = p.Wait()
	if got := strings.Join(p.records(t), ","); strings.Contains(got, "other") {
		t.Errorf("the first has %s", got)
	}
}
