package agents

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// again makes what was changed visible: settings are read once.
func (p *place) again() {
	p.app = &app.App{In: p.app.In, Out: &p.out, Err: &p.err, Version: "test", Cwd: p.app.Cwd}
}

func TestAddListRemove(t *testing.T) {
	p := newPlace(t, "# mine\nagent = \"mine\"\n")
	t.Setenv("PATH", "")
	dir := t.TempDir()
	if err := p.run("add", "mine", "--env", "TOKEN=a=${B}", "--env", "a.b=c", "--dir", dir, "--protocol", "1", "--login-env", "--auth", "web", "--", "./my agent", "--acp", "a\"b"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(p.user)
	if err != nil {
		t.Fatal(err)
	}
	want := "# mine\nagent = \"mine\"\n\n[agents.mine]\ncommand = " + quoted(filepath.Join(p.app.Cwd, "my agent")) + "\nargs = [\"--acp\", \"a\\\"b\"]\ndir = " + quoted(dir) +
		"\nprotocol = 1\nlogin_env = true\nauth = \"web\"\n\n[agents.mine.env]\nTOKEN = \"a=${B}\"\n\"a.b\" = \"c\"\n"
	if string(text) != want {
		t.Error(cmp.Diff(want, string(text)))
	}
	p.again()
	if err := p.run("list"); err != nil {
		t.Fatal(err)
	}
	out := p.out.String()
	for _, want := range []string{"NAME ", "mine * ", "builtin ", "(this program)", " user ", " preset ", "no         to install: npm install -g @google/gemini-cli\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	if strings.Index(out, "mine * ") > strings.Index(out, " preset ") {
		t.Errorf("what is configured is not listed first:\n%s", out)
	}
	if err := p.run("list", "--json", "--installed"); err != nil {
		t.Fatal(err)
	}
	var r row
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil || r.Name != "builtin" || !r.Installed {
		t.Errorf("only the built-in one is installed: %v\n%s", err, p.out.String())
	}
	if err := p.run("list", "--json"); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for l := range strings.Lines(p.out.String()) {
		var r row
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		names[r.Name] = true
	}
	if !names["mine"] || !names["gemini"] {
		t.Errorf("agents: %v", names)
	}
	if err := p.run("add", "mine", "--", "x"); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--force") {
		t.Errorf("add again: %v", err)
	}
	if err := p.run("add", "mine", "--force", "--", "x"); err != nil {
		t.Fatal(err)
	}
	if err := p.run("add", "gemini", "--env", "K=v"); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(p.user)
	if want := "# mine\nagent = \"mine\"\n\n[agents.mine]\ncommand = \"x\"\n\n[agents.gemini.env]\nK = \"v\"\n"; string(text) != want {
		t.Error(cmp.Diff(want, string(text)))
	}
	if err := p.run("remove", "mine", "gemini"); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(p.user)
	if want := "# mine\nagent = \"mine\"\n\n"; string(text) != want {
		t.Error(cmp.Diff(want, string(text)))
	}
}

// TestAddSaysWhatNext: whoever has added an agent is told how to use it, or that it is not there.
func TestAddSaysWhatNext(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "mine", "--", "no-such-program-of-ours"}, "its program no-such-program-of-ours was not found: see acp agents doctor mine"},
		{[]string{"add", "mine", "--login-env", "--", "no-such-program-of-ours"}, "to talk to it, type acp chat mine"},
		{[]string{"add", "mine", "--env", "PATH=/x", "--", "no-such-program-of-ours"}, "to talk to it, type acp chat mine"},
		{[]string{"add", "mine", "--", os.Args[0], "-x"}, "to talk to it, type acp chat mine"},
		{[]string{"add", "gemini", "--env", "A=b"}, "to talk to it, type acp chat gemini"},
	} {
		p := newPlace(t, "")
		if err := p.run(tc.args...); err != nil || !strings.HasSuffix(p.err.String(), " was added to "+p.user+"; "+tc.want+"\n") {
			t.Errorf("%q: %v\n%s", tc.args, err, p.err.String())
		}
	}
}

// TestListHostile: what a project's file calls an agent is not obeyed by a terminal, in JSON neither.
func TestListHostile(t *testing.T) {
	p := newPlace(t, "[agents.x]\ncommand = \"a\\u009b31m\\u202e\\u001b[2J\"\n")
	for _, args := range [][]string{{"list"}, {"list", "--json"}} {
		if err := p.run(args...); err != nil {
			t.Fatal(err)
		}
		if out := p.out.String(); strings.ContainsAny(out, "\u009b\u202e\x1b") || len(args) == 2 && !strings.Contains(out, `a\u009b31m\u202e\u001b[2J`) {
			t.Errorf("%v: %q", args, out)
		}
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `\`, `\\`) + `"` }

func TestMistakes(t *testing.T) {
	p := newPlace(t, "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "builtin", "--", "x"}, "is that of the built-in agent"},
		{[]string{"add", "a/b", "--", "x"}, "separators"},
		{[]string{"add", "x"}, "the command is missing: acp agents add x -- COMMAND"},
		{[]string{"add", "--", "cmd", "a b"}, "the name is missing: acp agents add NAME -- cmd 'a b'"},
		{[]string{"add", "x", "--protocol", "3", "--", "y"}, "--protocol 3: the version must be 1 or 2"},
		{[]string{"add", "x", "--dir", "no-such-directory", "--", "y"}, "no-such-directory is not a directory"},
		{[]string{"add", "x", "cmd", "arg"}, "write -- before the command: acp agents add x -- cmd arg"},
		{[]string{"add", "gemini"}, "is known already"},
		{[]string{"add", "x", "--", "go version"}, `there is no program "go version"; leave out the quotes: acp agents add x -- go version`},
		{[]string{"add", "x", "--env", "NOPE", "--", "x"}, "write NAME=VALUE"},
		{[]string{"remove", "x"}, `agent "x" is not in `},
		{[]string{"remove", "gemini"}, "it is built into acp"},
	} {
		if err := p.run(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: %v (status %d), want %s", tc.args, err, exitcode.Of(err), tc.want)
		}
	}
	if _, err := os.Stat(p.user); err == nil {
		t.Error("a file was written")
	}
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want Options
	}{
		{[]string{"list", "--installed"}, Options{Verb: "list", Installed: true, Names: []string{}}},
		{[]string{"add", "a", "--login-env", "--", "b", "--c"}, Options{Verb: "add", Names: []string{"a"}, Command: []string{"b", "--c"}, LoginEnv: true}},
		{[]string{"rm", "a", "b"}, Options{Verb: "remove", Names: []string{"a", "b"}}},
		{[]string{"doctor", "a", "--fix", "--json"}, Options{Verb: "doctor", Names: []string{"a"}, Fix: true, JSON: true}},
	} {
		var got *Options
		cmd := NewCommand(nil, func(_ context.Context, o *Options) error { got = o; return nil })
		cmd.SetArgs(append([]string{}, tc.args...))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%q: %v", tc.args, err)
			continue
		}
		if d := cmp.Diff(tc.want, *got, cmp.Comparer(func(a, b *app.App) bool { return a == b })); d != "" {
			t.Errorf("%q: %s", tc.args, d)
		}
	}
}

// TestLastLines keeps the line that says why a program failed, which interpreters write above a
// stack.
func TestLastLines(t *testing.T) {
	stack := strings.Repeat("    at somewhere\n", 20)
	got := lastLines("file.mjs:1\n\nError [E]: cannot find it\n" + stack + "\nNode.js v20\n")
	if len(got) != maxMore || got[0] != "Error [E]: cannot find it" || got[1] != "…" || got[maxMore-1] != "Node.js v20" {
		t.Errorf("%q", got)
	}
	if got := lastLines("first\n\nfatal: second\nthird\n"); !slices.Equal(got, []string{"first", "fatal: second", "third"}) {
		t.Errorf("%q", got)
	}
	if got := lastLines(""); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
