//go:build !windows

package screens

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
)

// TestSessions goes back to an earlier session by the picker. Sessions of
// subagents are no sessions that one goes back to.
func TestSessions(t *testing.T) {
	long.Test(t)
	d := newDesk(t)
	s := d.start(80, 24)
	s.Wait("type a prompt")
	send(s, "/demo")
	s.Wait("Change greet.go?", "Enter chooses")
	s.Type("n")
	s.Wait("Run this command?", "Enter chooses")
	s.Type("n")
	s.Wait("That was it", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()

	s = d.start(80, 24)
	s.Wait("type a prompt")
	s.Type("/plan one step")
	s.Press("enter")
	s.Wait("0 of 1 steps", "type a prompt")
	s.Press("alt+r")
	s.Wait("Sessions in ~/greet", "/demo")
	looks(t, s, "sessions")
	s.Type("demo")
	s.Wait("▸   /demo")
	s.Press("enter")
	s.Wait("That was it", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()
	id := s.Find(`--session (\S+)`)

	// It can also be named, or chosen from all there are, by what was said in it.
	s = d.start(80, 24, "chat", "--session", id)
	s.Wait("That was it", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()
	if out, err := d.command("exec", "--agent", "scripted", "a run").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s = d.start(80, 24, "sessions", "resume")
	s.Wait("Resume", "~/greet", "Runs of acp exec", "scripted · ")
	s.Type("that was")
	s.Wait("In what was said")
	looks(t, s, "resume")
	s.Press("enter")
	s.Wait("That was it", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()
	s = d.start(80, 24, "chat", "--resume")
	s.Wait("Resume")
	s.Press("esc")
	s.Exit()

	// Long output goes through the user's pager, which may be left early.
	d.env = []string{`PAGER=sh -c "cat; echo this was the pager; read line"`}
	s = d.start(80, 24, "sessions", "show", "-")
	s.Wait("this was the pager")
	s.Press("enter")
	s.Exit()
	d.env = []string{`ACP_PAGER=sh -c "head -n 1; echo left"`, "PAGER=none"}
	s = d.start(80, 24, "sessions", "list")
	s.Wait("TITLE", "left")
	s.Exit()
	d.env = []string{"PAGER="}
	s = d.start(80, 24, "sessions", "list")
	s.Wait("TITLE")
	s.Exit()
	d.env = nil

	// A conversation with another agent continues with that one.
	s = d.start(80, 24)
	s.Wait("type a prompt")
	s.Press("alt+r")
	s.Wait("Runs of acp exec", "scripted · ")
	s.Type("a run")
	s.Press("enter")
	s.Wait("scripted")
}

// TestUntrusted tells what a project asks for that is not in force.
func TestUntrusted(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(d.home, "greet", ".acp.toml")
	if err := os.WriteFile(file, []byte("[agents.evil]\ncommand = \"./evil\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := d.start(80, 24)
	s.Wait("type a prompt", "Built-in agent", "acp config trust")
	looks(t, s, "untrusted")
}

// TestNoColour has no colours where the user wants none.
func TestNoColour(t *testing.T) {
	d := newDesk(t)
	d.env = []string{"NO_COLOR=1"}
	s := d.start(80, 24)
	s.Wait("type a prompt")
	s.Type("/read greet.go")
	s.Press("enter")
	s.Wait("✓ ≡", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()
	s.Restored()
	for _, code := range []string{"\x1b[38;", "\x1b[48;", "\x1b[31m", "\x1b[36m"} {
		if strings.Contains(s.Output(), code) {
			t.Errorf("the output has %q", code)
		}
	}
}

// TestTyped keeps what was typed before the program was ready for it.
func TestTyped(t *testing.T) {
	d := newDesk(t)
	s := d.start(80, 24)
	s.Type("/plan typed early\r")
	s.Wait("0 of 1 steps", "typed early", "type a prompt")
	s.Press("ctrl+d")
	s.Exit()

	// So does the list of sessions, in which Enter takes the first one.
	s = d.start(80, 24, "sessions", "resume")
	s.Type("\r")
	s.Wait("0 of 1 steps", "typed early", "type a prompt")
}

// TestUnsaved says, for as long as that holds, that the conversation cannot be written, and goes on with it.
// When it can be written again, nothing is missing.
func TestUnsaved(t *testing.T) {
	d := newDesk(t)
	s := d.start(80, 24)
	s.Wait("type a prompt")
	send(s, "/plan zero")
	s.Wait("0 of 1 steps", "type a prompt") // the store is open then
	send(s, "/new")
	s.Until("a new session", func(text string) bool {
		return !strings.Contains(text, "0 of 1 steps") && strings.Contains(text, "type a prompt")
	})
	kept := filepath.Join(d.home, ".data", "acp", "conversations")
	if err := errors.Join(os.Rename(kept, kept+".away"), os.WriteFile(kept, nil, 0o600)); err != nil { // no directory can be made there
		t.Fatal(err)
	}
	send(s, "/plan one; two")
	s.Wait("0 of 2 steps", "type a prompt", "is not written at the moment")
	looks(t, s, "unsaved")
	if err := errors.Join(os.Remove(kept), os.Rename(kept+".away", kept)); err != nil {
		t.Fatal(err)
	}
	s.Wait("written again")
	s.Press("ctrl+d")
	s.Exit()
	id := s.Find(`--session (\S+)`)
	out, err := d.command("sessions", "export", id, "--format", "text").Output()
	if err != nil || !strings.Contains(string(out), "/plan one; two") || !strings.Contains(string(out), "two") {
		t.Errorf("%v: %s", err, out)
	}
}
