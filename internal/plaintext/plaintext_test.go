package plaintext

import (
	"testing"
	"unicode/utf8"
)

func TestUnfinished(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int
	}{
		{"", 0}, {"a", 0}, {"ä", 0}, {"a\xc3", 1}, {"€"[:1], 1}, {"x" + "€"[:2], 2}, {"€", 0}, {"😀"[:3], 3}, {"😀"[:2], 2}, {"😀", 0},
		{"\x80", 0}, {"a\x80\x80\x80\x80", 0}, {"\xff", 0}, {"\xf0", 1},
	} {
		if got := Unfinished(tc.text); got != tc.want {
			t.Errorf("%q: %d instead of %d", tc.text, got, tc.want)
		}
		if got := Unfinished([]byte(tc.text)); got != tc.want {
			t.Errorf("%q as bytes: %d instead of %d", tc.text, got, tc.want)
		}
	}
}

func TestIsBinary(t *testing.T) {
	for text, want := range map[string]bool{"": false, "text\n": false, "ä€😀": false, "a\x00b": true, "\xff\xfe": true, "a\xc3": true} {
		if got := IsBinary(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzUnfinished(f *testing.F) {
	f.Add("a\xc3")
	f.Fuzz(func(t *testing.T, s string) {
		whole := s[:len(s)-Unfinished(s)]
		if utf8.ValidString(s) && whole != s || Unfinished(whole) != 0 && utf8.ValidString(s) {
			t.Errorf("%q is cut to %q", s, whole)
		}
	})
}
