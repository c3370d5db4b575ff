package tool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplace(t *testing.T) {
	for _, test := range []struct {
		text string
		rs   []Replacement
		all  bool
		want string
		at   []uint32
		err  string
	}{
		{"a\nb\nc\n", []Replacement{{Old: "b", New: "x"}}, false, "a\nx\nc\n", []uint32{2}, ""},
		{"a\na\n", []Replacement{{Old: "a", New: "x"}}, false, "", nil, "2 times"},
		{"a\na\n", []Replacement{{Old: "a", New: "x"}}, true, "x\nx\n", []uint32{1}, ""},
		{"a\n", []Replacement{{Old: "b", New: "x"}}, true, "", nil, "not in the file"},
		{"a\nb", []Replacement{{Old: "b\n", New: "x\n"}}, false, "a\nx", []uint32{2}, ""},
		{"b\nb", []Replacement{{Old: "b\n", New: ""}}, false, "b", []uint32{1}, ""},
		{"xb\nab", []Replacement{{Old: "b\n", New: "c\n"}, {Old: "b\n", New: "d\n"}}, false, "xc\nad", []uint32{1, 2}, ""},
		{"b b", []Replacement{{Old: "b\n", New: "x\n"}}, false, "b x", []uint32{1}, ""},
	} {
		r, err := replace(test.text, test.rs, test.all, "set all", nil)
		got, at := r.after, r.at
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %q, %v", test.text, got, err)
		}
		if diff := cmp.Diff(test.at, at); diff != "" {
			t.Errorf("%q: %s", test.text, diff)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		glob     string
		yes, not []string
	}{
		{"*.go", []string{"a.go", ".go"}, []string{"a.gox", "d/a.go", "ago"}},
		{"a?c", []string{"abc", "aéc"}, []string{"ac", "a/c"}},
		{"**/x", []string{"x", "a/x", "a/b/x"}, []string{"ax"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx"}},
		{"[!a-c]x", []string{"dx"}, []string{"ax", "/x"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{"ü*", []string{"über"}, []string{"uber"}},
		{"a**b", []string{"axb"}, []string{"a/b"}},
		{"a.b", nil, []string{"axb"}},
	} {
		re := globRegexp(test.glob)
		if re == nil {
			t.Errorf("%q makes no sense", test.glob)
			continue
		}
		for _, s := range test.yes {
			if !re.MatchString(s) {
				t.Errorf("%q does not match %q", test.glob, s)
			}
		}
		for _, s := range test.not {
			if re.MatchString(s) {
				t.Errorf("%q matches %q", test.glob, s)
			}
		}
	}
}

func TestIgnore(t *testing.T) {
	rules := parseIgnore("# comment\n\n*.log\n!keep.log\n/top\nbuild/\ndoc/*.txt\n**/deep/x\r\nspace \n[z-a]\n")
	for _, test := range []struct {
		path string
		dir  bool
		want bool
	}{
		{"a.log", false, true}, {"d/a.log", false, true}, {"keep.log", false, false}, {"d/keep.log", false, false},
		{"top", false, true}, {"d/top", false, false}, {"build", true, true}, {"build", false, false}, {"d/build", true, true},
		{"doc/a.txt", false, true}, {"doc/d/a.txt", false, false}, {"a/deep/x", false, true}, {"deep/x", false, true},
		{"space", false, true}, {"other", false, false},
	} {
		if got, _ := rules.match(test.path, test.dir); got != test.want {
			t.Errorf("%q (directory: %t): %t", test.path, test.dir, got)
		}
	}
}

func FuzzTools(f *testing.F) {
	for _, s := range []string{"[!]", "[]]", "**/", `\`, "a", "a\na", "*.go", "\x00", "é"} {
		f.Add(s, "text\n"+s)
	}
	f.Fuzz(func(t *testing.T, s, text string) {
		if r, err := replace(text, []Replacement{{Old: s, New: "x"}}, false, "", nil); err == nil && s != "" {
			if len(r.at) == 0 || r.at[0] == 0 || strings.Count(r.after, "x") < 1 {
				t.Errorf("%q in %q: %q at %d", s, text, r.after, r.at)
			}
		}
		if re := globRegexp(s); re != nil {
			re.MatchString(text)
		}
		parseIgnore(s).match(text, true)
		var in EditInput
		_ = decode([]byte(s), &in) // whether it fits: it must not panic
	})
}
