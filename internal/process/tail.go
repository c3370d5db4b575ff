package process

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/internal/plaintext"
)

// A Tail keeps the last bytes of what is written to it. It is not safe for
// concurrent use. It takes up to twice its limit of memory.
type Tail struct {
	limit int
	buf   []byte
	total int64
}

// NewTail returns a Tail that keeps limit bytes; a negative limit means 0.
func NewTail(limit int) *Tail { return &Tail{limit: min(max(limit, 0), math.MaxInt/4)} }

// Write keeps the last bytes of b and never fails.
func (t *Tail) Write(b []byte) (int, error) {
	n := len(b)
	t.total += int64(n)
	// A few bytes more than the limit show where the first character starts,
	// even when the last one is left out.
	keep := t.limit + 2*utf8.UTFMax
	if n >= keep {
		t.buf = append(t.buf[:0], b[n-keep:]...)
		return n, nil
	}
	if len(t.buf)+n > 2*keep {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// Text returns what is kept as valid UTF-8 of at most limit bytes, beginning
// with a whole character, and whether there was more. Invalid bytes are shown as
// U+FFFD, and a character at the end of which some bytes are still to come is
// left out.
func (t *Tail) Text() (text string, truncated bool) {
	b := t.buf[:len(t.buf)-plaintext.Unfinished(t.buf)]
	truncated = t.total > int64(t.limit)
	text = string(cutFront(b, t.limit))
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		truncated = truncated || len(text) > t.limit
		text = string(cutFront([]byte(text), t.limit))
	}
	return text, truncated
}

// cutFront returns the last bytes of b, at most limit, without the rest of a
// character whose beginning is cut off.
func cutFront(b []byte, limit int) []byte {
	if len(b) <= limit || limit == 0 {
		return b[:min(len(b), limit)]
	}
	from := len(b) - limit
	for i := from; i >= 0 && i > from-utf8.UTFMax; i-- {
		if !utf8.RuneStart(b[i]) {
			continue
		}
		if _, size := utf8.DecodeRune(b[i:]); i < from && i+size > from {
			from = i + size
		}
		break
	}
	return b[from:]
}
