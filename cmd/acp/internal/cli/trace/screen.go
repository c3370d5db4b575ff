package trace

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// columns returns the width of the terminal, or 0 if the output is not a terminal. Then lines are
// not cut.
func (o *Options) columns() int {
	if o.width > 0 {
		return o.width
	}
	if f, ok := o.App.Out.(*os.File); ok && o.App.OutTerminal {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// rows are the widths of the columns of acp trace show, in cells.
type rows struct {
	width               int // of the terminal; 0 means unlimited
	number              int // of the frame number
	time, what, session int // session is 0 if there is no room for it
}

// roomy is the width from which on all columns fit and leave room for the summary.
const roomy = 110

func rowsFor(width int) rows {
	if width == 0 || width >= roomy {
		return rows{width, 5, 10, 34, 8}
	}
	return rows{width, 4, 8, 26, 0}
}

// writeRow writes a row on one line of the terminal. no is the number of the frame; 0 leaves it
// out.
func (r rows) writeRow(w io.Writer, no int64, at float64, arrow, what, session, volume, latency, summary string) error {
	if r.session > 0 {
		session = " " + pad(safetext.Line(tail(session, r.session), r.session), r.session)
	} else {
		session = ""
	}
	number := ""
	if no > 0 {
		number = strconv.FormatInt(no, 10)
	}
	line := fmt.Sprintf("%*s %*.3f %s %s%s %6s %7s  %s", r.number, number, r.time, at, arrow, pad(safetext.Line(what, r.what), r.what), session,
		volume, latency, safetext.Line(summary, 160))
	_, err := fmt.Fprintln(w, fit(line, r.width))
	return err
}

// writeBelow writes text that belongs to the row above, on as many lines as it takes.
func (r rows) writeBelow(w io.Writer, text string) error {
	_, err := fmt.Fprint(w, hang(text, r.number+r.time+2, r.width))
	return err
}

// fit cuts a line to width cells; 0 means not to cut.
func fit(line string, width int) string {
	if width > 0 {
		line = ansi.Truncate(line, width, "…")
	}
	return strings.TrimRight(line, " ")
}

// hang wraps a text and indents it, all lines except the first by two more cells.
func hang(text string, indent, width int) string {
	lines := []string{text}
	if width > 0 {
		lines = strings.Split(ansi.Wrap(text, max(width-indent-2, 20), ""), "\n")
	}
	var out strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&out, "%*s%s\n", indent+min(i, 1)*2, "", strings.TrimSpace(l))
	}
	return out.String()
}

// pad pads s with spaces to n cells.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-ansi.StringWidth(s)))
}

// tail returns the last n characters of s.
func tail(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}
