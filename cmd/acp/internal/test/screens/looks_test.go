//go:build !windows

package screens

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
	"github.com/goacp/acp/internal/long"
)

// TestStart looks at the program as it is found when it was started without
// arguments, and at what it offers.
func TestStart(t *testing.T) {
	s := newDesk(t).start(80, 24)
	s.Wait("type a prompt")
	looks(t, s, "start")
	s.Type("?")
	s.Wait("Ctrl+O")
	looks(t, s, "help")
	s.Press("esc")
	s.Wait("type a prompt")
	s.Press("ctrl+o")
	s.Wait("Mode")
	looks(t, s, "options")
	s.Press("esc")
	s.Wait("type a prompt")
	s.Type("/")
	s.Wait("▸ /help")
	looks(t, s, "commands")
}

// TestTurn goes through a turn with everything in it: plan, thought, tool calls,
// a diff, permissions, a terminal and a subagent.
func TestTurn(t *testing.T) {
	s := newDesk(t).start(100, 36)
	s.Wait("type a prompt")
	send(s, "/demo")
	s.Wait("Change greet.go?", "Enter chooses")
	looks(t, s, "turn-permission")
	s.Type("y")
	s.Wait("Run this command?", "Enter chooses")
	looks(t, s, "turn-permission-command")
	s.Type("y")
	s.Wait("type a prompt")
	looks(t, s, "turn-end")
	s.Press("home")
	s.Gone("That was it")
	looks(t, s, "turn-begin")
	s.Press("ctrl+x")
	s.Wait("the conversation itself")
	s.Press("down", "enter")
	s.Wait("subagent's conversation")
	looks(t, s, "subagent")
	s.Press("esc")
	s.Wait("type a prompt")
	s.Press("ctrl+f")
	s.Wait("find")
	s.Type("invented")
	s.Wait("1 of 1")
	looks(t, s, "search")
	s.Press("esc")
	s.Wait("type a prompt")
	s.Press("end")
	s.Resize(40, 24)
	s.Until("40 columns", func(text string) bool { return settled(text) != "" })
	looks(t, s, "narrow")
}

// TestWork looks at a plan, a command that runs with its output, and a prompt that
// waits for its end, with and without colours.
func TestWork(t *testing.T) {
	long.Test(t)
	for _, env := range []string{"NO_COLOR=", "NO_COLOR=1"} {
		d := newDesk(t)
		d.env = append(d.env, env)
		s := d.start(100, 30)
		s.Wait("type a prompt")
		s.Type("/plan look at it; run the tests; tell how it went")
		s.Press("enter")
		s.Wait("look at it", "type a prompt")
		s.Type("/plan next")
		s.Press("enter")
		s.Wait("☑ look at it", "type a prompt")
		s.Type("/run for i in 1 2 3; do echo ok   test $i; done; sleep 1000")
		s.Press("enter")
		s.Wait("ok test 3", "type to queue")
		send(s, "/plan done 2")
		s.Wait("queued")
		// Both look the same: colours only add to what is there.
		looks(t, s, "plan-terminal-queue")
		s.Press("ctrl+c")
		s.Wait("cancelled", "Enter sends the waiting prompt")
		looks(t, s, "cancelled")
	}
}

// TestWide looks at a diff side by side, which a wide terminal has room for.
func TestWide(t *testing.T) {
	s := newDesk(t).start(140, 40)
	s.Wait("type a prompt")
	s.Type("/edit greet.go 'return \"Hello, \" + name' => 'return \"Good morning, \" + name + \"!\"'")
	s.Press("enter")
	s.Wait("Enter chooses")
	looks(t, s, "wide")
}

// TestPicture makes the picture that README.md shows, and the same on a light terminal.
func TestPicture(t *testing.T) {
	long.Test(t)
	t.Run("dark", func(t *testing.T) {
		d := newDesk(t)
		d.env = []string{"COLORTERM=truecolor"}
		s := pictured(t, d)
		looks(t, s, "screen")
		picture(t, s, "screen.svg", s.SVG)
	})
	t.Run("light", func(t *testing.T) {
		d := newDesk(t)
		d.env = []string{"ACP_UI_THEME=light", "COLORTERM=truecolor"}
		s := pictured(t, d)
		picture(t, s, "screen-light.svg", s.LightSVG)
	})
}

// pictured brings the program to where it is drawn.
func pictured(t *testing.T, d *desk) *terminal.Screen {
	t.Helper()
	s := d.start(96, 44)
	s.Wait("type a prompt")
	for _, step := range []struct{ text, wait string }{
		{"/plan find the greeting; make it kinder; run the tests", "0 of 3 steps"},
		{"/search Greet *.go", "✓ ⌕"},
		{"/plan next", "1 of 3 steps"},
		{"/edit greet.go '\"Hello, \" + name' => '\"Good morning, \" + name + \"!\"'", "Enter chooses"},
	} {
		s.Type(step.text)
		s.Press("enter")
		s.Wait(step.wait)
	}
	return s
}

// TestForm looks at a form.
func TestForm(t *testing.T) {
	s := newDesk(t).start(80, 24)
	s.Wait("type a prompt")
	s.Type("/demo form")
	s.Press("enter")
	s.Wait("A demonstration", "Name")
	s.Type("Ada")
	s.Wait("Ada")
	looks(t, s, "form")
}

// TestPlain looks at the conversation line by line.
func TestPlain(t *testing.T) {
	s := newDesk(t).start(80, 40, "chat", "--plain")
	s.Wait("\n>")
	s.Type("/plan look at it; run the tests\n")
	s.Wait("0 of 2 steps", "\n>\n")
	s.Type("/run touch it-works\n")
	s.Wait("Run this command?")
	looks(t, s, "plain")
}

// TestExec looks at one turn without a conversation.
func TestExec(t *testing.T) {
	d := newDesk(t)
	s := d.start(80, 24, "exec", "/read greet.go")
	if code := s.Exit(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	looks(t, s, "exec")
	s = d.start(80, 24, "exec", "/run touch it-works")
	if code := s.Exit(); code != 5 {
		t.Errorf("exit status %d", code)
	}
	looks(t, s, "exec-denied")
}

// TestChanged looks at what a session has changed, in one diff, and takes some of it back.
func TestChanged(t *testing.T) {
	d := newDesk(t)
	d.env = []string{"COLORTERM=truecolor"}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "greet"}} {
		cmd := d.command()
		cmd.Path, cmd.Args = d.git(), append([]string{"git"}, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	s := d.start(100, 30, "--allow", "*")
	s.Wait("type a prompt")
	send(s, "/edit greet.go 'return \"Hello, \" + name' => 'return \"Good morning, \" + name'")
	s.Wait("✓", "type a prompt")
	send(s, "/run printf 'TODO: say good evening, too\\n' > notes.txt")
	s.Wait("exit 0", "type a prompt")
	s.Press("alt+c")
	s.Wait("What this session has changed")
	looks(t, s, "changes")
	picture(t, s, "changes.svg", s.SVG)
	s.Press("down")
	s.Type("xx")
	s.Wait("taken back")
	if text := d.read("greet/greet.go"); !strings.Contains(text, "Hello") {
		t.Error(text)
	}
}
