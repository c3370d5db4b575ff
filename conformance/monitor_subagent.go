package conformance

import "github.com/goacp/acp/acpv2"

var (
	ckSubagentSelf   = decides("agent/subagent/itself")
	ckSubagentDirs   = decides("agent/subagent/directories")
	ckSubagentCancel = decides("client/subagent/cancel")
	ckBackground     = decides("agent/turn/background")
)

// A subagentSeen is what an update says of a child session. Fields that the update
// lacks stay as they are.
type subagentSeen struct {
	id          string
	cwd         string
	directories []string
	told        bool // what the client may do to it is known
	cancel      bool // it may be cancelled
}

// subagent looks at a child of a session.
func (m *Monitor) subagent(s *session, u subagentSeen) {
	if m.breaks(ckSubagentSelf, u.id == s.id) {
		m.add(ckSubagentSelf, "params.update.sessionId", "showed the session %s as a subagent of itself", quote(u.id))
		return
	}
	for _, p := range append(u.directories[:len(u.directories):len(u.directories)], u.cwd) {
		if p != "" && m.breaks(ckSubagentDirs, !absolute(p)) {
			m.add(ckSubagentDirs, "params.update", "showed a subagent that works in %s, which is not absolute", quote(p))
		}
	}
	child, ok := m.sessions.get(u.id)
	if !ok {
		child = newSession(u.id)
		child.child = true
		child.replay.child = s.replay.asked > 0 || s.replay.child
		m.gone.drop(u.id)
		m.sessions.put(u.id, child)
	}
	if u.told {
		child.mayCancel = u.cancel
	}
}

// cancelsChild looks at session/cancel for a child.
func (m *Monitor) cancelsChild(s *session) {
	if s == nil || !s.child || m.gap {
		return
	}
	if m.breaks(ckSubagentCancel, !s.mayCancel) {
		m.add(ckSubagentCancel, "params.sessionId", "cancelled the subagent %s, which does not offer that", quote(s.id))
	}
}

// inBackground examines what runs in the background: it was shown before.
func (m *Monitor) inBackground(s *session, list []acpv2.BackgroundWork) {
	if s.opening > 0 || s.guessed {
		return
	}
	for _, w := range list {
		kind, id, lacks := "", "", false
		switch w := w.(type) {
		case *acpv2.BackgroundTerminal:
			kind, id = "terminal", string(w.TerminalID)
			lacks = s.terminals.lacks(id)
		case *acpv2.BackgroundToolCall:
			kind, id = "tool call", string(w.ToolCallID)
			lacks = s.tools.lacks(id)
		case *acpv2.BackgroundSubagent:
			kind, id = "subagent", string(w.SessionID)
			lacks = m.sessions.lacks(id)
		default:
			continue
		}
		if m.breaks(ckBackground, lacks) {
			m.add(ckBackground, "params.update.background", "reported that the %s %s continues, which it has not shown", kind, quote(id))
		}
	}
}
