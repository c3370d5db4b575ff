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
		var in EditInput
		_ = decode([]byte(s), &in) // whether it fits: it must not panic
	})
}
