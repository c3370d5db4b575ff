//go:build !windows

package terminal

import (
	"fmt"
	"html"
	"strings"

	"github.com/hinshun/vt10x"
)

// The attributes of a cell, as the emulator numbers them.
const (
	svgUnderline = 1 << 1
	svgBold      = 1 << 2
	svgItalic    = 1 << 4
)

// The measures of a picture, in its units.
const (
	svgCell, svgLine, svgFont, svgMargin = 8.4, 18, 14, 12
)

// basic are the first 16 colours.
var basic = [...]string{
	"#1c1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
	"#5c6370", "#f07c85", "#a8d389", "#f5d08b", "#71bfff", "#d688ed", "#66c6d2", "#ffffff",
}

// A ground is the colours of text and background that a terminal has where nothing says otherwise.
type ground struct{ fore, back string }

var (
	dark  = ground{"#c8ccd4", "#1c1f26"}
	light = ground{"#24292f", "#ffffff"}
)

func (g ground) colour(c vt10x.Color, def string) string {
	switch {
	case c == vt10x.DefaultFG:
		return g.fore
	case c == vt10x.DefaultBG:
		return g.back
	case c < 16:
		return basic[c]
	case c < 232:
		n := uint32(c) - 16
		level := func(i uint32) uint32 {
			if i == 0 {
				return 0
			}
			return 55 + 40*i
		}
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	case c < 256:
		grey := 8 + 10*(uint32(c)-232)
		return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
	case c < 1<<24:
		return fmt.Sprintf("#%06x", uint32(c))
	}
	return def
}

// SVG returns a picture of the screen. The same screen always gives the same
// picture; the colours are those of a dark terminal.
func (s *Screen) SVG() string { return s.svg(dark) }

// LightSVG is SVG with the colours of a light terminal. The program must have been started for one.
func (s *Screen) LightSVG() string { return s.svg(light) }

func (s *Screen) svg(g ground) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	w, h := float64(s.cols)*svgCell+2*svgMargin, float64(s.rows)*svgLine+2*svgMargin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", g.back)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d" fill="%s">`+"\n", svgFont, g.fore)
	for y := range s.rows {
		for x := 0; x < s.cols; {
			// Cells that look the same are one text.
			first := s.vt.Cell(x, y)
			from := x
			var text strings.Builder
			for ; x < s.cols; x++ {
				c := s.vt.Cell(x, y)
				if c.FG != first.FG || c.BG != first.BG || c.Mode != first.Mode {
					break
				}
				if c.Char == 0 {
					c.Char = ' '
				}
				text.WriteRune(c.Char)
			}
			left, top := svgMargin+float64(from)*svgCell, float64(svgMargin+y*svgLine)
			if back := g.colour(first.BG, g.back); back != g.back {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%.0f" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top, float64(x-from)*svgCell, svgLine, back)
			}
			word := strings.TrimRight(text.String(), " ")
			lead := len(word) - len(strings.TrimLeft(word, " "))
			if word = word[lead:]; word == "" {
				continue
			}
			var style string
			if fore := g.colour(first.FG, g.fore); fore != g.fore {
				style += fmt.Sprintf(` fill="%s"`, fore)
			}
			if first.Mode&svgBold != 0 {
				style += ` font-weight="bold"`
			}
			if first.Mode&svgItalic != 0 {
				style += ` font-style="italic"`
			}
			if first.Mode&svgUnderline != 0 {
				style += ` text-decoration="underline"`
			}
			n := len([]rune(word))
			fmt.Fprintf(&b, `<text xml:space="preserve" x="%.1f" y="%.0f" textLength="%.1f"%s>%s</text>`+"\n",
				left+float64(lead)*svgCell, top+svgFont-0.5, float64(n)*svgCell, style, html.EscapeString(word))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}
