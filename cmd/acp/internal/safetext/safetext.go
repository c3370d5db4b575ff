// Package safetext makes text that others wrote safe to print on a terminal.
//
// What an agent says may hold control sequences that move the cursor, rename the
// window, write to the clipboard or make the terminal type an answer, and characters
// that nobody sees but that change the order of the others. None of it gets through:
//
//   - escape sequences of every form (CSI, OSC, DCS, APC, PM, SOS, and those of two
//     characters), introduced by ESC or by a C1 control character, with what is in them;
//   - control characters other than line feed and tab;
//   - direction marks, overrides and isolates, tag characters, and other format characters
//     that have no look of their own. Joiners and variation selectors stay where
//     they shape a character;
//   - combining characters beyond eight on one base.
//
// A string sequence (OSC and the like) that is not ended takes the rest of its line and
// no more, so that it cannot hide what follows. Bytes that are not UTF-8, among
// them C1 controls of one byte, become U+FFFD.
//
// All functions can be called from any goroutine, and take time in proportion to the
// length of the text. They are meant for whole texts: a sequence that is cut in two and
// filtered by parts is not recognised, though neither part is harmful.
package safetext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// maxMarks is how many combining characters stay on one base: more than any script
// needs, and few enough not to run into the lines above and below.
const maxMarks = 8

// lineBytes bounds what Line looks at: a title longer than that is cut wherever
// its cells end.
const lineBytes = 64 << 10

// Text returns s without anything that could harm a terminal or deceive its user: see the
// documentation of the package. Line feeds and tabs stay; CR LF, CR and the line and
// paragraph separators of Unicode become line feeds. Text that is harmless
// already is returned as it is.
func Text(s string) string {
	if i := harmless(s); i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	f := filter{s: s}
	for {
		switch kind, r := f.next(); kind {
		case tokEnd:
			return b.String()
		case tokRune:
			b.WriteRune(r)
		case tokReturn:
			b.WriteByte('\n')
		}
	}
}

// Line returns s on one line of at most max cells: made safe as by Text, with every run of
// white space as one space, none at the ends, and "…" in place of what does not fit. Where
// max is 0 or less there is no room, and the line is empty.
func Line(s string, max int) string {
	if max <= 0 {
		return ""
	}
	cut := len(s) > lineBytes
	if cut {
		n := lineBytes
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	s = strings.Join(strings.Fields(Text(s)), " ")
	if harmless(s) == len(s) { // of ASCII each byte takes a cell, which need not be measured
		switch {
		case len(s) <= max && !cut:
			return s
		case len(s) < max:
			return s + "…"
		}
		return s[:max-1] + "…"
	}
	if ansi.StringWidth(s) <= max {
		if !cut {
			return s
		}
		if ansi.StringWidth(s) < max {
			return s + "…"
		}
		return ansi.Truncate(s, max-1, "") + "…"
	}
	return ansi.Truncate(s, max, "…")
}

// harmless returns the length of the beginning of s that needs no filtering: printable
// ASCII, line feeds and tabs.
func harmless(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return i
		}
	}
	return len(s)
}

// A token is what a filter finds in a text.
type token int

const (
	tokEnd       token = iota
	tokRune            // a character to show, line feeds and tabs among them
	tokReturn          // a carriage return on its own
	tokBackspace       // a backspace
	tokCSI             // a control sequence: its parameters and final byte are in the filter
)

// A filter takes a text apart. Whatever it does not return is dropped.
type filter struct {
	s     string
	i     int
	prev  rune // what was returned last; 0 if that cannot be a base
	marks int  // combining characters since the base

	params string // of a tokCSI: everything between the introducer and the final byte
	final  byte
}

// next returns what comes next in the text.
func (f *filter) next() (token, rune) {
	for f.i < len(f.s) {
		r, n := rune(f.s[f.i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(f.s[f.i:])
		}
		switch {
		case r == 0x1b:
			f.i++
			if f.escape() {
				return tokCSI, 0
			}
		case r >= 0x80 && r <= 0x9f:
			f.i += n
			if f.control(r - 0x40) {
				return tokCSI, 0
			}
		case r == '\n' || r == '\t' || r == 0x2028 || r == 0x2029:
			f.i += n
			f.prev, f.marks = 0, 0
			if r != '\t' {
				r = '\n'
			}
			return tokRune, r
		case r == '\r':
			f.i++
			if f.i < len(f.s) && f.s[f.i] == '\n' {
				continue
			}
			f.prev, f.marks = 0, 0
			return tokReturn, 0
		case r == '\b':
			f.i++
			f.prev, f.marks = 0, 0
			return tokBackspace, 0
		case r < ' ' || r == 0x7f:
			f.i++
		default:
			f.i += n
			if r >= 0x300 || r == 0xad {
				var ok bool
				if r, ok = f.visible(r); !ok {
					continue
				}
			} else {
				f.marks = 0
			}
			f.prev = r
			return tokRune, r
		}
	}
	return tokEnd, 0
}

// escape passes over what follows an ESC. It reports whether that was a complete CSI sequence.
func (f *filter) escape() bool {
	if f.i >= len(f.s) {
		return false
	}
	c := f.s[f.i]
	switch {
	case c == '[' || c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		f.i++
		return f.control(rune(c))
	case c >= 0x20 && c <= 0x2f:
		for f.i < len(f.s) && f.s[f.i] >= 0x20 && f.s[f.i] <= 0x2f {
			f.i++
		}
		if f.i < len(f.s) && f.s[f.i] >= 0x30 && f.s[f.i] <= 0x7e {
			f.i++
		}
	case c >= 0x30 && c <= 0x7e:
		f.i++
	}
	return false
}

// control passes over what follows an introducer, which is given as the character that comes
// after ESC in its form of two characters. It reports whether that was a complete CSI sequence.
func (f *filter) control(c rune) bool {
	switch c {
	case '[':
		start := f.i
		for f.i < len(f.s) && f.s[f.i] >= 0x20 && f.s[f.i] <= 0x3f {
			f.i++
		}
		if f.i < len(f.s) && f.s[f.i] >= 0x40 && f.s[f.i] <= 0x7e {
			f.params, f.final = f.s[start:f.i], f.s[f.i]
			f.i++
			return true
		}
	case ']', 'P', 'X', '^', '_':
		f.text(c == ']')
	}
	return false
}

// text passes over the text of a string sequence and what ends it. Where nothing does, it is
// the rest of the line. Any ESC and any C1 control ends it, as in terminals, so looking
// for the end costs no more than the length of the text in all.
func (f *filter) text(bell bool) {
	eol := -1
	for i := f.i; i < len(f.s); i++ {
		switch c := f.s[i]; {
		case c == 0x1b:
			f.i = i
			if i+1 < len(f.s) && f.s[i+1] == '\\' {
				f.i += 2
			}
			return
		case c == 0x18 || c == 0x1a || bell && c == 0x07:
			f.i = i + 1
			return
		case c == 0xc2 && i+1 < len(f.s) && f.s[i+1] >= 0x80 && f.s[i+1] <= 0x9f:
			f.i = i
			if f.s[i+1] == 0x9c {
				f.i += 2
			}
			return
		case (c == '\n' || c == '\r') && eol < 0:
			eol = i
		}
	}
	if eol < 0 {
		eol = len(f.s)
	}
	f.i = eol
}

// visible decides about a character beyond Latin: what to show, if anything.
func (f *filter) visible(r rune) (rune, bool) {
	switch {
	case r == utf8.RuneError || r&0xfffe == 0xfffe:
		f.marks = 0
		return utf8.RuneError, true
	case r == 0x200c: // joiners and selectors only where they have something to work on
		return r, f.prev >= 0x590 && unicode.In(f.prev, unicode.L, unicode.M) && f.mark()
	case r == 0x200d:
		return r, f.prev >= 0x590 && f.prev != 0x200d && f.follows() && f.mark()
	case r >= 0xfe00 && r <= 0xfe0f:
		return r, f.prev != 0 && f.prev != ' ' && !selector(f.prev) && f.prev != 0x200d && f.mark()
	case r >= 0xe0100 && r <= 0xe01ef:
		return r, unicode.Is(unicode.Han, f.prev) && f.mark()
	case invisible(r):
		return 0, false
	case unicode.Is(unicode.M, r):
		return r, f.mark()
	}
	f.marks = 0
	return r, true
}

// mark counts a combining character, and reports whether it may stay.
func (f *filter) mark() bool {
	f.marks++
	return f.marks <= maxMarks
}

// follows reports whether what comes next is something that can be joined.
func (f *filter) follows() bool {
	r, _ := utf8.DecodeRuneInString(f.s[f.i:])
	return r >= 0x590 && r != utf8.RuneError && r&0xfffe != 0xfffe && !invisible(r) &&
		!unicode.In(r, unicode.Z, unicode.M)
}

func selector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }

// invisible reports whether r shows nothing by itself: format characters, fillers and tags.
func invisible(r rune) bool {
	switch {
	case r >= 0x600 && r <= 0x605, r == 0x6dd, r == 0x70f, r == 0x890, r == 0x891, r == 0x8e2, r == 0x110bd, r == 0x110cd:
		return false // signs that do have a look, of class Cf for how they join
	case r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r >= 0x180b && r <= 0x180f,
		r == 0x2065, r == 0x3164, r == 0xffa0, r >= 0xfff0 && r <= 0xfff8, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.Is(unicode.Cf, r)
}
