package safetext

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// lineCells bounds the line that SGR can still change: beyond, what came first is settled, and
// a carriage return goes back to there.
const lineCells = 4096

// SGR makes the output of a command safe, and keeps its colours: of all sequences only those that set
// colours and styles stay, in a form of their own. Text that is styled is styled line by line,
// with everything reset at the end of each, so that lines can be shown apart. Hidden and
// blinking text are shown plainly.
//
// As on a terminal a carriage return goes back to the start of the line, and backspaces,
// movements within the line and erasing in it are followed: of a progress bar the
// last state remains. Other movements are dropped. Everything else is as with Text.
func SGR(s string) string {
	if harmless(s) == len(s) {
		return s
	}
	w := screenLine{}
	w.out.Grow(len(s))
	f := filter{s: s}
	for {
		switch kind, r := f.next(); kind {
		case tokEnd:
			w.flush()
			return w.out.String()
		case tokReturn:
			w.col = 0
		case tokBackspace:
			w.col = max(w.col-1, 0)
		case tokCSI:
			w.control(f.params, f.final)
		case tokRune:
			switch {
			case r == '\n':
				w.flush()
				w.out.WriteByte('\n')
			case f.marks > 0:
				w.join(r)
			default:
				w.put(r)
			}
		}
	}
}

// A screenLine is the line that output is being written to, and everything before it.
type screenLine struct {
	out   strings.Builder
	cells []cell
	col   int
	pen   pen
	set   pen // what the output has set
}

// A cell is a character with what combines with it.
type cell struct {
	r     rune
	marks string
	pen   pen
}

func (w *screenLine) put(r rune) {
	if w.col >= lineCells {
		w.emit()
	}
	w.pad()
	c := cell{r: r, pen: w.pen}
	if w.col < len(w.cells) {
		w.cells[w.col] = c
	} else {
		w.cells = append(w.cells, c)
	}
	w.col++
}

// join adds a combining character to the last cell written.
func (w *screenLine) join(r rune) {
	if w.col > 0 && w.col <= len(w.cells) {
		w.cells[w.col-1].marks += string(r)
	} else {
		w.put(r)
	}
}

// pad fills up to the column with spaces.
func (w *screenLine) pad() {
	for len(w.cells) < w.col {
		w.cells = append(w.cells, cell{r: ' '})
	}
}

// emit writes out the cells there are.
func (w *screenLine) emit() {
	for _, c := range w.cells {
		if c.pen != w.set {
			c.pen.write(&w.out)
			w.set = c.pen
		}
		w.out.WriteRune(c.r)
		w.out.WriteString(c.marks)
	}
	w.cells, w.col = w.cells[:0], 0
}

// flush ends the line.
func (w *screenLine) flush() {
	w.emit()
	if w.set != (pen{}) {
		w.set = pen{}
		w.set.write(&w.out)
	}
}

// control does what a control sequence says, if that stays within the line.
func (w *screenLine) control(params string, final byte) {
	if final == 'm' {
		w.pen.apply(params)
		return
	}
	n := 0
	if params != "" {
		var err error
		if n, err = strconv.Atoi(params); err != nil || n < 0 {
			return
		}
	}
	switch final {
	case 'K':
		switch n {
		case 0:
			w.cells = w.cells[:min(w.col, len(w.cells))]
		case 1:
			for i := range min(w.col+1, len(w.cells)) {
				w.cells[i] = cell{r: ' '}
			}
		case 2:
			w.cells = w.cells[:0]
		}
	case 'C':
		w.col = min(w.col+min(max(n, 1), lineCells), lineCells-1)
	case 'D':
		w.col = max(w.col-min(max(n, 1), lineCells), 0)
	case 'G':
		w.col = min(max(n, 1), lineCells) - 1
	}
}

// A pen is how text looks: colours as the parameters that set them.
type pen struct {
	bold, faint, italic, underline, reverse, strike bool
	fg, bg                                          color
}

// A color is none (zero), one of the palette or one of 24 bits.
type color struct {
	kind    byte // 0, 5 or 2
	r, g, b byte // of the palette, r
}

// write sets the pen, whatever was set before.
func (p pen) write(b *strings.Builder) {
	b.WriteString("\x1b[")
	if p == (pen{}) {
		b.WriteString("m")
		return
	}
	b.WriteString("0")
	for _, a := range [...]struct {
		on   bool
		code string
	}{{p.bold, ";1"}, {p.faint, ";2"}, {p.italic, ";3"}, {p.underline, ";4"}, {p.reverse, ";7"}, {p.strike, ";9"}} {
		if a.on {
			b.WriteString(a.code)
		}
	}
	p.fg.write(b, 30)
	p.bg.write(b, 40)
	b.WriteByte('m')
}

func (c color) write(b *strings.Builder, base int) {
	num := func(n int) {
		b.WriteByte(';')
		b.WriteString(strconv.Itoa(n))
	}
	switch {
	case c.kind == 5 && c.r < 8:
		num(base + int(c.r))
	case c.kind == 5 && c.r < 16:
		num(base + 60 + int(c.r) - 8)
	case c.kind == 5:
		num(base + 8)
		num(5)
		num(int(c.r))
	case c.kind == 2:
		num(base + 8)
		num(2)
		num(int(c.r))
		num(int(c.g))
		num(int(c.b))
	}
}

// apply changes the pen as the parameters of an SGR sequence say. Parameters that it does not
// know change nothing, and a sequence that is not well formed changes nothing at all.
func (p *pen) apply(params string) {
	if len(params) > 128 {
		return
	}
	for i := range len(params) {
		if c := params[i]; (c < '0' || c > '9') && c != ';' && c != ':' {
			return
		}
	}
	list := strings.Split(params, ";")
	for len(list) > 0 {
		sub := strings.Split(list[0], ":")
		list = list[1:]
		n, ok := number(sub[0])
		if !ok {
			continue
		}
		switch {
		case n == 38 || n == 48 || n == 58:
			var c color
			if len(sub) > 1 {
				c, _ = parseColor(sub[1:], true)
			} else {
				var used int
				c, used = parseColor(list, false)
				list = list[used:]
			}
			switch {
			case c.kind == 0:
			case n == 38:
				p.fg = c
			case n == 48:
				p.bg = c
			}
		case n == 4 && len(sub) > 1:
			p.underline = sub[1] != "0"
		case len(sub) == 1:
			p.attribute(n)
		}
	}
}

// attribute applies a parameter that stands alone.
func (p *pen) attribute(n int) {
	switch {
	case n == 0:
		*p = pen{}
	case n == 1:
		p.bold = true
	case n == 2:
		p.faint = true
	case n == 3:
		p.italic = true
	case n == 4 || n == 21:
		p.underline = true
	case n == 7:
		p.reverse = true
	case n == 9:
		p.strike = true
	case n == 22:
		p.bold, p.faint = false, false
	case n == 23:
		p.italic = false
	case n == 24:
		p.underline = false
	case n == 27:
		p.reverse = false
	case n == 29:
		p.strike = false
	case n >= 30 && n <= 37:
		p.fg = color{kind: 5, r: byte(n - 30)}
	case n == 39:
		p.fg = color{}
	case n >= 40 && n <= 47:
		p.bg = color{kind: 5, r: byte(n - 40)}
	case n == 49:
		p.bg = color{}
	case n >= 90 && n <= 97:
		p.fg = color{kind: 5, r: byte(n - 90 + 8)}
	case n >= 100 && n <= 107:
		p.bg = color{kind: 5, r: byte(n - 100 + 8)}
	}
}

// parseColor reads what follows 38 or 48 and says how many parameters that took. In the
// form with colons a colour space may come before the three numbers.
func parseColor(list []string, colons bool) (color, int) {
	if len(list) == 0 {
		return color{}, 0
	}
	kind, _ := number(list[0])
	var v [4]byte
	rest := list[1:]
	if kind == 2 && colons && len(rest) >= 4 {
		rest = rest[1:]
	}
	want := map[int]int{5: 1, 2: 3}[kind]
	if want == 0 || len(rest) < want {
		return color{}, min(len(list), 1+want)
	}
	for i := range want {
		n, ok := number(rest[i])
		if !ok || n > 255 {
			return color{}, 1 + want
		}
		v[i] = byte(n)
	}
	return color{kind: byte(kind), r: v[0], g: v[1], b: v[2]}, 1 + want
}

// number reads a parameter; an empty one is 0.
func number(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

// Strip returns s, which SGR or a program's own styling made, without any sequences.
func Strip(s string) string { return ansi.Strip(s) }
