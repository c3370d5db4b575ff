package conformance

var (
	ckReplayComplete = decides("agent/replay/complete")
	ckReplayOnce     = decides("agent/replay/once")
	ckReplayAsked    = decides("agent/replay/asked")
	ckReplayLast     = decides("agent/replay/last")
)

// A replay is what is known of the histories that a session replays. Only version 2 marks
// their ends.
type replay struct {
	asked  int  // requests in flight that ask for one
	marks  int  // how many of these were told to be complete
	active bool // the session has told since the last mark that it is at work
	child  bool // it was announced by a history, and has one of its own
}

// replays notes a request that asks for the history of a session.
func (m *Monitor) replays(r *request) {
	f, ok := r.facts.(*openFacts)
	if !ok || r.s == nil || m.gap {
		return
	}
	f.replay = true
	r.s.replay.asked++
	m.breaks(ckReplayAsked, false)
}

// replayEnds takes back what such a request did that is no longer in flight.
func (s *session) replayEnds(f *openFacts) {
	if !f.replay {
		return
	}
	p := &s.replay
	p.asked = max(0, p.asked-1)
	if f.marked = p.marks > 0; f.marked {
		p.marks--
	}
}

// replayAnswered looks at the result of such a request.
func (m *Monitor) replayAnswered(r *request) {
	f, ok := r.facts.(*openFacts)
	if !ok || !f.replay || m.gap {
		return
	}
	m.breaks(ckReplayOnce, false)
	if m.breaks(ckReplayComplete, !f.marked) {
		m.add(ckReplayComplete, "result", "answered %s before it said that the history is complete", r.name)
	}
}

// replayComplete looks at the mark behind a history.
func (m *Monitor) replayComplete(s *session) {
	if m.gap {
		return
	}
	p := &s.replay
	asked := p.asked
	if p.child {
		asked++
	}
	if m.breaks(ckReplayAsked, asked == 0) {
		m.add(ckReplayAsked, "params.update",
			"said that the history of the session %s is complete, which is not being replayed", quote(s.id))
		return
	}
	if m.breaks(ckReplayOnce, p.marks >= asked) {
		m.add(ckReplayOnce, "params.update", "said again that the history of the session %s is complete", quote(s.id))
		return
	}
	p.marks, p.active = p.marks+1, false
}

// replayedLate looks at an update that a history may have. What a session does that is at
// work comes behind the mark, too.
func (m *Monitor) replayedLate(s *session) {
	p := &s.replay
	if p.asked == 0 || m.gap {
		return
	}
	if m.breaks(ckReplayLast, p.marks >= p.asked && !p.active) {
		m.add(ckReplayLast, "params.update", "went on with the history after it had said that it is complete")
	}
}
