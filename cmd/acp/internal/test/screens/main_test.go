//go:build !windows

package screens

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/cli"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/test/terminal"
	"github.com/goacp/acp/internal/ramtemp"
)

var update = flag.Bool("update", false, "write docs/screens anew")

// dir is where the screens are kept.
const dir = "../../../../../docs/screens"

// runAs makes the test binary another program.
const runAs = "SCREENS_RUN"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "acp":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "agent":
		os.Exit(serve(os.Args[1:]))
	}
	os.Exit(ramtemp.Run(m))
}

// A desk is where the program is run: a home and a project in it.
type desk struct {
	t    *testing.T
	home string
	env  []string
}

// greet is the file of the project.
const greet = `package greet

// Greet greets.
func Greet(name string) string {
	return "Hello, " + name
}
`

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, home: t.TempDir()}
	agents := fmt.Sprintf("[agents.scripted]\ncommand = %q\nenv = { %s = \"agent\" }\n", os.Args[0], runAs)
	agents += strings.Replace(agents, "scripted]", "deaf]\nargs = [\"deaf\"]", 1)
	for name, text := range map[string]string{"greet/greet.go": greet, "greet/go.mod": "module greet\n", "greet/tmp/none": "", ".config/acp/config.toml": agents} {
		file := filepath.Join(d.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The program is in the PATH, as for its users.
	if err := os.Mkdir(filepath.Join(d.home, ".bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.home, ".bin", "acp"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// command is the program in the project.
func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = filepath.Join(d.home, "greet")
	cmd.Env = []string{
		runAs + "=acp", "TERM=xterm-256color", "PATH=" + withoutAgents() + ":" + d.home + "/.bin", "SHELL=/bin/sh", "LANG=C.UTF-8",
		"ACP_MODEL_USE=none", "HOME=" + d.home, "PWD=" + cmd.Dir, "TMPDIR=" + cmd.Dir + "/tmp",
		"XDG_CONFIG_HOME=" + d.home + "/.config", "XDG_STATE_HOME=" + d.home + "/.state",
		"XDG_DATA_HOME=" + d.home + "/.data", "XDG_CACHE_HOME=" + d.home + "/.cache",
	}
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

// git returns the path of Git, without which the test is skipped.
func (d *desk) git() string {
	path, err := exec.LookPath("git")
	if err != nil {
		d.t.Skip(err)
	}
	return path
}

// withoutAgents returns the PATH but for directories with an agent that the program knows: what is
// installed here must not change what the tests see.
var withoutAgents = sync.OnceValue(func() string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !slices.ContainsFunc(roster.New(&config.Config{}).All(), func(a roster.Agent) bool {
			_, err := os.Stat(filepath.Join(dir, a.Command))
			return !a.Builtin && err == nil
		}) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
})

// start runs the program on a terminal.
func (d *desk) start(cols, rows int, args ...string) *terminal.Screen {
	d.t.Helper()
	return terminal.Start(d.t, d.command(args...), cols, rows)
}

// read returns a file below the home.
func (d *desk) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.home, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// changing is what differs from run to run, and what is put in its place.
var changing = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`acp-demo-[0-9]+`), "acp-demo-1"},
	{regexp.MustCompile(`\b(agent|shell) [0-9]{2,}`), "$1 1"},
	{regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ms|s)\b`), "1s"},
	// How long it has taken so far moves what is at the end of the line.
	{regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (.*?)( 1s)? {2,}((?:Ctrl\+C|Esc) .*)`), "⠋ $1 1s  $3"},
	{regexp.MustCompile(`--session [0-9A-Za-z-]+`), "--session ID"},
	{regexp.MustCompile(`\b[a-z2-7]{16}\.lock`), "abcdefghijklmnop.lock"},
}

// settled replaces what differs from run to run.
func settled(text string) string {
	for _, c := range changing {
		text = c.re.ReplaceAllString(text, c.to)
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	// Whether a tool that is quick is seen running depends on how busy the machine is.
	rows := len(lines)
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Tool: ") && strings.HasSuffix(l, " — running") })
	for len(lines) < rows {
		lines = append(lines, "")
	}
	return strings.Join(lines, "\n")
}

// send types a prompt, waits until it is drawn, and sends it.
func send(s *terminal.Screen, prompt string) {
	s.Type(prompt)
	s.Wait("› " + prompt)
	s.Press("enter")
}

// looks waits until the screen is as it is kept under a name.
func looks(t *testing.T, s *terminal.Screen, name string) {
	t.Helper()
	file := filepath.Join(dir, name+".txt")
	if *update {
		save(t, file, settled(still(s)))
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	if !s.Eventually(10*time.Second, func(text string) bool { return settled(text) == want }) {
		t.Errorf("the screen is not as in %s (-want +got):\n%s", filepath.Base(file), cmp.Diff(want, settled(s.Text())))
	}
}

// still waits until nothing changes on the screen but the time.
func still(s *terminal.Screen) string {
	last := s.Text()
	for s.Eventually(500*time.Millisecond, func(text string) bool { return settled(text) != settled(last) }) {
		last = s.Text()
	}
	return last
}

func save(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// picture compares the screen, as draw draws it, with the picture of that name.
func picture(t *testing.T, s *terminal.Screen, name string, draw func() string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if *update {
		still(s)
		save(t, file, draw())
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Eventually(10*time.Second, func(string) bool { return draw() == string(data) }) {
		t.Errorf("the screen is not as in %s (-want +got):\n%s", name, cmp.Diff(string(data), draw()))
	}
}
