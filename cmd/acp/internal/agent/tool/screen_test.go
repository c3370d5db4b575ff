package tool

import (
	"strings"
	"testing"
)

// TestPlain: what a language model gets of an output is what a screen has in the end.
func TestPlain(t *testing.T) {
	bar := ""
	for i := range 101 {
		bar += "\r[" + strings.Repeat("#", i) + strings.Repeat(" ", 100-i) + "] " + strings.Repeat("x", i%7)
	}
	for in, want := range map[string]string{
		"":                       "",
		"a\nb\n":                 "a\nb\n",
		"a\r\nb\r\n":             "a\nb\n",
		"a\tb":                   "a\tb",
		"\x1b[1;31mred\x1b[0m x": "red x",
		"10 %\r20 %\rdone\n":     "done\n",
		"a long line\rno\n":      "no\n",
		"done\r":                 "done",
		"wait\r\x1b[Kok\n":       "ok\n",
		"|\b/\b-\b ok\n":         " ok\n",
		bar + "\nend\n":          "[" + strings.Repeat("#", 100) + "] xx\nend\n",
		"\x1b]0;title\atext":     "text",
		"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\ x": "link x",
		"\x1bP1$r0m\x1b\\x":                          "x",
		"\x1b(Bx\x1b=y\x1b>":                         "xy",
		"bell\a and null\x00\x7f":                    "bell and null",
		"a 1\nb 1\n\x1b[2A\x1b[2Ka 2\n\x1b[2Kb 2\n":  "a 2\nb 2\n",
		"a 1\nb 1\n\x1b[2A\x1b[2Ka 2\x1b[2B\nend\n":  "a 2\nb 1\n\nend\n",
		"one\n\x1b[2J\x1b[Htwo\n":                    "one\ntwo\n",
		"cut off \x1b[3":                             "cut off ",
		"cut off \x1b":                               "cut off ",
		"\x1b]no end\nof it":                         "no end\nof it",
		"\x1b[99999999999999999999Bx":                "\nx",
		"é\b!":                                       "!",
		"\b\b\x1b[9A\x1b[J":                          "",
	} {
		if got := onScreen(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[1mb\x1b[0m\r\n\bc\x1b]0;t\a\x1b[3A\x1b[J")
	f.Fuzz(func(t *testing.T, s string) {
		got := onScreen(s)
		if i := strings.IndexFunc(got, isControl); i >= 0 {
			t.Errorf("%q is %q", s, got)
		}
		if len(got) > len(s)+strings.Count(s, "B")+strings.Count(s, "E")+strings.Count(s, "H")+strings.Count(s, "f")+strings.Count(s, "J") {
			t.Errorf("%q grows to %q", s, got)
		}
	})
}
