package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

var (
	ckSessionUnique = decides("agent/session/unique-ids")
	ckSessionEarly  = decides("agent/session/early")
	ckSessionKnown  = decides("agent/session/known")
	ckSessionEnded  = decides("agent/session/ended")
	ckUseKnown      = decides("client/session/known")
	ckUseEnded      = decides("client/session/ended")
	ckCwd           = decides("client/session/cwd")
	ckDirectories   = decides("client/session/directories")
	ckListCwd       = decides("agent/session/list-cwd")
	ckListTwice     = decides("agent/session/list-twice")
	ckCursor        = decides("client/session/cursor")
	ckTimes         = decides("agent/session/times")
	ckNotFound      = decides("agent/session/not-found")
	ckBusy          = decides("client/turn/busy")
	ckLate          = decides("agent/turn/late")
	ckCancelled     = decides("agent/turn/cancelled")
	ckNotCancelled  = decides("agent/turn/not-cancelled")
	ckUnfinished    = decides("agent/turn/unfinished-tools")
	ckStopReason    = decides("agent/turn/stop-reason")
	ckTurnEnds      = decides("agent/turn/ends")
	ckEmptyPrompt   = decides("client/turn/empty-prompt")
	ckIdleReason    = decides("agent/turn/idle-reason")
	ckIdleWork      = decides("agent/turn/idle-work")
	ckReceipt       = decides("agent/turn/receipt")
	ckErrorTold     = decides("agent/turn/error")
)

// grace is how long a message may take to be noticed by the other side, in
// whatever order the two passed: what comes later has been sent knowing it.
const grace = time.Second

// A session is what is known of a session that is open, or being opened.
type session struct {
	id        string
	opening   int    // requests in flight that open it
	openedBy  string // the method of the last one that was answered
	guessed   bool   // the agent named it before any request did
	child     bool   // a subagent's
	mayCancel bool   // the child may be cancelled

	prompted bool // since it was opened
	said     bool // something was, or was asked for, in this turn

	turnState

	state    string // of the foreground, v2
	work     bool   // something runs in the background, or may, v2
	replay   replay
	reported bool       // background was reported, v2
	receipts table[int] // of messages not shown yet, with how often the session may be idle before they are

	startsTurns bool // what is steered may begin a turn that no prompt does

	tools     table[*tool]
	terminals table[*terminal]
	messages  table[byte] // kinds of messages by id
	message   string      // the last one
	plans     table[bool]
	cursors   table[cursor]
	skills    map[string]bool // that were offered, nil if unknown (v2)
	modes     map[string]bool // nil if unknown
	hasModes  bool            // the agent has told whether there are any
	options   map[string]*option
	hasOpts   bool
	cost      float64
	currency  string
}

// A turnState is what a monitor knows of the turns of a session.
type turnState struct {
	turns     int // prompts in flight (v1), or work in the foreground (v2)
	turn      int // the number of the last one
	cancelled time.Duration
	stopped   bool // session/cancel was sent in this turn
	calls     int  // how often session/cancel was sent that no end of work has come of yet, v2
	calledAt  time.Duration
	dismissed bool // a question of this turn was answered with nothing
	closing   bool // its client ends it
}

// forget says that something may have passed unseen.
func (s *session) forget() {
	s.tools.forgot, s.terminals.forgot, s.messages.forgot, s.plans.forgot = true, true, true, true
	s.receipts = table[int]{max: maxEntries}
	s.cursors.forgot, s.replay = true, replay{}
	s.hasModes, s.hasOpts, s.modes, s.options, s.skills = false, false, nil, nil, nil
	s.guessed, s.reported, s.work = true, false, true
	s.turns, s.stopped, s.currency = 0, false, ""
	s.prompted, s.said = true, true
}

func newSession(id string) *session {
	s := &session{id: id}
	s.tools.max, s.terminals.max, s.messages.max, s.plans.max = maxEntries, maxEntries, maxEntries, maxEntries
	s.receipts.max, s.cursors.max = maxEntries, maxEntries
	return s
}

// openFacts is what the answer to a request that opens a session is judged by.
type openFacts struct {
	sid   string // "" if the agent chooses it
	fresh bool   // the session was not known before

	replay bool // its history was asked for
	marked bool // and was told to be complete (v2)
}

// open looks at a request that opens the session sid, or a new one.
func (m *Monitor) openSession(r *request, sid string) {
	f := &openFacts{sid: sid}
	r.facts = f
	if sid == "" {
		m.opening++
		return
	}
	s, ok := m.sessions.get(sid)
	if !ok {
		f.fresh = true
		s = newSession(sid)
		s.tools.forgot, s.terminals.forgot, s.messages.forgot, s.plans.forgot = true, true, true, true
		s.cursors.forgot = true
		m.sessions.put(sid, s)
	}
	m.gone.drop(sid)
	s.opening++
	r.s = s
	// Its history may come again.
	s.tools = table[*tool]{max: maxEntries, forgot: true}
	s.messages = table[byte]{max: maxEntries, forgot: true}
	s.message, s.currency = "", ""
	s.prompted, s.hasOpts, s.skills = false, false, nil
}

// opened looks at the answer to such a request, and returns the session.
func (m *Monitor) opened(r *request, sid string) *session {
	f, ok := r.facts.(*openFacts)
	if !ok {
		return newSession(sid)
	}
	if f.sid != "" {
		if r.s == nil {
			return newSession(f.sid)
		}
		r.s.guessed, r.s.openedBy = false, r.name
		return r.s
	}
	s, ok := m.sessions.get(sid)
	if m.breaks(ckSessionUnique, ok && !s.guessed && !s.child) {
		m.add(ckSessionUnique, "result.sessionId", "opened another session with the id %s", quote(sid))
	}
	if !ok {
		s = newSession(sid)
		m.sessions.put(sid, s)
	}
	m.gone.drop(sid)
	m.stats.Sessions++
	s.guessed, s.turns, s.openedBy = false, 0, r.name
	return s
}

// settle takes back what a request did that is no longer in flight.
func (m *Monitor) settle(r *request) {
	if f, ok := r.facts.(*openFacts); ok {
		if f.sid == "" {
			m.opening = max(0, m.opening-1)
		} else if r.s != nil {
			r.s.opening--
			r.s.replayEnds(f)
		}
	}
	if r.s != nil && r.name == "session/prompt" && m.version != 2 {
		r.s.turns = max(0, r.s.turns-1)
	}
}

// ended looks at a session that its client has done with.
func (m *Monitor) endSession(sid, by string) {
	m.sessions.drop(sid)
	m.gone.put(sid, by)
	m.breaks(ckSessionEnded, false)
}

// uses returns the session that the client names, which it must have opened.
func (m *Monitor) uses(sid string) *session {
	s, ok := m.sessions.get(sid)
	by, gone := m.gone.get(sid)
	if len(m.gone.m) > 0 && m.breaks(ckUseEnded, !ok && gone) {
		m.add(ckUseEnded, "params.sessionId", "used the session %s after %s", quote(sid), by)
	}
	never := !ok && !gone && m.sessions.lacks(sid) && !m.gone.forgot
	m.lost = never
	if m.breaks(ckUseKnown, never) {
		m.add(ckUseKnown, "params.sessionId", "used the session %s, which was never opened", quote(sid))
	}
	if ok && s.guessed && !m.gap {
		s.guessed = false
		if m.breaks(ckUseKnown, s.opening == 0) {
			m.add(ckUseKnown, "params.sessionId", "used the session %s, which was never opened", quote(sid))
		}
	}
	return s
}

// names returns the session that the agent names, which the client must have
// opened.
func (m *Monitor) names(sid string) *session {
	s, ok := m.sessions.get(sid)
	if ok {
		m.breaks(ckSessionKnown, false)
		m.breaks(ckSessionEarly, false)
		return s
	}
	by, gone := m.gone.get(sid)
	if gone {
		if m.breaks(ckSessionEnded, by != "session/delete") {
			m.add(ckSessionEnded, "params.sessionId", "named the session %s after it answered %s", quote(sid), by)
		}
		return nil
	}
	early := m.opening > 0
	if m.breaks(ckSessionEarly, early) {
		m.add(ckSessionEarly, "params.sessionId", "named the session %s before it answered the request that opens it", quote(sid))
	}
	if m.breaks(ckSessionKnown, !early && m.sessions.lacks(sid) && !m.gone.forgot) {
		m.add(ckSessionKnown, "params.sessionId", "named the session %s, which was never opened", quote(sid))
	}
	s = newSession(sid) // so that it is reported once
	s.guessed = true
	if m.sessions.forgot {
		s.forget()
	}
	m.sessions.put(sid, s)
	return s
}

// sessionOf finds the session of a request that nobody knows.
func (m *Monitor) sessionOf(e *envelope, r *request) {
	if e.has&hasParams == 0 {
		return
	}
	d := &m.d
	d.Seek(e.params)
	if d.Peek() != '{' {
		return
	}
	if sid := d.Member("sessionId"); sid != "" {
		r.s, _ = m.sessions.get(sid)
	}
}

// prompt looks at a request to take a turn.
func (m *Monitor) prompt(r *request, sid string, blocks int) {
	m.stats.Turns++
	s := m.uses(sid)
	r.s = s
	if m.breaks(ckEmptyPrompt, blocks == 0) {
		m.add(ckEmptyPrompt, "params.prompt", "sent a prompt with nothing in it")
	}
	if s == nil {
		return
	}
	s.prompted = true
	if m.version == 2 {
		return
	}
	if m.breaks(ckBusy, s.turns > 0) {
		m.add(ckBusy, "", "sent a prompt while another is not answered yet")
	}
	m.begins(s)
	s.said = blocks == 0 // there is nothing to say to it
}

// cancelSession examines session/cancel, and anything else that stops a session.
func (m *Monitor) cancelSession(s *session, asksToStop bool) {
	if s == nil {
		return
	}
	s.closing = s.closing || !asksToStop
	if asksToStop {
		s.calls, s.calledAt = s.calls+1, m.at
	}
	if asksToStop && (s.turns > 0 || m.version == 2 && s.state != "" && s.state != "idle") && !s.stopped {
		s.stopped, s.cancelled = true, m.at
	}
	for i := range m.open {
		for _, e := range m.open[i].m {
			if r := e.v; r.s == s {
				r.stopped = true
				if f, ok := r.facts.(*permissionFacts); ok {
					// One that is younger has crossed: the client stopped the turn before it knew of it.
					f.cancelled = f.cancelled || asksToStop && m.at-time.Duration(r.at) >= grace
				}
			}
		}
	}
}

// turned looks at the result that ends a turn (v1).
func (m *Monitor) turned(r *request, reason string, known bool) {
	m.expect(ckStopReason, known || strings.HasPrefix(reason, "_"), "result.stopReason", "stopped for the unknown reason %s", quote(reason))
	s := r.s
	if s == nil {
		return
	}
	cancelled := reason == "cancelled"
	if r.stopped && s.stopped {
		m.breaks(ckTurnEnds, false)
		if m.breaks(ckCancelled, !cancelled && m.at-s.cancelled >= grace) {
			m.add(ckCancelled, "result.stopReason", "ended a cancelled turn as %s", quote(reason))
		}
	}
	if cancelled && m.breaks(ckNotCancelled, !r.stopped && !r.withdrawn && !s.dismissed && !m.gap) {
		m.unlessGone(ckNotCancelled, "result.stopReason", "ended a turn as cancelled that nobody cancelled")
	}
	if reason == "end_turn" {
		m.unfinished(s)
		m.expect(ckEmptyTurn, s.said || r.stopped || s.turns > 0, "result.stopReason", "ended a turn normally in which it said and did nothing")
	}
	m.abandoned(r, s)
}

func (m *Monitor) unfinished(s *session) {
	for id, e := range s.tools.m {
		if t := e.v; t.turn == s.turn {
			if m.breaks(ckUnfinished, rank(t.status) < 2) {
				m.add(ckUnfinished, "", "ended the turn while the tool call %s is %s", quote(id), quote(t.status))
			}
		}
	}
}

// failed looks at an error that answers a request, whatever its kind.
func (m *Monitor) failed(r *request, we *jsonrpc.Error) {
	m.authErrors(r, we)
	if r.malformed {
		m.breaks(ckMisasked, false)
		m.expect(ckMisaskedCode, we.Code != jsonrpc.CodeInternalError, "error.code", "answered %s with malformed params as an error of its own, with -32603 and not with -32602", r.name)
	}
	if r.relative {
		m.breaks(ckRelative, false)
	}
	switch r.name {
	case "initialize":
		m.initializeFailed(we)
	case "session/prompt":
		if s := r.s; s != nil && m.version == 1 {
			told := we.Code == jsonrpc.CodeRequestCancelled || m.at-s.cancelled >= grace
			if r.stopped && s.stopped && m.breaks(ckCancelled, !r.withdrawn && told) {
				m.add(ckCancelled, "error", "ended a cancelled turn with the error %d", we.Code)
			}
		}
	}
	if f, ok := r.facts.(*openFacts); ok && f.fresh && r.s != nil && r.s.opening == 0 {
		m.sessions.drop(f.sid)
	}
	m.refusedTo(r, we)
	other := m.first(r, we) || we.Code == jsonrpc.CodeMethodNotFound
	if r.lost && !other && m.breaks(ckNotFound, we.Code != jsonrpc.CodeResourceNotFound) {
		m.add(ckNotFound, "error.code", "refused %s for a session that does not exist with %d and not with -32002", r.name, we.Code)
	}
}

// ending looks at what is left when the connection is over.
func (m *Monitor) ending() {
	for asker := range m.open {
		m.from = 1 - asker
		for _, e := range m.open[asker].m {
			r := e.v
			spoke := m.lastNo[m.from] > r.due && m.lastAt[m.from]-time.Duration(r.dueAt) >= patience
			slow := patient(r.name) && !r.withdrawn
			if m.breaks(ckAnswered, spoke && !slow && !r.doubtful) {
				m.addAt(r.frame, ckAnswered, "", "never answered %s with the id %s", quote(r.name), quote(r.key))
			}
			if s := r.s; s != nil && r.name == "session/prompt" && m.version == 1 {
				late := s.stopped && m.lastNo[m.from] > r.frame && m.lastAt[m.from]-s.cancelled >= patience
				if m.breaks(ckTurnEnds, late) {
					m.addAt(r.frame, ckTurnEnds, "", "never ended the turn that was cancelled")
				}
			}
		}
	}
	m.from = theAgent
	for _, e := range m.sessions.m {
		m.unshown(e.v)
	}
}

// patience is how long an answer may take that does not depend on a person, a
// model or a program.
const patience = 30 * time.Second

func patient(name string) bool {
	switch name {
	case "session/prompt", "session/request_permission", "elicitation/create", "terminal/wait_for_exit",
		"session/new", "session/load", "session/resume", "session/fork", // these start MCP servers
		"authenticate", "auth/login", "mcp/message", "proxy/successor":
		return true
	}
	return strings.HasPrefix(name, "_")
}

// absolute reports whether a path does not depend on a working directory, on
// any system.
func absolute(p string) bool {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) {
		return true
	}
	return len(p) >= 3 && (p[0]|0x20)-'a' < 26 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

func (m *Monitor) directories(cwd string, more []string) {
	m.relative = !absolute(cwd) || slices.ContainsFunc(more, func(p string) bool { return !absolute(p) })
	if m.breaks(ckCwd, !absolute(cwd)) {
		m.add(ckCwd, "params.cwd", "opened a session in %s, which is not absolute", quote(cwd))
	}
	for _, p := range more {
		if m.breaks(ckDirectories, !absolute(p)) {
			m.add(ckDirectories, "params.additionalDirectories", "added the directory %s, which is not absolute", quote(p))
		}
	}
	if len(more) > 0 {
		m.offered1(ckCapDirectories, m.agent.directories, "params.additionalDirectories", "sessionCapabilities.additionalDirectories")
	}
}

// listed looks at an entry of a list of sessions.
func (m *Monitor) listed(seen map[string]bool, id, cwd, updated string) {
	if m.breaks(ckListCwd, !absolute(cwd)) {
		m.add(ckListCwd, "result.sessions", "listed the session %s in %s, which is not absolute", quote(id), quote(cwd))
	}
	m.more.listed.put(id, true)
	if m.breaks(ckListTwice, seen[id]) {
		m.add(ckListTwice, "result.sessions", "listed the session %s twice", quote(id))
	}
	seen[id] = true
	m.timestamp("result.sessions", updated)
}

func (m *Monitor) timestamp(path, at string) {
	if at == "" {
		return
	}
	forms, name := isoForms, "ISO 8601"
	if m.version == 2 {
		forms, name = forms[:1], "RFC 3339"
	}
	fits := slices.ContainsFunc(forms, func(form string) bool { _, err := time.Parse(form, at); return err == nil })
	if m.breaks(ckTimes, !fits) {
		m.add(ckTimes, path, "sent the time %s, which is not of %s with a zone", quote(at), name)
	}
}

// isoForms are forms of ISO 8601 for a point in time. The first one is that of
// RFC 3339, which version 2 asks for.
var isoForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T1504Z0700",
}

// cursors looks at the place in a list from which the client wants more.
func (m *Monitor) cursor(c string) {
	if c == "" {
		return
	}
	if m.breaks(ckCursor, m.more.cursors.lacks(c)) {
		m.add(ckCursor, "params.cursor", "went on from %s, which the agent has not named", quote(c))
	}
}

// named looks at a request about a session that need not be open.
func (m *Monitor) named(r *request, sid string, ends bool) {
	s, ok := m.sessions.get(sid)
	if ok {
		r.s = s
		if ends {
			m.cancelSession(s, false)
		}
	}
	r.facts = &namedFacts{sid: sid, ends: ends}
}

// namedFacts is what the answer to such a request is judged by.
type namedFacts struct {
	sid  string
	ends bool
}

// onlyListed reports whether the agent has listed a session that was never opened. It
// may report more of it.
func (m *Monitor) onlyListed(sid string) bool {
	_, open := m.sessions.get(sid)
	_, gone := m.gone.get(sid)
	_, listed := m.more.listed.get(sid)
	return listed && !open && !gone
}

// asked looks at the params of a request.
func (m *Monitor) asked(r *request, p any) {
	if r.name == "initialize" || r.name == "proxy/initialize" {
		m.proxyAsked(r)
	}
	if r.from == theClient {
		m.gate(r.name)
	}
	m.lost, m.relative = false, false
	if !m.askedV1(r, p) {
		m.askedV2(r, p)
	}
	r.lost, r.relative = m.lost, m.relative
	if r.from == theAgent && r.s != nil {
		r.s.said = true
	}
}

// told looks at the params of a notification.
func (m *Monitor) told(p any) {
	if !m.toldV1(p) {
		m.toldV2(p)
	}
}

// succeeded looks at a result, which is nil if nothing is known of it.
func (m *Monitor) succeeded(r *request, p any) {
	m.carriedOut(r)
	if p == nil {
		m.mcpOver(r)
	} else if !m.answeredV1(r, p) {
		m.answeredV2(r, p)
	}
	if f, ok := r.facts.(*namedFacts); ok && f.ends {
		if r.s != nil && r.name == "session/close" {
			m.leftTerminals(r.s)
		}
		m.endSession(f.sid, r.name)
	}
	switch r.name {
	case "auth/status":
		m.breaks(ckAuthStatus, false)
	case "session/prompt", "initialize":
		m.breaks(ckUnasked, false)
	}
}
