package acphost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathGlob(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for _, tt := range []struct {
		pattern, cwd string
		yes, no      []string
	}{
		{"/a/b", "", []string{"/a/b"}, []string{"/a", "/a/b/c", "/a/bc", "/x/a/b", "/A/B"}},
		{"/a/*", "", []string{"/a/b", "/a/.b"}, []string{"/a", "/a/b/c"}},
		{"/a/?.go", "", []string{"/a/x.go", "/a/ä.go"}, []string{"/a/xy.go", "/a//.go", "/a/x_go"}},
		{"/a/**", "", []string{"/a", "/a/b", "/a/b/c"}, []string{"/ab", "/"}},
		{"/a/**/z", "", []string{"/a/z", "/a/b/z", "/a/b/c/z"}, []string{"/a/bz", "/az"}},
		{"/**", "", []string{"/", "/a", "/a/b"}, nil},
		{"**", "", []string{"/", "/a/b"}, nil},
		{"**/x", "", []string{"/x", "/a/x"}, []string{"/ax"}},
		{"/a**z", "", []string{"/az", "/ab/cz"}, []string{"/a/b"}},
		{"/[abc]", "", []string{"/a", "/c"}, []string{"/d", "/"}},
		{"/[a-c]x", "", []string{"/bx"}, []string{"/dx"}},
		{"/[!a-c]", "", []string{"/d"}, []string{"/a", "//"}},
		{"/{a,bc}/x", "", []string{"/a/x", "/bc/x"}, []string{"/b/x", "/{a,bc}/x"}},
		{"/{*.go,**/c}", "", []string{"/a.go", "/c", "/x/y/c"}, []string{"/x/a.go"}},
		{"/,}", "", []string{"/,}"}, nil},
		{`/\*\[\{a`, "", []string{"/*[{a"}, []string{"/x[{a"}},
		{"/a.b+c(d)$", "", []string{"/a.b+c(d)$"}, []string{"/axb+c(d)$"}},
		{"C:/x/*", "", []string{"C:/x/y"}, []string{"D:/x/y", "/w/C:/x/y"}},
		{"~/x", "", []string{filepath.ToSlash(home) + "/x"}, []string{"/x", "~/x"}},
		{"src/*.go", "/w", []string{"/w/src/a.go"}, []string{"/w/a.go", "/src/a.go", "/w2/src/a.go"}},
		{"./**", "/w", []string{"/w", "/w/a", "/w/a/b"}, []string{"/w2", "/"}},
		{"./a", "/w", []string{"/w/a"}, []string{"/a"}},
		{"a", "", nil, []string{"/a", "a", "/w/a"}},
	} {
		g, err := newPathGlob(tt.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, p := range tt.yes {
			if !g.matches(p, tt.cwd) {
				t.Errorf("%s in %q does not match %s", tt.pattern, tt.cwd, p)
			}
		}
		for _, p := range tt.no {
			if g.matches(p, tt.cwd) {
				t.Errorf("%s in %q matches %s", tt.pattern, tt.cwd, p)
			}
		}
	}
	wide, err := newPathGlob("src/key", true)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/src/key": true, "/x/SRC/Key": true, "/x/src/keys": false, "/xsrc/key": false} {
		if wide.matches(path, "") != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// TestEscapeGlob holds that a home directory is taken to the letter.
func TestEscapeGlob(t *testing.T) {
	for _, dir := range []string{"/home/a b", `/h{x,y}[z]*?\n`} {
		g, err := newPathGlob(escapeGlob(dir)+"/x", false)
		if err != nil || !g.matches(dir+"/x", "") || g.matches("/hx[z]*?n/x", "") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestCommandGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no []string
	}{
		{"ls", []string{"ls"}, []string{"ls -l", "LS", "als"}},
		{"go test *", []string{"go test ./...", "go test ", "go test"}, []string{"go tests", "go"}},
		{"a?c", []string{"abc", "aäc"}, []string{"ac", "abbc"}},
		{`a\*b\?`, []string{"a*b?"}, []string{"axb?", "a*bx"}},
		{"a.b", []string{"a.b"}, []string{"axb"}},
		{"grüße *", []string{"grüße x"}, nil},
	} {
		p, err := newCommandGlob(tt.pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tt.yes {
			if !p.re.MatchString(s) {
				t.Errorf("%s does not match %q", tt.pattern, s)
			}
		}
		for _, s := range tt.no {
			if p.re.MatchString(s) {
				t.Errorf("%s matches %q", tt.pattern, s)
			}
		}
	}
}

func TestServerOf(t *testing.T) {
	for tool, want := range map[string][2]string{
		"mcp__a__b": {"a", "b"}, "mcp__a_b__c__d": {"a_b", "c__d"}, "a__b": {"a", "b"}, "a/b": {"a", "b"}, "a:b/c": {"a", "b/c"},
		"plain": {}, "": {}, "snake_case": {}, "__x": {"", "x"}, "mcp__a": {"a", ""},
	} {
		if s, n := serverOf(tool); [2]string{s, n} != want {
			t.Errorf("%q is %q of %q", tool, n, s)
		}
	}
}

func TestParts(t *testing.T) {
	got := slices.Collect(parts(`cd "a b" && /usr/bin/X\Y  1|z`))
	want := []string{
		`cd "a b" && /usr/bin/X\Y  1|z`,
		"cd", "cd", "a b", "a b", `/usr/bin/X\Y 1`, "Y 1", "z", "z",
		`cd a b && /usr/bin/XY  1|z`,
		"cd a b", "cd a b", "/usr/bin/XY 1", "XY 1", "z", "z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for n := range want { // stops when told to
		for range parts(`cd "a b" && /usr/bin/X\Y  1|z`) {
			if n--; n < 0 {
				break
			}
		}
	}
}

// FuzzAllowedCommand holds that a pattern which allows lets through nothing but
// words, and that what one denies cannot be hidden behind another command.
func FuzzAllowedCommand(f *testing.F) {
	f.Add("ls ", "; rm x")
	f.Add("ls", "\nrm")
	f.Add("ls $(", ")")
	f.Fuzz(func(t *testing.T, a, b string) {
		p, err := NewPolicy(Rule{Effect: EffectDeny, Commands: []string{"rm *"}},
			Rule{Effect: EffectAllow, Commands: []string{"ls *"}, CommandRegexps: []string{"(?s)git .*"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{a + b, "ls " + a + b, "git " + a + b} {
			d := p.Decide(t.Context(), running(command))
			if d.Effect == EffectAllow && strings.ContainsAny(strings.TrimSpace(command), ";&|<>()`$\n\r\x00") {
				t.Fatalf("%q is allowed", command)
			}
		}
		for _, sign := range []string{";", "&&", "|", "\n", "$(", "`", "("} {
			if d := p.Decide(t.Context(), running(a+sign+"rm x")); d.Effect != EffectDeny {
				t.Fatalf("%q is not denied", a+sign+"rm x")
			}
		}
	})
}

// FuzzAllowedPath holds that no spelling of a path gets around a rule.
func FuzzAllowedPath(f *testing.F) {
	f.Add("/w/a/../../etc", "/w")
	f.Add("../etc", "/w/x")
	f.Fuzz(func(t *testing.T, path, cwd string) {
		p, err := NewPolicy(Rule{Effect: EffectAllow, Paths: []string{"/w/**"}})
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decide(t.Context(), Request{Paths: []string{path}, Cwd: cwd, Options: usual})
		real := path
		if !filepath.IsAbs(path) {
			real = filepath.Join(cwd, path)
		}
		_, inside := within("/w", real)
		if want := filepath.IsAbs(real) && inside && path != ""; d.By == ByRule != want {
			t.Fatalf("%q in %q: %+v", path, cwd, d)
		}
	})
}
