package view

import (
	"strings"
	"unicode/utf8"
)

// A long text is drawn in pieces. Then text that is added at the end costs no more than the last
// pieces, and only the visible pieces have to be kept. Pieces are split at the boundaries of
// Markdown blocks. If there is none for too long, they are split between lines, or else between
// words.
const (
	softPiece = 8 << 10  // beyond, any beginning of a line that looks like a block ends a piece
	hardPiece = 16 << 10 // beyond, any beginning of a line does
	maxPiece  = 32 << 10 // no piece is longer
	codePiece = 4 << 10  // code is split at the first empty line beyond, and at any line beyond half as much again
)

// A piece is a part of a text that is drawn separately.
type piece struct {
	start, end int  // of the text
	gap        bool // an empty line comes before
	mid        bool // it begins within a line
	code       bool // it is lines of code
	// Of code:
	info   string // what language it is in
	fence  string // what ends it
	first  bool   // the fence comes first
	closed bool   // the fence comes last
	indent int    // how far the fence is indented
}

// splitMarkdown splits a text. pieces are the pieces of an earlier, shorter version of the text, or
// nil; splitMarkdown reuses the slice.
//
// The beginning of a piece depends on nothing after its first line, so all pieces except the last
// two remain valid when the text grows.
func splitMarkdown(text string, pieces []piece) []piece {
	s := splitter{text: text, resume: -1}
	pos := 0
	if n := len(pieces) - 2; n >= 0 {
		p := pieces[n]
		s.pieces = pieces[:n]
		pos = p.start
		if p.mid {
			s.open, s.cur = true, piece{start: pos, mid: true}
		} else {
			s.resume, s.gap = pos, p.gap
		}
	}
	for pos < len(text) {
		pos = s.line(pos)
	}
	s.close(len(text))
	return s.pieces
}

type splitter struct {
	text   string
	pieces []piece
	open   bool  // there is a piece that has not ended
	cur    piece // which
	blank  bool  // the line before was empty
	list   bool  // the piece is a list
	resume int   // where splitting began again, at the beginning of a piece, and
	gap    bool  // what that has before it
}

// line takes the line at pos and returns where the next begins.
func (s *splitter) line(pos int) int {
	end, next := len(s.text), len(s.text)
	if i := strings.IndexByte(s.text[pos:], '\n'); i >= 0 {
		end, next = pos+i, pos+i+1
	}
	l := s.text[pos:end]
	if n := len(s.pieces); !s.open && n > 0 && s.pieces[n-1].code && !s.pieces[n-1].closed {
		s.goOn(s.pieces[n-1], pos)
	}
	if s.open && s.cur.code {
		s.codeLine(l, pos, end, next)
		return next
	}
	trimmed := strings.TrimLeft(l, " \t")
	indent := len(l) - len(trimmed)
	if strings.TrimRight(trimmed, "\r") == "" {
		s.blank = true
		return next
	}
	if f := fence(trimmed); f != "" && (indent < 2 || indent < 4 && !s.list) {
		s.close(pos)
		s.begin(pos, true)
		s.cur.code, s.cur.fence, s.cur.first, s.cur.indent = true, f, true, indent
		s.cur.info, _, _ = strings.Cut(strings.TrimSpace(trimmed[len(f):]), " ")
		return next
	}
	switch size, item := pos-s.cur.start, isItem(trimmed); {
	case !s.open:
		s.begin(pos, true)
		s.list = item
	case size == 0: // in the middle of a line
	case s.blank && indent < 4 && !(s.list && (indent >= 2 || item)), !s.blank && heading(l):
		s.close(pos)
		s.begin(pos, true)
		s.list = item
	case size > softPiece && (s.blank || item && indent == 0), size > hardPiece:
		gap := s.blank && !(s.list && item)
		s.close(pos)
		s.begin(pos, gap)
		s.list = item
	}
	s.blank = false
	whole := s.cur.start == pos
	for end-s.cur.start > maxPiece {
		at := s.cur.start + breakAt(s.text[s.cur.start:s.cur.start+maxPiece])
		s.close(at)
		s.begin(at, false)
		s.cur.mid = at > pos
		whole = false
	}
	if whole && heading(l) {
		s.close(next)
	}
	return next
}

// codeLine takes a line within code.
func (s *splitter) codeLine(l string, pos, end, next int) {
	t := strings.TrimLeft(l, " ")
	if len(l)-len(t) < 4 && strings.HasPrefix(t, s.cur.fence) && strings.Trim(t, s.cur.fence[:1]+" \t\r") == "" {
		s.cur.closed = true
		s.close(next)
		return
	}
	size := pos - s.cur.start
	if size > codePiece && strings.TrimSpace(l) == "" || size > codePiece*3/2 {
		p := s.cur
		s.close(pos)
		s.goOn(p, pos)
	}
	for end-s.cur.start > maxPiece {
		p := s.cur
		at := p.start + breakAt(s.text[p.start:p.start+maxPiece])
		s.close(at)
		s.goOn(p, at)
	}
}

// goOn begins the next piece of code.
func (s *splitter) goOn(p piece, pos int) {
	s.begin(pos, false)
	s.cur.code, s.cur.info, s.cur.fence, s.cur.indent = true, p.info, p.fence, p.indent
}

func (s *splitter) begin(pos int, gap bool) {
	if pos == s.resume {
		gap = s.gap
	}
	s.open, s.list, s.blank = true, false, false
	s.cur = piece{start: pos, gap: gap && len(s.pieces) > 0}
}

func (s *splitter) close(pos int) {
	if s.open {
		s.cur.end = pos
		s.pieces = append(s.pieces, s.cur)
	}
	s.open, s.list = false, false
}

// fence returns what a line of code fence consists of; "" if it is none.
func fence(l string) string {
	if len(l) < 3 || len(l) > 1000 || l[0] != '`' && l[0] != '~' {
		return ""
	}
	n := 0
	for n < len(l) && l[n] == l[0] {
		n++
	}
	if n < 3 || l[0] == '`' && strings.Contains(l[n:], "`") {
		return ""
	}
	return l[:n]
}

// heading reports whether a line is a heading that begins with number signs.
func heading(l string) bool {
	t := strings.TrimLeft(l, " ")
	n := 0
	for n < len(t) && t[n] == '#' {
		n++
	}
	return len(l)-len(t) < 4 && n > 0 && n < 7 && (n == len(t) || t[n] == ' ' || t[n] == '\t')
}

// isItem reports whether a line begins an item of a list.
func isItem(l string) bool {
	n := 0
	for n < len(l) && n < 9 && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	switch {
	case n > 0:
		return len(l) > n && (l[n] == '.' || l[n] == ')') && (len(l) == n+1 || l[n+1] == ' ' || l[n+1] == '\t')
	case l == "":
		return false
	}
	return (l[0] == '-' || l[0] == '*' || l[0] == '+') && (len(l) == 1 || l[1] == ' ' || l[1] == '\t')
}

// breakAt returns the position at which to break a text that is too long: after its last space if
// that is in the last quarter, and otherwise between two characters.
func breakAt(s string) int {
	if i := strings.LastIndexByte(s, ' '); i > len(s)*3/4 {
		return i + 1
	}
	i := len(s) - 1
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return max(i, 1)
}
