// Package view draws conversations as lines of text for a terminal.
//
// A [Transcript] draws a conversation of any length, and only its visible part. Texts are split
// into pieces that are drawn separately; the height of invisible parts is estimated until there is
// time to measure it; and of the drawn lines about 8 MiB are kept. The functions [Permission],
// [Diff], [PatchDiff] and [Plan] draw single things.
//
// Lines contain no line breaks, no control characters, and no escape sequences except those that
// this package creates for looks and hyperlinks, which end on the same line. No line is wider than
// requested, however the terminal counts the width of characters.
package view

import (
	"slices"
	"sort"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// minWidth is the minimum width for drawing. On narrower screens, lines are cut.
const minWidth = 12

// Options determine how a conversation is drawn.
type Options struct {
	// ThoughtsOpen shows thoughts unfolded at first.
	ThoughtsOpen bool
	// Diff selects how changes to files are drawn.
	Diff DiffMode
	// Cwd is an absolute path; paths below it are shown relative to it.
	Cwd string
	// Child returns the conversation of a subagent, or nil if there is none. Callers must call
	// [Transcript.Invalidate] when that conversation changes.
	Child func(id acpv2.SessionID) *transcript.Snapshot
	// Running reports whether the command in a terminal runs for sure, also after the turn. It may
	// be nil. Callers must call [Transcript.InvalidateTerminal] when the answer changes.
	Running func(id acpv2.TerminalID) bool
	// FileLink returns the address that opens a file at a line, or "". Line is 0 if it is not known.
	// FileLink may be nil.
	FileLink func(path string, line int) string
	// Unsent reports whether the answer to a question has not been sent yet. It may be nil. Callers must call
	// [Transcript.SetOptions] when the answer changes.
	Unsent func(p *transcript.Permission) bool
}

// A Transcript draws one conversation. Only one goroutine may use it; it needs no closing. [New]
// creates one.
type Transcript struct {
	th    *Theme
	opts  Options
	width int
	over  bool // nothing is running any longer

	snap    *transcript.Snapshot
	items   []*item // in the order of the conversation
	heights tree    // of the items

	// The items that also depend on another entry: the tool calls that show each terminal.
	shownIn map[string]map[uint64]bool
	askedIn map[acpv2.ToolCallID]uint64 // the last question about each tool call

	from, rows int  // the lines that were requested last
	tail       bool // these were the end
	cached     int  // bytes of drawn lines
	work       int  // counts parts that were drawn or measured

	search search
}

// New returns an empty Transcript of 80 columns.
func New(th *Theme) *Transcript {
	return &Transcript{th: th, width: 80, snap: &transcript.Snapshot{}, rows: 50, tail: true, shownIn: map[string]map[uint64]bool{}, askedIn: map[acpv2.ToolCallID]uint64{}}
}

// Set sets the snapshot to draw. changes lead from the previous snapshot to this one; nil means
// that everything is compared. Set takes little time, because [Transcript.Layout] and
// [Transcript.Lines] do the drawing.
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
				switch c.Kind {
				case transcript.KindTerminal:
					t.staleShowing(c.ID)
				case transcript.KindToolCall:
					t.Invalidate(t.askedIn[acpv2.ToolCallID(c.ID)])
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

// turns reports whether a turn may have begun or ended with a change.
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
	clear(t.askedIn)
	for e := range t.snap.Entries() {
		t.noteAsked(e)
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
		switch e.EntryKind() {
		case transcript.KindTerminal:
			t.staleShowing(e.EntryID())
		case transcript.KindToolCall:
			t.Invalidate(t.askedIn[acpv2.ToolCallID(e.EntryID())])
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

// staleShowing marks all items that show a terminal for redrawing.
func (t *Transcript) staleShowing(id string) {
	for seq := range t.shownIn[id] {
		if i, ok := t.find(seq); ok {
			t.stale(i)
			t.items[i].entry = nil
		}
	}
}

// staleAsked marks the tool call of a permission request for redrawing, because its status depends
// on the answer.
func (t *Transcript) staleAsked(e transcript.Entry) {
	p, ok := e.(*transcript.Permission)
	if !ok {
		return
	}
	before := t.noteAsked(p)
	if i, ok := t.find(before); ok {
		t.stale(i) // the line of the call no longer shows that one
		t.items[i].entry = nil
	}
	if c := t.snap.ToolCall(shown.AskedCall(p)); c != nil {
		t.Invalidate(c.Seq())
	}
}

// noteAsked notes the tool call that a question is about. It returns the question about that call
// that was the last one until now, or 0.
func (t *Transcript) noteAsked(e transcript.Entry) (before uint64) {
	p, ok := e.(*transcript.Permission)
	if !ok {
		return 0
	}
	id := shown.AskedCall(p)
	if before = t.askedIn[id]; id == "" || before >= p.Seq() {
		return 0
	}
	t.askedIn[id] = p.Seq()
	return before
}

// all marks everything for redrawing. Known heights become estimates.
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

// SetWidth sets the maximum width of lines, in cells.
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

// Invalidate marks an entry for redrawing that has not changed itself, such as a subagent whose
// conversation has.
func (t *Transcript) Invalidate(seq uint64) {
	if i, ok := t.find(seq); ok {
		t.stale(i)
		t.items[i].entry = nil
	}
}

// InvalidateTerminal marks everything that shows a terminal for redrawing.
func (t *Transcript) InvalidateTerminal(id acpv2.TerminalID) {
	for i, it := range t.items {
		if slices.Contains(it.shows, string(id)) {
			t.stale(i)
			it.entry = nil
		}
	}
	t.invalidateTerminal(string(id)) // which may have an item of its own
}

// SetOver sets whether nothing is running any longer. Entries that have not ended by then are shown
// as not finished. It reports whether anything must be redrawn.
func (t *Transcript) SetOver(over bool) (changed bool) {
	if t.over == over {
		return false
	}
	t.over = over
	return t.redrawUnfinished()
}

// redrawUnfinished marks entries that have not ended for redrawing. It reports whether there are
// any.
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

// Toggle folds an unfolded entry and unfolds a folded one. Entries that cannot be folded do not
// change.
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
// [transcript.KindMessage] means thoughts: long prompts are unfolded one by one.
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

// Height returns the number of lines. It is an estimate until [Transcript.Layout] reports true.
func (t *Transcript) Height() int { return t.heights.sum(len(t.items)) }

// At returns the entry that a line belongs to.
func (t *Transcript) At(line int) (seq uint64, kind transcript.EntryKind, ok bool) {
	if line < 0 || line >= t.Height() {
		return 0, "", false
	}
	i, _ := t.heights.find(line)
	return t.items[i].seq, t.items[i].kind, true
}

// Top returns the first line of an entry, after the empty line before it. An entry that is shown as
// a part of another has none.
func (t *Transcript) Top(seq uint64) (line int, ok bool) {
	i, ok := t.find(seq)
	if !ok || t.items[i].total() == 0 {
		return 0, false
	}
	return t.heights.sum(i) + t.items[i].gapHeight(), true
}

// An Anchor is a place in a conversation that does not change when lines above it are added or wrap
// differently. The zero Anchor is the beginning.
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

// Line returns the current line of a place. If its entry is gone, that is the first line of the
// next one.
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

// Layout determines heights that are not known yet. It always draws the lines that were requested
// last and the end. If there is time left in the budget, it measures the rest, beginning at the
// end. Each call makes progress. It reports whether all heights are known. Invisible lines may move
// when other heights become known, so callers should keep places as an [Anchor].
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

// Lines returns up to n lines from a line on, ready to print. If they reach the end according to
// [Transcript.Height], they are the last n lines, even if the height turns out to be different.
// About 8 MiB of drawn lines are kept.
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
