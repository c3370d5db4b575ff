package view

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// luminance is how bright a colour is, from 0 to 1, as WCAG 2 has it.
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	part := func(v uint32) float64 {
		x := float64(v) / 0xffff
		if x <= 0.03928 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}

// contrast is that of two colours, from 1 to 21.
func contrast(a, b color.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// colourOf reads what colorParams has written; nil for none.
func colourOf(t *testing.T, params string) color.Color {
	t.Helper()
	var base, n, r, g, b int
	switch {
	case params == "":
		return nil
	case strings.Count(params, ";") == 2:
		if _, err := fmt.Sscanf(params, "%d;5;%d", &base, &n); err != nil {
			t.Fatalf("%q: %v", params, err)
		}
		return ansi.IndexedColor(n)
	}
	if _, err := fmt.Sscanf(params, "%d;2;%d;%d;%d", &base, &r, &g, &b); err != nil {
		t.Fatalf("%q: %v", params, err)
	}
	return color.RGBA{uint8(r), uint8(g), uint8(b), 255}
}

// TestContrast: everything can be read, on the backgrounds that terminals usually have and on those that
// are drawn here. The least for text is 4.5, as WCAG 2 has it; less is taken only for what is marked, and
// for what the terminal's 256 colours come nearest to.
func TestContrast(t *testing.T) {
	rgb := func(v uint32) color.Color { return color.RGBA{byte(v >> 16), byte(v >> 8), byte(v), 255} }
	terminals := map[bool]map[string]color.Color{
		true:  {"black": rgb(0), "dark grey": rgb(0x1e1e1e), "dark blue": rgb(0x002b36), "slate": rgb(0x282a36)},
		false: {"white": rgb(0xffffff), "paper": rgb(0xfdf6e3), "grey": rgb(0xf2f2f2)},
	}
	for _, palette := range Palettes() {
		for _, dark := range []bool{true, false} {
			testContrast(t, palette, dark, terminals[dark])
		}
	}
}

func testContrast(t *testing.T, palette string, dark bool, terminals map[string]color.Color) {
	for profile, least := range map[colorprofile.Profile]float64{colorprofile.TrueColor: 4.5, colorprofile.ANSI256: 3.9} {
		if palette != standard && profile == colorprofile.ANSI256 {
			least = 3.2 // there are few colours near to those of a palette
		}
		th := NewTheme(palette, dark, profile)
		texts := map[string]look{
			"dim": th.dim, "accent": th.accent, "heading": th.heading, "code": th.code, "link": th.link,
			"user": th.user, "thought": th.thought, "good": th.good, "bad": th.bad, "warn": th.warn, "info": th.info,
		}
		coloured := map[string]look{}
		for k, l := range th.syntax {
			texts[fmt.Sprint("syntax ", k)], coloured[fmt.Sprint("syntax ", k)] = l, l
		}
		check := func(name string, l look, on string, bg color.Color, least float64) {
			if fg := colourOf(t, l.fg); fg != nil {
				if c := contrast(fg, bg); c < least {
					t.Errorf("%s, dark %v, %v: %s on %s has a contrast of %.1f, not %.1f", palette, dark, profile, name, on, c, least)
				}
			}
		}
		for name, l := range texts {
			for on, bg := range terminals {
				check(name, l, on, bg, least)
			}
			check(name, l, "what was found", colourOf(t, th.found.bg), least*0.7)
		}
		lines := least
		if profile == colorprofile.ANSI256 {
			lines = least * 0.75
		}
		for name, l := range coloured {
			check(name, l, "added lines", colourOf(t, th.added.bg), lines)
			check(name, l, "removed lines", colourOf(t, th.removed.bg), lines)
			check(name, l, "added words", colourOf(t, th.addedWord.bg), least*0.7)
			check(name, l, "removed words", colourOf(t, th.removedWord.bg), least*0.7)
		}
		// Marked words stand out.
		for _, pair := range [][2]look{{th.added, th.addedWord}, {th.removed, th.removedWord}} {
			if pair[1].attr != 0 {
				continue
			}
			if c := contrast(colourOf(t, pair[0].bg), colourOf(t, pair[1].bg)); c < 1.15 {
				t.Errorf("%s, dark %v, %v: changed words have a contrast of %.2f to their line", palette, dark, profile, c)
			}
		}
	}
}
