package view

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A span is text of one look, without line breaks and control characters.
type span struct {
	text string
	look look
}

// A line is what is printed on one line.
type line []span

// put returns the line with more text at the end.
func (l line) put(text string, k look) line {
	if text == "" {
		return l
	}
	if n := len(l); n > 0 && l[n-1].look == k {
		l[n-1].text += text
		return l
	}
	return append(l, span{text, k})
}

// width returns the width of the line in cells.
func (l line) width() int {
	w := 0
	for _, s := range l {
		w += textWidth(s.text)
	}
	return w
}

// plain returns the text of the line.
func (l line) plain() string {
	if len(l) == 1 {
		return l[0].text
	}
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// before returns lines with a prefix: first before the first, rest before the others.
func before(lines []line, first, rest line) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		p := rest
		if i == 0 {
			p = first
		} else if len(l) == 0 && strings.TrimSpace(rest.plain()) == "" {
			continue
		}
		out[i] = append(append(make(line, 0, len(p)+len(l)), p...), l...)
	}
	return out
}

// textWidth returns the width of text without escape sequences, in cells. Terminals differ in the
// width of characters of several code points; the result is the largest width that any of them
// uses.
func textWidth(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return max(ansi.StringWidth(s), ansi.StringWidthWc(s))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// firstCluster returns the length of the first character of s and its width in cells.
func firstCluster(s string) (n, width int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	c, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if len(c) == 0 {
		return 1, 1
	}
	if _, n := utf8.DecodeRuneInString(c); n < len(c) {
		w = max(w, ansi.StringWidthWc(c))
	}
	return len(c), w
}

// render returns the line as text with escape sequences. Every look ends within the line.
func (th *Theme) render(l line) string {
	var b strings.Builder
	cur := look{}
	for _, s := range l {
		if s.text == "" {
			continue
		}
		if s.look.attr &^= unprinted; !th.plain && s.look != cur {
			th.change(&b, cur, s.look)
			cur = s.look
		}
		b.WriteString(s.text)
	}
	if cur != (look{}) {
		th.change(&b, cur, look{})
	}
	return b.String()
}

// change writes the escape sequences that lead from one look to another.
func (th *Theme) change(b *strings.Builder, from, to look) {
	if from.link != to.link && th.links {
		if from.link != "" {
			b.WriteString(ansi.ResetHyperlink())
		}
		if to.link != "" {
			b.WriteString(ansi.SetHyperlink(to.link))
		}
	}
	from.link, to.link = "", ""
	if from == to {
		return
	}
	if from != (look{}) {
		b.WriteString("\x1b[m")
	}
	if to == (look{}) {
		return
	}
	b.WriteString("\x1b[")
	sep := false
	param := func(p string) {
		if p == "" {
			return
		}
		if sep {
			b.WriteByte(';')
		}
		b.WriteString(p)
		sep = true
	}
	for _, a := range [...]struct {
		attr attr
		code string
	}{{bold, "1"}, {faint, "2"}, {italic, "3"}, {underline, "4"}, {reverse, "7"}, {strike, "9"}} {
		if to.attr&a.attr != 0 {
			param(a.code)
		}
	}
	param(to.raw)
	param(to.fg)
	param(to.bg)
	b.WriteByte('m')
}

// wrap breaks a line into lines of at most width cells, between words where that is possible.
// White space at which it breaks is left out, and indentation takes half of the
// width at most. A word that does not fit on a line of its own is broken.
func wrap(l line, width int) []line {
	width = max(width, 1)
	if len(l) == 0 || l.width() <= width {
		return []line{l}
	}
	cs := clusters(l)
	indent := 0
	for indent < len(cs) && cs[indent].space {
		indent++
	}
	cs = cs[max(indent-width/2, 0):]
	indent = min(indent, width/2)
	var out []line
	for start := 0; start < len(cs); {
		i, used, end, next := start, 0, -1, -1
		for i < len(cs) && used+cs[i].width <= width {
			switch {
			case i <= start || len(out) == 0 && i < indent:
			case cs[i].space:
				end, next = i, i+1
			case cs[i].width == 2 || cs[i-1].width == 2:
				end, next = i, i
			}
			used += cs[i].width
			i++
		}
		switch {
		case i == len(cs):
			end, next = i, i
		case cs[i].space:
			end, next = i, i+1
		case next < 0 || i-next >= min(8, width/3) && !fits(cs[next:], width):
			end = max(i, start+1)
			next = end
		}
		row := join(cs[start:trimmed(cs, start, end)], l)
		switch {
		case start == 0 || len(row) == 0:
		case cs[start-1].space:
			row[0].look.attr |= softBreak
		default:
			row[0].look.attr |= hardBreak
		}
		out = append(out, row)
		start = next
		for start < len(cs) && cs[start].space {
			start++
		}
	}
	return out
}

// chop breaks a line into lines of at most width cells without leaving anything out.
func chop(l line, width int) []line {
	width = max(width, 1)
	if len(l) == 0 || l.width() <= width {
		return []line{l}
	}
	var out []line
	cs := clusters(l)
	for start := 0; start < len(cs); {
		i, used := start, 0
		for i < len(cs) && (i == start || used+cs[i].width <= width) {
			used += cs[i].width
			i++
		}
		out = append(out, join(cs[start:i], l))
		start = i
	}
	for _, row := range out[1:] {
		if len(row) > 0 {
			row[0].look.attr |= hardBreak
		}
	}
	return out
}

// cut cuts the line to width cells. "…" replaces what does not fit.
func cut(l line, width int) line {
	if l.width() <= width {
		return l
	}
	if width <= 0 {
		return nil
	}
	cs := clusters(l)
	i, used := 0, 0
	for i < len(cs) && used+cs[i].width <= width-1 {
		used += cs[i].width
		i++
	}
	out := join(cs[:i], l)
	k := look{}
	if i > 0 {
		k = l[cs[i-1].span].look
	}
	return out.put("…", k)
}

// A cluster is a grapheme cluster: what users perceive as one character.
type cluster struct {
	text  string
	span  int
	width int
	space bool
}

func clusters(l line) []cluster {
	n := 0
	for _, s := range l {
		n += len(s.text)
	}
	cs := make([]cluster, 0, n)
	for i, s := range l {
		for text := s.text; text != ""; {
			n, w := firstCluster(text)
			cs = append(cs, cluster{text[:n], i, w, text[0] == ' '})
			text = text[n:]
		}
	}
	return cs
}

// join makes a line of characters of the line l. They follow each other there, so
// the text of each span is a part of the text that there is.
func join(cs []cluster, l line) line {
	var out line
	for i := 0; i < len(cs); {
		j, n := i, 0
		for j < len(cs) && cs[j].span == cs[i].span {
			n += len(cs[j].text)
			j++
		}
		var b strings.Builder
		b.Grow(n)
		for _, c := range cs[i:j] {
			b.WriteString(c.text)
		}
		out = append(out, span{b.String(), l[cs[i].span].look})
		i = j
	}
	return out
}

// fits reports whether the word at the beginning of cs fits on a line.
func fits(cs []cluster, width int) bool {
	used := 0
	for _, c := range cs {
		if c.space {
			return true
		}
		if used += c.width; used > width {
			return false
		}
	}
	return true
}

// trimmed returns where cs[start:end] ends without the white space at its end.
func trimmed(cs []cluster, start, end int) int {
	for end > start && cs[end-1].space {
		end--
	}
	return end
}

// tabs returns text with tabs as spaces, up to the next multiple of size.
func tabs(s string, size int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			n := size - col%size
			b.WriteString(strings.Repeat(" ", n))
			col += n
		}
		b.WriteString(part)
		col += textWidth(part)
	}
	return b.String()
}

// pad returns the line with spaces of a look up to a width.
func pad(l line, width int, k look) line {
	if n := width - l.width(); n > 0 {
		return l.put(strings.Repeat(" ", n), k)
	}
	return l
}

// extend appends a line to l, which must not be used afterwards.
func extend(l, more line) line {
	for _, s := range more {
		l = l.put(s.text, s.look)
	}
	return l
}
