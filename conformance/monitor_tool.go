package conformance

import (
	"strings"

	"github.com/goacp/acp/jsonrpc"
)

var (
	ckToolAnnounced = decides("agent/tool/announced")
	ckToolOnce      = decides("agent/tool/once")
	ckToolBack      = decides("agent/tool/status-back")
	ckToolStatus    = decides("agent/tool/status")
	ckToolKind      = decides("agent/tool/kind")
	ckToolTitle     = decides("agent/tool/title")
	ckToolPath      = decides("agent/tool/locations")
	ckToolLine      = decides("agent/tool/lines")
	ckDiffPath      = decides("agent/tool/diff-paths")
	ckToolTerminal  = decides("agent/tool/terminals")
	ckToolName      = decides("agent/tool/name")
	ckToolChunk     = decides("agent/tool/chunks")
	ckToolSession   = decides("agent/tool/session-content")
	ckToolCancel    = decides("client/tool/cancel")

	ckPermAnnounced = decides("agent/permission/announced")
	ckPermOptions   = decides("agent/permission/options")
	ckPermUnique    = decides("agent/permission/unique-ids")
	ckPermReject    = decides("agent/permission/reject")
	ckPermKind      = decides("agent/permission/kinds")
	ckPermAbandoned = decides("agent/permission/abandoned")
	ckPermOffered   = decides("client/permission/offered")
	ckPermCancelled = decides("client/permission/cancelled")
)

// A tool is what is known of a tool call.
type tool struct {
	status string
	name   string // of the tool, "" if it is not known
	turn   int
	shown  bool // by an update, and not only by a question about it
	cancel bool // it can be cancelled (v2)
}

// rank orders the states of a tool call.
func rank(status string) int {
	switch status {
	case "pending":
		return 0
	case "completed", "failed", "cancelled":
		return 2
	}
	return 1
}

// toolSeen is what a message says of a tool call, in both versions.
type toolSeen struct {
	id, kind, status string
	name             string // of the tool
	creates          bool   // by its kind it announces the call (v1)
	asked            bool   // it is part of a permission request
	title            bool
	statusKnown      bool
	kindKnown        bool
	path             string // where it is
}

// toolCall follows a tool call.
func (m *Monitor) toolCall(s *session, u toolSeen) *tool {
	m.toolWords(&u)
	t, ok := s.tools.get(u.id)
	if u.creates {
		if m.breaks(ckToolOnce, ok && t.shown) {
			m.add(ckToolOnce, u.path, "announced the tool call %s again", quote(u.id))
		}
	} else if m.version == 1 && !u.asked {
		if m.breaks(ckToolAnnounced, !ok && s.tools.lacks(u.id)) {
			m.add(ckToolAnnounced, u.path, "changed the tool call %s, which it has not announced", quote(u.id))
		}
	}
	if !ok {
		t = &tool{status: "pending", turn: s.turn}
		if u.asked {
			t.turn = -1 // it may never be begun
		}
		if s.opening == 0 && m.version == 2 && !u.asked && s.tools.lacks(u.id) {
			m.expect(ckToolTitle, u.title, u.path, "began the tool call %s without a title", quote(u.id))
		}
		s.tools.put(u.id, t)
	}
	t.shown = t.shown || !u.asked
	if u.name != "" {
		if m.breaks(ckToolName, t.name != "" && t.name != brief(u.name)) {
			m.add(ckToolName, u.path+".name", "changed the tool of the call %s from %s to %s", quote(u.id), quote(t.name), quote(u.name))
		}
		t.name = brief(u.name)
	}
	if u.status != "" {
		// One that runs may be pending again: it awaits approval, or its turn.
		if m.breaks(ckToolBack, ok && rank(t.status) == 2 && rank(u.status) < 2) {
			m.add(ckToolBack, u.path+".status", "put the tool call %s from %s back to %s", quote(u.id), quote(t.status), quote(u.status))
		}
		t.status = u.status
		if !u.asked {
			t.turn = s.turn
		}
	}
	return t
}

func (m *Monitor) toolWords(u *toolSeen) {
	if u.status != "" && m.breaks(ckToolStatus, !u.statusKnown && !strings.HasPrefix(u.status, "_")) {
		m.add(ckToolStatus, u.path+".status", "sent the unknown status %s", quote(u.status))
	}
	if u.kind != "" && m.breaks(ckToolKind, !u.kindKnown && !strings.HasPrefix(u.kind, "_")) {
		m.add(ckToolKind, u.path+".kind", "sent the unknown kind %s", quote(u.kind))
	}
}

func (m *Monitor) location(path, file string, line *uint32) {
	if m.breaks(ckToolPath, !absolute(file)) {
		m.add(ckToolPath, path, "named the file %s, which is not absolute", quote(file))
	}
	if line != nil && m.breaks(ckToolLine, *line == 0) {
		m.add(ckToolLine, path, "named line 0; lines are counted from 1")
	}
}

func (m *Monitor) diffPath(path, file string) {
	if m.breaks(ckDiffPath, !absolute(file)) {
		m.add(ckDiffPath, path, "showed a change of %s, which is not absolute", quote(file))
	}
}

// toolTerminal looks at a terminal that a tool call shows.
func (m *Monitor) toolTerminal(s *session, path, id string) {
	if m.breaks(ckToolTerminal, s.terminals.lacks(id) && s.opening == 0) {
		m.add(ckToolTerminal, path, "showed the terminal %s, which does not exist", quote(id))
	}
}

// permissionFacts is what the answer to a permission request is judged by.
type permissionFacts struct {
	options   map[string]bool
	cancelled bool // session/cancel came after the request
}

type optionSeen struct {
	id, kind string
	known    bool
}

// permission looks at a request for permission.
func (m *Monitor) permission(r *request, s *session, tool string, titled bool, options []optionSeen) {
	f := &permissionFacts{options: map[string]bool{}}
	r.facts, r.s = f, s
	if tool != "" && s != nil {
		if m.breaks(ckPermAnnounced, !titled && s.tools.lacks(tool)) {
			m.add(ckPermAnnounced, "params", "asked about the tool call %s, which it has neither announced nor given a title", quote(tool))
		}
	}
	if m.breaks(ckPermOptions, len(options) == 0) {
		m.add(ckPermOptions, "params.options", "asked without offering an option")
	}
	reject, other := false, false
	for _, o := range options {
		if m.breaks(ckPermUnique, f.options[brief(o.id)] || o.id == "") {
			m.add(ckPermUnique, "params.options", "offered the option %s twice, or one without an id", quote(o.id))
		}
		if m.breaks(ckPermKind, !o.known && !strings.HasPrefix(o.kind, "_")) {
			m.add(ckPermKind, "params.options", "offered an option of the unknown kind %s", quote(o.kind))
		}
		reject = reject || strings.HasPrefix(o.kind, "reject")
		other = other || !o.known
		if len(f.options) < maxEntries {
			f.options[brief(o.id)] = true
		}
	}
	if len(options) > 0 && !other {
		m.expect(ckPermReject, reject, "params.options", "offered no way to say no")
	}
}

// selected looks at the option that was chosen.
func (m *Monitor) selected(r *request, option string) {
	f, ok := r.facts.(*permissionFacts)
	if !ok {
		return
	}
	if m.breaks(ckPermOffered, !f.options[brief(option)] && len(f.options) < maxEntries) {
		m.add(ckPermOffered, "result.outcome.optionId", "chose the option %s, which was not offered", quote(option))
	}
	if f.cancelled && m.breaks(ckPermCancelled, true) {
		m.add(ckPermCancelled, "result.outcome", "answered a permission request of a cancelled turn with an option")
	}
}

// dismissed looks at an answer that chose nothing.
func (m *Monitor) dismissed(r *request) {
	if r.s != nil {
		r.s.dismissed = true // agents may take that for an end of the turn
	}
	if f, ok := r.facts.(*permissionFacts); ok && f.cancelled {
		m.breaks(ckPermCancelled, false)
	}
}

// refusedTo looks at errors of clients.
func (m *Monitor) refusedTo(r *request, we *jsonrpc.Error) {
	if f, ok := r.facts.(*permissionFacts); ok && m.from == theClient {
		if f.cancelled && m.breaks(ckPermCancelled, !r.withdrawn) {
			m.add(ckPermCancelled, "error", "answered a permission request of a cancelled turn with the error %d", we.Code)
		}
	}
}

// abandoned looks for permission requests that outlive their turn.
func (m *Monitor) abandoned(turn *request, s *session) {
	for _, e := range m.open[theAgent].m {
		r := e.v
		if _, ok := r.facts.(*permissionFacts); ok && r.s == s {
			if m.breaks(ckPermAbandoned, !r.withdrawn && !r.stopped && !turn.stopped && s.turns == 0) {
				m.unlessGone(ckPermAbandoned, "", "ended the turn with a question open that it has not withdrawn")
			}
		}
	}
}

// cancelTool looks at a request to cancel a tool call or a terminal (v2).
func (m *Monitor) cancelTool(s *session, path, id string, known, can bool) {
	if s == nil || !known {
		return
	}
	m.expect(ckToolCancel, can, path, "asked to cancel %s, which did not offer that", quote(id))
}
