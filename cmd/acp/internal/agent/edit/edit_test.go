package edit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// shown is what a model knows that was shown all of a file.
func shown(text string) *served.File {
	return (*served.File)(nil).At(text).Shown(1, strings.Count(text, "\n")+1)
}

func TestApply(t *testing.T) {
	for _, tc := range []struct {
		name     string
		text     string
		old, new string
		all      bool
		want     string
		how      How
		line     int
	}{
		{name: "exact", text: "a\nb\nc\n", old: "b", new: "x", want: "a\nx\nc\n", how: Exact, line: 2},
		{name: "within a line", text: "if a == b {\n", old: "a == b", new: "a != b", want: "if a != b {\n", how: Exact, line: 1},
		{name: "several lines", text: "a\nb\nc\n", old: "a\nb\n", new: "x\n", want: "x\nc\n", how: Exact, line: 1},
		{name: "removed", text: "a\nb\nc\n", old: "b\n", new: "", want: "a\nc\n", how: Exact, line: 2},
		{name: "everywhere", text: "a\nb\na\n", old: "a", new: "x", all: true, want: "x\nb\nx\n", how: Exact, line: 1},
		{name: "overlapping places", text: "aaa\n", old: "aa", new: "x", all: true, want: "xa\n", how: Exact, line: 1},
		{name: "no end of the last line", text: "a\nb", old: "b\n", new: "x\n", want: "a\nx", how: LineEndings, line: 2},
		{name: "no end, everything", text: "a", old: "a\n", new: "b\nc\n", want: "b\nc", how: LineEndings, line: 1},
		{name: "CRLF, one line", text: "a\r\nb\r\n", old: "a", new: "x\ny", want: "x\r\ny\r\nb\r\n", how: Exact, line: 1},
		{name: "CRLF in the file", text: "a\r\nb\r\nc\r\n", old: "a\nb", new: "x\ny", want: "x\r\ny\r\nc\r\n", how: LineEndings, line: 1},
		{name: "CRLF in the file, ended", text: "a\r\nb\r\nc\r\n", old: "b\n", new: "x\n", want: "a\r\nx\r\nc\r\n", how: LineEndings, line: 2},
		{name: "CRLF in the old text", text: "a\nb\nc\n", old: "a\r\nb\r\n", new: "x\r\ny\r\n", want: "x\ny\nc\n", how: LineEndings, line: 1},
		{name: "CRLF as in the file", text: "a\r\nb\r\n", old: "a\r\n", new: "x\r\n", want: "x\r\nb\r\n", how: Exact, line: 1},
		{name: "CRLF in the file and the old text only", text: "a\r\nb\r\n", old: "a\r\n", new: "x\n", want: "x\r\nb\r\n", how: Exact, line: 1},
		{name: "mixed ends", text: "a\r\nb\nc\n", old: "a\nb\n", new: "x\ny\n", want: "x\r\ny\r\nc\n", how: LineEndings, line: 1},
		{name: "byte-order mark", text: "\ufeffa\nb\n", old: "a\n", new: "x\n", want: "\ufeffx\nb\n", how: Exact, line: 1},
		{name: "trailing blanks in the file", text: "a  \nb\t\nc\n", old: "a\nb\n", new: "a\nx\n", want: "a  \nx\nc\n", how: Trailing, line: 1},
		{name: "trailing blanks in the old text", text: "a\nb\nc\n", old: "a \nb\n", new: "a \nx\n", want: "a\nx\nc\n", how: Trailing, line: 1},
		{name: "trailing blanks, last line", text: "a\nb", old: "a \nb\n", new: "a \nx\n", want: "a\nx", how: Trailing, line: 1},
		{name: "blank line with blanks", text: "a\n\t\nb\n", old: "a\n\nb", new: "a\n\nx", want: "a\n\t\nx\n", how: Trailing, line: 1},
		{name: "indentation missing", text: "f {\n\t\talpha()\n\t\tbeta()\n}\n", old: "alpha()\nbeta()\n", new: "alpha()\n\tx\nbeta()\n", want: "f {\n\t\talpha()\n\t\t\tx\n\t\tbeta()\n}\n", how: Indentation, line: 2},
		{name: "indentation more", text: "first()\nsecond()\nb\n", old: "\t\tfirst()\n\t\tsecond()\n", new: "\t\tfirst()\n\t\t\tx\n\t\tsecond()\n", want: "first()\n\tx\nsecond()\nb\n", how: Indentation, line: 1},
		{name: "four blanks for a tab", text: "f {\n\tif a {\n\t\tb()\n\t}\n}\n", old: "    if a {\n        b()\n    }\n", new: "    if a {\n        b()\n        c()\n    }\n", want: "f {\n\tif a {\n\t\tb()\n\t\tc()\n\t}\n}\n", how: Indentation, line: 2},
		{name: "two blanks for a tab", text: "f {\n\tif a {\n\t\tb()\n\t}\n}\n", old: "  if a {\n    b()\n  }\n", new: "  if a {\n    for {\n      b()\n    }\n  }\n", want: "f {\n\tif a {\n\t\tfor {\n\t\t\tb()\n\t\t}\n\t}\n}\n", how: Indentation, line: 2},
		{name: "a tab for two blanks", text: "f {\n  if a {\n    b()\n  }\n}\n", old: "\tif a {\n\t\tb()\n\t}\n", new: "\tif a {\n\t\tb()\n\t\t\tc()\n\t}\n", want: "f {\n  if a {\n    b()\n      c()\n  }\n}\n", how: Indentation, line: 2},
		{name: "one line, two blanks for a tab", text: "f {\n\ta()\n}\n", old: "  a()\n", new: "  a()\n    b()\n", want: "f {\n\ta()\n\t\tb()\n}\n", how: Indentation, line: 2},
		{name: "lines before a line, all without indentation", text: "f {\n\t\ta()\n}\n", old: "a()\n", new: "x {\n\ty()\n}\n\na()\n", want: "f {\n\t\tx {\n\t\t\ty()\n\t\t}\n\n\t\ta()\n}\n", how: Exact, line: 2},
		{name: "lines after a part of a line, as they are", text: "f {\n\ta()\n}\n", old: "a()", new: "a()\n}\n\ng {\n\tb()", want: "f {\n\ta()\n}\n\ng {\n\tb()\n}\n", how: Exact, line: 2},
		{name: "trailing blanks that the file lacks", text: "a\nb\n", old: "a \nb\n", new: "a \nx \nb\n", want: "a\nx\nb\n", how: Trailing, line: 1},
		{name: "quotes", text: "// it’s “so” – or not\nx\n", old: "// it's \"so\" - or not\n", new: "// it's \"so\" - or not\ny\n", want: "// it’s “so” – or not\ny\nx\n", how: Quotes, line: 1},
		{name: "no-break blank", text: "a\u00a0b = 1\n", old: "a b = 1\n", new: "a b = 2\n", want: "a\u00a0b = 2\n", how: Quotes, line: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changes, err := Apply(tc.text, []Edit{{tc.old, tc.new, tc.all}}, shown(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if changes[0].How != tc.how || changes[0].Line != tc.line {
				t.Errorf("%+v, want %s at %d", changes[0], tc.how, tc.line)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const text = "package a\n\nfunc f() {\n\tif x == 1 {\n\t\treturn one\n\t}\n}\n\nfunc g() {\n\treturn one\n}\n"
	for _, tc := range []struct {
		name  string
		text  string
		edits []Edit
		want  string
	}{
		{"empty", text, []Edit{{"", "x", false}}, "the old text is empty"},
		{"unchanged", text, []Edit{{"f", "f", false}}, "the old text is the same as the new one"},
		{"twice", text, []Edit{{"return one", "return two", false}}, "the old text is in the file 2 times, at lines 5, 10: give more of what surrounds it"},
		{"twice, overlapping", "a\na\na\n", []Edit{{"a\na\n", "x\n", false}}, "the old text is in the file 2 times, at lines 1, 2: give more of what surrounds it"},
		{"twice but for blanks", "\tcall(one)\n\t}\n\tcall(one)\n\t}\n", []Edit{{"call(one) \n}\n", "x\n", false}}, "the old text is in the file 2 times, at lines 1, 3: give more of what surrounds it (it is there but for its indentation)"},
		{"missing", text, []Edit{{"zzz", "x", false}}, "the old text is not in the file, nor anything like it"},
		{"second of two", text, []Edit{{"package a", "package b", false}, {"zzz", "x", false}}, "edit 2 of 2: the old text is not in the file, nor anything like it"},
		{"near", text, []Edit{{"\tif x == 2 {\n\t\treturn one\n", "x", false}}, "the old text is not in the file. The nearest place is lines 4-5:\n4| \tif x == 1 {\n5| \t\treturn one"},
		{"near, blanks", "a(b, c)\n  d\n", []Edit{{"a(b,  c)\nd\n", "x", false}}, "the old text is not in the file. The nearest place is lines 1-2:\n1| a(b, c)\n2| ··d"},
		{"indentation differs within", "if a:\n    b()\n    c()\n", []Edit{{"b()\n  c()\n", "x\n", false}}, "the old text is not in the file. The nearest place is lines 2-3:\n2| ····b()\n3| ····c()"},
		{"only blank lines", "a\n\n\nb\n", []Edit{{"\n \n", "x", false}}, "the old text is not in the file, nor anything like it"},
		{"shortened, which proves nothing", "alpha beta\ngamma\n", []Edit{{"alpha betax\ngamma\n", "gamma\n", false}}, "the old text is not in the file. The nearest place is lines 1-2:\n1| alpha beta\n2| gamma"},
		{"applied, but too short", "}\nb\n", []Edit{{"zz", "}", false}}, "the old text is not in the file, nor anything like it"},
		{"too short to be shifted", "f {\n\t\t\tx = 1\n}\n", []Edit{{"\tx = 1 \n", "\tx = 2\n", false}}, "the old text is not in the file. The nearest place is lines 2-2:\n2| →→→x = 1"},
		{"empty file", "", []Edit{{"a", "b", false}}, "the old text is not in the file, nor anything like it"},
		{"shifted beyond the edge", "alpha\nbeta\n", []Edit{{"\talpha\n\tbeta\n", "\talpha\nx\n\tbeta\n", false}}, "the old text is not in the file. The nearest place is lines 1-2:\n1| alpha\n2| beta"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := Apply(tc.text, tc.edits, shown(tc.text))
			r, ok := errors.AsType[*Refusal](err)
			if !ok {
				t.Fatalf("no refusal: %v", err)
			}
			if diff := cmp.Diff(tc.want, r.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestNone: if one edit is refused, none is made; an edit sees what those before it did.
func TestNone(t *testing.T) {
	if got, _, err := Apply("a\n", []Edit{{"a", "b", false}, {"c", "d", false}}, nil); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	got, _, err := Apply("a\n", []Edit{{"a", "b", false}, {"b", "c", false}}, nil)
	if err != nil || got != "c\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNearBounds: a region that is shown is bounded.
func TestNearBounds(t *testing.T) {
	line := strings.Repeat("long line ", 100)
	text := strings.Repeat(line+"\n", 100)
	_, _, err := Apply(text, []Edit{{strings.Repeat(line+"\n", 60) + "x", "y", false}}, nil)
	r, ok := errors.AsType[*Refusal](err)
	if !ok || r.Near == nil {
		t.Fatal(err)
	}
	if len(r.Near.Lines) != maxNear || !r.Near.Cut || len(r.Near.Lines[0]) > maxNearLine+len("…") || !strings.HasSuffix(r.Error(), "(and more)") {
		t.Errorf("%d lines, cut %t, %d bytes", len(r.Near.Lines), r.Near.Cut, len(r.Near.Lines[0]))
	}
}

// FuzzApply: an edit that is made changes what the old text is taken for, and nothing
// else: all lines before and after stay.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x")
	f.Add("a\r\n\tb \r\n", "  b\n", "  x\n\ty")
	f.Add("a", "a\n", "b\n")
	f.Fuzz(func(t *testing.T, text, old, now string) {
		got, changes, err := Apply(text, []Edit{{old, now, false}}, shown(text))
		if err != nil {
			if _, ok := errors.AsType[*Refusal](err); !ok || err.Error() == "" {
				t.Fatalf("no refusal: %v", err)
			}
			return
		}
		c := changes[0]
		if c.How == Already {
			if got != text {
				t.Fatal("changed although it was applied already")
			}
			return
		}
		if c.How == Exact && strings.Count(text, old) != 1 {
			t.Fatalf("%q is there %d times", old, strings.Count(text, old))
		}
		before := strings.SplitAfter(text, "\n")[:c.Line-1]
		if !strings.HasPrefix(got, strings.Join(before, "")) {
			t.Fatalf("the text before line %d has changed:\n%q\n%q", c.Line, text, got)
		}
	})
}
