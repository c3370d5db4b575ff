//go:build !windows

package tui

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
)

// chat starts a conversation with the scripted agent on a terminal.
func chat(t *testing.T, cols, rows int, env ...string) *terminal.Screen {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(home+"/acp", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		asChat + "=1", "TERM=xterm-256color", "HOME=" + home, "PATH=" + home + ":" + os.Getenv("PATH"),
		"XDG_STATE_HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home,
	}, env...)
	s := terminal.Start(t, cmd, cols, rows)
	s.Wait("Scripted 0.1", "type a prompt")
	return s
}

func TestTerminalTurn(t *testing.T) {
	s := chat(t, 80, 24)
	if !s.Alternate() {
		t.Error("not on the alternate screen")
	}
	s.Type("hello")
	s.Wait("› hello")
	s.Press("enter")
	s.Wait("You said: hello", "type a prompt")
	s.Resize(40, 14)
	s.Until("40 columns", func(text string) bool {
		return strings.Contains(text, "You said: hello") && strings.Contains(text, "› type a prompt")
	})
	s.Resize(100, 30)
	s.Wait(strings.Repeat("─", 100))
	s.Press("ctrl+d")
	if code := s.Exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	s.Wait("To resume this conversation: acp chat scripted --session ")
	s.Restored()
}

func TestTerminalPermission(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("ask")
	s.Press("enter")
	s.Wait("Permission", "Remove everything", "Enter chooses")
	s.Type("n")
	s.Wait("it was not allowed", "type a prompt")
	s.Type("ask")
	s.Press("enter")
	s.Wait("Permission", "Enter chooses")
	s.Type("y")
	s.Wait("it was allowed", "type a prompt")
}

func TestTerminalCancel(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("wait")
	s.Press("enter")
	s.Wait("waiting for you to cancel")
	s.Press("ctrl+c")
	s.Wait("· cancelled", "type a prompt")
	s.Press("ctrl+c")
	s.Wait("press Ctrl+C again to leave")
	s.Press("ctrl+c")
	if code := s.Exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	s.Restored()
}

func TestTerminalScroll(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("lines")
	s.Press("enter")
	s.Wait("line 200")
	s.Press("pgup")
	s.Gone("line 200")
	s.Wait("↓")
	s.Press("home")
	s.Wait("line 1\n")
	s.Press("end")
	s.Wait("line 200")
	s.Gone("↓")
}

func TestTerminalSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := chat(t, 80, 24)
			s.Type("wait")
			s.Press("enter")
			s.Wait("waiting for you to cancel")
			s.Signal(sig)
			if code := s.Exit(); code != 1 {
				t.Errorf("exit status %d", code)
			}
			s.Restored()
			s.Wait("acp: ended by a signal")
		})
	}
}

func TestTerminalHostile(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("hostile")
	s.Press("enter")
	s.Wait("before", "after", "type a prompt", "title")
	if !s.Alternate() {
		t.Error("the agent has left the alternate screen")
	}
	if strings.Contains(s.Output(), "owned\x07") || strings.Contains(s.Title(), "owned") && !strings.Contains(s.Title(), "acp") {
		t.Errorf("the agent has set the title: %q", s.Title())
	}
}

func TestTerminalNoColour(t *testing.T) {
	s := chat(t, 80, 24, "NO_COLOR=1")
	s.Type("hello")
	s.Press("enter")
	s.Wait("You said: hello", "type a prompt")
	out := s.Output()
	for _, code := range []string{"\x1b[38;", "\x1b[48;", "\x1b[31m", "\x1b[36m"} {
		if strings.Contains(out, code) {
			t.Errorf("the output has %q with NO_COLOR", code)
		}
	}
}

func TestTerminalForm(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("form\r")
	s.Wait("Who are you?", "Your name")
	s.Type("Ada")
	s.Wait("› Ada")
	s.Press("enter")
	s.Wait(`accepted true: "Ada"`, "type a prompt")
}

func TestTerminalTools(t *testing.T) {
	s := chat(t, 100, 40)
	s.Type("edit\r")
	s.Wait("it is edited", "a.go", "type a prompt")
	s.Type("run\r")
	s.Wait("it has run", "type a prompt")
}

func TestTerminalFlood(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("flood\r")
	s.Wait("word")
	s.Type("typed while it floods")
	s.Wait("› typed while it floods")
	s.Wait("the flood is over", "word49999")
}

func TestTerminalBig(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("big\r")
	s.Wait("the big one is over")
	s.Press("pgup")
	s.Gone("the big one is over")
	s.Type("still here")
	s.Wait("› still here")
}

func TestTerminalSuspend(t *testing.T) {
	s := chat(t, 80, 24)
	s.Type("kept")
	s.Wait("› kept")
	s.Press("ctrl+z")
	s.Gone("› kept")
	s.Restored()
	// It may not have stopped yet: a signal that comes before that is lost.
	back, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stop)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-back:
				tick.Stop()
				return
			case <-tick.C:
				s.Signal(syscall.SIGCONT)
			}
		}
	}()
	defer func() { close(back); <-stop }()
	s.Wait("› kept")
	if !s.Alternate() {
		t.Error("not back on the alternate screen")
	}
}

func TestTerminalPanic(t *testing.T) {
	for _, where := range []string{"update", "command"} {
		t.Run(where, func(t *testing.T) {
			s := chat(t, 120, 24)
			s.Type("/title " + where + "\r")
			if code := s.Exit(); code != 1 {
				t.Errorf("exit status %d", code)
			}
			s.Restored()
			s.Until("the panic", func(string) bool {
				return strings.Contains(s.Output(), "on purpose") && strings.Contains(s.Output(), "a defect in acp")
			})
		})
	}
}

func TestTerminalEditor(t *testing.T) {
	script := t.TempDir() + "/editor"
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntest -t 0 && test -t 1 && echo from the editor >> \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := chat(t, 80, 24, "EDITOR="+script)
	s.Type("typed ")
	s.Wait("› typed")
	s.Press("ctrl+g")
	s.Wait("› typed from the editor")
}

func TestTerminalPaste(t *testing.T) {
	s := chat(t, 80, 24)
	s.Paste("two\nlines")
	s.Wait("› two", "lines")
	s.Press("enter")
	s.Wait("You said: two")
}

// TestTerminalMode changes the mode between two turns: the screen says at once which it is, as the
// user decides by it what to send.
func TestTerminalMode(t *testing.T) {
	s := chat(t, 80, 24)
	s.Wait("Scripted 0.1 · ask")
	s.Press("shift+tab")
	s.Wait("Scripted 0.1 · code", "· Mode: code")
	s.Press("shift+tab")
	s.Wait("Scripted 0.1 · ask")
	s.Press("ctrl+o")
	s.Wait("▸ ● ask")
	s.Press("down")
	s.Press("enter")
	s.Wait("Scripted 0.1 · code")
	s.Press("ctrl+o")
	s.Wait("● code")
}
