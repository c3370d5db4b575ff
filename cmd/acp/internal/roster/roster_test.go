package roster

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		in      string
		windows bool
		want    []string
	}{
		{"a b  c", false, []string{"a", "b", "c"}},
		{" a\tb\n", false, []string{"a", "b"}},
		{`a 'b c' "d e"`, false, []string{"a", "b c", "d e"}},
		{`a'b'"c"`, false, []string{"abc"}},
		{`a '' ""`, false, []string{"a", "", ""}},
		{`a 'x\y' "x\y \" \\"`, false, []string{"a", `x\y`, `x\y " \`}},
		{`a\ b c\'d`, false, []string{"a b", "c'd"}},
		{"a \\\nb", false, []string{"a", "b"}},
		{"a $HOME `x` *", false, []string{"a", "$HOME", "`x`", "*"}},
		{`C:\Program\ x`, true, []string{`C:\Program\`, "x"}},
		{`"C:\Program Files\a.exe" -x`, true, []string{`C:\Program Files\a.exe`, "-x"}},
		{"é ü", false, []string{"é", "ü"}},
	} {
		got, err := split(tc.in, tc.windows)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	for in, want := range map[string]string{
		"": "is empty", "  ": "is empty", `""`: "is empty", `a "b`: "not closed", "a 'b": "not closed", `a \`: "backslash", "a\x00b": "zero byte",
	} {
		if got, err := split(in, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %s", in, got, err, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{`a 'b c' "d\"e" f\ g`, `a "b'c`, `C:\x`, "a\x00", "!'$`"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, windows bool) {
		words, err := split(s, windows)
		if err != nil {
			return
		}
		again, err := split(Join(words), windows)
		if err != nil || !slices.Equal(words, again) {
			t.Errorf("%q is %q, joined %s, which is %q (%v)", s, words, Join(words), again, err)
		}
	})
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"abc-1.2/x": "abc-1.2/x", "": "''", "a b": "'a b'", "it's": `"it's"`, `$'`: `'$'"'"''`, "command:go test *": "'command:go test *'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := []string{"A=1", "B=${A}", "A=2"}
	for in, want := range map[string]string{
		"x": "x", "${A}": "2", "<${A}${B}>": "<2${A}>", "${C}": "", "$A ${": "$A ${", "${A b} ${A}": "${A b} 2", "${}": "${}", "${${A}}": "${2}",
	} {
		if got := expand(in, env); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// bin makes a directory with programs in it.
func bin(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		if runtime.GOOS == "windows" {
			n += ".exe"
		}
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	dir := bin(t, "claude-code-acp", "mine")
	cfg := &config.Config{Environ: []string{"PATH=" + dir, "KEY=secret"}}
	cfg.Agents = map[string]config.Agent{
		"mine":   {Command: "mine", Args: []string{"-x"}, Env: map[string]string{"TOKEN": "${KEY}!"}, Dir: dir, Protocol: 1, Auth: "web"},
		"gemini": {Env: map[string]string{"GEMINI_API_KEY": "k"}, LoginEnv: true},
		"codex":  {Command: "other-codex"},
		"empty":  {Protocol: 2},
	}
	r := New(cfg)
	for _, tc := range []struct {
		name string
		want []string
		from string
	}{
		{"", nil, SourceBuiltin},
		{"builtin", nil, SourceBuiltin},
		{"mine", []string{"mine", "-x"}, SourceUser},
		{"gemini", []string{"gemini", "--acp"}, SourceUser},
		{"codex", []string{"other-codex"}, SourceUser},
		{"opencode", []string{"opencode", "acp"}, SourcePreset},
		{"claude", []string{"claude-code-acp"}, SourcePreset}, // the one that is installed
		{"./x", []string{"./x"}, SourceCommand},
		{"x 'a b'", []string{"x", "a b"}, SourceCommand},
	} {
		a, err := r.Find(tc.name)
		if err != nil || !slices.Equal(a.Argv(), tc.want) || a.Source != tc.from || a.Builtin != (tc.want == nil) {
			t.Errorf("%q: %+v, %v", tc.name, a, err)
		}
	}
	for name, want := range map[string]string{
		"gemnii":  `there is no agent "gemnii": did you mean "gemini"? see acp agents list`,
		"zzzzzzz": `there is no agent "zzzzzzz": see acp agents list, or give a command line`,
		"a 'b":    "a quote in the command line is not closed",
		" ":       "the command line is empty",
		"empty":   `agent "empty" has no command: set agents.empty.command`,
	} {
		if _, err := r.Find(name); err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: %v", name, err)
		}
	}

	mine, _ := r.Find("mine")
	tr := mine.Transport("/elsewhere")
	if d := cmp.Diff([]string{"PATH=" + dir, "KEY=secret", "TOKEN=secret!"}, tr.Env); d != "" || tr.Dir != dir || tr.Path != "mine" || tr.LoginEnv {
		t.Errorf("transport of mine: %+v %s", tr, d)
	}
	if path, ok := r.Installed(mine); !ok || filepath.Dir(path) != dir {
		t.Errorf("installed: %q, %v", path, ok)
	}
	gemini, _ := r.Find("gemini")
	if !gemini.NoFiles {
		t.Error("gemini is lent files")
	}
	tr = gemini.Transport("/elsewhere")
	if d := cmp.Diff([]string{"GEMINI_API_KEY=k"}, tr.Env); d != "" || tr.Dir != "/elsewhere" || !tr.LoginEnv || gemini.Title != "Gemini CLI" {
		t.Errorf("transport of gemini: %+v %s", tr, d)
	}
	if _, ok := r.Installed(gemini); ok {
		t.Error("gemini is installed")
	}
	if got, want := r.Suggestions(), []string{"builtin", "claude", "mine"}; !slices.Equal(got, want) {
		t.Errorf("suggestions: %q, want %q", got, want)
	}
	// What the preset knows of versions holds for its command alone.
	for name, want := range map[string]int{"gemini": 1, "droid": 1, "opencode": 0, "codex": 0, "mine": 1} {
		if a, _ := r.Find(name); a.Protocol != want {
			t.Errorf("%s speaks %d, want %d", name, a.Protocol, want)
		}
	}
	cfg.Agents = map[string]config.Agent{"gemini": {Protocol: 2}, "droid": {Args: []string{"acp"}}}
	for name, want := range map[string]int{"gemini": 2, "droid": 0} {
		if a, _ := New(cfg).Find(name); a.Protocol != want {
			t.Errorf("%s of the settings speaks %d, want %d", name, a.Protocol, want)
		}
	}
	if names := r.Names(); names[0] != Builtin || !slices.IsSorted(names[1:]) {
		t.Errorf("names: %q", names)
	}
}

func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range presets {
		if err := config.CheckAgentName(p.name); err != nil || seen[p.name] {
			t.Errorf("%q: %v, twice: %v", p.name, err, seen[p.name])
		}
		seen[p.name] = true
		if p.title == "" || len(p.argv) == 0 || !strings.HasPrefix(p.homepage, "https://") || p.install == "" {
			t.Errorf("%+v is not complete", p)
		}
		if !IsPreset(p.name) {
			t.Errorf("%q is no preset", p.name)
		}
	}
	if !slices.IsSortedFunc(presets, func(a, b preset) int { return strings.Compare(a.name, b.name) }) {
		t.Error("presets are not sorted")
	}
}

func TestLookPath(t *testing.T) {
	dir := bin(t, "a")
	env := []string{"PATH=relative" + string(os.PathListSeparator) + dir}
	if p, err := LookPath("a", "", env); err != nil || filepath.Dir(p) != dir {
		t.Errorf("%q, %v", p, err)
	}
	if p, err := LookPath("./a", dir, nil); err != nil || filepath.Dir(p) != dir {
		t.Errorf("relative: %q, %v", p, err)
	}
	if _, err := LookPath("", dir, env); err == nil {
		t.Error("an empty name was found")
	}
	if _, err := LookPath("b", dir, env); err == nil {
		t.Error("b was found")
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(filepath.Join(dir, "a"), 0o644); err != nil {
			t.Fatal(err)
		}
		if p, err := LookPath("a", "", env); !os.IsPermission(err) || filepath.Dir(p) != dir {
			t.Errorf("not executable: %q, %v", p, err)
		}
	}
}

// TestAlone: what is known of an agent's modes holds however the agent is started.
func TestAlone(t *testing.T) {
	for name, c := range map[string]config.Agent{"as it is": {}, "by another command": {Command: "npx", Args: []string{"-y", "@agentclientprotocol/claude-agent-acp"}}} {
		cfg := new(config.Config)
		cfg.Agents = map[string]config.Agent{"claude": c, "mine": {Command: "x"}}
		r := New(cfg)
		for agent, want := range map[string]bool{"claude": true, "mine": false} {
			a, err := r.Find(agent)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(a.Alone, "auto") != want {
				t.Errorf("%s: %s asks for nothing in %v", name, agent, a.Alone)
			}
		}
	}
}
