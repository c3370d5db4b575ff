package conformance

import "strings"

var (
	ckTermKnown    = decides("agent/terminal/known")
	ckTermReleased = decides("agent/terminal/released")
	ckTermCwd      = decides("agent/terminal/cwd")
	ckTermMoved    = decides("agent/terminal/moved")
	ckTermUnique   = decides("client/terminal/unique-ids")
	ckTermLimit    = decides("client/terminal/limit")
	ckTermExit     = decides("client/terminal/exit")
	ckTermAnnounce = decides("agent/terminal/announced")
	ckTermBack     = decides("agent/terminal/exit-back")
	ckFilePath     = decides("agent/file/absolute")
	ckFileLine     = decides("agent/file/line")
	ckFileLimit    = decides("client/file/limit")
)

// A terminal is what is known of a terminal: of the client (v1) or of the agent
// (v2).
type terminal struct {
	limit   uint64 // bytes of its output, if limited
	limited bool
	exited  bool
	exitNo  int64  // the number of the frame that said so (v1)
	cwd     string // where its command runs, "" if that is not known (v2)
	cancel  bool   // it can be cancelled (v2)
	gone    bool   // it was released (v1): tool calls may still show it
	turn    int
}

// terminalFacts is what an answer about a terminal is judged by.
type terminalFacts struct {
	id      string
	limit   uint64
	limited bool
}

// usesTerminal looks at a terminal that the agent names (v1).
func (m *Monitor) usesTerminal(r *request, s *session, id string) {
	r.s, r.facts = s, &terminalFacts{id: brief(id)}
	if s == nil {
		return
	}
	t, ok := s.terminals.get(id)
	if m.breaks(ckTermKnown, s.terminals.lacks(id) || ok && t.gone) {
		m.add(ckTermKnown, "params.terminalId", "used the terminal %s, which does not exist", quote(id))
	}
}

func (m *Monitor) terminalCreated(r *request, id string) {
	f, ok := r.facts.(*terminalFacts)
	if !ok || r.s == nil {
		return
	}
	t, twice := r.s.terminals.get(id)
	if m.breaks(ckTermUnique, twice && !t.gone) {
		m.add(ckTermUnique, "result.terminalId", "made another terminal with the id %s", quote(id))
	}
	r.s.terminals.put(id, &terminal{limit: f.limit, limited: f.limited, turn: r.s.turn})
}

func (m *Monitor) terminalOutput(r *request, output string, exited bool) {
	f, ok := r.facts.(*terminalFacts)
	if !ok || r.s == nil {
		return
	}
	t, ok := r.s.terminals.get(f.id)
	if !ok {
		return
	}
	// What replaces a byte that is not text takes more room than the byte.
	long := uint64(len(output)) > t.limit && !strings.Contains(output, "\ufffd") && !redacted(output)
	if t.limited && m.breaks(ckTermLimit, long) {
		m.add(ckTermLimit, "result.output", "sent %d bytes of output of a terminal that keeps %d", len(output), t.limit)
	}
	// An answer to a request from before may be one of before.
	if m.breaks(ckTermExit, t.exited && !exited && r.frame > t.exitNo) {
		m.add(ckTermExit, "result.exitStatus", "reported that the command has ended, and then that it runs")
	}
	if exited {
		t.exit(m.stats.Frames)
	}
}

func (t *terminal) exit(frame int64) {
	if !t.exited {
		t.exited, t.exitNo = true, frame
	}
}

func (m *Monitor) terminalExited(r *request) {
	if f, ok := r.facts.(*terminalFacts); ok && r.s != nil {
		if t, ok := r.s.terminals.get(f.id); ok {
			t.exit(m.stats.Frames)
		}
	}
}

// released looks at a terminal that the agent gives back.
func (m *Monitor) released(s *session, id string) {
	m.breaks(ckTermReleased, false)
	if s == nil {
		return
	}
	if t, ok := s.terminals.get(id); ok {
		t.gone = true
	}
}

// release looks at the terminals that are left when the client ends a session.
func (m *Monitor) leftTerminals(s *session) {
	if m.version != 1 {
		return
	}
	for id, e := range s.terminals.m {
		if !e.v.gone && m.breaks(ckTermReleased, true) {
			m.add(ckTermReleased, "", "has not released the terminal %s of a session that ended", quote(id))
		}
	}
}

// terminalUpdate follows a terminal of the agent (v2).
func (m *Monitor) terminalUpdate(s *session, id string, chunk, exits, runs bool) *terminal {
	t, ok := s.terminals.get(id)
	if chunk && m.breaks(ckTermAnnounce, !ok && s.terminals.lacks(id) && s.opening == 0) {
		m.add(ckTermAnnounce, "params.update.terminalId", "sent output of the terminal %s before it showed that", quote(id))
	}
	if !ok {
		t = &terminal{turn: s.turn}
		s.terminals.put(id, t)
	}
	if m.breaks(ckTermBack, t.exited && runs && s.opening == 0) {
		m.add(ckTermBack, "params.update.exitStatus", "reported that the command of %s has ended, and then that it has not", quote(id))
	}
	t.exited = (t.exited || exits) && !runs
	return t
}

// runsIn looks at the directory of a command (v2).
func (m *Monitor) runsIn(s *session, t *terminal, id, cwd string) {
	if m.breaks(ckTermCwd, !absolute(cwd)) {
		m.add(ckTermCwd, "params.update.cwd", "showed a command in %s, which is not absolute", quote(cwd))
	}
	if m.breaks(ckTermMoved, t.cwd != "" && t.cwd != brief(cwd) && s.opening == 0) {
		m.add(ckTermMoved, "params.update.cwd", "moved the terminal %s from %s to %s", quote(id), quote(t.cwd), quote(cwd))
	}
	t.cwd = brief(cwd)
}

func (m *Monitor) file(path string, line *uint32) {
	if m.breaks(ckFilePath, !absolute(path)) {
		m.add(ckFilePath, "params.path", "asked for the file %s, which is not absolute", quote(path))
	}
	if line != nil && m.breaks(ckFileLine, *line == 0) {
		m.add(ckFileLine, "params.line", "asked for line 0; lines are counted from 1")
	}
}

// readFacts is what the text of a file is judged by.
type readFacts struct{ limit uint32 }

func (m *Monitor) fileRead(r *request, text string) {
	f, ok := r.facts.(*readFacts)
	if !ok {
		return
	}
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if m.breaks(ckFileLimit, lines > int(f.limit) && text != "" && f.limit > 0) {
		m.add(ckFileLimit, "result.content", "sent %d lines to an agent that asked for %d", lines, f.limit)
	}
}
