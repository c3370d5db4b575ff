//go:build !windows

package screens

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
)

// A helpKey is a key of the help: what to press, what the screen then shows, and what leads back to the
// empty input.
type helpKey struct {
	name  string // as in the help
	press []string
	shows string
	back  []string
}

// helpKeys are the keys of the help, in the order in which they are tried.
var helpKeys = []helpKey{
	{"Ctrl+P", []string{"ctrl+p"}, "── Commands", []string{"esc"}},
	{"Ctrl+O", []string{"ctrl+o"}, "── Options", []string{"esc"}},
	{"Shift+Tab", []string{"shift+tab"}, "Built-in agent 0.0.0-devel · Auto", []string{"shift+tab", "shift+tab", "shift+tab"}},
	{"Ctrl+R", []string{"ctrl+r"}, "── Earlier prompts", []string{"esc"}},
	{"Alt+R", []string{"alt+r"}, "── Sessions in", []string{"esc"}},
	{"Ctrl+F", []string{"ctrl+f"}, "↑ earlier", []string{"esc"}},
	{"Ctrl+Y", []string{"ctrl+y"}, "── Copy", []string{"esc"}},
	{"Ctrl+X", []string{"ctrl+x"}, "there are no subagents", nil},
	{"Alt+C", []string{"alt+c"}, "What this session has changed", []string{"esc"}},
	{"Alt+B", []string{"alt+b"}, "no command is running", nil},
	{"Alt+E", []string{"alt+e"}, "written nothing to its standard error", nil},
	{"Ctrl+G", []string{"ctrl+g"}, "› from the editor", []string{"ctrl+c"}},
	{"Ctrl+S", []string{"ctrl+s"}, "Ctrl+S sends what you have typed", nil},
	{"F1", []string{"f1"}, "Keys and commands", []string{"esc"}},
	{"Shift+Enter", []string{"alt+enter"}, "›  \n", []string{"ctrl+c"}},
	{"/  @  !", []string{"/"}, "▸ /help", []string{"backspace"}},
	{"Tab", []string{"tab"}, "↑↓ select", []string{"esc"}},
	{"PgUp PgDn", []string{"pgup"}, " more", []string{"pgdown"}},
	{"Ctrl+T", []string{"ctrl+t"}, "package greet", []string{"ctrl+t"}},
	{"Esc Esc", []string{"esc", "esc"}, "── Go back to before", []string{"esc"}},
	{"↑ ↓", []string{"up"}, "› /read go.mod", []string{"ctrl+c"}},
	{"Ctrl+L", []string{"ctrl+l"}, "type a prompt", nil},
	{"Ctrl+V", []string{"ctrl+v"}, "nothing to paste", nil},
	{"Ctrl+C", []string{"ctrl+c"}, "press Ctrl+C again to leave", nil},
}

// notTried are keys of the help that other tests press or that lead back in these, and what is no key.
var notTried = []string{"Esc", "Enter", "Ctrl+D", "Ctrl+Z", "Mouse"}

// TestHelpComplete: every key of the help is tried.
func TestHelpComplete(t *testing.T) {
	s := newDesk(t).start(120, 80)
	s.Wait("type a prompt")
	s.Press("f1")
	s.Wait("Keys and commands", "/quit")
	text := s.Text()
	_, text, _ = strings.Cut(text, "Keys and commands")
	text, _, _ = strings.Cut(text, "Commands of acp")
	n := 0
	for l := range strings.Lines(text) {
		if r := []rune(l); len(r) > 16 && r[0] != ' ' && r[0] != '─' && r[14] == ' ' {
			name := strings.TrimSpace(string(r[:15]))
			n++
			if !slices.Contains(notTried, name) && !slices.ContainsFunc(helpKeys, func(k helpKey) bool { return k.name == name }) {
				t.Errorf("nothing tries %q", name)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d keys in\n%s", n, text)
	}
}

// TestEveryKey: every key of the help works on all kinds of terminals, and over a slow line.
func TestEveryKey(t *testing.T) {
	for name, tt := range map[string]struct {
		env  []string
		opts []terminal.Option
	}{
		"xterm":  {nil, nil},
		"screen": {[]string{"TERM=screen"}, nil},
		"kitty":  {[]string{"TERM=xterm-kitty"}, []terminal.Option{terminal.Kitty()}},
		"slow":   {nil, []terminal.Option{terminal.Lag(200 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := keyDesk(t)
			d.env = append(d.env, tt.env...)
			s := terminal.Start(t, d.command("--allow", "*"), 100, 24, tt.opts...)
			tryKeys(t, s.Wait, func(keys ...string) {
				for _, k := range keys {
					if k == "/" {
						s.Type(k)
						continue
					}
					s.Press(k)
				}
			}, s.Type)
		})
	}
}

// keyDesk is a desk with an editor that writes one line, and no clipboard.
func keyDesk(t *testing.T) *desk {
	d := newDesk(t)
	editor := filepath.Join(d.home, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\necho from the editor > \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.env = []string{"VISUAL=" + editor, "DISPLAY=", "WAYLAND_DISPLAY="}
	return d
}

// tryKeys holds a short conversation and then presses all keys.
func tryKeys(t *testing.T, wait func(...string), press func(...string), types func(string)) {
	t.Helper()
	wait("type a prompt")
	for _, prompt := range []string{"/edit greet.go 'Hello, ' => 'Good morning, '", "/read greet.go", "/read go.mod"} {
		types(prompt)
		wait("› " + prompt)
		press("enter")
		wait("❯ "+prompt, "type a prompt")
	}
	wait("Lines 1–1 of go.mod")
	for _, k := range helpKeys {
		press(k.press...)
		if k.name == "Shift+Enter" {
			types("below")
			wait("  below")
		} else {
			wait(k.shows)
		}
		press(k.back...)
		if k.name != "Ctrl+C" {
			wait("type a prompt")
		}
	}
}

// TestTmux: every key of the help works in tmux.
func TestTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip(err)
	}
	d := keyDesk(t)
	program := d.command("--allow", "*")
	socket := filepath.Join(t.TempDir(), "tmux")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(slices.DeleteFunc(program.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }), "TERM=xterm-256color")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	args := []string{"new-session", "-d", "-x", "100", "-y", "24", "-c", program.Dir}
	for _, kv := range program.Env {
		if !strings.HasPrefix(kv, "TERM=") {
			args = append(args, "-e", kv)
		}
	}
	run(append(append(args, program.Path), program.Args[1:]...)...)
	t.Cleanup(func() { run("kill-server") })
	wait := func(texts ...string) {
		t.Helper()
		var text string
		for end := time.Now().Add(terminal.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			text = run("capture-pane", "-p")
			if !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, strings.TrimRight(want, " \n")) }) {
				return
			}
		}
		t.Fatalf("waited in vain for %q; the screen is\n%s", texts, text)
	}
	named := map[string]string{"esc": "Escape", "enter": "Enter", "tab": "Tab", "shift+tab": "BTab", "backspace": "BSpace", "up": "Up", "pgup": "PageUp", "pgdown": "PageDown", "f1": "F1", "alt+enter": "M-Enter"}
	press := func(keys ...string) {
		t.Helper()
		names := []string{"send-keys"}
		for _, k := range keys {
			name := k
			if n, ok := named[k]; ok {
				name = n
			} else if c, ok := strings.CutPrefix(k, "ctrl+"); ok {
				name = "C-" + c
			} else if c, ok := strings.CutPrefix(k, "alt+"); ok {
				name = "M-" + c
			}
			names = append(names, name)
		}
		run(names...) // at once: Esc twice must be quick
	}
	tryKeys(t, wait, press, func(text string) { run("send-keys", "-l", text) })
}
