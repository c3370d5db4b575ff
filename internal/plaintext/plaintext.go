// Package plaintext tells text from other data, and whole characters from parts of them.
package plaintext

import (
	"strings"
	"unicode/utf8"
)

// IsBinary reports whether s is not text: it is not UTF-8, or has a NUL.
func IsBinary(s string) bool { return strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) }

// Unfinished returns how many bytes at the end of s begin a character that is not complete.
// Bytes that begin no character count as complete.
func Unfinished[T string | []byte](s T) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if !utf8.RuneStart(s[len(s)-n]) {
			continue
		}
		if utf8.FullRuneInString(string(s[len(s)-n:])) {
			return 0
		}
		return n
	}
	return 0
}
