package tool

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// Bounds of what [Read] shows at once. They are the same for people and for language models,
// so that what a result says it shows is what both have seen.
const (
	MaxReadLines = 2000
	MaxReadBytes = MaxText
	// MaxLine is how much of a line is shown, in characters, and maxRest how much of one
	// from a column on, in bytes.
	MaxLine = 2000
	maxRest = 16 << 10
)

// A part is what is shown of a text. Only partOf makes one, so that nothing else knows, or
// says, which lines were shown.
type part struct {
	text        string // the lines, each with its end; a line that is cut says so
	first, last int    // the lines, counted from 1; last is first-1 if there are none
	total       int    // lines of the whole text; the last one may be unfinished
	cut         []int  // the lines that are not shown whole
	bounded     bool   // there is more of what was asked for
	next        int    // the column to read on from, in the first line of cut
}

// partOf returns count lines of a text from the line from on, of bytes at most: 0 stands for
// the first line, and for all that there are. With a column above 0 it is the line from
// alone, from that character on.
func partOf(text string, from, count, column uint32, bytes int) part {
	p := part{first: int(max(from, 1)), total: prose.Lines(text)}
	p.last = p.first - 1
	if p.first > p.total {
		return p
	}
	for range p.first - 1 {
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	if column > 0 {
		line, _, _ := strings.Cut(text, "\n")
		p.rest(line, int(column))
		return p
	}
	most := MaxReadLines
	if count > 0 {
		most = int(min(count, MaxReadLines))
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		shown := cutLine(line, p.last+1)
		if n := p.last - p.first + 1; n == most || b.Len()+len(shown) > bytes {
			p.bounded = count == 0 || n < int(count)
			break
		}
		b.WriteString(shown)
		p.last++
		if shown != line {
			p.cut = append(p.cut, p.last)
		}
	}
	p.text, p.next = b.String(), MaxLine+1
	return p
}

// rest is partOf for one line.
func (p *part) rest(line string, column int) {
	p.last, p.cut = p.first, []int{p.first}
	start, _ := column0(line, column-1)
	end := min(len(line), start+maxRest)
	for end > start && end < len(line) && !utf8.RuneStart(line[end]) {
		end--
	}
	p.text = line[start:end] + "\n"
	if end < len(line) {
		p.next = column + utf8.RuneCountInString(line[start:end])
		more := utf8.RuneCountInString(line[end:])
		p.text = fmt.Sprintf("%s[… %d more characters of line %d]\n", line[start:end], more, p.first)
	}
}

// cutLine returns a line with a number as it is shown.
func cutLine(line string, number int) string {
	end, more := column0(strings.TrimSuffix(line, "\n"), MaxLine)
	if more == 0 {
		return line
	}
	return fmt.Sprintf("%s[… %d more characters of line %d]\n", line[:end], more, number)
}

// column0 returns where the first n characters of a line end, and how many follow.
func column0(line string, n int) (end, more int) {
	if len(line) <= n {
		return len(line), 0
	}
	for range n {
		if end == len(line) {
			return end, 0
		}
		_, size := utf8.DecodeRuneInString(line[end:])
		end += size
	}
	return end, utf8.RuneCountInString(line[end:])
}

// whole reports whether the part is all of the text.
func (p *part) whole() bool { return p.first == 1 && p.last == p.total && len(p.cut) == 0 }

// seen returns the lines that were shown as they are: whole, and without a sign for bytes that are not UTF-8.
func (p *part) seen() (all []served.Range) {
	n := p.first - 1
	for line := range strings.Lines(p.text) {
		if n++; slices.Contains(p.cut, n) || !utf8.ValidString(line) {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].From+all[last].N == n {
			all[last].N++
		} else {
			all = append(all, served.Range{From: n, N: 1})
		}
	}
	return all
}

// says says which lines of how many were shown, and how to see the others, for a language
// model.
func (p *part) says(h Hints) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[lines %d-%d of %d", p.first, p.last, p.total)
	if p.last < p.total {
		fmt.Fprintf(&b, "; %s", h.ReadOn("", uint32(p.last)+1))
	}
	b.WriteString(p.saysCut(h))
	b.WriteString("]")
	return b.String()
}

// saysCut says which lines were cut, as the end of a sentence; "" if none were.
func (p *part) saysCut(h Hints) string {
	if len(p.cut) == 0 || p.next == 0 {
		return ""
	}
	const most = 5
	var names []string
	for _, n := range p.cut[:min(len(p.cut), most)] {
		names = append(names, fmt.Sprint(n))
	}
	said := "; line " + names[0] + " is cut"
	if len(p.cut) > 1 {
		said = "; cut are lines " + strings.Join(names, ", ")
	}
	if len(p.cut) > most {
		said += fmt.Sprintf(" and %d more", len(p.cut)-most)
	}
	return said + ": " + h.ReadLine(uint32(slices.Min(p.cut)), uint32(p.next))
}
