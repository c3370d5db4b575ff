package pattern

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sharedMost is how much is shown of what two texts begin with alike, in bytes.
const sharedMost = 40

// apart spells two texts that differ the same way, whatever way they were sent, and
// shortens them to where they differ.
func apart(a, b string) (shortA, shortB string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from, more := same-sharedMost/2, "…"
	if same <= sharedMost {
		from, more = 0, ""
	}
	for from > 0 && !utf8.RuneStart(a[from]) {
		from--
	}
	return more + spell(a[from:]), more + spell(b[from:])
}

// spell writes a text as JSON in which everything can be seen, shortened.
func spell(s string) string {
	more := ""
	if len(s) > shortLen {
		s, more = strings.ToValidUTF8(s[:shortLen], ""), "…"
	}
	var out strings.Builder
	for _, c := range Quote(s) {
		switch {
		case unicode.IsPrint(c):
			out.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String() + more
}
