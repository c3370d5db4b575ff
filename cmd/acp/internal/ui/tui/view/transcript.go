// Package view draws conversations as lines of text for a terminal.
//
// A [Transcript] draws a whole conversation, however long, and only what is looked at: texts
// are split into pieces that are drawn on their own, what is not on the screen has a
// height that is estimated until there is time to know it, and lines that are far from what is shown
// are given up (see [Transcript.Lines]). The functions [Permission], [Diff], [PatchDiff] and [Plan]
// draw single things.
//
// Lines hold no line breaks and no control characters, and no sequences but those for looks and
// hyperlinks which this package makes; each ends as it began. None is wider than asked,
// whichever way the terminal counts the width of characters.
package view

import (
	"sort"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// minWidth is the narrowest that things are drawn; on narrower screens lines are cut.
const minWidth = 12

// Options are how a conversation is drawn.
type Options struct {
	// ThoughtsOpen shows thoughts in full unless they are folded.
	ThoughtsOpen bool
	// Diff says how changes to files are drawn.
	Diff DiffMode
	// Cwd is an absolute path; paths below it are shown relative to it.
	Cwd string
	// Child returns the conversation of a subagent, nil if there is none. Call
	// [Transcript.Invalidate] when something happened in it.
	Child func(id acpv2.SessionID) *transcript.Snapshot
}

// A Transcript draws one conversation. It is used by one goroutine, and needs no closing.
// Make one with [New].
type Transcript struct {
	th    *Theme
	opts  Options
	width int
	over  bool // nothing runs any longer

	snap    *transcript.Snapshot
	items   []*item // in the order of the conversation
	heights tree    // of the items

	// Which items depend on an entry besides their own: the tool calls that show a terminal.
	shownIn map[string]map[uint64]bool

	from, rows int  // what was looked at last
	tail       bool // that was the end
	cached     int  // bytes of lines that are kept
	work       int  // counts what was drawn or measured

	search search
}

// New returns an empty Transcript of 80 columns.
func New(th *Theme) *Transcript {
	return &Transcript{th: th, width: 80, snap: &transcript.Snapshot{}, rows: 50, tail: true, shownIn: map[string]map[uint64]bool{}}
}

// Set shows a snapshot that came about by the changes since the one before. With nil for
// changes everything is compared. It takes little time: drawing is left to [Transcript.Layout] and
// [Transcript.Lines].
func (t *Transcript) Set(s *transcript.Snapshot, changes []transcript.Change) {
	if s == nil {
		s = &transcript.Snapshot{}
	}
	full := changes == nil
	t.snap = s
	turned := false // what has not ended may have been left behind: see Abandoned
	for _, c := range changes {
		turned = turned || turns(s, c)
		switch {
		case full:
		case c.Trimmed:
			full = true
		case c.Op == transcript.OpCreated && (len(t.items) == 0 || c.Seq > t.items[len(t.items)-1].seq):
			if e := s.Entry(c.Seq); e != nil {
				t.add(e)
			}
		case c.Op == transcript.OpCreated || c.Op == transcript.OpAppended || c.Op == transcript.OpUpdated:
			if i, ok := t.find(c.Seq); !ok {
				full = s.Entry(c.Seq) != nil
			} else {
				t.stale(i)
				if c.Kind == transcript.KindTerminal {
					t.staleShowing(c.ID)
				}
			}
		}
		if c.Kind == transcript.KindPermission && !full {
			t.staleAsked(s.Entry(c.Seq))
		}
	}
	if full || s.Len() != len(t.items) {
		t.compare()
	}
	if turned {
		t.redrawUnfinished()
	}
}

// turns reports whether a turn may have begun or ended by a change.
func turns(s *transcript.Snapshot, c transcript.Change) bool {
	if c.Op == transcript.OpSession {
		return c.Field == transcript.FieldState
	}
	if c.Op != transcript.OpCreated || c.Kind != transcript.KindMessage {
		return false
	}
	m, ok := s.Entry(c.Seq).(*transcript.Message)
	return ok && m.Role == transcript.RoleUser
}

// compare makes the items those of the snapshot.
func (t *Transcript) compare() {
	old := t.items
	t.items = make([]*item, 0, t.snap.Len())
	var gone []*item
	var changed []transcript.Entry
	moved := len(old) != t.snap.Len()
	for e := range t.snap.Entries() {
		for len(old) > 0 && old[0].seq < e.Seq() {
			gone = append(gone, old[0])
			old, moved = old[1:], true
		}
		var it *item
		if len(old) > 0 && old[0].seq == e.Seq() && old[0].kind == e.EntryKind() {
			it, old = old[0], old[1:]
			if it.entry != e {
				it.stale = true
				changed = append(changed, e)
			}
		} else {
			it, moved = newItem(e), true
			changed = append(changed, e)
		}
		t.items = append(t.items, it)
	}
	for _, it := range append(gone, old...) {
		t.cached -= it.bytes()
		t.showsNothing(it)
		if it.kind == transcript.KindTerminal {
			t.staleShowing(it.id)
		}
	}
	for _, e := range changed {
		if e.EntryKind() == transcript.KindTerminal {
			t.staleShowing(e.EntryID())
		}
		t.staleAsked(e)
	}
	if moved {
		t.heights.reset(len(t.items))
		var prev *item
		for i, it := range t.items {
			it.gap = prev != nil && !(prev.compact && it.compact)
			if it.height > 0 {
				prev = it
			}
			t.heights.add(i, it.total())
		}
	}
}

// add takes a new entry at the end.
func (t *Transcript) add(e transcript.Entry) {
	it := newItem(e)
	t.items = append(t.items, it)
	t.heights.grow()
	t.heights.add(len(t.items)-1, it.total())
	if it.kind == transcript.KindTerminal {
		t.staleShowing(e.EntryID())
	}
}

// find returns the index of the item with a number.
func (t *Transcript) find(seq uint64) (int, bool) {
	// New entries are usually the ones that change.
	for i := len(t.items) - 1; i >= 0 && i >= len(t.items)-2; i-- {
		if t.items[i].seq == seq {
			return i, true
		}
	}
	i := sort.Search(len(t.items), func(i int) bool { return t.items[i].seq >= seq })
	return i, i < len(t.items) && t.items[i].seq == seq
}

func (t *Transcript) stale(i int) { t.items[i].stale = true }

// staleShowing has everything drawn anew that shows a terminal.
func (t *Transcript) staleShowing(id string) {
	for seq := range t.shownIn[id] {
		if i, ok := t.find(seq); ok {
			t.stale(i)
			t.items[i].entry = nil
		}
	}
}

// staleAsked has the tool call drawn anew that an entry is a question about: how it stands depends on
// whether there is an answer.
func (t *Transcript) staleAsked(e transcript.Entry) {
	p, ok := e.(*transcript.Permission)
	if !ok {
		return
	}
	if c := t.snap.ToolCall(shown.AskedCall(p)); c != nil {
		t.Invalidate(c.Seq())
	}
}

// all has everything drawn anew. What was known of heights stays as an estimate.
func (t *Transcript) all() {
	for _, it := range t.items {
		it.stale, it.entry = true, nil
		for i := range it.parts {
			it.parts[i].forget()
		}
		it.inexact = len(it.parts)
		it.split = nil
	}
	t.cached = 0
}

// SetWidth sets the width in cells. Lines are at most that wide.
func (t *Transcript) SetWidth(w int) {
	if w = max(w, 1); w != t.width {
		old := max(t.width, 1)
		t.width = w
		for i, it := range t.items {
			before := it.total()
			it.height = 0
			for j := range it.parts {
				p := &it.parts[j]
				p.forget()
				p.height = max(p.height*old/w, min(p.height, 1))
				it.height += p.height
			}
			it.inexact = len(it.parts)
			it.stale, it.entry = true, nil
			t.heights.add(i, it.total()-before)
		}
		t.cached = 0
	}
}

// Width returns the width that was set.
func (t *Transcript) Width() int { return t.width }

// SetTheme changes how everything is coloured.
func (t *Transcript) SetTheme(th *Theme) {
	if t.th != th {
		t.th = th
		t.all()
	}
}

// SetOptions sets how it is drawn.
func (t *Transcript) SetOptions(o Options) {
	t.opts = o
	t.all()
}

// Invalidate has an entry drawn anew although it did not change, such as a subagent whose own
// conversation went on.
func (t *Transcript) Invalidate(seq uint64) {
	if i, ok := t.find(seq); ok {
		t.stale(i)
		t.items[i].entry = nil
	}
}

// SetOver says that nothing runs any longer, or that something does again: what has not ended
// when nothing runs is shown as not finished. It reports whether something is to be drawn anew.
func (t *Transcript) SetOver(over bool) (changed bool) {
	if t.over == over {
		return false
	}
	t.over = over
	return t.redrawUnfinished()
}

// redrawUnfinished has drawn anew what has not ended. It reports whether there is any.
func (t *Transcript) redrawUnfinished() (changed bool) {
	for i, it := range t.items {
		unfinished := false
		switch e := t.snap.Entry(it.seq).(type) {
		case *transcript.ToolCall:
			unfinished = !e.Ended()
		case *transcript.Terminal:
			unfinished = !e.Exited()
		case *transcript.Subagent:
			unfinished = e.State != nil && !e.State.Idle()
		}
		if unfinished {
			t.stale(i)
			it.entry, changed = nil, true
		}
	}
	return changed
}

// Toggle folds an entry if it is unfolded, and else unfolds it. Of entries that cannot be folded
// nothing changes.
func (t *Transcript) Toggle(seq uint64) {
	if i, ok := t.find(seq); ok {
		t.setOpen(i, !t.expanded(t.items[i]))
	}
}

func (t *Transcript) setOpen(i int, open bool) {
	it := t.items[i]
	it.open = closed
	if open {
		it.open = opened
	}
	it.stale, it.entry = true, nil
	it.split = nil
}

// Expanded reports whether an entry is unfolded.
func (t *Transcript) Expanded(seq uint64) bool {
	i, ok := t.find(seq)
	return ok && t.expanded(t.items[i])
}

func (t *Transcript) expanded(it *item) bool {
	if it.open != byDefault {
		return it.open == opened
	}
	if m, ok := t.snap.Entry(it.seq).(*transcript.Message); ok && m.Role == transcript.RoleThought {
		return t.opts.ThoughtsOpen
	}
	return false
}

// ToggleAll unfolds all entries of a kind, or folds them if all are unfolded.
// [transcript.KindMessage] means thoughts: other messages are never folded.
func (t *Transcript) ToggleAll(kind transcript.EntryKind) {
	var of []int
	all := true
	for i, it := range t.items {
		if it.kind != kind {
			continue
		}
		if m, ok := t.snap.Entry(it.seq).(*transcript.Message); ok && m.Role != transcript.RoleThought {
			continue
		}
		of = append(of, i)
		all = all && t.expanded(it)
	}
	for _, i := range of {
		t.setOpen(i, !all)
	}
}

// Height returns the number of lines, as far as it is known: see [Transcript.Layout].
func (t *Transcript) Height() int { return t.heights.sum(len(t.items)) }

// At returns the entry that a line belongs to.
func (t *Transcript) At(line int) (seq uint64, kind transcript.EntryKind, ok bool) {
	if line < 0 || line >= t.Height() {
		return 0, "", false
	}
	i, _ := t.heights.find(line)
	return t.items[i].seq, t.items[i].kind, true
}

// Top returns the first line of an entry, after the empty line before it. Entries that are shown
// as parts of others have none.
func (t *Transcript) Top(seq uint64) (line int, ok bool) {
	i, ok := t.find(seq)
	if !ok || t.items[i].total() == 0 {
		return 0, false
	}
	return t.heights.sum(i) + t.items[i].gapHeight(), true
}

// An Anchor is a place in a conversation that stays where it is when lines above are
// added or get another width. The zero Anchor is the beginning.
type Anchor struct {
	seq  uint64
	part int
	row  int
	rows int // the height of the part then
}

// Anchor returns the place of a line.
func (t *Transcript) Anchor(line int) Anchor {
	if len(t.items) == 0 {
		return Anchor{}
	}
	i, row := t.heights.find(min(max(line, 0), max(t.Height()-1, 0)))
	i = min(i, len(t.items)-1)
	it := t.items[i]
	a := Anchor{seq: it.seq, part: -1, row: row}
	if row -= it.gapHeight(); row < 0 {
		return a
	}
	for j := range it.parts {
		if row < it.parts[j].height {
			return Anchor{it.seq, j, row, it.parts[j].height}
		}
		row -= it.parts[j].height
	}
	return a
}

// Line returns where a place is now. If its entry is gone, that is where the next one begins.
func (t *Transcript) Line(a Anchor) int {
	i, ok := t.find(a.seq)
	top := t.heights.sum(i)
	if !ok || a.part < 0 {
		return top
	}
	it := t.items[i]
	top += it.gapHeight()
	for j := range it.parts {
		h := it.parts[j].height
		if j == a.part {
			row := a.row
			if h != a.rows {
				row = a.row * h / max(a.rows, 1)
			}
			return top + min(row, max(h-1, 0))
		}
		top += h
	}
	return max(top-1, 0)
}

// Layout finds out the heights that are not known yet: of what was looked at last and the end, which
// are drawn, in any case, and of the rest for as long as the budget lasts, from the end. When the former
// has used the budget up, nothing more is done, but each call does something. It reports whether
// everything is known. Lines that are not looked at may move when it learns how high others are: keep
// places as an [Anchor].
func (t *Transcript) Layout(budget time.Duration) (done bool) {
	deadline := time.Now().Add(budget)
	idle := t.work
	late := func() bool { return t.work != idle && !time.Now().Before(deadline) }
	defer t.sweep()
	t.settleTail(t.rows)
	if !t.tail {
		t.settle(t.from, t.rows)
	}
	for i := len(t.items) - 1; i >= 0; i-- {
		it := t.items[i]
		if !it.stale && it.inexact == 0 {
			continue
		}
		if late() {
			return t.settled(i + 1)
		}
		t.fresh(i)
		for ; it.todo > 0 && it.inexact > 0; it.todo-- {
			if it.parts[it.todo-1].exact {
				continue
			}
			if late() {
				return false
			}
			t.measurePart(i, it.todo-1)
		}
	}
	return t.settled(len(t.items))
}

// settled reports whether nothing is to be drawn before an item.
func (t *Transcript) settled(i int) bool {
	for _, it := range t.items[:i] {
		if it.stale || it.inexact > 0 {
			return false
		}
	}
	return true
}

// Lines returns n lines from a line on, or as many as there are, ready to be printed. When they reach up to
// the end of what [Transcript.Height] says, they are the last n lines, even if the
// height turns out to be another. Of the lines that were drawn, about 8 MiB are kept.
func (t *Transcript) Lines(from, n int) []string {
	if n <= 0 {
		return nil
	}
	h := t.Height()
	t.rows = n
	if t.tail = from+n >= h; t.tail {
		t.settleTail(n)
		from = max(t.Height()-n, 0)
	} else {
		from = max(from, 0)
		t.settle(from, n)
	}
	t.from = from
	out := make([]string, 0, n)
	i, row := t.heights.find(from)
	for ; i < len(t.items) && len(out) < n; i, row = i+1, 0 {
		it := t.items[i]
		if g := it.gapHeight(); row < g {
			out = append(out, "")
		} else {
			row -= g
		}
		for j := 0; j < len(it.parts) && len(out) < n; j++ {
			p := &it.parts[j]
			if row >= p.height {
				row -= p.height
				continue
			}
			if p.lines == nil && p.height > 0 {
				t.drawPart(i, j)
			}
			for _, l := range p.lines[min(row, len(p.lines)):] {
				if len(out) == n {
					break
				}
				out = append(out, l)
			}
			row = 0
		}
	}
	t.sweep()
	return t.highlighted(out, from)
}
