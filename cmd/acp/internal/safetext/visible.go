package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Visible returns s with everything written out that nobody sees, so that two texts that look the same are the same: for
// whatever a user decides about, such as a command. A character that is not seen, that moves or reorders others, or that
// looks like a space, becomes its number, as in \u{200b}; so does a blank at the beginning or the end of the text, and a
// byte that is not UTF-8, as \x{ff}. Line feeds and tabs inside of the text stay, and nothing is dropped. The page of
// the gateway has the same function, in text.ts, held to the same table.
func Visible(s string) string {
	from := len(s) - len(strings.TrimLeft(s, blanks))
	to := len(strings.TrimRight(s, blanks))
	if from >= to {
		return written(s, "")
	}
	return written(s[:from], "") + written(s[from:to], "\n\t ") + written(s[to:], "")
}

// VisibleLine is as [Visible] for what is one line, such as a path: line feeds and tabs are written out as well. It has at
// most max cells, and "…" in place of what does not fit.
func VisibleLine(s string, max int) string {
	s = strings.NewReplacer("\n", `\u{a}`, "\t", `\u{9}`).Replace(Visible(s))
	switch {
	case max <= 0:
		return ""
	case len(s) <= max || ansi.StringWidth(s) <= max:
		return s
	}
	return ansi.Truncate(s, max, "…")
}

// VisibleCode is as [Visible] for what has lines of its own, such as a change: blanks at its ends stay, and so does a
// carriage return at the end of a line.
func VisibleCode(s string) string { return written(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t ") }

const blanks = " \t\n"

// written writes characters out, except for those in keep. Without keep, these are all: the text is blank.
func written(s, keep string) string {
	var b strings.Builder
	marks, last := 0, 0
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		form := ""
		switch {
		case r == utf8.RuneError && n == 1:
			form = `\x{` + strconv.FormatUint(uint64(s[i]), 16) + "}"
		case keep != "" && r < utf8.RuneSelf && strings.ContainsRune(keep, r):
		case keep == "", unseen(r), marks > maxMarks:
			form = `\u{` + strconv.FormatUint(uint64(r), 16) + "}"
		}
		if form != "" {
			b.WriteString(s[last:i])
			b.WriteString(form)
			last = i + n
		}
		i += n
	}
	if last == 0 {
		return s
	}
	return b.String() + s[last:]
}

// unseen reports whether a character has no look of its own, or that of a space. A space itself, which is one, is not.
func unseen(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r == 0x2800, r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef: // blank Braille; characters that are none
		return true
	}
	return unicode.In(r, unicode.C, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
