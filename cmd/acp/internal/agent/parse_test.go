package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitCommand(t *testing.T) {
	for _, test := range []struct {
		text, name, rest string
		ok               bool
	}{
		{"/help", "help", "", true},
		{"  /run  ls -l", "run", "  ls -l", true},
		{"/edit a\n<<<<<<<", "edit", " a\n<<<<<<<", true},
		{"/write\tx", "write", "\tx", true},
		{"/help\nme", "help", "\nme", true},
		{"help", "", "", false},
		{"/", "", "", false},
		{"/ help", "", "", false},
		{"/etc/passwd is a file", "", "", false},
		{"", "", "", false},
	} {
		name, rest, ok := splitCommand(test.text)
		if name != test.name || rest != test.rest || ok != test.ok {
			t.Errorf("%q: %q, %q, %t", test.text, name, rest, ok)
		}
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
		err  bool
	}{
		{"", nil, false},
		{" a  b ", []string{"a", "b"}, false},
		{`"a b" 'c "d"'`, []string{"a b", `c "d"`}, false},
		{`"a\"b\\c\nd\te\w"`, []string{"a\"b\\c\nd\te\\w"}, false},
		{`'a\n'`, []string{`a\n`}, false},
		{`C:\dir\x`, []string{`C:\dir\x`}, false},
		{`""`, []string{""}, false},
		{`"a`, nil, true},
		{`'`, nil, true},
		{"a b c d", nil, true},
	} {
		got, err := words(test.text, 3)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.err {
			t.Errorf("%q: %v %s", test.text, err, diff)
		}
	}
}

func TestLineRange(t *testing.T) {
	for _, test := range []struct {
		arg, path string
		from, to  uint32
		err       bool
	}{
		{"a.go", "a.go", 0, 0, false},
		{"a.go:3", "a.go", 3, 3, false},
		{"a.go:3-7", "a.go", 3, 7, false},
		{"a.go:3-", "a.go", 3, 0, false},
		{"a.go:0-3", "", 0, 0, true},
		{"a.go:7-3", "", 0, 0, true},
		{"a:b", "a:b", 0, 0, false},
		{"a.go:", "a.go:", 0, 0, false},
		{":3", ":3", 0, 0, false},
		{"a.go:3-x", "a.go:3-x", 0, 0, false},
		{"a.go:99999999999", "a.go:99999999999", 0, 0, false},
		{`C:\a.go:2`, `C:\a.go`, 2, 2, false},
	} {
		path, from, to, err := lineRange(test.arg)
		if path != test.path || from != test.from || to != test.to || (err != nil) != test.err {
			t.Errorf("%q: %q, %d, %d, %v", test.arg, path, from, to, err)
		}
	}
}

func TestReplacements(t *testing.T) {
	for _, test := range []struct {
		text string
		want []replacement
		err  string
	}{
		{" a => b", []replacement{{"a", "b"}}, ""},
		{" a b => c d ", []replacement{{"a b", "c d"}}, ""},
		{` "a => b" => "c => d"`, []replacement{{"a => b", "c => d"}}, ""},
		{` " a " => ' b '`, []replacement{{" a ", " b "}}, ""},
		{` "a" + "b" => "c" + "d"`, []replacement{{`"a" + "b"`, `"c" + "d"`}}, ""},
		{" a =>", []replacement{{"a", ""}}, ""},
		{` a => ""`, []replacement{{"a", ""}}, ""},
		{" f(x) =>y => z", nil, "no =>"},
		{" a", nil, "no =>"},
		{"", nil, "missing"},
		{` "" => b`, nil, "empty"},
		{"\n<<<<<<< OLD\n  a\n=======\n  b\n>>>>>>> NEW\n", []replacement{{"  a\n", "  b\n"}}, ""},
		{"<<<<<<<\na\n=======\n>>>>>>>\n\n<<<<<<<\nb\n=======\nc\n>>>>>>>", []replacement{{"a\n", ""}, {"b\n", "c\n"}}, ""},
		{"<<<<<<<\na\n=======\nb", nil, "not finished"},
		{"<<<<<<<\n=======\nb\n>>>>>>>", nil, "empty"},
		{"<<<<<<<\na\n=======\nb\n>>>>>>>\nmore", nil, "outside"},
	} {
		got, err := replacements(test.text)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(replacement{})); diff != "" {
			t.Errorf("%q: %v %s", test.text, err, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
}

func TestApply(t *testing.T) {
	for _, test := range []struct {
		text string
		rs   []replacement
		all  bool
		want string
		at   []uint32
		err  string
	}{
		{"a\nb\nc\n", []replacement{{"b", "x"}}, false, "a\nx\nc\n", []uint32{2}, ""},
		{"a\na\n", []replacement{{"a", "x"}}, false, "", nil, "2 times"},
		{"a\na\n", []replacement{{"a", "x"}}, true, "x\nx\n", []uint32{1}, ""},
		{"a\n", []replacement{{"b", "x"}}, true, "", nil, "not in the file"},
		{"a\nb", []replacement{{"b\n", "x\n"}}, false, "a\nx", []uint32{2}, ""},
		{"b\nb", []replacement{{"b\n", ""}}, false, "b", []uint32{1}, ""},
		{"xb\nab", []replacement{{"b\n", "c\n"}, {"b\n", "d\n"}}, false, "xc\nad", []uint32{1, 2}, ""},
		{"b b", []replacement{{"b\n", "x\n"}}, false, "b x", []uint32{1}, ""},
	} {
		got, at, err := apply(test.text, test.rs, test.all)
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

func FuzzCommands(f *testing.F) {
	for _, s := range []string{
		"/edit a b => c", "/edit a\n<<<<<<<\nx\n=======\ny\n>>>>>>>", `/search "a\"b" '*.go'`, "/read a:1-2", "/plan a;b", "\"", "é", "/a\x00",
		"[!]", "[]]", "**/", `\`,
	} {
		f.Add(s, "text\n"+s)
	}
	f.Fuzz(func(t *testing.T, s, text string) {
		name, rest, ok := splitCommand(s)
		if ok && !strings.HasSuffix(s, name+rest) {
			t.Errorf("%q was not taken apart: %q %q", s, name, rest)
		}
		if w, err := words(s, 3); err == nil && len(w) > 3 {
			t.Errorf("%d words", len(w))
		}
		if path, from, to, err := lineRange(s); err == nil && (to > 0 && to < from || !strings.HasPrefix(s, path)) {
			t.Errorf("%q %d %d", path, from, to)
		}
		if rs, err := replacements(s); err == nil {
			for _, r := range rs {
				if r.old == "" {
					t.Error("an empty text would be replaced")
				}
			}
			if _, at, err := apply(text, rs, false); err == nil {
				for _, n := range at {
					if n == 0 {
						t.Error("line 0")
					}
				}
			}
		}
		if plan, err := planSteps(s); err == nil && (len(plan) == 0 || len(plan) > maxSteps) {
			t.Errorf("%d steps", len(plan))
		}
		if re := globRegexp(s); re != nil {
			re.MatchString(text)
		}
		parseIgnore(s).match(text, true)
		if n := len([]rune(oneLine(s, 40))); n > 40 {
			t.Errorf("%d characters", n)
		}
	})
}
