package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
	"github.com/goacp/acp/transcript"
)

// layoutMsg continues the layout work.
type layoutMsg struct{}

// A scroller is the visible part of the transcript.
type scroller struct {
	tr      *view.Transcript
	snap    *transcript.Snapshot // the snapshot that tr shows
	rows    int
	top     int         // the first visible line
	follow  bool        // stay at the end
	anchor  view.Anchor // the entry at top, while lines above it change
	held    bool        // anchor is set
	unseen  bool        // something was added below the visible part
	width   int
	marked  *marked
	ordered bool // a layoutMsg was scheduled and not handled yet
}

// slice bounds the layout work per message. The visible part is laid out first, so the rest can
// wait, and keys are handled in between.
const slice = 8 * time.Millisecond

// rebuildView recreates the view of the transcript.
func (m *model) rebuildView() {
	s := &m.screen
	s.tr, s.width = view.New(m.theme), 0
	s.tr.SetOptions(m.viewOptions())
	m.show(nil)
}

func (m *model) viewOptions() view.Options {
	o := view.Options{
		ThoughtsOpen: m.opt.ui.Thoughts == "shown", Cwd: m.opt.cwd, Child: m.childSnapshot,
		Running: func(id acp.TerminalID) bool { return m.background[id] }, FileLink: m.fileLink, Unsent: m.isUnsent,
	}
	switch m.opt.ui.Diff {
	case "split":
		o.Diff = view.DiffSplit
	case "unified":
		o.Diff = view.DiffUnified
	}
	return o
}

// childSnapshot returns the conversation of a subagent, or nil. It is the view's hook of that
// purpose.
func (m *model) childSnapshot(id acp.SessionID) *transcript.Snapshot {
	if m.link == nil {
		return nil
	}
	if t, ok := m.link.Session(id); ok {
		return t.Snapshot()
	}
	return nil
}

// shown returns the conversation on the screen, or nil.
func (m *model) shown() talk {
	if m.child != "" && m.link != nil {
		if t, ok := m.link.Session(m.child); ok {
			return t
		}
	}
	return m.talk
}

// show updates the view from the conversation. nil changes mean that everything may be different.
func (m *model) show(changes []transcript.Change) {
	t := m.shown()
	if t == nil {
		return
	}
	m.holdTop()
	m.lookBehind()
	m.screen.snap = t.Snapshot()
	m.screen.tr.Set(m.screen.snap, changes)
	m.stale = true
}

// changed handles a changedMsg: it updates the view from the collected changes.
func (m *model) changed() tea.Cmd {
	pending := m.front.takeChanges()
	t := m.shown()
	if t == nil {
		return nil
	}
	changes, ok := pending[t.ID()]
	for id := range pending {
		if id != t.ID() {
			// The entry of a subagent shows its latest activity.
			if e := t.Snapshot().Subagent(id); e != nil {
				m.screen.tr.Invalidate(e.Seq())
				m.stale = true
			}
		}
	}
	if !ok {
		m.lookBehind()
		return m.others()
	}
	before := m.screen.snap
	m.show(changes)
	// The view always shows the latest snapshot, so it may have shown a change before its message
	// arrived. Only an entry that is really different counts as new.
	fresh := func(c transcript.Change) bool {
		return isEntry(c) && (before == nil || before.Entry(c.Seq) != m.screen.snap.Entry(c.Seq))
	}
	if !m.screen.follow && (len(changes) == 0 || slices.ContainsFunc(changes, fresh)) {
		m.screen.unseen = true
	}
	if cmd := m.others(); cmd != nil {
		return cmd
	}
	if m.busy() {
		return m.tick()
	}
	return nil
}

// isEntry reports whether a change concerns an entry of the conversation, and not the usage, the
// options or anything else in the status line.
func isEntry(c transcript.Change) bool {
	return c.Op != transcript.OpNone && c.Op != transcript.OpSession
}

// holdTop remembers the entry at the top, so that it stays there while the layout of others
// changes.
func (m *model) holdTop() {
	s := &m.screen
	if s.follow || s.held || s.tr == nil {
		return
	}
	s.anchor, s.held = s.tr.Anchor(s.top), true
}

// settleTop sets the top after the layout has changed: to the end while following, or to the held
// entry.
func (m *model) settleTop() {
	s := &m.screen
	end := max(0, s.tr.Height()-s.rows)
	switch {
	case s.follow:
		s.top = end
	case s.held:
		s.top = s.tr.Line(s.anchor)
	}
	s.held = false
	s.top = min(max(s.top, 0), end)
	if s.top >= end && !m.browsing && m.search == nil {
		s.follow = true
	}
	if s.follow {
		s.unseen = false
	}
}

// layout does layout work after each message, for at most one slice. If some is left, it schedules
// a layoutMsg.
func (m *model) layout() {
	if m.w == 0 || m.screen.tr == nil {
		return
	}
	s := &m.screen
	_, rows := m.split()
	if rows != s.rows || m.transcriptWidth() != s.width {
		m.holdTop()
		s.rows, s.width = rows, m.transcriptWidth()
		s.tr.SetWidth(s.width)
		m.stale = true
	}
	idle := m.phase == dead || m.phase == ready && m.talk != nil && !m.busy()
	if s.tr.SetOver(idle) {
		m.stale = true
	}
	if !m.stale {
		m.settleTop()
		return
	}
	m.holdTop()
	done := s.tr.Layout(slice)
	m.settleTop()
	m.stale = !done
	if !done && !s.ordered {
		s.ordered = true
		send := m.front.send
		time.AfterFunc(time.Millisecond, func() { send(layoutMsg{}) })
	}
}

// scroll moves by lines.
func (m *model) scroll(n int) {
	s := &m.screen
	s.follow = false
	s.held = false
	s.top += n
	m.settleTop()
}

// toEnds moves to the end if end is true, and otherwise to the beginning.
func (m *model) toEnds(end bool) {
	s := &m.screen
	s.held = false
	s.follow = end
	if !end {
		s.top = 0
	}
	m.settleTop()
	if !end {
		s.follow = false
	}
}

// reveal scrolls until a line is visible.
func (m *model) reveal(line int) {
	s := &m.screen
	if line < s.top || line >= s.top+s.rows {
		s.follow, s.held = false, false
		s.top = max(0, line-s.rows/3)
		m.settleTop()
	}
}

// browse starts selecting entries, beginning with the last visible one.
func (m *model) browse() {
	s := &m.screen
	for line := min(s.top+s.rows, s.tr.Height()) - 1; line >= 0; line-- {
		if seq, _, ok := s.tr.At(line); ok {
			m.browsing, m.focus = true, seq
			return
		}
	}
}

// step selects the previous or the next entry.
func (m *model) step(n int) {
	s := &m.screen
	line, ok := s.tr.Top(m.focus)
	if !ok {
		m.browse()
		return
	}
	for i := line + n; i >= 0 && i < s.tr.Height(); i += n {
		seq, _, ok := s.tr.At(i)
		if ok && seq != m.focus {
			m.focus = seq
			top, _ := s.tr.Top(seq)
			m.reveal(top)
			return
		}
	}
	if n > 0 {
		m.toEnds(true)
	} else {
		m.toEnds(false)
	}
}

// toggle opens or folds an entry.
func (m *model) toggle(seq uint64) {
	m.screen.follow = false
	m.holdTop()
	m.screen.tr.Toggle(seq)
	m.stale = true
}

// mouse handles the mouse: the wheel scrolls, a click on the first line of an entry opens or folds it,
// and what is between press and release is copied.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	e := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		if o, ok := m.top().(interface{ wheel(m *model, n int) }); ok {
			switch e.Button {
			case tea.MouseWheelUp:
				o.wheel(m, -3)
			case tea.MouseWheelDown:
				o.wheel(m, 3)
			}
			return nil
		}
		switch e.Button {
		case tea.MouseWheelUp:
			m.scroll(-3)
		case tea.MouseWheelDown:
			m.scroll(3)
		}
	case tea.MouseClickMsg:
		m.screen.marked = nil
		if e.Button == tea.MouseLeft && e.Y < m.screen.rows && m.top() == nil && m.screen.tr.Height() > 0 {
			at := m.under(e)
			m.screen.marked = &marked{from: at, to: at}
		}
	case tea.MouseMotionMsg:
		return m.drag(e)
	case tea.MouseReleaseMsg:
		return m.release(e)
	}
	return nil
}
