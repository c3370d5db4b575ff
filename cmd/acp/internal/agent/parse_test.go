package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
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

// edits pairs old texts with new ones.
func edits(texts ...string) (all []tool.Replacement) {
	for i := 0; i < len(texts); i += 2 {
		all = append(all, tool.Replacement{Old: texts[i], New: texts[i+1]})
	}
	return all
}

func TestReplacements(t *testing.T) {
	for _, test := range []struct {
		text string
		want []tool.Replacement
		err  string
	}{
		{" a => b", edits("a", "b"), ""},
		{" a b => c d ", edits("a b", "c d"), ""},
		{` "a => b" => "c => d"`, edits("a => b", "c => d"), ""},
		{` " a " => ' b '`, edits(" a ", " b "), ""},
		{` "a" + "b" => "c" + "d"`, edits(`"a" + "b"`, `"c" + "d"`), ""},
		{" a =>", edits("a", ""), ""},
		{` a => ""`, edits("a", ""), ""},
		{" f(x) =>y => z", nil, "no =>"},
		{" a", nil, "no =>"},
		{"", nil, "missing"},
		{` "" => b`, nil, "empty"},
		{"\n<<<<<<< OLD\n  a\n=======\n  b\n>>>>>>> NEW\n", edits("  a\n", "  b\n"), ""},
		{"<<<<<<<\na\n=======\n>>>>>>>\n\n<<<<<<<\nb\n=======\nc\n>>>>>>>", edits("a\n", "", "b\n", "c\n"), ""},
		{"<<<<<<<\na\n=======\nb", nil, "not finished"},
		{"<<<<<<<\n=======\nb\n>>>>>>>", nil, "empty"},
		{"<<<<<<<\na\n=======\nb\n>>>>>>>\nmore", nil, "outside"},
	} {
		got, err := replacements(test.text)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: %v %s", test.text, err, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{
		"/edit a b => c", "/edit a\n<<<<<<<\nx\n=======\ny\n>>>>>>>", `/search "a\"b" '*.go'`, "/read a:1-2", "/plan a;b", "\"", "é", "/a\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
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
				if r.Old == "" {
					t.Error("an empty text would be replaced")
				}
			}
		}
		if plan, err := planSteps(s); err == nil && (len(plan) == 0 || len(plan) > tool.MaxSteps) {
			t.Errorf("%d steps", len(plan))
		}
	})
}
