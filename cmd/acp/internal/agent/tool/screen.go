package tool

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxString bounds the control strings that are left out, in bytes: a longer one is taken
// for text behind a sequence that was cut off.
const maxString = 4 << 10

// onScreen returns what the output of a command has on a screen in the end, for a language
// model: without colours and other control sequences, and of a line that was written again
// and again, as progress bars are, what was written last. Lines that went up and over others
// replace them.
func onScreen(output string) string {
	if strings.IndexFunc(output, isControl) < 0 {
		return output
	}
	s := screen{rows: make([][]byte, 1)}
	for i := 0; i < len(output); {
		switch c := output[i]; {
		case c == 0x1b:
			i += s.sequence(output[i:])
			continue
		case c == '\n':
			s.move(1)
		case c == '\r':
			s.fresh = true
		case c == '\b':
			s.back()
		case c < ' ' && c != '\t' || c == 0x7f:
		default:
			end := strings.IndexFunc(output[i+1:], isControl)
			if end < 0 {
				end = len(output) - i - 1
			}
			s.write(output[i : i+1+end])
			i += 1 + end
			continue
		}
		i++
	}
	return string(bytes.Join(s.rows, []byte("\n")))
}

// isControl reports whether a character does something on a screen. A line break alone does
// nothing that a text does not.
func isControl(c rune) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }

// A screen is what was written, row by row. Within a row nothing is written but at its end
// and, after a return, from the beginning.
type screen struct {
	rows  [][]byte
	row   int
	fresh bool // what is written next takes the place of the row
}

func (s *screen) write(text string) {
	for line := range strings.Lines(text) {
		body, ends := strings.CutSuffix(line, "\n")
		if s.fresh && body != "" {
			s.rows[s.row] = s.rows[s.row][:0]
		}
		if body != "" {
			s.rows[s.row], s.fresh = append(s.rows[s.row], body...), false
		}
		if ends {
			s.move(1)
		}
	}
}

// move goes up or down to the beginning of another row.
func (s *screen) move(by int) {
	s.row = max(0, s.row+by)
	if s.row >= len(s.rows) {
		s.row = len(s.rows) // going down below the end makes one row
		s.rows = append(s.rows, nil)
	}
	s.fresh = true
}

// back takes back the last character of the row.
func (s *screen) back() {
	if row := s.rows[s.row]; !s.fresh && len(row) > 0 {
		_, n := utf8.DecodeLastRune(row)
		s.rows[s.row] = row[:len(row)-n]
	}
}

// sequence carries out what text begins with: an escape character and what belongs to it.
// It returns the length of that.
func (s *screen) sequence(text string) int {
	if len(text) < 2 {
		return 1
	}
	switch c := text[1]; {
	case c == '[':
		end := 2
		for end < len(text) && text[end] >= 0x20 && text[end] <= 0x3f {
			end++
		}
		if end == len(text) || text[end] < 0x40 || text[end] > 0x7e {
			return end // it was cut off, or is none
		}
		s.control(text[2:end], text[end])
		return end + 1
	case strings.IndexByte("]PX^_", c) >= 0: // a string, up to BEL or ST
		head := text[2:min(len(text), maxString)]
		switch end := strings.IndexAny(head, "\a\x1b\n"); {
		case end >= 0 && head[end] == '\a':
			return end + 3
		case end >= 0 && strings.HasPrefix(head[end:], "\x1b\\"):
			return end + 4
		}
		return 2
	case c >= 0x20 && c <= 0x2f:
		end := 2
		for end < len(text) && text[end] >= 0x20 && text[end] <= 0x2f {
			end++
		}
		return min(end+1, len(text))
	case c < 0x20 || c > 0x7e:
		return 1
	}
	return 2
}

// control carries out a control sequence: only those count that move, or remove text.
func (s *screen) control(args string, name byte) {
	n, err := strconv.Atoi(args)
	switch name {
	case 'A', 'F': // up
		s.move(-max(n, 1))
	case 'B', 'E': // down
		for range min(max(n, 1), len(s.rows)-s.row) {
			s.move(1)
		}
	case 'G': // to a column
		s.fresh = s.fresh || err != nil || n <= 1
	case 'K': // remove the row, or what follows
		if n > 0 || s.fresh {
			s.rows[s.row] = s.rows[s.row][:0]
		}
	case 'J': // remove the rows that follow; what was on a screen that is removed stays
		if n == 0 {
			s.rows = s.rows[:s.row+1]
		} else if n == 2 {
			s.end()
		}
	case 'H', 'f': // anywhere
		s.end()
	}
}

// end continues below everything.
func (s *screen) end() {
	s.row = len(s.rows) - 1
	if len(s.rows[s.row]) > 0 {
		s.move(1)
	}
}
