package conformance

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

var (
	ckCapCursors     = decides("agent/capability/cursors")
	ckCursorAnchored = decides("agent/cursor/anchored")
	ckCursorFixed    = decides("agent/cursor/fixed")
	ckCursorFork     = decides("client/cursor/fork")
)

// A cursor is what is known of one of a session's.
type cursor struct {
	anchor string // as JSON, or "" if it was not told
	fork   bool   // session/fork takes it
}

// An anchor is where a cursor is, in both versions.
type anchor interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// moves looks at an update of a cursor. What the update says of forking is nil if it says
// nothing.
func (m *Monitor) moves(s *session, id string, at anchor, fork *bool) {
	const path = "params.update.anchor"
	old, known := s.cursors.get(id)
	first := !known && !s.cursors.forgot && s.opening == 0 && !s.guessed
	if m.breaks(ckCursorAnchored, at == nil && first) {
		m.add(ckCursorAnchored, path, "began the cursor %s and did not say where it is", quote(id))
	}
	now := old
	if at != nil {
		text, _ := at.AppendJSON(nil) // what was decoded can be encoded
		now.anchor = brief(string(text))
		if m.breaks(ckCursorFixed, old.anchor != "" && old.anchor != now.anchor) {
			m.add(ckCursorFixed, path, "moved the cursor %s", quote(id))
		}
	}
	if fork != nil {
		now.fork = *fork
	}
	s.cursors.put(id, now)
}

func (m *Monitor) movesV1(s *session, u *acpv1.CursorUpdate) {
	m.wanted(ckCapCursors, m.client.cursors, "params.update", "session.cursors")
	c, told := u.Capabilities.Get()
	m.moves(s, string(u.CursorID), u.Anchor, patched(told, u.Capabilities.IsClear(), told && c.Fork != nil))
}

func (m *Monitor) movesV2(s *session, u *acpv2.CursorUpdate) {
	c, told := u.Capabilities.Get()
	m.moves(s, string(u.CursorID), u.Anchor, patched(told, u.Capabilities.IsClear(), told && c.Fork != nil))
}

// patched returns what a change says of something that it sets or clears, or nil.
func patched(set, clears, has bool) *bool {
	if !set && !clears {
		return nil
	}
	return &has
}

// forksAt looks at a fork that begins at a cursor.
func (m *Monitor) forksAt(sid, id string) {
	s, ok := m.sessions.get(sid)
	if id == "" || !ok || m.gap {
		return
	}
	at, known := s.cursors.get(id)
	if m.breaks(ckCursorFork, !at.fork && (known || !s.cursors.forgot)) {
		m.add(ckCursorFork, "params.cursorId", "forked the session at the cursor %s, which does not offer that", quote(id))
	}
}
