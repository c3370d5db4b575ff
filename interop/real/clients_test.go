package real

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An acpx is that client of npm with the built-in agent of our program.
type acpx struct {
	*place
	command []string
}

func newACPX(t *testing.T) *acpx {
	t.Helper()
	a := &acpx{place: newPlace(t, "acpx")}
	command, version := script(t, "acpx", "acpx")
	t.Logf("acpx %s", version)
	// It splits what it is to run at spaces.
	agent := filepath.Join(a.home, "agent")
	a.write(t, "agent", "#!/bin/sh\nexec '"+program(t)+"' agent \"$@\"\n")
	if err := os.Chmod(agent, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.work, "note.txt"), []byte("hello from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The last process ends one second after the last prompt.
	a.command = append(command, "--ttl", "1", "--agent", agent)
	t.Cleanup(func() { a.gone(t) })
	return a
}

// run runs the client and returns what it prints. It fails if the exit status is
// another one.
func (a *acpx) run(t *testing.T, status int, args ...string) string {
	t.Helper()
	return a.watch(t, status, "", nil, args...)
}

// watch is run that calls a hook, once, when the client has printed a text.
func (a *acpx) watch(t *testing.T, status int, text string, hook func(*os.Process), args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.command[0], append(a.command[1:len(a.command):len(a.command)], args...)...)
	cmd.Dir, cmd.Env = a.work, a.env
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// What is waited for may be in the middle of a line.
	for buf := make([]byte, 4096); err == nil; {
		var n int
		n, err = pipe.Read(buf)
		out.Write(buf[:n])
		if hook != nil && strings.Contains(out.String(), text) {
			hook(cmd.Process)
			hook = nil
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != status {
		t.Errorf("%q: status %d, want %d\n%s", args, code, status, tail(out.String()))
	}
	return out.String()
}

// has reports what is not in a text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, tail(text))
		}
	}
}

// The built-in agent in acpx: single turns, permissions, sessions that go on in
// another process, cancels.
func TestBuiltInInACPX(t *testing.T) {
	need(t)
	t.Run("read", func(t *testing.T) {
		a := newACPX(t)
		out := a.run(t, 0, "exec", "/read note.txt")
		has(t, out, "[tool] Read note.txt (completed)", "hello from a file", "fs/read_text_file", "[done] end_turn")
		has(t, a.run(t, 0, "--format", "json", "exec", "/help"), `"name":"read"`, `"stopReason":"end_turn"`, "no language model")
	})
	t.Run("permission", func(t *testing.T) {
		a := newACPX(t)
		out := a.run(t, 0, "--approve-all", "exec", "/run echo hi > allowed.txt")
		has(t, out, "session/request_permission", "terminal/create", "(completed)")
		if got := a.file("allowed.txt"); got != "hi" {
			t.Errorf("the file says %q", got)
		}
		// 5 is the status of acpx, too, for what was denied.
		out = a.run(t, 5, "--deny-all", "exec", "/run echo hi > denied.txt")
		has(t, out, "(failed)", "[done] end_turn")
		if got := a.file("denied.txt"); got != "" {
			t.Errorf("the file says %q", got)
		}
		out = a.run(t, 0, "--approve-all", "exec", "/write new.txt hey")
		has(t, out, "fs/write_text_file", "(completed)")
		if got := a.file("new.txt"); got != "hey" {
			t.Errorf("the file says %q", got)
		}
	})
	t.Run("sessions", func(t *testing.T) {
		a := newACPX(t)
		a.run(t, 0, "sessions", "new")
		has(t, a.run(t, 0, "prompt", "/read note.txt"), "hello from a file", "[done] end_turn")
		a.gone(t)
		out := a.run(t, 0, "prompt", "/title kept")
		has(t, out, "[done] end_turn")
		if strings.Contains(out, "session/new") || !strings.Contains(out, "session/load") && !strings.Contains(out, "session/resume") {
			t.Errorf("the session did not go on:\n%s", out)
		}
		has(t, a.run(t, 0, "sessions", "list"), "kept", a.work)
		has(t, a.run(t, 0, "sessions", "history"), "/read note.txt", "/title kept")
		a.run(t, 0, "sessions", "close")
	})
	t.Run("cancel", func(t *testing.T) {
		a := newACPX(t)
		a.run(t, 0, "sessions", "new")
		out := a.watch(t, 0, "until you cancel it", func(*os.Process) {
			has(t, a.run(t, 0, "cancel"), "cancel requested")
		}, "prompt", "/demo slow")
		has(t, out, "[done] cancelled")
	})
}
