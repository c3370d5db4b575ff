//go:build !windows

package screens

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
)

// TestPalette looks at what can be done, and at what was typed before.
func TestPalette(t *testing.T) {
	s := newDesk(t).start(80, 24)
	s.Wait("type a prompt")
	for _, prompt := range []string{"/read greet.go", "/search Greet *.go", "/read go.mod"} {
		send(s, prompt)
		s.Wait("❯ "+prompt, "type a prompt")
	}
	s.Wait("Lines 1–1 of go.mod")
	s.Press("ctrl+p")
	s.Wait("── Commands")
	looks(t, s, "palette")
	s.Press("esc")
	s.Wait("type a prompt")
	s.Press("ctrl+r")
	s.Wait("── Earlier prompts")
	s.Type("read")
	s.Wait("› read", "▸   /read go.mod")
	looks(t, s, "prompts")
}

// TestAnswers looks at what can be written in answer to a question: a rule that allows it, and what to
// do instead.
func TestAnswers(t *testing.T) {
	s := newDesk(t).start(80, 24)
	s.Wait("type a prompt")
	send(s, "/run go test ./...")
	s.Wait("Run this command?", "Enter chooses")
	s.Type("e")
	s.Wait("until you leave")
	looks(t, s, "permission-rule")
	s.Press("esc")
	s.Wait("Enter chooses")
	s.Type("r")
	s.Wait("What should the agent do instead?")
	s.Type("Test only the package greet, and tell me what fails")
	s.Wait("what fails")
	looks(t, s, "permission-reason")
}

// TestFullScreen looks at a change that is too long for a small screen, on all of it.
func TestFullScreen(t *testing.T) {
	s := newDesk(t).start(60, 14)
	s.Wait("type a prompt")
	s.Type("/edit greet.go 'return \"Hello, \" + name' => 'return \"Good morning, \" + name'")
	s.Press("enter")
	s.Wait("f full screen", "Enter chooses")
	s.Type("f")
	s.Wait("Esc shows the choices")
	looks(t, s, "permission-full")
	s.Press("esc")
	s.Wait("f full screen")
}

// TestBackground looks at a command that outlives its turn, and at what an agent writes to its standard
// error.
func TestBackground(t *testing.T) {
	s := terminal.Start(t, newDesk(t).command("chat", "scripted"), 80, 24)
	s.Wait("type a prompt")
	send(s, "noise")
	s.Wait("on my standard error", "type a prompt")
	// The lines may come after the answer, and the pager shows what there was when it was opened.
	for shown := false; !shown; {
		s.Press("alt+e")
		s.Until("the pager", func(text string) bool {
			shown = strings.Contains(text, "tokens=120")
			return shown || strings.Contains(text, "Esc closes") || strings.Contains(text, "written nothing")
		})
		if !shown && strings.Contains(s.Text(), "Esc closes") {
			s.Press("esc")
			s.Wait("type a prompt") // what follows an Esc at once is another key
		}
	}
	looks(t, s, "stderr")
	s.Press("esc")
	s.Wait("type a prompt")
	send(s, "behind")
	s.Wait("1 in the background", "listening on port 8080", "running")
	s.Press("alt+b")
	s.Wait("Running commands", "Enter stops it")
	looks(t, s, "background")
	s.Press("enter")
	s.Wait("stopped: $ serve --port 8080")
}
