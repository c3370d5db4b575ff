package prose

import (
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\tc": "a b c", " \u202ea ": "a", "0123456789": "0123456789", "01234567890": "012345678…", "a\xffb": "a\uFFFDb",
	} {
		if got := OneLine(text, 10); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestFences: text cannot leave the quotes that it is put between.
func TestFences(t *testing.T) {
	for _, text := range []string{"a", "`", "``", "a```b", "````"} {
		in := Inline(text)
		fence := in[:len(in)-len(strings.TrimLeft(in, "`"))]
		if inner := strings.TrimSuffix(strings.TrimPrefix(in, fence), fence); strings.Contains(inner, fence) || !strings.Contains(inner, text) {
			t.Errorf("%q: %q", text, in)
		}
		block := Code("go", text)
		fence, _, _ = strings.Cut(block, "go")
		if strings.Count(block, fence) != 2 {
			t.Errorf("%q: %q", text, block)
		}
	}
}

func TestHead(t *testing.T) {
	for _, test := range []struct {
		text         string
		lines, bytes int
		want         string
		more         bool
	}{
		{"a\nb\nc", 3, 10, "a\nb\nc", false},
		{"a\nb\nc", 2, 10, "a\nb\n", true},
		{"a\nbb\n", 9, 4, "a\n", true},
		{"éé\n", 9, 3, "é", true},
		{"", 1, 1, "", false},
	} {
		if got, more := Head(test.text, test.lines, test.bytes); got != test.want || more != test.more {
			t.Errorf("%q: %q, %t", test.text, got, more)
		}
	}
}

func TestWords(t *testing.T) {
	for _, test := range [][2]string{
		{Count(1, "file"), "1 file"}, {Count(2, "file"), "2 files"},
		{Size(1023), "1023 bytes"}, {Size(1 << 10), "1.0 KiB"}, {Size(3 << 19), "1.5 MiB"},
		{Sentence("there is no file."), "There is no file"}, {Sentence("main.go: no"), "main.go: no"}, {Sentence(""), ""},
	} {
		if test[0] != test[1] {
			t.Errorf("%q instead of %q", test[0], test[1])
		}
	}
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\nb": 2} {
		if got := Lines(text); got != want {
			t.Errorf("%q has %d lines", text, got)
		}
	}
}
