package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphost"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A place is a home directory with a project in it.
type place struct {
	t             *testing.T
	home, project string
	env           []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	home := realName(t.TempDir())
	p := &place{t: t, home: home, project: filepath.Join(home, "project")}
	p.env = []string{"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + filepath.Join(home, ".config"), "LOCALAPPDATA=" + filepath.Join(home, ".local", "state")}
	p.write("project/.git/HEAD", "")
	return p
}

func (p *place) write(name, text string) string {
	p.t.Helper()
	file := filepath.Join(p.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return file
}

func (p *place) user(text string) string     { return p.write(".config/acp/config.toml", text) }
func (p *place) projects(text string) string { return p.write("project/.acp.toml", text) }

func (p *place) load(env []string, flags map[string]any) (*Config, error) {
	p.t.Helper()
	return Load(Options{Cwd: p.project, Environ: append(append([]string{}, p.env...), env...), Flags: flags})
}

func (p *place) mustLoad() *Config {
	p.t.Helper()
	c, err := p.load(nil, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

var serveDefaults = Serve{OIDC: OIDC{Groups: "groups", User: "sub"}, Isolation: Isolation{Mode: "none"}}

func TestDefaults(t *testing.T) {
	c := newPlace(t).mustLoad()
	want := Settings{
		UI:       UI{Theme: "auto", Thoughts: "folded", Diff: "auto", Editing: "plain", Links: "file", Mouse: true, Notify: true, NotifyBy: "auto", Progress: "auto"},
		Store:    Store{Sync: "full"},
		Serve:    serveDefaults,
		Timeouts: Timeouts{Connect: time.Minute, Slow: 3 * time.Second, Ask: 10 * time.Minute},
	}
	if d := cmp.Diff(want, c.Settings); d != "" {
		t.Error(d)
	}
	for _, v := range c.Values() {
		if v.Origin != "default" {
			t.Errorf("%s comes from %q", v.Key, v.Origin)
		}
	}
}

func TestLayers(t *testing.T) {
	p := newPlace(t)
	user := p.user("agent = \"gemini\"\n[ui]\ntheme = \"dark\"\nthoughts = \"shown\"\ndiff = \"split\"\nmouse = false\n[permissions]\ndeny = [\"path:~/.ssh/**\"]\n")
	project := p.projects("# project\n[ui]\ntheme = \"light\"\nthoughts = \"folded\"\ndiff = \"unified\"\n[permissions]\ndeny = [\"command:rm *\"]\n[timeouts]\nslow = \"9s\"\n")
	c, err := p.load(
		[]string{"ACP_UI_THOUGHTS=shown", "ACP_UI_DIFF=auto", "ACP_TIMEOUTS_CONNECT=30s", "ACP_AGENT=", "ACP_PERMISSION_MODE=x", "ACP_PERMISSIONS_ALLOW=read\ncommand:go test *"},
		map[string]any{"ui.diff": "split", "ui.plain": true, "permissions.deny": []string{"kind:delete"}, "store.off": "true"})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Agent:       "gemini",
		Permissions: Permissions{Allow: []string{"read", "command:go test *"}, Deny: []string{"path:~/.ssh/**", "command:rm *", "kind:delete"}},
		UI:          UI{Plain: true, Theme: "light", Thoughts: "shown", Diff: "split", Editing: "plain", Links: "file", Notify: true, NotifyBy: "auto", Progress: "auto"},
		Store:       Store{Sync: "full", Off: true},
		Serve:       serveDefaults,
		Timeouts:    Timeouts{Connect: 30 * time.Second, Slow: 9 * time.Second, Ask: 10 * time.Minute},
	}
	if d := cmp.Diff(want, c.Settings); d != "" {
		t.Error(d)
	}
	origins := map[string]string{}
	for _, v := range c.Values() {
		origins[v.Key] = v.Origin
	}
	for key, want := range map[string]string{
		"agent":             user + ":1",
		"ui.mouse":          user + ":6",
		"ui.theme":          project + ":3",
		"ui.thoughts":       "ACP_UI_THOUGHTS",
		"ui.diff":           "--ui.diff",
		"ui.plain":          "--plain",
		"store.off":         "--no-store",
		"store.sync":        "default",
		"permissions.allow": "ACP_PERMISSIONS_ALLOW",
		"permissions.deny":  user + ":8, " + project + ":7, --deny",
	} {
		if origins[key] != want {
			t.Errorf("%s comes from %q, want %q", key, origins[key], want)
		}
	}
	if len(c.Untrusted()) != 0 {
		t.Errorf("left out: %q", c.Untrusted())
	}
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "[ui]\ntheem = \"dark\"\n", `:2:1: key "ui.theem": there is no such setting; did you mean "ui.theme"?`},
		{"unknown table", "[uii]\ntheme = \"dark\"\n", `:1:2: key "uii": there is no such setting; did you mean "ui"?`},
		{"unknown far", "zzzzzzzz = 1\n", `:1:1: key "zzzzzzzz": there is no such setting; there are agent, agents, mcp, model, permissions, providers, proxies, serve, store, timeouts, ui`},
		{"type", "[ui]\nplain = \"yes\"\n", `:2:9: key "ui.plain": "yes" is not true or false`},
		{"table for a value", "[agent]\nx = 1\n", `:1:2: key "agent": is not a string; `},
		{"value for a table", "ui = 3\n", `:1:6: key "ui": 3 is not a table`},
		{"enum", "[ui]\n  theme = \"drak\"\n", `:2:11: key "ui.theme": "drak" is not one of auto, dark, light, colorblind, contrast, gruvbox, nord, solarized; did you mean "dark"?`},
		{"number", "[agents.x]\ncommand = \"x\"\nprotocol = 7\n", `:3:12: key "agents.x.protocol": 7 is not one of 0, 1, 2`},
		{"duration", "[timeouts]\nconnect = \"30\"\n", `:2:11: key "timeouts.connect": "30" is not a duration such as "30s"`},
		{"negative", "[timeouts]\nconnect = \"-3s\"\n", `:2:11: key "timeouts.connect": is not between 0 and 720h`},
		{"list", "[agents.x]\ncommand = \"x\"\nargs = [\"a\", 3]\n", `key "agents.x.args": is not a list of strings`},
		{"rule", "[permissions]\nallow = [\n  \"read\",\n  \"comand:ls\",\n]\n", `:4:3: key "permissions.allow": "comand:" is no condition of a rule; did you mean "command:"?`},
		{"syntax", "[ui\n", `:1:4: `},
		{"twice", "agent = \"a\"\nagent = \"b\"\n", `:2:1: `},
		{"inline", "mcp = {a = {comand = \"x\"}}\n", `:1:13: key "mcp.a.comand": there is no such setting; did you mean "mcp.a.command"?`},
		{"server", "[mcp.a]\nargs = [\"x\"]\n", `:2:1: key "mcp.a": the server has neither a command nor a url`},
		{"empty server", "[ui]\n[mcp.a]\n", `:2:2: key "mcp.a": the server has neither a command nor a url`},
		{"empty server inline", "mcp = {a = {}}\n", `:1:1: key "mcp.a": the server has neither a command nor a url`},
		{"server both", "[mcp.a]\ncommand = \"x\"\nurl = \"http://x\"\n", `:2:1: key "mcp.a": a server has a command or a url, not both`},
		{"server type", "[mcp.a]\ncommand = \"x\"\ntype = \"http\"\n", `:3:1: key "mcp.a": a server of type http has a url`},
		{"agent name", "[agents.\"a b\"]\ncommand = \"x\"\n", `:1:2: key "agents.\"a b\"": the name "a b" has white space`},
		{"builtin", "[agents.builtin]\ncommand = \"x\"\n", `the name "builtin" is that of the built-in agent`},
		{"list of tables", "[[agents]]\nx = 1\n", `:1:3: key "agents": no setting is a list of tables`},
		{"two", "a = 1\nb = 2\n", `:2:1: key "b": there is no such setting`},
		{"many", "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\ng = 7\n", "(and 2 more)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlace(t)
			file := p.user(tc.text)
			_, err := p.load(nil, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); !strings.HasPrefix(got, file+":") || !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("got  %s\nwant …%s", got, tc.want)
			}
			if exitcode.Of(err) != exitcode.Usage {
				t.Errorf("exit status %d", exitcode.Of(err))
			}
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Errorf("%T", err)
			}
		})
	}
}

func TestMistakesElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name  string
		env   []string
		flags map[string]any
		want  string
	}{
		{"variable", []string{"ACP_UI_THEME=pink"}, nil, `ACP_UI_THEME: key "ui.theme": "pink" is not one of auto, dark, light`},
		{"variable unknown", []string{"ACP_UI_PLIAN=1"}, nil, `ACP_UI_PLIAN: there is no such setting; did you mean ACP_UI_PLAIN?`},
		{"variable bool", []string{"ACP_UI_PLAIN=si"}, nil, `ACP_UI_PLAIN: key "ui.plain": "si" is not true or false`},
		{"flag", nil, map[string]any{"timeouts.connect": "soon"}, `--connect-timeout: "soon" is not a duration such as "30s"`},
		{"flag enum", nil, map[string]any{"serve.isolation.mode": "foo"}, `--isolation: "foo" is not one of none, bwrap, container`},
		{"flag rule", nil, map[string]any{"permissions.allow": []string{"ls -l"}}, `--allow: "ls" is no kind of a tool and no condition of a rule; a command is written as "command:ls"`},
		{"flag unknown", nil, map[string]any{"ui.x": 1}, `--ui.x: there is no such setting`},
		{"file", []string{"ACP_CONFIG=gone.toml"}, nil, `gone.toml: there is no such file`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := newPlace(t).load(tc.env, tc.flags)
			if err == nil || !strings.Contains(err.Error(), tc.want) || exitcode.Of(err) != exitcode.Usage {
				t.Errorf("got %v (status %d), want %s", err, exitcode.Of(err), tc.want)
			}
		})
	}
}

func TestTrust(t *testing.T) {
	p := newPlace(t)
	p.user("agent = \"mine\"\n[agents.mine]\ncommand = \"mine\"\nargs = [\"-x\"]\n")
	file := p.projects("agent = \"./evil.sh\"\n[agents.mine]\ncommand = \"./evil\"\n[mcp.m]\ncommand = \"m\"\n[permissions]\ndefault = \"allow\"\nallow = [\"*\"]\ndeny = [\"kind:delete\"]\npolicy = \"policy.json\"\n[store]\npath = \"s.db\"\n[ui]\ntheme = \"light\"\n")
	policy := p.write("project/policy.json", `{"version": 1}`)
	c := p.mustLoad()
	want := Settings{
		Agent:       "mine",
		Agents:      map[string]Agent{"mine": {Command: "mine", Args: []string{"-x"}}},
		Permissions: Permissions{Deny: []string{"kind:delete"}},
		UI:          UI{Theme: "light", Thoughts: "folded", Diff: "auto", Editing: "plain", Links: "file", Mouse: true, Notify: true, NotifyBy: "auto", Progress: "auto"},
		Store:       Store{Sync: "full"}, Serve: serveDefaults, Timeouts: c.Timeouts,
	}
	if d := cmp.Diff(want, c.Settings); d != "" {
		t.Error(d)
	}
	line := file + ": agent, agents.mine, mcp.m, permissions.default, permissions.allow, permissions.policy, store.path have no force until you read the file and run: acp config trust " + p.project
	if d := cmp.Diff([]string{line}, c.Untrusted()); d != "" {
		t.Error(d)
	}

	if err := c.Trust(file); err != nil {
		t.Fatal(err)
	}
	c = p.mustLoad()
	if len(c.Untrusted()) != 1 || !strings.HasPrefix(c.Untrusted()[0], file+": permissions.policy has no force") {
		t.Errorf("without the policy: %q", c.Untrusted())
	}
	if err := c.Trust(policy); err != nil {
		t.Fatal(err)
	}
	c = p.mustLoad()
	want.Agent = "./evil.sh"
	want.Agents = map[string]Agent{"mine": {Command: filepath.Join(p.project, "evil")}}
	want.MCP = map[string]MCPServer{"m": {Command: "m"}}
	want.Permissions = Permissions{Policy: policy, Default: "allow", Allow: []string{"*"}, Deny: []string{"kind:delete"}}
	want.Store.Path = filepath.Join(p.project, "s.db")
	if d := cmp.Diff(want, c.Settings); d != "" {
		t.Error(d)
	}
	if !c.FromProject("agents", "mine") || c.FromProject("agents", "other") {
		t.Error("FromProject is wrong")
	}

	p.projects("[agents.mine]\ncommand = \"./evil2\"\n")
	c = p.mustLoad()
	if left := c.Untrusted(); len(left) != 1 || !strings.HasPrefix(left[0], file+": it has changed since you trusted it; agents.mine has no force until") {
		t.Errorf("after a change: %q", left)
	}
	if len(c.Untrusted()) != 1 || c.Agents["mine"].Command != "mine" {
		t.Errorf("changed content has force: %+v", c.Settings)
	}
	had, err := c.Untrust(file, policy, filepath.Join(p.project, "none"))
	if err != nil || !cmp.Equal(had, []string{file, policy}) {
		t.Errorf("untrust: %q, %v", had, err)
	}
	if left, err := c.TrustedFiles(); err != nil || len(left) != 0 {
		t.Errorf("still trusted: %q, %v", left, err)
	}
}

func TestTemplate(t *testing.T) {
	var b strings.Builder
	for l := range strings.Lines(Template()) {
		if rest, ok := strings.CutPrefix(l, "# "); ok && !strings.HasPrefix(l, "# Settings") {
			b.WriteString(rest)
		}
	}
	doc, problem := parseDocument("template", []byte(b.String()))
	if problem != nil {
		t.Fatal(problem)
	}
	items, problems := doc.items("template")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if len(items) != len(Known()) {
		t.Errorf("%d settings of %d that are known", len(items), len(Known()))
	}
	if text := Template(); strings.Contains(text, "\n[") {
		t.Error("the template sets something")
	}
}

func TestFindUp(t *testing.T) {
	p := newPlace(t)
	deep := filepath.Join(p.project, "a", "b")
	p.write("project/a/b/x", "")
	if got := FindUp(deep, p.home, "f"); got != "" {
		t.Errorf("nothing: %q", got)
	}
	above := p.write("f", "")
	if got := FindUp(deep, p.home, "f"); got != "" {
		t.Errorf("above the repository: %q", got)
	}
	if got := FindUp(filepath.Join(p.home, "other"), p.home, "f"); got != above {
		t.Errorf("in the home directory: %q", got)
	}
	if got := FindUp(filepath.Join(p.home, "other"), "", "f"); got != "" {
		t.Errorf("in neither: %q", got)
	}
	in := p.write("project/f", "")
	if got := FindUp(deep, p.home, "f"); got != in {
		t.Errorf("in the repository: %q", got)
	}
	near := p.write("project/a/f", "")
	if got := FindUp(deep, p.home, "f"); got != near {
		t.Errorf("the nearest: %q", got)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{"[ui]\ntheme = 1\n", "agents = {a = {env = {x = 'y'}}}", "[[ui]]\n", "a.\"b.c\" = [1, {}]\n", "[permissions]\nallow = ['read']\n# x", "x = 2020-01-01\n\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc, problem := parseDocument("f", []byte(s))
		if problem != nil {
			if strings.Contains(problem.Error(), "\n") {
				t.Errorf("several lines: %q", problem)
			}
			return
		}
		items, problems := doc.items("f")
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || strings.ContainsAny(p.Error(), "\n\x1b") {
				t.Errorf("%q", p.Error())
			}
		}
		for _, i := range items {
			_ = i.shown().Text()
			if needsTrust(i) && i.path[0] == "ui" {
				t.Errorf("%s needs trust", i.path)
			}
		}
	})
}

// TestTrustContent: what is trusted is what was read or written, whatever is in the file by then.
func TestTrustContent(t *testing.T) {
	dir := t.TempDir()
	c := &Config{Dirs: Dirs{State: filepath.Join(dir, "state")}, UserFile: filepath.Join(dir, "user.toml")}
	file := filepath.Join(dir, ProjectFile)
	evil := []byte("[permissions]\nallow = [\"*\"]\n")
	contents := map[string][]byte{file: []byte("mine")}
	if err := os.WriteFile(file, evil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.TrustContent(contents); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"mine": true, string(evil): false} {
		if got, err := c.Trusts(file, []byte(text)); err != nil || got != want {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
}

// TestAddRuleRace: a rule that is added has nothing trusted that another process puts into the place of the file as soon as the rule
// is there.
func TestAddRuleRace(t *testing.T) {
	dir := t.TempDir()
	c := &Config{Dirs: Dirs{State: filepath.Join(dir, "state")}, UserFile: filepath.Join(dir, "user.toml")}
	file := filepath.Join(dir, ProjectFile)
	evil := []byte("[permissions]\nallow = [\"*\"]\n")
	var other sync.WaitGroup
	end := make(chan struct{})
	other.Go(func() {
		mine := filepath.Join(dir, "evil")
		for {
			select {
			case <-end:
				return
			default:
			}
			if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte("rm")) {
				_ = os.WriteFile(mine, evil, 0o600)
				_ = os.Rename(mine, file)
			}
		}
	})
	for range 50 {
		_ = os.Remove(file)
		_, _ = c.AddRule(file, acphost.EffectAllow, "command:rm x")
		if trusted, err := c.Trusts(file, evil); err != nil || trusted {
			t.Errorf("%t, %v", trusted, err)
			break
		}
	}
	close(end)
	other.Wait()
}
