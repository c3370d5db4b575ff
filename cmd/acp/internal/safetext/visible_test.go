package safetext

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestVisible: what nobody sees is written out, as in the table that the web page is held to as well.
func TestVisible(t *testing.T) {
	data, err := os.ReadFile("testdata/visible.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct{ In, Visible, Line, Code string }
	if err := json.Unmarshal(data, &table); err != nil || len(table) < 50 {
		t.Fatalf("%d rows, %v", len(table), err)
	}
	for _, row := range table {
		if v, l, c := Visible(row.In), VisibleLine(row.In, 100), VisibleCode(row.In); v != row.Visible || l != row.Line || c != row.Code {
			t.Errorf("%q: %q, %q, %q, want %q, %q, %q", row.In, v, l, c, row.Visible, row.Line, row.Code)
		}
	}
	if got := VisibleLine("a\u200b  bcd", 9); got != `a\u{200b…` {
		t.Errorf("%q", got)
	}
	if got := Visible("a\xffb\xc0"); got != `a\x{ff}b\x{c0}` {
		t.Errorf("%q", got)
	}
}

// TestVisibleAll: of all characters, those stay that have a look, and what terminals are given of a text is all of it.
func TestVisibleAll(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		in := "a" + string(r) + "b"
		got := Visible(in)
		if got == in && r != '\n' && r != '\t' && r != ' ' && (unicode.IsSpace(r) || unicode.IsControl(r) || invisible(r)) {
			t.Errorf("%U stays", r)
		}
		if safe := Text(got); safe != got {
			t.Errorf("%U: of %q a terminal is given %q", r, got, safe)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("./build.sh\u200b \n")
	f.Add("x" + strings.Repeat("\u0301", 20) + "\xff")
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		if !utf8.ValidString(v) || Text(v) != v || v != strings.Trim(v, blanks) {
			t.Errorf("%q becomes %q", s, v)
		}
		if l := VisibleLine(s, 1<<30); strings.ContainsAny(l, "\n\t") || Line(l, 1<<30) == "" && s != "" {
			t.Errorf("%q becomes the line %q", s, l)
		}
	})
}
