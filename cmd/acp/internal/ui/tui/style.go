package tui

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// styles are the few colours of everything around the transcript. Each also
// has a mark or a place of its own, so that nothing depends on colour.
type styles struct {
	text, strong, dim, accent, warn, bad, good, selected, rule lipgloss.Style
}

func newStyles(dark bool) *styles {
	pick := func(light, night string) lipgloss.Style {
		c := light
		if dark {
			c = night
		}
		return lipgloss.NewStyle().Foreground(lipgloss.Color(c))
	}
	return &styles{
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
}

// fit cuts a line to a width, or fills it up with spaces.
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

// cut cuts a line to a width.
func cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// ends puts two texts at the ends of a line; the right one goes first when
// there is no room.
func ends(left, right string, width int) string {
	l, r := ansi.StringWidth(left), ansi.StringWidth(right)
	if l+r+2 > width {
		return fit(left, width)
	}
	return left + strings.Repeat(" ", width-l-r) + right
}

// wrap breaks a text that came from elsewhere into lines of at most width
// cells.
func wrap(s string, width int) []string {
	if width < 1 {
		width = 1
	}
	return strings.Split(ansi.Wrap(strings.ReplaceAll(safetext.Text(s), "\t", "    "), width, ""), "\n")
}

// one makes one safe line of a text that came from elsewhere.
func one(s string) string { return safetext.Line(s, 400) }
