package view

import (
	"fmt"
	"image/color"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// An attr is a set of ways to print text.
type attr uint16

const (
	bold attr = 1 << iota
	faint
	italic
	underline
	reverse
	strike
	// These are not printed. They tell what a selection copies.
	decoration // what is not part of the text
	softBreak  // the line continues the one before, after a space
	hardBreak  // the line continues the one before, in a word
)

// unprinted are the attributes that are not printed.
const unprinted = decoration | softBreak | hardBreak

// A look is the colour and the attributes of text. The zero look is the terminal's default.
type look struct {
	fg, bg string // parameters of an SGR sequence
	attr   attr
	raw    string // other parameters, of the output of a command
	link   string // where a hyperlink leads
}

// with returns the look with more attributes.
func (l look) with(a attr) look { l.attr |= a; return l }

// on returns the look on the background of another.
func (l look) on(bg look) look {
	if bg.bg != "" {
		l.bg = bg.bg
	}
	return l
}

// A Theme is how a conversation is coloured. It never changes, and any goroutine may use it.
// Colours only support what marks and indentation already say. Make one with [NewTheme].
type Theme struct {
	plain bool // nothing but text, without any sequences
	links bool

	dim, accent, heading, code, link         look
	user, thought                            look
	good, bad, warn, info                    look
	added, removed, addedWord, removedWord   look
	addedMark, removedMark, found, foundHere look
	syntax                                   map[syntaxKind]look
}

// NewTheme returns the theme with a palette, for a dark or light background and what the terminal can
// show. A palette that is not one of [Palettes] is the standard one. There are no colours for [colorprofile.ASCII], and no sequences for [colorprofile.NoTTY] and an unknown profile.
func NewTheme(name string, dark bool, profile colorprofile.Profile) *Theme {
	p, ok := palettes[name]
	if !ok {
		p = palettes[standard]
	}
	th := &Theme{plain: profile <= colorprofile.NoTTY, links: profile > colorprofile.ASCII}
	// A colour is given for dark and light backgrounds, and as one of the 16 that the user
	// has chosen, where there are no more; -1 is none of them.
	pick := func(t tone, basic int) color.Color {
		switch profile {
		case colorprofile.ANSI:
			if basic < 0 {
				return nil
			}
			return ansi.BasicColor(basic)
		case colorprofile.ANSI256, colorprofile.TrueColor:
			return profile.Convert(t.on(dark))
		}
		return nil
	}
	fg := func(t tone, basic int) look { return look{fg: colorParams(pick(t, basic), false)} }
	of256 := profile == colorprofile.ANSI256
	bg := func(t tone, of [2]byte) look {
		c := pick(t, -1)
		switch {
		case of256 && dark:
			c = ansi.IndexedColor(of[0])
		case of256:
			c = ansi.IndexedColor(of[1])
		}
		return look{bg: colorParams(c, true)}
	}
	th.dim = fg(p.dim, -1)
	switch {
	case th.dim.fg == "":
		th.dim.attr = faint
	case of256 && dark:
		th.dim.fg = colorParams(ansi.IndexedColor(247), false)
	case of256:
		th.dim.fg = colorParams(ansi.IndexedColor(241), false)
	}
	th.accent = fg(p.accent, 4)
	th.user = fg(p.user, 6).with(bold)
	th.thought = th.dim.with(italic)
	th.heading = th.accent.with(bold)
	th.code = fg(p.code, 3)
	th.link = fg(p.accent, 4).with(underline)
	th.good = fg(p.good, 2)
	th.bad = fg(p.bad, 1)
	th.warn = fg(p.code, 3)
	th.info = fg(p.user, 6)
	th.added, th.removed = bg(p.added, p.changed256[0]), bg(p.removed, p.changed256[1])
	th.addedWord, th.removedWord = bg(p.addedWord, p.changed256[2]), bg(p.removedWord, p.changed256[3])
	if of256 && dark { // there is no other green that is dark enough
		th.addedWord.attr, th.removedWord.attr = underline|bold, underline|bold
	}
	if th.added.bg == "" { // the marks get the colour then, and changed words a line
		th.addedWord.attr, th.removedWord.attr = underline, underline
	}
	th.addedMark, th.removedMark = th.good, th.bad
	th.found = bg(p.found, [2]byte{238, 229})
	if th.found.bg == "" || of256 && dark {
		th.found.attr = underline | bold
	}
	th.foundHere = look{attr: reverse}
	th.syntax = map[syntaxKind]look{
		synKeyword:  fg(p.keyword, 5),
		synString:   fg(p.good, 2),
		synNumber:   fg(p.number, 3),
		synComment:  th.dim.with(italic),
		synFunction: fg(p.accent, 4),
		synType:     fg(p.typ, 6),
		synAdded:    th.good,
		synRemoved:  th.bad,
		synHeading:  {attr: bold},
	}
	return th
}

// colorParams returns the parameters of the escape sequence that sets a colour, or "" for none.
func colorParams(c color.Color, background bool) string {
	base := 30
	if background {
		base = 40
	}
	switch c := c.(type) {
	case ansi.BasicColor:
		if c >= 8 {
			base += 60 - 8
		}
		return fmt.Sprint(base + int(c))
	case ansi.IndexedColor:
		return fmt.Sprintf("%d;5;%d", base+8, byte(c))
	case color.RGBA:
		return fmt.Sprintf("%d;2;%d;%d;%d", base+8, c.R, c.G, c.B)
	}
	return ""
}

// A syntaxKind is what a piece of code is, as far as it is coloured.
type syntaxKind uint8

const (
	synText syntaxKind = iota
	synKeyword
	synString
	synNumber
	synComment
	synFunction
	synType
	synAdded
	synRemoved
	synHeading
)
