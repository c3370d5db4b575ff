package conformance

import "github.com/goacp/acp/internal/wire"

var (
	ckMisasked     = decides("both/answer/malformed")
	ckMisaskedCode = decides("both/answer/malformed-code")
	ckRelative     = decides("agent/session/relative")
)

// carriedOut looks at a request that was answered with success.
func (m *Monitor) carriedOut(r *request) {
	if m.breaks(ckMisasked, r.malformed) {
		m.add(ckMisasked, "", "carried out %s, whose params are malformed", r.name)
	}
	if r.relative && m.breaks(ckRelative, true) {
		m.add(ckRelative, "", "carried out %s for a directory that is not absolute", r.name)
	}
}

// member returns a text among the members of the object at pos, or "".
func (m *Monitor) text(pos int, name string) string {
	var d wire.Decoder
	m.d.Seek(pos)
	if m.d.Peek() != '{' {
		return ""
	}
	d.Reset(m.d.Raw(), false)
	return d.Member(name)
}

// misasked examines a request whose params are malformed. The other side may accept it
// all the same: then the session is open, and the turn continues.
func (m *Monitor) misasked(e *envelope, r *request) {
	sid := ""
	if e.has&hasParams != 0 {
		sid = m.text(e.params, "sessionId")
	}
	switch r.name {
	case "session/new", "session/fork":
		m.openSession(r, "")
	case "session/load", "session/resume":
		if sid != "" {
			m.openSession(r, sid)
		}
	case "session/prompt":
		if r.s, _ = m.sessions.get(sid); r.s != nil {
			r.s.prompted = true
			if m.version != 2 {
				m.begins(r.s)
			}
		}
	default:
		r.s, _ = m.sessions.get(sid)
	}
}

// begins notes that a prompt begins a turn, or waits for one (v1).
func (m *Monitor) begins(s *session) {
	s.turns++
	if s.turns == 1 {
		s.turn++
		s.stopped, s.dismissed, s.said = false, false, false
	}
}

// bothWays looks at a response with both a result and an error. Whoever reads it may
// take it for either: a session that it opens may be used from here on, and may not.
func (m *Monitor) bothWays(e *envelope, r *request) {
	f, ok := r.facts.(*openFacts)
	if !ok {
		return
	}
	sid := f.sid
	if sid == "" {
		sid = m.text(e.result, "sessionId")
	}
	if sid == "" {
		return
	}
	s, ok := m.sessions.get(sid)
	if !ok {
		s = newSession(sid)
		m.sessions.put(sid, s)
	}
	s.forget()
	s.guessed = false
}
