package config

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A place is the program in a home directory of its own, with a project.
type place struct {
	t                   *testing.T
	out, err            bytes.Buffer
	home, project, user string
	flags               map[string]any
	servers, headers    []string // --mcp and --mcp-header
}

func newPlace(t *testing.T) *place {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(v, home)
	}
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA"} {
		t.Setenv(v, filepath.Join(home, v))
	}
	for _, v := range []string{"ACP_CONFIG", "ACP_AGENT", "VISUAL", "EDITOR"} {
		t.Setenv(v, "")
	}
	p := &place{t: t, home: home, project: filepath.Join(home, "project"), user: filepath.Join(home, "XDG_CONFIG_HOME", "acp", "config.toml")}
	p.write(filepath.Join(p.project, "sub", "x"), "")
	return p
}

func (p *place) write(name, text string) string {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return name
}

func (p *place) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// run runs the command with arguments in a process of its own, as it were.
func (p *place) run(args ...string) error {
	p.t.Helper()
	p.out.Reset()
	p.err.Reset()
	a := &app.App{In: strings.NewReader(""), Out: &p.out, Err: &p.err, Cwd: filepath.Join(p.project, "sub"), Flags: p.flags, MCPFlags: p.servers, MCPHeaders: p.headers}
	cmd := NewCommand(a, nil)
	cmd.SetArgs(append([]string{}, args...))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	return cmd.ExecuteContext(p.t.Context())
}

func (p *place) must(args ...string) string {
	p.t.Helper()
	if err := p.run(args...); err != nil {
		p.t.Fatalf("%q: %v", args, err)
	}
	return p.out.String()
}

func TestList(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "agent = \"gemini\"\n[agents.x]\ncommand = \"x\"\n[agents.x.env]\nTOKEN = \"hunter2\"\n[mcp.m]\nurl = \"https://me:hunter2@example.com/?key=hunter2\"\n[mcp.m.headers]\nAuthorization = \"hunter2\"\n")
	p.flags = map[string]any{"ui.plain": true}
	out := p.must()
	var rows []string
	for l := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(l), " "))
	}
	for _, want := range []string{
		`agent "gemini" ` + p.user + ":1",
		`agents.x.env.TOKEN "********" ` + p.user + ":5",
		`mcp.m.url "https://********@example.com/?key=********" ` + p.user + ":7",
		`mcp.m.headers.Authorization "********" ` + p.user + ":9",
		"ui.plain true --plain",
		`ui.theme "auto" default`,
		`timeouts.connect "1m" default`,
	} {
		if !slices.Contains(rows, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Errorf("a secret is shown:\n%s", out)
	}
	var l listing
	if err := json.Unmarshal([]byte(p.must("--json")), &l); err != nil {
		t.Fatal(err)
	}
	if l.Files.User != p.user || len(l.Settings) < 15 || strings.Contains(p.out.String(), "hunter2") {
		t.Errorf("%s", p.out.String())
	}
}

func TestGetAndSet(t *testing.T) {
	p := newPlace(t)
	if got := p.must("path"); got != p.user+"\n" {
		t.Errorf("path: %q", got)
	}
	p.must("set", "agent", "gemini")
	p.must("set", "permissions.allow", "read\ncommand:go test *")
	if got, want := p.read(p.user), "agent = \"gemini\"\n\n[permissions]\nallow = [\"read\", \"command:go test *\"]\n"; got != want {
		t.Error(cmp.Diff(want, got))
	}
	for _, tc := range []struct{ args, want string }{
		{"get agent", "gemini\n"},
		{"get ui.mouse", "true\n"},
		{"get timeouts.slow", "3s\n"},
		{"get permissions.allow", "[\"read\", \"command:go test *\"]\n"},
		{"get store", "store.off = false\nstore.path = \"\"\nstore.sync = \"full\"\n"},
		{"get agent --json", "{\"key\":\"agent\",\"value\":\"gemini\",\"origin\":\"" + p.user + ":1\"}\n"},
	} {
		if got := p.must(strings.Fields(tc.args)...); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.args, got, tc.want)
		}
	}
	for _, args := range [][]string{{"set", "permissions.allow", "command:python -c *"}, nil} {
		if p.must(args...); !strings.Contains(p.err.String(), `permissions.allow: "python -c *" never matches: python -c runs text`) {
			t.Errorf("%q said: %s", args, p.err.String())
		}
	}
	p.must("unset", "permissions")
	if got := p.read(p.user); got != "agent = \"gemini\"\n\n" {
		t.Errorf("after unset: %q", got)
	}
	t.Setenv("ACP_AGENT", "other")
	if p.must("set", "agent", "mine"); !strings.Contains(p.err.String(), "the change was saved, but ACP_AGENT overrides it") {
		t.Errorf("said: %s", p.err.String())
	}
	for _, tc := range []struct {
		args []string
		code exitcode.Code
		want string
	}{
		{[]string{"get", "agnet"}, exitcode.Usage, `did you mean "agent"?`},
		{[]string{"get", "agents.none"}, exitcode.Failed, `key "agents.none" is not set`},
		{[]string{"set", "ui.theme", "pink"}, exitcode.Usage, "is not one of auto, dark, light"},
		{[]string{"set", "ui.theem", "dark"}, exitcode.Usage, `did you mean "ui.theme"?`},
		{[]string{"unset", "ui.theme"}, exitcode.Failed, "is not in "},
		{[]string{"unset", "ui.theem"}, exitcode.Usage, "there is no such setting"},
	} {
		if err := p.run(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) || exitcode.Of(err) != tc.code {
			t.Errorf("%q: %v (status %d)", tc.args, err, exitcode.Of(err))
		}
	}
	p.write(p.user, "[ui]\nx = 1\n")
	if err := p.run(); err == nil || !strings.HasPrefix(err.Error(), p.user+":2:1: ") {
		t.Errorf("a broken file: %v", err)
	}
	// What is wrong can be removed by the program.
	p.must("unset", "ui.x")
	p.must()
}

// TestListServers: those of flags, settings and .mcp.json, each where it comes from; of several with the
// same name only the one in force.
func TestListServers(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "[mcp.a]\ncommand = \"a\"\n[mcp.b]\ncommand = \"b\"\n[mcp.b.env]\nK = \"v\"\n[mcp.ab]\ncommand = \"ab\"\n")
	file := p.write(filepath.Join(p.project, ".mcp.json"), "{\"mcpServers\": {\n\"a\": {\"command\": \"no\"},\n\"c\": {\"command\": \"no\"},\n\"d\": {\"command\": \"d\"}}}")
	p.must("trust", p.project)
	p.servers = []string{"b=b2 ${NONE}", "c=https://u:secret@example.org/?k=secret"}
	p.headers = []string{"c:Authorization=secret"}
	var got []string
	for l := range strings.Lines(p.must()) {
		if f := strings.Fields(l); strings.HasPrefix(l, "mcp.") {
			got = append(got, strings.Join(f, " "))
		}
	}
	want := []string{
		`mcp.a.command "a" ` + p.user + ":2",
		`mcp.ab.command "ab" ` + p.user + ":8",
		`mcp.d.command "d" ` + file + ":4",
		`mcp.c.type "http" --mcp`,
		`mcp.c.url "https://********@example.org/?k=********" --mcp`,
		`mcp.c.headers.Authorization "********" --mcp`,
		`mcp.b.command "b2" --mcp`,
		`mcp.b.args ["${NONE}"] --mcp`,
		`mcp.b.type "stdio" --mcp`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p.servers = []string{"nonsense"}
	if err := p.run(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "NAME=COMMAND") {
		t.Errorf("a flag that cannot be read: %v", err)
	}
}

func TestTrust(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.project, ".git", "HEAD"), "")
	file := p.write(filepath.Join(p.project, ".acp.toml"), "[agents.x]\ncommand = \"./x\\u001b[2J\"\nenv = {NODE_OPTIONS = \"--require /x.js\"}\n[permissions]\npolicy = \"p.json\"\n")
	servers := p.write(filepath.Join(p.project, ".mcp.json"), `{"mcpServers": {
		"s": {"command": "./s\u001b[2J", "args": ["${NONE}"], "env": {"K": "secret"}},
		"v": {"url": "https://${HOSTX:-evil.example}/mcp"},
		"w": {"type": "http", "url": "https://u:secret@example.org/?key=secret", "headers": {"A": "secret"}}}}`)
	policy := p.write(filepath.Join(p.project, "p.json"), "{}")
	p.must()
	if !strings.Contains(p.err.String(), "acp: "+file+": agents.x, permissions.policy have no force") {
		t.Errorf("said: %q", p.err.String())
	}
	if !strings.Contains(p.err.String(), "acp: "+servers+" is not trusted") {
		t.Errorf("said: %q", p.err.String())
	}
	out := p.must("trust")
	want := "trusted " + file + "\n  agents.x.command = \"" + filepath.Join(p.project, "x") + "\\u001B[2J\"\n  agents.x.env.NODE_OPTIONS = \"--require /x.js\"\n  permissions.policy = \"" + policy + "\"\ntrusted " + policy + "\ntrusted " + servers + "\n" +
		"  mcp.s.command = \"./s\\u001B[2J\"\n  mcp.s.args = [\"${NONE}\"]\n  mcp.s.env.K = \"secret\"\n  mcp.v.url = \"https://${HOSTX:-evil.example}/mcp\"\n" +
		"  mcp.w.type = \"http\"\n  mcp.w.url = \"https://u:secret@example.org/?key=secret\"\n  mcp.w.headers.A = \"secret\"\n"
	if out != want {
		t.Error(cmp.Diff(want, out))
	}
	if out := p.must(); !strings.Contains(out, "agents.x.command") || p.err.Len() > 0 {
		t.Errorf("%s%s", out, p.err.String())
	}
	if out := p.must(); !strings.Contains(out, "mcp.s.command") || !strings.Contains(out, servers) || strings.Contains(strings.ReplaceAll(out, "serve.oidc.secret", ""), "secret") {
		t.Errorf("servers of the project: %s", out)
	}
	p.write(policy, "{} ")
	if p.must(); !strings.Contains(p.err.String(), file+": permissions.policy has no force") {
		t.Errorf("a changed policy: %q", p.err.String())
	}
	if out := p.must("untrust", p.project); strings.Count(out, "no longer trusted ") != 3 {
		t.Error(out)
	}
	if p.must(); p.err.Len() == 0 {
		t.Error("it is still trusted")
	}
	if err := p.run("untrust"); exitcode.Of(err) != exitcode.Failed {
		t.Errorf("untrust again: %v", err)
	}
	if err := p.run("trust", "."); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "has neither .acp.toml nor .mcp.json") {
		t.Errorf("nothing to trust: %v", err)
	}
	if info, err := os.Stat(filepath.Join(p.home, "XDG_STATE_HOME", "acp", "trust.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestEdit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the editor is a script")
	}
	p := newPlace(t)
	editor := p.write(filepath.Join(p.home, "my editor"), "#!/bin/sh\necho \"$1\" >>\"$2\"\n")
	if err := os.Chmod(editor, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EDITOR", "'"+editor+"' 'agent = \"mine\"'")
	p.must("edit")
	text := p.read(p.user)
	if !strings.HasPrefix(text, "# Settings of acp.") || !strings.HasSuffix(text, "agent = \"mine\"\n") {
		t.Errorf("%s", text)
	}
	if err := p.run("edit"); err == nil || exitcode.Of(err) != exitcode.Usage || !strings.HasPrefix(err.Error(), p.user+":") {
		t.Errorf("the same key twice: %v", err)
	}
	t.Setenv("EDITOR", "no-such-editor")
	if err := p.run("edit"); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "no-such-editor") {
		t.Errorf("no editor: %v", err)
	}
	t.Setenv("EDITOR", "")
	t.Setenv("VISUAL", "")
	if err := p.run("edit"); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "vi needs a terminal; set EDITOR") {
		t.Errorf("no terminal: %v", err)
	}
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want Options
	}{
		{nil, Options{Verb: "list"}},
		{[]string{"--json"}, Options{Verb: "list", JSON: true}},
		{[]string{"get", "a.b"}, Options{Verb: "get", Key: "a.b"}},
		{[]string{"set", "a", "b"}, Options{Verb: "set", Key: "a", Value: "b"}},
		{[]string{"trust", "x", "y"}, Options{Verb: "trust", Dirs: []string{"x", "y"}}},
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
	for _, args := range [][]string{{"get"}, {"set", "a"}, {"x"}, {"--x"}} {
		cmd := NewCommand(nil, func(context.Context, *Options) error { return nil })
		cmd.SetArgs(append([]string{}, args...))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if cmd.Execute() == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
