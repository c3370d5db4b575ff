//go:build unix

package pty

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/leaktest"
)

// holder makes the test binary hold a terminal until it is killed.
const holder = "ACP_PTY_TEST_HOLD"

func TestMain(m *testing.M) {
	if script := os.Getenv(holder); script != "" {
		hold(script)
		return
	}
	leaktest.Main(m)
}

func hold(script string) {
	p, err := Terminals{}.Start(context.Background(), acphost.PTYCommand{Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Env: os.Environ()})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	_, _ = io.Copy(os.Stdout, p)
	select {}
}

func sh(t *testing.T, size Size, script string) acphost.PTYProcess {
	t.Helper()
	p, err := Terminals{Size: size}.Start(t.Context(), acphost.PTYCommand{Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(), Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func output(t *testing.T, p acphost.PTYProcess) string {
	t.Helper()
	b, err := io.ReadAll(p)
	if err != nil {
		t.Errorf("Read: %v", err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name, script, out string
		code              int
		signal            string
	}{
		{"a terminal", `test -t 1 && test -t 2 && echo yes`, "yes\n", 0, ""},
		{"nothing to read", `read x || echo end`, "end\n", 0, ""},
		{"size", `stty size <&1`, "24 132\n", 0, ""},
		{"term", `echo $TERM`, "xterm-256color\n", 0, ""},
		{"code", `exit 7`, "", 7, ""},
		{"signal", `kill -TERM $$`, "", -1, "SIGTERM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := sh(t, Size{Cols: 132, Rows: 24}, tt.script)
			if got := output(t, p); got != tt.out {
				t.Errorf("output %q, want %q", got, tt.out)
			}
			if code, signal := p.Wait(); code != tt.code || signal != tt.signal {
				t.Errorf("ended %d %q, want %d %q", code, signal, tt.code, tt.signal)
			}
		})
	}
}

func TestNoProgram(t *testing.T) {
	_, err := Terminals{}.Start(t.Context(), acphost.PTYCommand{Path: "no-such-program-of-ours", Dir: t.TempDir(), Env: os.Environ()})
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start: %v", err)
	}
}

// family starts processes in the group, in a group of their own, ignoring polite signals, and
// prints their numbers.
const family = `
trap '' TERM HUP
sleep 1000 & echo $!
set -m
sleep 1000 & echo $!
set +m
sh -c 'trap "" TERM HUP; echo $$; echo ready; while :; do sleep 1000; done' &
while :; do sleep 1000; done
`

// pids reads numbers up to the line ready.
func pids(t *testing.T, r io.Reader) (list []int) {
	t.Helper()
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "ready" {
			return list
		}
		if n, err := strconv.Atoi(line); err == nil {
			list = append(list, n)
		}
	}
	t.Fatalf("only %v: %v", list, sc.Err())
	return nil
}

// gone waits for the end of processes.
func gone(t *testing.T, list []int) {
	t.Helper()
	for _, pid := range list {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if !alive(pid) {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("process %d survives", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}

// alive reports whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestEnd(t *testing.T) {
	p := sh(t, Size{}, family)
	list := pids(t, p)
	if len(list) != 3 {
		t.Fatalf("processes %v", list)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.End(now); err != nil {
		t.Fatal(err)
	}
	gone(t, list)
	if _, err := io.ReadAll(p); err != nil {
		t.Errorf("Read: %v", err)
	}
}

// TestKilled: nothing survives this process.
func TestKilled(t *testing.T) {
	for i := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), holder+"="+family)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		list := pids(t, out)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if len(list) != 3 {
			t.Fatalf("round %d: processes %v", i, list)
		}
		gone(t, list)
	}
}

// TestRun: a program gets what is typed, and the terminal is put back.
func TestRun(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 11, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	before, err := exec.Command("stty", "-F", tty.Name(), "-g").Output()
	if err != nil {
		t.Skip("no stty")
	}
	go func() { _, _ = master.WriteString("secret\r") }()
	lines := make(chan string, 64)
	go func() {
		sc := bufio.NewScanner(master)
		for sc.Scan() {
			lines <- sc.Text()
		}
		close(lines)
	}()
	err = Run(t.Context(), exec.Command("sh", "-c", `stty size; read -r x; echo "got $x"; exit 3`), tty, tty)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Run: %v", err)
	}
	after, err := exec.Command("stty", "-F", tty.Name(), "-g").Output()
	if err != nil || string(after) != string(before) {
		t.Errorf("the terminal was not put back: %s, %v", after, err)
	}
	want := map[string]bool{"11 77": false, "got secret": false}
	deadline := time.After(time.Minute)
	for left := 2; left > 0; {
		select {
		case l := <-lines:
			if done, ok := want[strings.TrimSpace(l)]; ok && !done {
				want[strings.TrimSpace(l)] = true
				left--
			}
		case <-deadline:
			t.Fatalf("seen %v", want)
		}
	}
}

func TestRunCancelled(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := Run(ctx, exec.Command("sh", "-c", "trap '' HUP TERM; sleep 1000"), tty, tty); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

// TestRunBareCancelled: without a terminal neither the program nor what it has started outlives the
// context.
func TestRunBareCancelled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer w.Close()
		// Whose child ends before it does starts another, and another.
		ended <- Run(ctx, exec.Command("sh", "-c", "trap '' HUP TERM; echo up; while :; do sleep 1000 & wait; done"), r, w)
	}()
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	// The pipe ends when nobody has it open any more.
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestRunBare: the program gets what there is, and its exit status is told.
func TestRunBare(t *testing.T) {
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	err = Run(t.Context(), exec.Command("sh", "-c", "echo here; echo there >&2; exit 4"), in, out)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 4 {
		t.Errorf("Run: %v", err)
	}
	if text, err := os.ReadFile(out.Name()); string(text) != "here\nthere\n" {
		t.Errorf("%q, %v", text, err)
	}
}
