package transcript

import (
	"strings"
	"unicode/utf8"
)

const (
	// lineCells bounds the line that can still be overwritten. A longer line is
	// finished piece by piece.
	lineCells = 4096
	// stringRunes bounds a control string, such as a window title or a picture. What
	// follows is text again: a string that never ends must not hide everything after it.
	stringRunes = 1 << 20
	// sequenceRunes bounds other control sequences in the same way.
	sequenceRunes = 256
)

// A tail keeps the end of what is written to it. The strings it gives out stay as
// they are: what is added lies behind them.
type tail struct {
	b     *strings.Builder
	start int // of what is kept in b
}

// write appends p and returns how many bytes were dropped at the front.
func (t *tail) write(p []byte, limit int) (lost int) {
	if over := len(p) - limit; over > 0 {
		lost, p = len(t.view())+over, p[over:]
		t.b, t.start = nil, 0
	}
	if t.b == nil {
		t.b = new(strings.Builder)
	}
	t.b.Write(p)
	was := t.start
	if over := t.b.Len() - t.start - limit; over > 0 {
		t.start += over
	}
	if lost > 0 || t.start > was {
		// Keep whole characters: at most three bytes are in the middle of one.
		s := t.b.String()
		for i := 0; i < utf8.UTFMax-1 && t.start < len(s) && !utf8.RuneStart(s[t.start]); i++ {
			t.start++
		}
	}
	lost += t.start - was
	if t.start > limit/2 {
		v := t.view()
		t.b, t.start = new(strings.Builder), 0
		t.b.Grow(len(v) + limit/2)
		t.b.WriteString(v)
	}
	return lost
}

func (t *tail) view() string {
	if t.b == nil {
		return ""
	}
	return t.b.String()[t.start:]
}

// The states of a screen's parser.
const (
	ground     = iota
	escape     // after ESC
	escapeMore // after ESC and intermediate characters
	sequence   // a control sequence, after ESC [
	control    // a control string, up to its terminator
	controlEsc // ESC in a control string
)

// A screen turns terminal output into text without control sequences. It knows
// one line: movements within it have their effect, movements to other lines do not.
// Output may be cut anywhere, inside characters and sequences too.
type screen struct {
	owner *Conversation
	done  tail   // finished lines
	line  []rune // the line being written
	col   int    // where the next character goes

	part  [utf8.UTFMax]byte // the start of a character
	parts int

	state   int
	length  int  // of the sequence so far
	private bool // the sequence is not one of the standard's
	params  [4]int
	param   int // the one being read

	buf []byte
}

func (s *screen) feed(p []byte, limit int) {
	for s.parts > 0 && len(p) > 0 {
		s.part[s.parts] = p[0]
		s.parts++
		p = p[1:]
		for s.parts > 0 && utf8.FullRune(s.part[:s.parts]) {
			r, n := utf8.DecodeRune(s.part[:s.parts])
			s.put(r, limit)
			s.parts = copy(s.part[:], s.part[n:s.parts])
		}
	}
	for len(p) > 0 {
		if n := s.plain(p); n > 0 {
			p = p[n:]
			continue
		}
		if p[0] < utf8.RuneSelf {
			s.put(rune(p[0]), limit)
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) {
			s.parts = copy(s.part[:], p)
			return
		}
		r, n := utf8.DecodeRune(p)
		s.put(r, limit)
		p = p[n:]
	}
}

// plain handles ASCII text at the end of the line, as most output is, and returns the
// number of bytes it has handled.
func (s *screen) plain(p []byte) (n int) {
	if s.state != ground || s.col != len(s.line) {
		return 0
	}
	for n < len(p) && p[n] >= 0x20 && p[n] < 0x7f && s.col+n < lineCells-1 {
		s.line = append(s.line, rune(p[n]))
		n++
	}
	s.col += n
	return n
}

// put handles one character, as the state machine of ECMA-48 terminals does.
func (s *screen) put(r rune, limit int) {
	if r == 0x18 || r == 0x1a { // CAN, SUB
		s.state = ground
		return
	}
	switch s.state {
	case control, controlEsc:
		s.putControl(r, limit)
		return
	case ground:
		if r >= 0x20 && r < 0x7f || r >= 0xa0 {
			s.print(r, limit)
			return
		}
	}
	if s.c0c1(r, limit) {
		return
	}
	if s.length++; s.length > sequenceRunes {
		s.state = ground
		return
	}
	switch s.state {
	case escape:
		switch {
		case r == '[':
			s.begin(sequence)
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			s.begin(control)
		case r >= 0x20 && r < 0x30:
			s.state = escapeMore
		default:
			s.state = ground
		}
	case escapeMore:
		if r < 0x20 || r >= 0x30 {
			s.state = ground
		}
	case sequence:
		s.putSequence(r)
	}
}

func (s *screen) begin(state int) {
	s.state, s.length, s.private, s.param = state, 0, false, 0
	s.params = [4]int{}
}

// c0c1 handles control characters, which also act within sequences.
func (s *screen) c0c1(r rune, limit int) bool {
	switch r {
	case 0x1b:
		s.begin(escape)
	case '\n', '\v', '\f':
		s.newline(limit)
	case 0x85: // next line
		s.state = ground
		s.newline(limit)
	case '\r':
		s.col = 0
	case '\b':
		s.col = max(s.col-1, 0)
	case '\t':
		s.print(r, limit)
	case 0x9b:
		s.begin(sequence)
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		s.begin(control)
	default:
		if r >= 0x80 && r < 0xa0 {
			s.state = ground
			return true
		}
		return r < 0x20 || r == 0x7f
	}
	return true
}

func (s *screen) putControl(r rune, limit int) {
	if s.state == controlEsc && r != '\\' {
		s.begin(escape)
		s.put(r, limit)
		return
	}
	s.length++
	switch {
	case s.state == controlEsc, r == 0x07, r == 0x9c, s.length > stringRunes:
		s.state = ground
	case r == 0x1b:
		s.state = controlEsc
	}
}

func (s *screen) putSequence(r rune) {
	switch {
	case r >= '0' && r <= '9':
		if s.param < len(s.params) {
			s.params[s.param] = min(s.params[s.param]*10+int(r-'0'), lineCells)
		}
	case r == ';' || r == ':':
		s.param++
	case r < 0x40:
		s.private = true
	default:
		s.state = ground
		if r < 0x7f && !s.private {
			s.run(r)
		}
	}
}

// run applies a control sequence to the line.
func (s *screen) run(final rune) {
	n := s.params[0]
	switch final {
	case 'C': // to the right
		s.col = min(s.col+max(n, 1), lineCells-1)
	case 'D': // to the left
		s.col = max(s.col-max(n, 1), 0)
	case 'G', '`': // to a column
		s.col = min(max(n, 1), lineCells) - 1
	case 'K': // erase in the line
		switch n {
		case 0:
			s.line = s.line[:min(s.col, len(s.line))]
		case 1:
			for i := range min(s.col+1, len(s.line)) {
				s.line[i] = ' '
			}
		case 2:
			s.line = s.line[:0]
		}
	}
}

func (s *screen) print(r rune, limit int) {
	for s.col > len(s.line) {
		s.line = append(s.line, ' ')
	}
	if s.col == len(s.line) {
		s.line = append(s.line, r)
	} else {
		s.line[s.col] = r
	}
	s.col++
	if s.col >= lineCells {
		s.flush("", limit)
	}
}

func (s *screen) newline(limit int) { s.flush("\n", limit) }

func (s *screen) flush(end string, limit int) {
	s.buf = s.buf[:0]
	for _, r := range s.line {
		s.buf = utf8.AppendRune(s.buf, r)
	}
	s.done.write(append(s.buf, end...), limit)
	s.line, s.col = s.line[:0], 0
}

// printable returns text without the characters that a screen would not show.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f || r >= 0xa0 {
			return r
		}
		return -1
	}, text)
}
