package view

import (
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
)

type chromaLexer = chroma.Lexer

// maxWords bounds the words of lines that are compared, in each of two.
const maxWords = 200

// A byteRange is a part of a text.
type byteRange struct{ start, end int }

// changedWords returns the words that differ between two lines. It returns nothing if the lines
// have less than a third in common, because marks everywhere would not help.
func changedWords(a, b string) (inA, inB []byteRange) {
	wa, wb := words(a), words(b)
	if len(wa) == 0 || len(wb) == 0 || len(wa) > maxWords || len(wb) > maxWords {
		return nil, nil
	}
	// the longest words that both have, in order
	n, m := len(wa), len(wb)
	best := make([]int, (n+1)*(m+1))
	at := func(i, j int) *int { return &best[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			v := max(*at(i+1, j), *at(i, j+1))
			if word := a[wa[i].start:wa[i].end]; word == b[wb[j].start:wb[j].end] {
				v = max(v, *at(i+1, j+1)+len(word))
			}
			*at(i, j) = v
		}
	}
	if *at(0, 0)*3 < max(len(a), len(b)) {
		return nil, nil
	}
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && a[wa[i].start:wa[i].end] == b[wb[j].start:wb[j].end] && *at(i, j) == *at(i+1, j+1)+wa[i].end-wa[i].start:
			i, j = i+1, j+1
		case j == m || i < n && *at(i+1, j) >= *at(i, j+1):
			inA = joinRange(inA, wa[i])
			i++
		default:
			inB = joinRange(inB, wb[j])
			j++
		}
	}
	return inA, inB
}

func joinRange(rs []byteRange, r byteRange) []byteRange {
	if n := len(rs); n > 0 && rs[n-1].end == r.start {
		rs[n-1].end = r.end
		return rs
	}
	return append(rs, r)
}

// words splits a line into words, white space and signs.
func words(s string) []byteRange {
	var out []byteRange
	class := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		c := class(r)
		j := i + n
		for j < len(s) && c != 0 {
			r, n := utf8.DecodeRuneInString(s[j:])
			if class(r) != c {
				break
			}
			j += n
		}
		out = append(out, byteRange{i, j})
		i = j
	}
	return out
}

// marked returns a line in which parts of the text have another look on top of their own.
func marked(l line, rs []byteRange, k look) line {
	if len(rs) == 0 {
		return l
	}
	var out line
	pos := 0
	for _, s := range l {
		for text := s.text; text != ""; {
			for len(rs) > 0 && rs[0].end <= pos {
				rs = rs[1:]
			}
			n, in := len(text), false
			if len(rs) > 0 {
				switch {
				case pos >= rs[0].start:
					n, in = min(n, rs[0].end-pos), true
				default:
					n = min(n, rs[0].start-pos)
				}
			}
			lk := s.look
			if in {
				lk = lk.on(k)
				lk.attr |= k.attr
			}
			out = out.put(text[:n], lk)
			text = text[n:]
			pos += n
		}
	}
	return out
}
