package plain

import (
	"io"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxHeld bounds the beginning of a control sequence that is held back until the rest arrives, in
// bytes.
const maxHeld = 4096

// A Stream writes text that arrives in pieces, made safe for a terminal. It recognizes a control
// sequence even if it is split between pieces, up to 4 kB of it. Only one goroutine may use a
// Stream at a time. The zero value is ready once W is set. Callers must call Flush or EndLine at
// the end.
type Stream struct {
	W    io.Writer
	held string
	last byte // the last byte written; 0 means none
}

// Write writes a piece.
func (s *Stream) Write(text string) error {
	text = s.held + text
	s.held = ""
	if at := incomplete(text); at >= 0 && len(text)-at <= maxHeld {
		text, s.held = text[:at], text[at:]
	}
	return s.writeSafe(text)
}

// Flush writes the text that is held back.
func (s *Stream) Flush() error {
	text := s.held
	s.held = ""
	return s.writeSafe(text)
}

// EndLine flushes, and ends the current line unless it is empty.
func (s *Stream) EndLine() error {
	if err := s.Flush(); err != nil {
		return err
	}
	if s.last == 0 || s.last == '\n' {
		return nil
	}
	return s.writeSafe("\n")
}

func (s *Stream) writeSafe(text string) error {
	text = safetext.Text(text)
	if text == "" {
		return nil
	}
	s.last = text[len(text)-1]
	_, err := io.WriteString(s.W, text)
	return err
}

// incomplete returns the position of an unfinished control sequence at the end of s, or of a
// carriage return that may be half of a line break. It returns -1 if there is neither.
func incomplete(s string) int {
	if strings.HasSuffix(s, "\r") {
		return len(s) - 1
	}
	from := max(0, len(s)-maxHeld)
	at := strings.LastIndexByte(s[from:], 0x1b)
	intro := 1
	// The introducers of one character: DCS, SOS, CSI, OSC, PM and APC.
	for _, c := range []string{"\u0090", "\u0098", "\u009b", "\u009d", "\u009e", "\u009f"} {
		if i := strings.LastIndex(s[from:], c); i > at {
			at, intro = i, 2
		}
	}
	if at < 0 {
		return -1
	}
	at += from
	rest := s[at+intro:]
	kind := byte('[')
	switch {
	case intro == 2 && s[at+1] != 0x9b:
		kind = ']'
	case intro == 1 && rest == "":
		return at
	case intro == 1:
		kind, rest = rest[0], rest[1:]
	}
	switch kind {
	case '[':
		if strings.IndexFunc(rest, func(r rune) bool { return r < 0x20 || r > 0x3f }) >= 0 {
			return -1
		}
		return at
	case ']', 'P', 'X', '^', '_':
		if strings.ContainsAny(rest, "\a\n\u009c") {
			return -1
		}
		return at
	}
	return -1
}
