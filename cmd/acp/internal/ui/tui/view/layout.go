package view

import (
	"github.com/charmbracelet/x/ansi"
	"github.com/goacp/acp/transcript"
)

// maxCached bounds the drawn lines that are kept, in bytes. Beyond it, lines that are far from the
// visible part are dropped, and drawn again when they become visible.
const maxCached = 8 << 20

// nearRows is the minimum number of lines that are kept above and below the visible part.
const nearRows = 300

// Whether an entry is folded.
type folding uint8

const (
	byDefault folding = iota
	opened
	closed
)

// An item is the drawn form of an entry.
type item struct {
	seq   uint64
	kind  transcript.EntryKind
	id    string
	entry transcript.Entry // what the parts are of; entries never change, so another one is a change
	stale bool             // the entry may be another one by now
	open  folding

	shows   []string // the terminals that it shows
	parts   []part
	split   []split // of the texts of a message
	height  int     // of the parts together
	inexact int     // how many parts have a height that is estimated
	todo    int     // all of them are among the first so many
	gap     bool    // an empty line comes before
	compact bool    // it needs none after another one of the sort
}

// A part is the unit of drawing: a part of an item whose lines are drawn together.
type part struct {
	draw   func(width int) []line
	plain  func(width int) []line // as many lines for less work; nil if there is no such way
	src    string                 // of a piece of text: the text; what it is drawn from otherwise is in draw
	piece  piece                  // of a text, without its position
	text   bool                   // it is a piece of text
	prefix prefix                 // before the lines
	gap    bool                   // an empty line comes first

	lines  []string // nil if not drawn, or given up
	height int
	exact  bool
	bytes  int
}

// A prefix precedes the lines of a part: first the first line, rest all others. Both have the same
// width.
type prefix struct{ first, rest line }

func newItem(e transcript.Entry) *item {
	it := &item{seq: e.Seq(), kind: e.EntryKind(), id: e.EntryID(), stale: true, gap: true, height: 2, inexact: 1}
	it.parts = []part{{height: 2}}
	return it
}

func (p *part) forget() { p.lines, p.exact, p.bytes = nil, false, 0 }

func (it *item) gapHeight() int {
	if it.gap && it.height > 0 {
		return 1
	}
	return 0
}

func (it *item) total() int { return it.height + it.gapHeight() }

func (it *item) bytes() int {
	n := 0
	for i := range it.parts {
		n += it.parts[i].bytes
	}
	return n
}

// fresh rebuilds the parts of an item if its entry has changed.
func (t *Transcript) fresh(i int) {
	it := t.items[i]
	if !it.stale {
		return
	}
	it.stale = false
	e := t.snap.Entry(it.seq)
	if e == nil || e == it.entry {
		return
	}
	before := it.total()
	it.entry = e
	t.work++
	t.build(it, e)
	it.height, it.inexact, it.todo = 0, 0, len(it.parts)
	for j := range it.parts {
		it.height += it.parts[j].height
		if !it.parts[j].exact {
			it.inexact++
		}
	}
	t.spacing(i, before)
}

// spacing decides whether there is an empty line before an item, and before the one that follows.
// before is the height that the tree has for the item.
func (t *Transcript) spacing(i, before int) {
	t.gapOf(i)
	t.heights.add(i, t.items[i].total()-before)
	for j := i + 1; j < len(t.items) && j < i+1000; j++ {
		if t.items[j].height > 0 {
			before := t.items[j].total()
			t.gapOf(j)
			t.heights.add(j, t.items[j].total()-before)
			break
		}
	}
}

// gapOf decides whether there is an empty line before an item. It skips a bounded number of items
// that show nothing.
func (t *Transcript) gapOf(i int) {
	it := t.items[i]
	it.gap = false
	for j := i - 1; j >= 0 && j > i-1000; j-- {
		if prev := t.items[j]; prev.height > 0 {
			it.gap = !(prev.compact && it.compact)
			return
		}
	}
}

// drawPart draws a part of a fresh item.
func (t *Transcript) drawPart(i, j int) {
	it := t.items[i]
	p := &it.parts[j]
	t.cached -= p.bytes
	p.lines, p.bytes = t.drawn(p), 0
	for _, l := range p.lines {
		p.bytes += len(l) + 16
	}
	t.cached += p.bytes
	t.known(i, j, len(p.lines))
}

// measurePart determines the height of a part of a fresh item. It draws the part if that is not
// more work than measuring.
func (t *Transcript) measurePart(i, j int) {
	p := &t.items[i].parts[j]
	if p.plain == nil {
		t.drawPart(i, j)
		return
	}
	n := len(p.plain(t.room(p)))
	if p.gap && n > 0 {
		n++
	}
	t.known(i, j, n)
}

// known records the exact height of a part.
func (t *Transcript) known(i, j, height int) {
	it := t.items[i]
	p := &it.parts[j]
	before := it.total()
	t.work++
	if !p.exact {
		p.exact = true
		it.inexact--
	}
	if d := height - p.height; d != 0 {
		p.height += d
		was := it.height
		it.height += d
		if was == 0 || it.height == 0 {
			t.spacing(i, before)
		} else {
			t.heights.add(i, it.total()-before)
		}
	}
}

// room returns the width that is left for the lines of a part after its prefix.
func (t *Transcript) room(p *part) int {
	return max(max(t.width, minWidth)-p.prefix.first.width(), 1)
}

// drawn returns the lines of a part.
func (t *Transcript) drawn(p *part) []string {
	ls := t.linesOf(p)
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = t.th.render(l)
	}
	return out
}

// linesOf returns the lines of a part before they are rendered.
func (t *Transcript) linesOf(p *part) []line {
	if p.draw == nil {
		return nil
	}
	ls := before(p.draw(t.room(p)), decorated(p.prefix.first), decorated(p.prefix.rest))
	if p.gap && len(ls) > 0 {
		ls = append([]line{nil}, ls...)
	}
	for i, l := range ls {
		if t.width < minWidth || l.width() > t.width {
			ls[i] = cut(l, t.width)
		}
	}
	return ls
}

// settle draws n lines, beginning with from.
func (t *Transcript) settle(from, n int) {
	for range 1000 { // every round draws something
		if !t.settleOnce(from, n) {
			return
		}
	}
}

// settleOnce draws the lines that are not drawn yet, until a height changes. It reports whether one
// did, because then other lines have moved into the range.
func (t *Transcript) settleOnce(from, n int) bool {
	i, row := t.heights.find(from)
	top := from - row
	for ; i < len(t.items) && top < from+n; i++ {
		it := t.items[i]
		total := it.total()
		t.fresh(i)
		if it.total() != total {
			return true
		}
		at := top + it.gapHeight()
		for j := range it.parts {
			if at >= from+n {
				break
			}
			h := it.parts[j].height
			if at+h > from && !it.parts[j].exact {
				t.drawPart(i, j)
				if it.parts[j].height != h {
					return true
				}
			}
			at += h
		}
		top += total
	}
	return false
}

// settleTail draws the last n lines.
func (t *Transcript) settleTail(n int) {
	rows := 0
	for i := len(t.items) - 1; i >= 0 && rows < n; i-- {
		t.fresh(i)
		it := t.items[i]
		rows += it.height
		if it.inexact == 0 {
			rows += it.gapHeight()
			continue
		}
		rows -= it.height
		for j := len(it.parts) - 1; j >= 0 && rows < n; j-- {
			if !it.parts[j].exact {
				t.drawPart(i, j)
			}
			rows += it.parts[j].height
		}
		rows += it.gapHeight()
	}
}

// sweep drops drawn lines that are far from the visible part and from the end, if there are too
// many.
func (t *Transcript) sweep() {
	if t.cached <= maxCached {
		return
	}
	h := t.Height()
	top := 0
	for _, it := range t.items {
		at := top + it.gapHeight()
		for j := range it.parts {
			p := &it.parts[j]
			end := at + p.height
			near := end > t.from-nearRows && at < t.from+t.rows+nearRows || end > h-t.rows-nearRows
			if p.lines != nil && !near {
				t.cached -= p.bytes
				p.lines, p.bytes = nil, 0
			}
			at = end
		}
		top += it.total()
	}
}

// A tree is a Fenwick tree of heights: finding an item by its line and changing a height both take
// logarithmic time.
type tree struct{ nodes []int }

func (t *tree) reset(n int) { t.nodes = make([]int, n) }

// grow adds a height of 0 at the end.
func (t *tree) grow() {
	i := len(t.nodes) + 1
	v := 0
	for d := 1; d < i&-i; d <<= 1 {
		v += t.nodes[i-d-1]
	}
	t.nodes = append(t.nodes, v)
}

// add changes a height.
func (t *tree) add(i, d int) {
	if d == 0 {
		return
	}
	for i++; i <= len(t.nodes); i += i & -i {
		t.nodes[i-1] += d
	}
}

// sum returns the height of the first n.
func (t *tree) sum(n int) int {
	s := 0
	for ; n > 0; n -= n & -n {
		s += t.nodes[n-1]
	}
	return s
}

// find returns the index of the item at a line, and which of the item's lines that is. Beyond the
// end, the index is the number of items.
func (t *tree) find(row int) (i, rest int) {
	step := 1
	for step*2 <= len(t.nodes) {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if i+step <= len(t.nodes) && t.nodes[i+step-1] <= row {
			row -= t.nodes[i+step-1]
			i += step
		}
	}
	return i, row
}

// stripped returns the text of a drawn line.
func stripped(s string) string { return ansi.Strip(s) }
