package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/trace"
)

// What a Monitor remembers at most. What is beyond is forgotten, the oldest
// half first, and rules that would have to know it then say nothing.
const (
	maxSessions = 256  // open ones, with all that is known of them
	maxInFlight = 4096 // unanswered requests of each side
	maxGone     = 4096 // ids of closed sessions, and of answered requests of each side
	maxEntries  = 2048 // tool calls, messages, terminals, … of a session, each
	maxFindings = 32   // of one frame
)

// largeFrame is the size in bytes that readers by default accept (S3).
const largeFrame = 32 << 20

// MonitorConfig says what a [Monitor] cannot see. The zero value is for frames
// from the beginning of a connection.
type MonitorConfig struct {
	// Joined says that frames passed before the first one that is shown: ids,
	// sessions and the like may be known from then. Rules that would have to know
	// say nothing.
	Joined bool
	// Version is the protocol version of a connection whose initialize is among
	// what was missed; 0 stands for 1.
	Version int
}

// A Monitor checks the observed rules on the frames of one connection, in both
// directions, as they pass or as they were recorded. It follows the handshake,
// the requests in flight, the sessions with their turns, tool calls, terminals
// and so on, in bounded memory: 256 open sessions with 2048 of each of those,
// and 4096 requests of each side. Of what is forgotten rules say nothing, rather
// than something wrong.
//
// A Monitor is not safe for concurrent use. It holds nothing that has to be
// closed. The zero Monitor is not ready: see [NewMonitor].
type Monitor struct {
	cfg   MonitorConfig
	rules []bound
	seen  [3][]uint8 // by version: sides whose rule of a check had a case

	stats MonitorStats
	out   []Finding // of the frame at hand

	current
	version int  // agreed, 0 before
	offered int  // by the client, while initialize is in flight
	gap     bool // frames are missing from before
	ended   bool
	ready   bool // initialize was answered with success
	others  bool // requests other than initialize passed

	parting []Finding    // about the agent, unless the client has gone away before
	held    [2][]Finding // about one that may have been cut off, by side

	lastAt [2]time.Duration // when a side sent something, by side
	lastNo [2]int64         // the number of that frame

	open     [2]table[*request] // in flight, by the side that asked
	answered [2]table[int64]    // ids that were answered, by the side that asked
	sessions table[*session]
	gone     table[string] // sessions that ended, with the method that ended them
	opening  int           // requests in flight that may open a session of a new id

	agent  agentCaps
	client clientCaps
	more   connection
	proxy  proxied
}

// current is what a monitor knows of the frame at hand.
type current struct {
	at     time.Duration
	from   int // index of the sender's side
	data   []byte
	d      wire.Decoder
	in     wire.Interner
	forms  wire.Forms
	watch  wire.Watch
	member string // that is being judged, "params" or "result"

	torn      bool // it is not JSON
	malformed bool // what was decoded last does not match the schema
	later     bool // an initialize that asks for a version that nobody knows
	lost      bool // a request about a session that does not exist
	relative  bool // a request that opens a session in a directory that is not absolute
}

// MonitorStats counts what passed.
type MonitorStats struct {
	Version       int             // agreed by initialize, 0 before
	Frames        int64           // all that passed, text included
	Bytes         int64           // of these
	Requests      [2]int64        // by the side that asked: [0] the agent, [1] the client
	Notifications [2]int64        // by sender
	Responses     [2]int64        // by sender
	Errors        [2]int64        // of the responses
	Texts         [2]int64        // lines that were no JSON, by sender
	Sessions      int64           // that were opened
	Turns         int64           // that were begun with session/prompt
	Findings      map[*Rule]int64 // how often each rule was broken
}

// The indexes of sides.
const (
	theAgent = iota
	theClient
)

// NewMonitor returns a monitor of a connection of which nothing passed yet.
func NewMonitor(cfg MonitorConfig) *Monitor {
	m := &Monitor{cfg: cfg, rules: bindings(), gap: cfg.Joined}
	for v := range m.seen {
		m.seen[v] = make([]uint8, len(m.rules))
	}
	m.stats.Findings = map[*Rule]int64{}
	m.sessions.max = maxSessions
	for i := range m.open {
		m.open[i].max, m.answered[i].max = maxInFlight, maxGone
	}
	m.d.In, m.d.Forms, m.d.Watch = &m.in, &m.forms, &m.watch
	if cfg.Joined {
		m.Gap()
		m.ready, m.others = true, true
		m.agree(max(cfg.Version, 1))
		m.agent.unknown, m.client.unknown = true, true
	}
	return m
}

// Frame looks at a frame that passed at the given time since the start of the
// connection. The findings are valid until the next call; data is not kept.
func (m *Monitor) Frame(at time.Duration, dir trace.Direction, data []byte) []Finding {
	m.begin(at, dir, data)
	m.torn = false
	m.frame()
	if m.torn && cutOff(data) {
		m.hold()
	}
	m.data = nil
	m.d.Reset(nil, false)
	return m.out
}

// Text examines a line that is not JSON. The findings are valid until the next call;
// line is not kept.
func (m *Monitor) Text(at time.Duration, dir trace.Direction, line []byte) []Finding {
	m.begin(at, dir, line)
	m.stats.Texts[m.from]++
	m.open[m.from].forgot = true // the other side may make something of it
	m.breaks(ckJSON, true)
	m.add(ckJSON, "", "sent a line that is not JSON: %s", quote(string(line[:min(len(line), 200)])))
	if cutOff(line) {
		m.hold()
	}
	m.data = nil
	return m.out
}

// Gap says that frames are missing here. What was in flight may have been
// answered, and what is named later may have come with them.
func (m *Monitor) Gap() {
	m.gap = true
	for i := range m.open {
		m.open[i].m, m.open[i].forgot, m.answered[i].forgot = nil, true, true
	}
	for _, e := range m.sessions.m {
		e.v.forget()
	}
	m.sessions.forgot, m.gone.forgot = true, true
	m.more.forget()
	m.opening = 0
}

// End says that nothing more passes, and returns what that shows: requests that
// were never answered and the like. A second call returns nothing.
func (m *Monitor) End() []Finding {
	m.out = m.out[:0]
	if !m.ended {
		m.ended = true
		m.ending()
	}
	return m.out
}

// Seen reports whether what the rule is about occurred, in any version of the
// protocol: a rule that is not broken was kept only if it did.
func (m *Monitor) Seen(r *Rule) bool { return m.seenIn(r, 0, 1, 2) }

func (m *Monitor) seenIn(r *Rule, versions ...int) bool {
	for c := range m.rules {
		for i, have := range m.rules[c].rules {
			if have == nil || r == nil || have.ID != r.ID {
				continue
			}
			for _, v := range versions {
				if m.seen[v][c]>>i&1 != 0 {
					return true
				}
			}
		}
	}
	return false
}

// Stats returns what passed so far. The map belongs to the caller.
func (m *Monitor) Stats() MonitorStats {
	s := m.stats
	s.Version = m.version
	s.Findings = make(map[*Rule]int64, len(m.stats.Findings))
	for r, n := range m.stats.Findings {
		s.Findings[r] = n
	}
	return s
}

func (m *Monitor) begin(at time.Duration, dir trace.Direction, data []byte) {
	m.out = m.out[:0]
	m.at, m.data = at, data
	m.from = theClient
	if dir == trace.ToClient {
		m.from = theAgent
	}
	m.stats.Frames++
	m.stats.Bytes += int64(len(data))
	m.lastAt[m.from], m.lastNo[m.from] = at, m.stats.Frames
	for _, f := range m.held[m.from] { // it went on, so the one before was not cut off
		m.stats.Findings[f.Rule]++
		m.out = append(m.out, f)
	}
	m.held[m.from] = nil
	if m.from == theClient {
		for _, f := range m.parting {
			m.stats.Findings[f.Rule]++
			m.out = append(m.out, f)
		}
		m.parting = nil
	}
}

// unlessGone adds a finding about the agent when the client sends another frame. If it
// does not, it may have left before, which is a reason to end what runs.
func (m *Monitor) unlessGone(c check, path, why string) {
	n := len(m.out)
	m.add(c, path, "%s", why)
	if len(m.out) == n {
		return
	}
	f := m.out[n]
	m.out = m.out[:n]
	m.stats.Findings[f.Rule]--
	if len(m.parting) < maxFindings {
		m.parting = append(m.parting, f)
	}
}

// hold keeps what was found in the frame at hand until its sender sends another
// one. If it does not, it was ended while it sent this one.
func (m *Monitor) hold() {
	m.held[m.from] = slices.DeleteFunc(slices.Clone(m.out), func(f Finding) bool { return f.Frame != m.stats.Frames })
	m.out = slices.DeleteFunc(m.out, func(f Finding) bool { return f.Frame == m.stats.Frames })
	for _, f := range m.held[m.from] {
		m.stats.Findings[f.Rule]--
	}
}

// breaks notes that there was a case for the check, and reports whether the rule
// it decides about applies and is broken.
func (m *Monitor) breaks(c check, broken bool) bool {
	bit := uint8(1) << m.from
	if m.rules[c].on[m.version]&bit == 0 {
		return false
	}
	m.seen[m.version][c] |= bit
	return broken
}

// add adds a finding about the sender of the frame at hand.
func (m *Monitor) add(c check, path, format string, args ...any) {
	m.addAt(m.stats.Frames, c, path, format, args...)
}

func (m *Monitor) addAt(frame int64, c check, path, format string, args ...any) {
	r := m.rules[c].rules[m.from]
	if r == nil || m.rules[c].on[m.version]>>m.from&1 == 0 {
		return
	}
	m.stats.Findings[r]++
	if len(m.out) == maxFindings {
		return
	}
	m.out = append(m.out, Finding{Rule: r, Frame: frame, Why: fmt.Sprintf(format, args...), Path: path})
}

// expect is breaks and add.
func (m *Monitor) expect(c check, ok bool, path, format string, args ...any) bool {
	if m.breaks(c, !ok) {
		m.add(c, path, format, args...)
	}
	return ok
}

const quoteMax = 60

// quote returns what a peer sent in a form that is fit for a line.
func quote(s string) string {
	if len(s) <= quoteMax {
		return strconv.QuoteToASCII(s)
	}
	n := quoteMax
	for n > quoteMax-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.QuoteToASCII(s[:n]) + "…"
}
