package tui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
)

// styles are the colours of everything around the transcript. Wherever one is used there is also a
// symbol or a position, so that no information depends on colour alone.
type styles struct {
	text, strong, dim, accent, warn, bad, good, selected, rule lipgloss.Style
}

// newStyles returns the styles that go with a palette of package view.
func newStyles(palette string, dark bool) *styles {
	pick := func(light, night string) lipgloss.Style {
		c := light
		if dark {
			c = night
		}
		return lipgloss.NewStyle().Foreground(lipgloss.Color(c))
	}
	st := &styles{
		text:     lipgloss.NewStyle(),
		strong:   lipgloss.NewStyle().Bold(true),
		dim:      pick("241", "246"),
		accent:   pick("25", "111"),
		warn:     pick("94", "179"),
		bad:      pick("160", "203"),
		good:     pick("22", "108"),
		selected: pick("25", "111").Bold(true),
		rule:     pick("250", "239"),
	}
	if dim, accent, warn, bad, good, ok := view.Colors(palette, dark); ok {
		in := func(c color.Color) lipgloss.Style { return lipgloss.NewStyle().Foreground(c) }
		st.dim, st.accent, st.warn, st.bad, st.good, st.selected = in(dim), in(accent), in(warn), in(bad), in(good), in(accent).Bold(true)
	}
	return st
}

// fit cuts a line to width cells, or pads it with spaces.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	w := ansi.StringWidth(s)
	if w > width {
		s = ansi.Truncate(s, width, "…")
		w = ansi.StringWidth(s)
	}
	if w < width {
		s += strings.Repeat(" ", width-w)
	}
	return s
}

// cut cuts a line to width cells.
func cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// ends puts two texts at the ends of a line. If there is not enough room, the right one is dropped.
func ends(left, right string, width int) string {
	l, r := ansi.StringWidth(left), ansi.StringWidth(right)
	if l+r+2 > width {
		return fit(left, width)
	}
	return left + strings.Repeat(" ", width-l-r) + right
}

// wrap makes foreign text safe and wraps it into lines of at most width cells.
func wrap(s string, width int) []string {
	if width < 1 {
		width = 1
	}
	return strings.Split(ansi.Wrap(strings.ReplaceAll(safetext.Text(s), "\t", "    "), width, ""), "\n")
}

// one returns foreign text as one safe line.
func one(s string) string { return safetext.Line(s, 400) }

// seen returns foreign text that the user decides about as one line, with everything written out
// that nobody sees.
func seen(s string) string { return safetext.VisibleLine(s, 400) }
