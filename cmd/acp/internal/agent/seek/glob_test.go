package seek

import (
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		glob     string
		yes, not []string
	}{
		{"*.go", []string{"a.go", ".go", "d/a.go"}, []string{"a.gox", "ago", "a.go/b"}},
		{"a?c", []string{"abc", "aéc"}, []string{"ac", "a/c"}},
		{"*.{ts,tsx}", []string{"a.ts", "a.tsx", "d/e/a.ts"}, []string{"a.t", "a.tsxx", "a.{ts,tsx}", "ats"}},
		{"{a,b{c,d}}.go", []string{"a.go", "bc.go", "bd.go"}, []string{"b.go", "ac.go"}},
		{"src/**/*.{js,mjs}", []string{"src/a.js", "src/b/c/a.mjs"}, []string{"a.js", "lib/src/a.js"}},
		{"{src,test}/**", []string{"src/a", "test/b/c"}, []string{"lib/a"}},
		{"{**/,}x", []string{"x", "a/x"}, []string{"ax"}},
		{"a{b", []string{"a{b"}, []string{"ab"}},
		{"a}b,c", []string{"a}b,c"}, []string{"ab"}},
		{`\{a,b}`, []string{"{a,b}"}, []string{"a"}},
		{"[{]a,b", []string{"{a,b"}, []string{"a"}},
		{"{a}", []string{"a"}, []string{"{a}"}},
		{"{,x}y", []string{"y", "xy"}, []string{"x"}},
		{"sub", []string{"sub", "sub/a", "d/sub/a/b"}, []string{"sub2/a", "a/subs"}},
		{"a/sub", []string{"a/sub/x", "a/sub"}, []string{"b/a/sub/x", "a/subs/x"}},
		{"a/sub/", []string{"a/sub/x"}, []string{"b/sub/x"}},
		{"su*/", []string{"sub/x", "a/sub/x"}, []string{"x"}},
		{"./a/*.go", []string{"a/x.go"}, []string{"x.go"}},
		{"/a/*.go", []string{"a/x.go"}, []string{"b/a/x.go"}},
		{"!*_test.go", []string{"a.go", "a/b.go"}, []string{"a_test.go", "a/b_test.go"}},
		{"**/x", []string{"x", "a/x", "a/b/x"}, []string{"ax"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx"}},
		{"[!a-c]x", []string{"dx"}, []string{"ax"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{"ü*", []string{"über"}, []string{"uber"}},
		{"a**b", []string{"axb"}, []string{"a/b"}},
		{"a.b", nil, []string{"axb"}},
	} {
		g := NewGlob(test.glob)
		if g == nil {
			t.Errorf("%q makes no sense", test.glob)
			continue
		}
		for _, s := range test.yes {
			if !g.match(s) {
				t.Errorf("%q does not match %q", test.glob, s)
			}
		}
		for _, s := range test.not {
			if g.match(s) {
				t.Errorf("%q matches %q", test.glob, s)
			}
		}
	}
}

func TestIgnore(t *testing.T) {
	rules := parseIgnore("# comment\n\n*.log\ntmp*\n{x,y}\n!keep.log\n/top\nbuild/\ndoc/*.txt\n**/deep/x\r\nspace \n[z-a]\n")
	for _, test := range []struct {
		path string
		dir  bool
		want bool
	}{
		{"a.log", false, true}, {"d/a.log", false, true}, {"keep.log", false, false}, {"d/keep.log", false, false},
		{"top", false, true}, {"d/top", false, false}, {"build", true, true}, {"build", false, false}, {"d/build", true, true},
		{"doc/a.txt", false, true}, {"doc/d/a.txt", false, false}, {"a/deep/x", false, true}, {"deep/x", false, true},
		{"space", false, true}, {"tmp1", false, true}, {"d/tmp2", true, true}, {"x", false, false}, {"{x,y}", false, true}, {"a.log.txt", false, false}, {"other", false, false},
	} {
		if got, _ := rules.match(test.path, test.dir); got != test.want {
			t.Errorf("%q (directory: %t): %t", test.path, test.dir, got)
		}
	}
}

// TestBadGlobs: what makes no sense is no pattern, and long ones are none.
func TestBadGlobs(t *testing.T) {
	for _, glob := range []string{"", "!", "/", "./", "[z-a]", strings.Repeat("{a,", 400) + "b"} {
		if g := NewGlob(glob); g != nil {
			t.Errorf("%.20q is a pattern", glob)
		}
	}
	deep := strings.Repeat("{a,", 200) + "b" + strings.Repeat("}", 200)
	if g := NewGlob(deep); g != nil && !g.match("b") {
		t.Error("what is nested deeply does not match")
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"[!]", "[]]", "**/", `\`, "a", "*.{go,ts}", "{{a,b},c}", "}", "{", "\x00", "é", "!a/"} {
		f.Add(s, "text\n"+s)
	}
	f.Fuzz(func(t *testing.T, s, text string) {
		if g := NewGlob(s); g != nil {
			g.match(text)
		}
		parseIgnore(s).match(text, true)
	})
}
