package tui

import (
	"strings"
	"testing"
)

// TestFilled: spaces are written where characters would be erased, also if a command comes in pieces; all else stays.
func TestFilled(t *testing.T) {
	for in, want := range map[string]string{
		"":                                              "",
		"plain text":                                    "plain text",
		"\x1b[48;5;22mx\x1b[3X\x1b[m":                   "\x1b[48;5;22mx\x1b7   \x1b8\x1b[m",
		"\x1b[41m\x1b[1X\x1b[2Xy":                       "\x1b[41m\x1b7 \x1b8\x1b7  \x1b8y",
		"\x1b[3X\x1b[107m\x1b[X\x1b[0X":                 "\x1b[3X\x1b[107m\x1b[X\x1b[0X",
		"\x1b[41;38;5;49m\x1b[2X\x1b[49m\x1b[2X":        "\x1b[41;38;5;49m\x1b7  \x1b8\x1b[49m\x1b[2X",
		"\x1b[48;2;0;0;0m\x1b[2X\x1b[1;0m\x1b[2X":       "\x1b[48;2;0;0;0m\x1b7  \x1b8\x1b[1;0m\x1b[2X",
		"\x1b[38;2;48;41;0m\x1b[2X\x1b[58:5:41m\x1b[2X": "\x1b[38;2;48;41;0m\x1b[2X\x1b[58:5:41m\x1b[2X",
		"\x1b[41m\x1b[99999X\x1b[3;4X\x1b[?25h":         "\x1b[41m\x1b[99999X\x1b[3;4X\x1b[?25h",
		"\x1b[41m\x1b]0;title [3X\x07\x1bM3X":           "\x1b[41m\x1b]0;title [3X\x07\x1bM3X",
		"\x1b[41m\x1b\x1b[2Xé\x1b[3b\x1b7":              "\x1b[41m\x1b\x1b7  \x1b8é\x1b[3b\x1b7",
	} {
		for _, piece := range []int{1, 2, 3, 1000} {
			var f filled
			var got strings.Builder
			for rest := []byte(in); len(rest) > 0; {
				n := min(piece, len(rest))
				got.Write(f.fill(nil, append(f.rest, rest[:n]...)))
				rest = rest[n:]
			}
			if got.String() != want || len(f.rest) > 0 {
				t.Errorf("%q in pieces of %d: %q and %q, want %q", in, piece, got.String(), f.rest, want)
			}
		}
	}
}

func FuzzFilled(f *testing.F) {
	f.Add([]byte("a\x1b[37Xb"), 2)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = max(0, min(cut, len(data)))
		var whole, parts filled
		one := whole.fill(nil, data)
		two := parts.fill(nil, data[:cut])
		two = parts.fill(two, append(parts.rest, data[cut:]...))
		if string(one) != string(two) || string(whole.rest) != string(parts.rest) {
			t.Errorf("%q, %q", one, two)
		}
	})
}
