package view

import "strings"

// A Position is a place in the lines of a conversation: a line, from 0, and a cell of it.
type Position struct{ Line, Cell int }

// before reports whether p comes before q.
func (p Position) before(q Position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Cell < q.Cell
}

// Ordered returns two positions in their order.
func Ordered(a, b Position) (from, to Position) {
	if b.before(a) {
		return b, a
	}
	return a, b
}

// Selected returns the text between two positions, to included, as it was before it was drawn: lines that
// were wrapped are whole again, and marks, line numbers and indentation that all lines have are left out.
// It returns at most maxCopied bytes.
func (t *Transcript) Selected(from, to Position) string {
	from, to = Ordered(from, to)
	from.Line = max(from.Line, 0)
	to.Line = min(to.Line, t.Height()-1)
	if to.Line < from.Line {
		return ""
	}
	t.settle(from.Line, to.Line-from.Line+1)
	var texts []string // lines, before they were wrapped
	size := 0
	first := true
	t.eachLine(from.Line, to.Line-from.Line+1, func(n int, l line) bool {
		a, b := 0, t.width
		if n == from.Line {
			a = from.Cell
		}
		if n == to.Line {
			b = to.Cell + 1
		}
		text, continues, space := cleanCells(l, a, b)
		switch {
		case continues && !first:
			last := &texts[len(texts)-1]
			if space {
				*last = strings.TrimRight(*last, " ") + " "
			}
			*last += text
		default:
			texts = append(texts, text)
		}
		first = false
		size += len(text)
		return size < maxCopied
	})
	if len(texts) == 1 {
		return strings.TrimSpace(texts[0])
	}
	common := -1
	for i, s := range texts {
		if texts[i] = strings.TrimRight(s, " "); texts[i] == "" || i == 0 && from.Cell > 0 {
			continue
		}
		if n := len(s) - len(strings.TrimLeft(s, " ")); common < 0 || n < common {
			common = n
		}
	}
	for i, s := range texts {
		texts[i] = s[min(max(common, 0), len(s)-len(strings.TrimLeft(s, " "))):]
	}
	return strings.Trim(strings.Join(texts, "\n"), "\n")
}

// maxCopied bounds what Selected returns.
const maxCopied = 4 << 20

// eachLine calls f with lines as they are before they are rendered, until it returns false.
func (t *Transcript) eachLine(from, n int, f func(n int, l line) bool) {
	at, end := from, from+n
	i, row := t.heights.find(from)
	for ; i < len(t.items) && at < end; i, row = i+1, 0 {
		it := t.items[i]
		if g := it.gapHeight(); row < g {
			if !f(at, nil) {
				return
			}
			at++
		} else {
			row -= g
		}
		for j := 0; j < len(it.parts) && at < end; j++ {
			p := &it.parts[j]
			if row >= p.height {
				row -= p.height
				continue
			}
			ls := t.linesOf(p)
			for _, l := range ls[min(row, len(ls)):] {
				if at == end || !f(at, l) {
					return
				}
				at++
			}
			row = 0
		}
	}
}

// cleanCells returns the text of the cells from a to b, without decoration. continues says that the line
// continues the one before it, and space that a space was left out between them.
func cleanCells(l line, a, b int) (text string, continues, space bool) {
	var out strings.Builder
	at := 0
	for _, s := range l {
		deco := s.look.attr&decoration != 0
		if !deco && s.look.attr&(softBreak|hardBreak) != 0 {
			continues, space = true, s.look.attr&softBreak != 0
		}
		for rest := s.text; rest != ""; {
			n, w := firstCluster(rest)
			if !deco && at >= a && at < b {
				out.WriteString(rest[:n])
			}
			at += w
			rest = rest[n:]
		}
	}
	return out.String(), continues, space
}

// decorated marks a line as decoration, which is not copied.
func decorated(l line) line {
	out := make(line, len(l))
	for i, s := range l {
		s.look.attr |= decoration
		out[i] = s
	}
	return out
}
