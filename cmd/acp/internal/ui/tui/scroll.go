package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui/view"
	"github.com/goacp/acp/transcript"
)

// layoutMsg asks for the rest of the layout work.
type layoutMsg struct{}

// A scroller is the part of the transcript that is on the screen.
type scroller struct {
	tr      *view.Transcript
	snap    *transcript.Snapshot // what tr shows
	rows    int
	top     int         // the first line that is shown
	follow  bool        // stay at the end
	anchor  view.Anchor // the place of top, while lines above it change
	held    bool        // there is an anchor
	unseen  bool        // something was added below what is shown
	width   int
	ordered bool // a layoutMsg is under way
}

// slice is how long layout may take at a time: what is visible comes first, so
// the rest can wait for the next message.
const slice = 8 * time.Millisecond

// remake makes the transcript's view anew.
func (m *model) remake() {
	s := &m.screen
	s.tr, s.width = view.New(m.theme), 0
	s.tr.SetOptions(m.viewOptions())
	m.show(nil)
}

func (m *model) viewOptions() view.Options {
	o := view.Options{ThoughtsOpen: m.opt.ui.Thoughts == "shown", Cwd: m.opt.cwd, Child: m.childSnapshot}
	switch m.opt.ui.Diff {
	case "split":
		o.Diff = view.DiffSplit
	case "unified":
		o.Diff = view.DiffUnified
	}
	return o
}

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

// show reads the conversation; nil changes mean that everything may differ.
func (m *model) show(changes []transcript.Change) {
	t := m.shown()
	if t == nil {
		return
	}
	m.hold()
	m.screen.snap = t.Snapshot()
	m.screen.tr.Set(m.screen.snap, changes)
	m.stale = true
}

// changed handles that something is new.
func (m *model) changed() tea.Cmd {
	pending := m.front.take()
	t := m.shown()
	if t == nil {
		return nil
	}
	changes, ok := pending[t.ID()]
	for id := range pending {
		if id != t.ID() {
			// A subagent's: its last activity is part of what is shown.
			if e := t.Snapshot().Subagent(id); e != nil {
				m.screen.tr.Invalidate(e.Seq())
				m.stale = true
			}
		}
	}
	if !ok {
		return nil
	}
	before := m.screen.snap
	m.show(changes)
	// What is told may have been shown already: what is shown is always the latest.
	fresh := func(c transcript.Change) bool {
		return isEntry(c) && (before == nil || before.Entry(c.Seq) != m.screen.snap.Entry(c.Seq))
	}
	if !m.screen.follow && (len(changes) == 0 || slices.ContainsFunc(changes, fresh)) {
		m.screen.unseen = true
	}
	if m.busy() {
		return m.tick()
	}
	return nil
}

// isEntry reports whether a change is one of what the conversation shows, and not of the usage, the
// options and what else the status line has.
func isEntry(c transcript.Change) bool {
	return c.Op != transcript.OpNone && c.Op != transcript.OpSession
}

// hold remembers which entry is at the top, so that it stays there when the
// layout of others changes.
func (m *model) hold() {
	s := &m.screen
	if s.follow || s.held || s.tr == nil {
		return
	}
	s.anchor, s.held = s.tr.Anchor(s.top), true
}

// settle puts the top where it belongs after the layout has changed.
func (m *model) settle() {
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

// layout does layout work after a message, and asks for more if there is.
func (m *model) layout() {
	if m.w == 0 || m.screen.tr == nil {
		return
	}
	s := &m.screen
	_, rows := m.split()
	if rows != s.rows || m.transcriptWidth() != s.width {
		m.hold()
		s.rows, s.width = rows, m.transcriptWidth()
		s.tr.SetWidth(s.width)
		m.stale = true
	}
	over := m.phase == dead || m.phase == ready && m.talk != nil && !m.busy()
	if s.tr.SetOver(over) {
		m.stale = true
	}
	if !m.stale {
		m.settle()
		return
	}
	m.hold()
	done := s.tr.Layout(slice)
	m.settle()
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
	m.settle()
}

// toEnds moves to the beginning or the end.
func (m *model) toEnds(end bool) {
	s := &m.screen
	s.held = false
	s.follow = end
	if !end {
		s.top = 0
	}
	m.settle()
	if !end {
		s.follow = false
	}
}

// reveal scrolls so that a line is on the screen.
func (m *model) reveal(line int) {
	s := &m.screen
	if line < s.top || line >= s.top+s.rows {
		s.follow, s.held = false, false
		s.top = max(0, line-s.rows/3)
		m.settle()
	}
}

// browse begins to choose entries, with the last one on the screen.
func (m *model) browse() {
	s := &m.screen
	for line := min(s.top+s.rows, s.tr.Height()) - 1; line >= 0; line-- {
		if seq, _, ok := s.tr.At(line); ok {
			m.browsing, m.focus = true, seq
			return
		}
	}
}

// step moves the choice to the entry before or after.
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
	m.hold()
	m.screen.tr.Toggle(seq)
	m.stale = true
}

// mouse handles the mouse: the wheel scrolls, a click opens or folds.
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
		if e.Button != tea.MouseLeft || e.Y >= m.screen.rows || m.top() != nil {
			return nil
		}
		line := m.screen.top + e.Y
		if seq, _, ok := m.screen.tr.At(line); ok {
			if first, ok := m.screen.tr.Top(seq); ok && line-first <= 1 { // the first line may be a blank one
				m.toggle(seq)
			}
		}
	}
	return nil
}
