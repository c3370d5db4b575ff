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

// columns returns how wide the terminal is that answers are written to, 0 if there is none: then lines
// are as long as they are.
func (o *Options) columns() int {
	if f, ok := o.App.Out.(*os.File); ok && o.App.OutTerminal {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// rows are the columns of acp trace show, in cells.
type rows struct {
	width               int // of the terminal, 0 for as much as there is
	number              int // of a frame
	time, what, session int // session is 0 where there is no room for it
}

// roomy is from where on all columns leave room for what a frame says.
const roomy = 110

func rowsFor(width int) rows {
	if width == 0 || width >= roomy {
		return rows{width, 5, 10, 34, 8}
	}
	return rows{width, 4, 8, 26, 0}
}

// write writes a row, in one line of the terminal. no is the number of a frame, 0 for what is none.
func (r rows) write(w io.Writer, no int64, at float64, arrow, what, session, volume, latency, summary string) error {
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

// under writes what belongs to a row, in as many lines as it takes.
func (r rows) under(w io.Writer, text string) error {
	_, err := fmt.Fprint(w, hang(text, r.number+r.time+2, r.width))
	return err
}

// fit cuts a line to a width, if there is one.
func fit(line string, width int) string {
	if width > 0 {
		line = ansi.Truncate(line, width, "…")
	}
	return strings.TrimRight(line, " ")
}

// hang returns the lines of a text that are indented, all but the first by two more.
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

// pad fills s with spaces to n cells, of which it has no more.
func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-ansi.StringWidth(s)))
}

// tail returns the last n characters of s.
func tail(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}
