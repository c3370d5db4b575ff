package store

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words of a snippet before and after the one that was found, and the bytes in which they are
// looked for.
const (
	snippetBefore = 6
	snippetAfter  = 12
	snippetBytes  = 400
)

// around returns the text around a place, in one line.
func around(text string, at int) string {
	before, after := text[:at], text[at:]
	left, right := before, cut(after, snippetBytes)
	if n := len(left) - snippetBytes; n > 0 {
		for n < len(left) && !utf8.RuneStart(left[n]) {
			n++
		}
		left = left[n:]
	}
	head, tail := strings.Fields(left), strings.Fields(right)
	n, m := max(0, len(head)-snippetBefore), min(len(tail), snippetAfter)
	var b strings.Builder
	if n > 0 || len(left) < len(before) {
		b.WriteString("…")
	}
	b.WriteString(strings.Join(head[n:], " "))
	if n < len(head) && strings.TrimRightFunc(left, unicode.IsSpace) != left {
		b.WriteByte(' ')
	}
	b.WriteString(strings.Join(tail[:m], " "))
	if m < len(tail) || len(right) < len(after) {
		b.WriteString("…")
	}
	return b.String()
}

// locate returns where the first word of a text is that begins like one of words, or that contains
// one of them in a script without spaces. It takes time in proportion to the length of the text.
func locate(text string, words []string) (at int, ok bool) {
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		if separates(r) {
			at += n
			continue
		}
		for _, w := range words {
			if begins(text[at:], w) {
				return at, true
			}
		}
		end := strings.IndexFunc(text[at:], separates)
		if end < 0 {
			break
		}
		at += end
	}
	for _, w := range words {
		if strings.ContainsFunc(w, unspaced) {
			if i := strings.Index(text, w); i >= 0 {
				return i, true
			}
		}
	}
	return 0, false
}

// begins reports whether a text begins with a word, ignoring letter case and accents. Any accented
// Latin letter counts as any letter without an accent: the index has found one of these, and
// another match does no harm.
func begins(text, word string) bool {
	for _, want := range word {
		if unicode.Is(unicode.M, want) {
			continue
		}
		got, n := utf8.DecodeRuneInString(text)
		for n > 0 && unicode.Is(unicode.M, got) {
			text = text[n:]
			got, n = utf8.DecodeRuneInString(text)
		}
		if n == 0 || unicode.ToLower(got) != unicode.ToLower(want) && !accented(got, want) && !accented(want, got) {
			return false
		}
		text = text[n:]
	}
	return true
}

// accented reports whether a may be the letter b with an accent.
func accented(a, b rune) bool {
	return a >= utf8.RuneSelf && b < utf8.RuneSelf && unicode.Is(unicode.Latin, a) && unicode.IsLetter(b)
}
