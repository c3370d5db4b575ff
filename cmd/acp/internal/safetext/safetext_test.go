package safetext_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a b\n\tc", "a b\n\tc"},
		{"unicode", "héllo 世界 🙂 é", "héllo 世界 🙂 é"},
		{"newlines", "a\r\nb\rc\u2028d", "a\nb\nc\nd"},
		{"csi", "a\x1b[31mb\x1b[0m\x1b[2J\x1b[?1049hc", "abc"},
		{"csi 8 bit", "a\u009b31mb", "ab"},
		{"csi cut", "a\x1b[31", "a"},
		{"csi broken", "a\x1b[3\nb", "a\nb"},
		{"osc bel", "a\x1b]0;title\ab", "ab"},
		{"osc st", "a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"},
		{"osc 8 bit", "a\u009d52;c;AAAA\u009cb", "ab"},
		{"osc open", "a\x1b]0;hidden\nshown", "a\nshown"},
		{"osc ended by escape", "a\x1b]0;x\x1b[31mb", "ab"},
		{"dcs", "a\x1bPq#0\n~~\x1b\\b", "ab"},
		{"apc pm sos", "a\x1b_x\x1b\\b\x1b^y\x1b\\c\x1bXz\x1b\\d", "abcd"},
		{"bell in dcs", "a\x1bPx\ay\x1b\\b", "ab"},
		{"can", "a\x1b]0;x\x18b", "ab"},
		{"charset", "a\x1b(0b\x1b#8c\x1b=d\x1bce", "abcde"},
		{"lone escape", "a\x1b", "a"},
		{"escape before newline", "a\x1b\nb", "a\nb"},
		{"controls", "a\x00\x01\a\b\v\f\x7fb", "ab"},
		{"invalid", "a\xffb\x9bc", "a\ufffdb\ufffdc"},
		{"bidi", "a\u202eb\u2066c\u2069\u200fd\u061c", "abcd"},
		{"zero width", "a\u200bb\u2060c\ufeffd\u00ade", "abcde"},
		{"tags", "a\U000e0041\U000e0042\U000e007fb", "ab"},
		{"emoji kept", "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3"},
		{"joiner in latin", "a\u200db\u200cc", "abc"},
		{"joiner in persian", "می\u200cخواهم", "می\u200cخواهم"},
		{"selectors that carry data", "x\ufe00\ufe01\ufe02\U000e0101\U000e0102", "x\ufe00"},
		{"fillers", "a\u3164\u115fb", "ab"},
		{"marks", "a" + strings.Repeat("\u0301", 100) + "b", "a" + strings.Repeat("\u0301", 8) + "b"},
		{"noncharacter", "a\uffffb", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := safetext.Text(c.in); got != c.want {
				t.Errorf("Text(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{" a \n\t b\r\n", 10, "a b"},
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"世界世界", 5, "世界…"},
		{"世界", 3, "世…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"\x1b]0;x\aabc", 3, "abc"},
		{strings.Repeat("\x00", 1<<20) + "x", 9, "…"},
		{"ab" + strings.Repeat("\x00", 1<<20) + "x", 2, "a…"},
	} {
		if got := safetext.Line(c.in, c.max); got != c.want {
			t.Errorf("Line(%.20q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

func TestSGR(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a\nb", "a\nb"},
		{"colour", "\x1b[31ma\x1b[0mb", "\x1b[0;31ma\x1b[mb"},
		{"carried over lines", "\x1b[1;32ma\nb\x1b[mc", "\x1b[0;1;32ma\x1b[m\n\x1b[0;1;32mb\x1b[mc"},
		{"not ended", "\x1b[4ma", "\x1b[0;4ma\x1b[m"},
		{"palette and true colour", "\x1b[38;5;200;48;2;1;2;3ma", "\x1b[0;38;5;200;48;2;1;2;3ma\x1b[m"},
		{"colons", "\x1b[38:2::1:2:3ma\x1b[4:3mb", "\x1b[0;38;2;1;2;3ma\x1b[0;4;38;2;1;2;3mb\x1b[m"},
		{"bright", "\x1b[92;101ma", "\x1b[0;92;101ma\x1b[m"},
		{"conceal and blink", "\x1b[8;5ma", "a"},
		{"private", "\x1b[>4;1ma\x1b[?31mb", "ab"},
		{"broken colour", "\x1b[38;5ma\x1b[38;2;1mb\x1b[38;5;999mc", "abc"},
		{"others", "\x1b[2J\x1b[10;10Ha\x1b]0;x\ab\x1b(0", "ab"},
		{"progress", "10%\r20%\r100%\n", "100%\n"},
		{"overwritten in part", "abcdef\rXY", "XYcdef"},
		{"erase", "abcdef\r\x1b[KXY", "XY"},
		{"erase all", "abc\x1b[2Kd", "   d"},
		{"backspace", "abc\b\bX", "aXc"},
		{"move", "a\x1b[3Cb\x1b[Gc\x1b[99Dd", "d   b"},
		{"move far", "a\x1b[999999999Cb", "a" + strings.Repeat(" ", 4094) + "b"},
		{"crlf", "a\r\nb", "a\nb"},
		{"marks", "e\u0301\rX", "X"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := safetext.SGR(c.in); got != c.want {
				t.Errorf("SGR(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestSGRLongLine(t *testing.T) {
	in := strings.Repeat("0123456789", 1000) + "\x1b[31mred"
	if got := safetext.Strip(safetext.SGR(in)); got != strings.Repeat("0123456789", 1000)+"red" {
		t.Errorf("a long line is different: %d bytes", len(got))
	}
}

var wellFormed = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// safe reports what must never be in text for a terminal.
func safe(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%q gives invalid %q", in, out)
	}
	for _, r := range out {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f || r == 0x200b || r == 0x2028 {
			t.Fatalf("%q gives %q, which holds %U", in, out, r)
		}
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[31mred\x1b[0m", "\x1b]0;t\a", "\x1bP\x1b\\", "a\u0301\u200d\ufe0f", "\u009b1m", "\r\b\x1b[5C\x1b[K", "世\r界\x1b[38:2::1:2:3m"} {
		f.Add(s)
	}
}

func FuzzText(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		out := safetext.Text(s)
		safe(t, s, out)
		if again := safetext.Text(out); again != out {
			t.Errorf("%q gives %q and then %q", s, out, again)
		}
	})
}

func FuzzLine(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, max := range []int{0, 1, 2, 7, 80} {
			out := safetext.Line(s, max)
			safe(t, s, out)
			if strings.ContainsAny(out, "\n\t") {
				t.Errorf("%q gives %q", s, out)
			}
			if w := ansi.StringWidth(out); w > max {
				t.Errorf("%q gives %q of %d cells, not %d", s, out, w, max)
			}
		}
	})
}

func FuzzSGR(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		out := safetext.SGR(s)
		safe(t, s, wellFormed.ReplaceAllString(out, ""))
		for line := range strings.SplitSeq(out, "\n") {
			if all := wellFormed.FindAllString(line, -1); len(all) > 0 && all[len(all)-1] != "\x1b[m" {
				t.Errorf("%q gives the line %q, which is not reset", s, line)
			}
		}
	})
}
