package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// lines is what a model knows that was shown some lines of a text.
func lines(text string, from, n int) *served.File {
	return (*served.File)(nil).At(text).Shown(from, n)
}

const twins = "class A:\n    def save(self):\n        self.db.commit()\n        self.log(\"saved\")\n\nclass B:\n    def run(self):\n        if x:\n            self.db.commit()\n            self.log(\"saved\")\n"

// TestKnown: what the model knows decides where it is not certain what is meant.
func TestKnown(t *testing.T) {
	const deep = "            self.db.commit()\n            self.log(\"saved\")\n"
	swap := func(old, now string) string { return strings.Replace(twins, old, now, 1) }
	for _, tc := range []struct {
		name     string
		text     string // now
		known    *served.File
		old, new string
		want     string // or else the reason
		reason   Reason
	}{
		{"the deep twin has changed", swap("            self.log(\"saved\")", "            self.log(\"finished it\")"), shown(twins), deep, "            x\n", "", Changed},
		{"the deep twin has gone", swap(deep, "            pass\n"), shown(twins), deep, "            x\n", "", Changed},
		{"a line has come into the deep twin", swap("            self.log", "            self.more()\n            self.log"), shown(twins), deep, "            x\n", "", Changed},
		{"the shallow twin has gone", swap("        self.db.commit()\n        self.log(\"saved\")\n", "        pass\n"), shown(twins),
			"        self.db.commit()\n        self.log(\"saved\")\n", "x\n", "", Changed},
		{"one line, shallow, gone", "\tfor {\n\t\tcommit(all)\n\t}\n}\n", shown("\tcommit(all)\n\tfor {\n\t\tcommit(all)\n\t}\n}\n"), "\tcommit(all)\n", "x\n", "", Changed},
		{"one line without indentation, gone", "def f():\n    commit(all)\n", shown("def f():\n    commit(all)\ncommit(all)\n"), "commit(all)\n", "x\n", "", Changed},
		{"one line without indentation, a part now", "first_line = 10\n", shown("first_line = 1\n"), "first_line = 1", "x", "", Changed},
		{"the shallow one is meant, and there", "\tcommit(all)\n\tfor {\n\t\tcommit(all)\n\t}\n}\n", shown("\tcommit(all)\n\tfor {\n\t\tcommit(all)\n\t}\n}\n"), "\tcommit(all)\n", "x\n", "x\n\tfor {\n\t\tcommit(all)\n\t}\n}\n", ""},
		{"one of two equal ones has gone", "a\nsame(x)\nb\nother\nc\n", shown("a\nsame(x)\nb\nsame(x)\nc\n"), "same(x)\n", "x\n", "", Changed},
		{"it has moved", "b\nc\nd\nsame(x)\n", shown("same(x)\nb\nc\nd\n"), "same(x)\n", "x\n", "b\nc\nd\nx\n", ""},
		{"indentation, never shown", twins, nil, "  def run(self):\n      if x:\n", "x\n", "", Unknown},
		{"indentation, shown elsewhere", twins, lines(twins, 1, 4), "  def run(self):\n      if x:\n", "x\n", "", Unknown},
		{"indentation, shown", twins, lines(twins, 7, 2), "  def run(self):\n      if x:\n", "  def go(self):\n      if x:\n", swap("run", "go"), ""},
		{"indentation, changed above since", "# new\n" + twins, shown(twins), "  def run(self):\n      if x:\n", "  def go(self):\n      if x:\n", "# new\n" + swap("run", "go"), ""},
		{"indentation, shown after it has changed", swap("run", "go"), shown(twins).At(swap("run", "go")).Shown(6, 3), "  def go(self):\n      if x:\n", "  def to(self):\n      if x:\n", swap("run", "to"), ""},
		{"exact, never shown", twins, nil, "    def run(self):\n", "    def go(self):\n", swap("run", "go"), ""},
		{"the model's own change of minutes ago", swap(deep, "            pass\n"), shown(twins).Changed(swap(deep, "            pass\n"), false), deep, "            x\n", "", Changed},
		{"another value of the same key", "[dev]\nport_number = 8080 # x\n[prod]\nport_number = 9090\n", shown("[dev]\nport_number = 8080\n[prod]\nport_number = 9090\n"), "port_number = 8080\n", "port_number = 9090\n", "", Changed},
		{"as in another function", "def f():\n    return compute_total(a, b)\ndef g():\n    return compute_sum(a)\n", nil, "return compute_total(a)\n", "return compute_sum(a)\n", "", Missing},
		{"the top-level twin has gone", "x:\n  key:\n    name: one\n", shown("key:\n  name: one\nx:\n  key:\n    name: one\n"), "key:\n  name: one\n", "x\n", "", Changed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := Apply(tc.text, []Edit{{tc.old, tc.new, false}}, tc.known)
			if r, ok := errors.AsType[*Refusal](err); ok && r.Reason == tc.reason {
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestKnownBatch: what the model knows is of the text as the changes before have left it, be they edits or hunks of a patch.
func TestKnownBatch(t *testing.T) {
	var long strings.Builder
	for i := 1; i <= 60; i++ {
		fmt.Fprintf(&long, "    line_number(%d)\n", i)
	}
	piece := func(from, to int) string {
		return strings.Join(strings.SplitAfter(long.String(), "\n")[from-1:to], "")
	}
	for _, tc := range []struct {
		name   string
		text   string
		known  *served.File
		edits  []Edit
		want   string // or else the reason
		reason Reason
	}{
		{"the deep twin is changed by the first", twins, shown(twins), []Edit{
			{"        if x:\n            self.db.commit()\n", "        if x:\n            self.db.commit_later()\n", false},
			{"            self.db.commit()\n            self.log(\"saved\")\n", "            self.db.commit()\n            self.log(\"ran\")\n", false},
		}, "", Changed},
		{"lines that were not read move up", long.String(), lines(long.String(), 1, 30), []Edit{
			{piece(6, 25), "", false}, {"  line_number(43)\n", "  x\n", false},
		}, "", Unknown},
		{"lines that were read move up", long.String(), lines(long.String(), 1, 45), []Edit{
			{piece(6, 25), "", false}, {"  line_number(43)\n", "  x\n", false},
		}, strings.Replace(piece(1, 5)+piece(26, 60), "line_number(43)", "x", 1), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var hunks []Hunk
			for _, e := range tc.edits {
				cut := func(s string) []string {
					return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return l == "" })
				}
				hunks = append(hunks, Hunk{Old: cut(e.Old), New: cut(e.New)})
			}
			one, _, err := Apply(tc.text, tc.edits, tc.known)
			two, _, errHunks := ApplyHunks("f", tc.text, hunks, tc.known)
			for i, err := range []error{err, errHunks} {
				r, _ := errors.AsType[*Refusal](err)
				switch {
				case tc.want != "" && err == nil:
					if diff := cmp.Diff(tc.want, []string{one, two}[i]); diff != "" {
						t.Errorf("%d: (-want +got)\n%s", i, diff)
					}
				case tc.want != "" || r == nil || r.Reason != tc.reason || r.Index != 1:
					t.Errorf("%d: %q, %v", i, []string{one, two}[i], err)
				}
			}
		})
	}
}

// TestBareEnd: that the last line has no end is no change that the model would have to know.
func TestBareEnd(t *testing.T) {
	const text = "say(\"a\") \nsay(“a”)\nlast"
	got, _, err := ApplyHunks("f", text, []Hunk{{Old: []string{"say(\"a\")"}, New: []string{"x"}}}, shown(text))
	if err != nil || got != "x\nsay(“a”)\nlast" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAlready: an edit is applied already only if it was made, and is as it was left.
func TestAlready(t *testing.T) {
	const was, is = "a = 1\nb = 2\n", "a = 10\nb = 2\n"
	e := Edit{Old: "a = 1\n", New: "a = 10\n"}
	after, changes, err := Apply(was, []Edit{e}, shown(was))
	if err != nil || after != is {
		t.Fatal(after, err)
	}
	made := shown(was).Changed(is, false, changes[0].Made())
	for _, tc := range []struct {
		name, text string
		known      *served.File
		already    int // the line
	}{
		{"made", is, made, 1},
		{"something was added above", "# new\n" + is, made, 2},
		{"somebody has changed it", "a = 11\nb = 2\n", made, 0},
		{"somebody has removed it", "b = 2\n", made, 0},
		{"it was never made", is, shown(is), 0},
		{"nothing is known", is, nil, 0},
	} {
		_, changes, err := Apply(tc.text, []Edit{e}, tc.known)
		switch {
		case tc.already == 0 && err == nil:
			t.Errorf("%s: %+v", tc.name, changes)
		case tc.already > 0 && (err != nil || changes[0].How != Already || changes[0].Line != tc.already):
			t.Errorf("%s: %+v, %v", tc.name, changes, err)
		}
	}
}

// TestMadeElsewhere: an edit that was made in one place can still be made in another.
func TestMadeElsewhere(t *testing.T) {
	const (
		first  = "def first():\n    if ready(x):\n        compute_total(1)\n"
		second = "def second():\n    if ready(x):\n        compute_total(1)\n"
	)
	now := func(s string) string { return strings.Replace(s, "compute_total(1)", "compute_total(2)", 1) }
	hunk := func(after string) Hunk {
		return Hunk{After: []string{after}, Old: []string{"  if ready(x):", "      compute_total(1)"}, New: []string{"  if ready(x):", "      compute_total(2)"}}
	}
	known := shown(first + second)
	text, changes, err := ApplyHunks("f", first+second, []Hunk{hunk("def first():")}, known)
	if err != nil || text != now(first)+second {
		t.Fatal(text, err)
	}
	known = known.Changed(text, false, changes[0].Made())
	for after, want := range map[string]string{"def first():": text, "def second():": now(first) + now(second)} {
		got, _, err := ApplyHunks("f", text, []Hunk{hunk(after)}, known)
		if err != nil || got != want {
			t.Errorf("@@ %s: %q, %v", after, got, err)
		}
	}

	e := Edit{Old: "  if ready(x):\n      compute_total(1)\n", New: "  if ready(x):\n      compute_total(2)\n"}
	if text, changes, err = Apply(first, []Edit{e}, shown(first)); err != nil {
		t.Fatal(err)
	}
	known = shown(first).Changed(text, false, changes[0].Made())
	more := text + second // the user adds it, and the model reads it
	got, _, err := Apply(more, []Edit{e}, known.At(more).Shown(1, 6))
	if err != nil || got != now(first)+now(second) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSaid: a refusal shows what is in the place now, with numbers.
func TestSaid(t *testing.T) {
	now := strings.Replace(twins, "            self.log(\"saved\")", "            self.log(\"finished it\")", 1)
	_, _, err := Apply(now, []Edit{{"            self.db.commit()\n            self.log(\"saved\")\n", "x\n", false}}, shown(twins))
	want := "the old text is not there any more: since you read it, the user or a command has changed it. In its place there are now lines 7-10:\n" +
		"7|     def run(self):\n8|         if x:\n9|             self.db.commit()\n10|             self.log(\"finished it\")"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, _, err = Apply(twins, []Edit{{"  def run(self):\n", "x\n", false}}, nil)
	want = "the old text is in the file but for its indentation, in lines that you have not read: lines 7-7:\n7|     def run(self):\nIf you mean these, use them as they are"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestPlaces: a change says where it is in the text after all of them, and how it was found.
func TestPlaces(t *testing.T) {
	text := "one\n\ttwo(a, b)\nthree\nfour\nfive\n"
	got, changes, err := Apply(text, []Edit{
		{"    two(a, b)\n", "    two(a)\n    more()\n", false}, {"one\n", "", false}, {"four\nfive\n", "4\n5\n6\n", false},
	}, shown(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\ttwo(a)\n\tmore()\nthree\n4\n5\n6\n"; got != want {
		t.Errorf("%q", got)
	}
	want := [][]served.Range{{{From: 1, N: 2}}, {{From: 1, N: 0}}, {{From: 4, N: 3}}}
	for i, c := range changes {
		if diff := cmp.Diff(want[i], c.At); diff != "" {
			t.Errorf("edit %d: %s", i+1, diff)
		}
	}
	if changes[0].Note() != "indentation differed" || changes[1].Note() != "" {
		t.Errorf("%q, %q", changes[0].Note(), changes[1].Note())
	}
	_, changes, err = Apply(twins, []Edit{{"    if x:\n        self.db.commit()\n", "    if y:\n        self.db.commit()\n", false}}, shown(twins))
	if err != nil || changes[0].Note() != "indentation differed by 4" {
		t.Errorf("%+v, %v", changes, err)
	}
}

// TestKept: what a change leaves as it is keeps the characters of the file.
func TestKept(t *testing.T) {
	for _, tc := range []struct{ text, old, new, want string }{
		{"// it’s “so” – or not\n", "// it's \"so\" - or not\n", "// it's \"so\" - or else\n", "// it’s “so” – or else\n"},
		{"a\u00a0b = “c”\n", "a b = \"c\"\n", "a b = \"c\" + 'd'\n", "a\u00a0b = “c” + 'd'\n"},
		{"x = \"caf\xe9\" # n\xe9\xe8\n", "x = \"caf\uFFFD\" # n\uFFFD\n", "y = \"caf\uFFFD\" # n\uFFFD!\n", "y = \"caf\xe9\" # n\xe9\xe8!\n"},
		{"x\ny = “a”\n", "x\ny = \"a\"\n", "x\nz\ny = \"a\"; q\n", "x\nz\ny = “a”; q\n"},
	} {
		got, changes, err := Apply(tc.text, []Edit{{tc.old, tc.new, false}}, shown(tc.text))
		if err != nil || got != tc.want || changes[0].How != Quotes {
			t.Errorf("%q: %q, %+v, %v", tc.text, got, changes, err)
		}
	}
}
