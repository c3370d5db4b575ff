package patch

import (
	"fmt"
	"strings"
)

// escapes are the control characters that have a letter in git's quoting.
const escapes = "\a\b\t\n\v\f\r\"\\"

const escapeLetters = `abtnvfr"\`

// quote writes a path the way git does: in quotes, with escapes, if it has
// control characters, quotes, backslashes or bytes beyond ASCII.
func quote(path string) string {
	odd := strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
	if odd < 0 {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		c := path[i]
		switch j := strings.IndexByte(escapes, c); {
		case j >= 0:
			b.WriteByte('\\')
			b.WriteByte(escapeLetters[j])
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unquote reads a path that quote wrote, from the beginning of s, and returns
// what follows it.
func unquote(s string) (path, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(s):
			return "", "", false
		default:
			i++
			if j := strings.IndexByte(escapeLetters, s[i]); j >= 0 {
				b.WriteByte(escapes[j])
				continue
			}
			if i+2 >= len(s) || s[i] > '3' || !octal(s[i]) || !octal(s[i+1]) || !octal(s[i+2]) {
				return "", "", false
			}
			b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
			i += 2
		}
	}
	return "", "", false
}

func octal(c byte) bool { return '0' <= c && c <= '7' }
