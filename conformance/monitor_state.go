package conformance

var (
	ckEmptyTurn = decides("agent/turn/empty")
	ckRunning   = decides("agent/turn/running")
	ckReplayed  = decides("agent/session/replayed")
)

// What only version 2 has: the foreground of a session has a state, and a
// prompt is answered with a receipt.

// stateOf looks at a snapshot of what a session does.
func (m *Monitor) stateOf(s *session, state, reason string, hasError, reported, work bool) {
	was := s.state
	s.state = state
	s.reported, s.work = reported, work
	s.replay.active = s.replay.active || state != "idle" || work
	if state != "idle" {
		if was == "" || was == "idle" {
			s.turn++
			s.stopped, s.said = false, false
		}
		if was == "requires_action" && state == "running" {
			m.breaks(ckRunning, false)
		}
		return
	}
	if was == "" || was == "idle" || s.opening > 0 {
		return
	}
	if m.breaks(ckIdleReason, reason == "") {
		m.add(ckIdleReason, "params.update.stopReason", "became idle and did not say why")
	}
	if s.stopped && m.breaks(ckCancelled, reason != "cancelled" && m.at-s.cancelled >= grace) {
		m.add(ckCancelled, "params.update.stopReason", "ended cancelled work as %s", quote(reason))
	}
	if reason == "cancelled" {
		if m.breaks(ckNotCancelled, s.calls == 0 && !s.closing && !s.dismissed && !m.gap) {
			m.unlessGone(ckNotCancelled, "params.update.stopReason", "ended work as cancelled that nobody cancelled")
		}
	}
	if reason == "error" && m.breaks(ckErrorTold, !hasError) {
		m.add(ckErrorTold, "params.update", "stopped for an error and did not tell which")
	}
	if reason == "end_turn" && reported && !work {
		m.unfinished(s)
	}
	if reason == "end_turn" {
		m.expect(ckEmptyTurn, s.said, "params.update.stopReason", "ended work normally in which it said and did nothing")
	}
	m.unshown(s)
	switch { // prompts may be sent and cancelled faster than work ends
	case reason == "cancelled":
		s.calls = max(0, s.calls-1)
	case m.at-s.calledAt >= grace:
		s.calls = 0
	}
	s.stopped, s.dismissed = false, false
}

// unshown looks for messages that were taken and not shown, when the session has
// become idle or never will. One that was taken while others waited, or the session
// was at work, is shown with the work that it begins, which is not the next to end.
func (m *Monitor) unshown(s *session) {
	for id, e := range s.receipts.m {
		lacks := s.messages.lacks(messageKey(m.version, id, userMessage))
		if m.breaks(ckReceipt, lacks && e.v <= 0) {
			m.add(ckReceipt, "", "became idle and never showed the message %s it had taken", quote(id))
		}
		if e.v <= 0 || !lacks {
			s.receipts.drop(id)
		} else {
			s.receipts.put(id, e.v-1)
		}
	}
}

// receipt looks at the answer to a prompt.
func (m *Monitor) receipt(r *request, id string) {
	if r.s != nil {
		r.s.receipts.put(id, len(r.s.receipts.m)+1)
	}
}

// works looks at what only foreground work produces.
func (m *Monitor) works(s *session, what string) {
	if s.opening > 0 || s.child || s.guessed {
		return
	}
	if m.version == 2 {
		m.resumes(s, what)
		idle := s.state == "idle" && s.reported && !s.work
		if m.breaks(ckIdleWork, idle) {
			m.add(ckIdleWork, "params.update", "sent %s while the session is idle", what)
		}
		return
	}
	if m.breaks(ckLate, s.turns == 0) {
		switch {
		case s.turn > 0 || s.openedBy == "":
			m.add(ckLate, "params.update", "sent %s after the prompt was answered", what)
		default:
			m.add(ckLate, "params.update", "sent %s before any prompt, after it had answered %s", what, s.openedBy)
		}
	}
}

// resumes looks at what only comes when nobody has to act any more.
func (m *Monitor) resumes(s *session, what string) {
	if s.state != "requires_action" || s.work || what == "a tool call" {
		return
	}
	for _, e := range m.open[theAgent].m {
		if e.v.s == s && (e.v.name == "session/request_permission" || e.v.name == "elicitation/create") {
			return
		}
	}
	if m.breaks(ckRunning, true) {
		m.add(ckRunning, "params.update", "sent %s while the session waits for its user, and has not reported that it runs again", what)
	}
}

// replayed looks at a message of the user. Before the first prompt only a replay has one.
func (m *Monitor) replayed(s *session) {
	again := s.openedBy == "session/load" || s.openedBy == "session/resume"
	switch {
	case s.opening > 0:
		m.breaks(ckReplayed, false)
	case again && !s.prompted && !s.guessed && !s.child && m.breaks(ckReplayed, true):
		m.add(ckReplayed, "params.update", "sent a message of the user after it had answered %s", s.openedBy)
	}
}
