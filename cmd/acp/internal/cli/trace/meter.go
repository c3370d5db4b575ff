package trace

import (
	"encoding/json"
	"sort"
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/trace"
)

// The bounds of a meter.
const (
	maxMethods  = 256  // methods that are distinguished; all others count as one
	maxSessions = 1000 // sessions that are listed; all others are only counted
	maxBiggest  = 5
	otherMethod = "(others)"
)

// A meter collects the statistics of a recording. Its memory is bounded whatever the length of the
// recording. The zero value is ready to use.
type meter struct {
	read     frame.Reader
	methods  map[callKey]*calls
	sessions map[string]*sessionSum
	order    []*sessionSum
	more     int64 // frames of sessions beyond the bound
	pending  [2]pendings
	to       [2]amount // agent, client
	texts    [2]int64
	stderr   int64
	lost     int64
	events   map[string]int64
	exit     *int
	biggest  []big
	span     time.Duration // duration of the finished parts
	last     time.Duration // time of the last record of the current part
	first    time.Duration // time of its first record
	any      bool          // it has a record
}

// An amount is a number of frames and their bytes.
type amount struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

// add counts one frame of n bytes.
func (a *amount) add(n int64) { a.Count++; a.Bytes += n }

// A callKey is a method with the direction of its calls.
type callKey struct {
	method string
	dir    trace.Direction
}

// calls are the statistics of one method called by one side.
type calls struct {
	key        callKey
	request    bool
	errors     int64
	unanswered int64
	size       spread // of the calls
	answers    spread // of the answers
	latency    spread
}

// A big is one of the largest frames.
type big struct {
	Line   int64  `json:"line"`
	Method string `json:"method"` // for an answer, the method of its request
	Type   string `json:"type"`
	Size   int64  `json:"size"`
}

// A sessionSum holds the statistics of a session.
type sessionSum struct {
	id       string
	updates  int64
	turns    int64
	prompted time.Duration // when the current turn began
	running  bool          // a turn is running
	silent   bool          // the turn has not had an update yet
	first    spread
	turn     spread
	tokens   map[string]int64
	used     int64
	window   int64
	cost     float64
	currency string
}

// beginPart starts a new connection. Requests of the old one stay unanswered.
func (m *meter) beginPart() {
	m.span += m.last - m.first
	m.last, m.first, m.any = 0, 0, false
	for i := range m.pending {
		for _, q := range m.pending[i].byID {
			m.calls(q.method, directions[i]).unanswered++
		}
		m.pending[i] = pendings{}
	}
	for _, s := range m.order {
		s.running = false
	}
}

var directions = [2]trace.Direction{trace.ToAgent, trace.ToClient}

func index(dir trace.Direction) int {
	if dir == trace.ToAgent {
		return 0
	}
	return 1
}

// addRecord counts the record in the given line.
func (m *meter) addRecord(rec *trace.Record, line int64) {
	if m.any && rec.Kind == trace.Event && rec.Name == "start" {
		m.beginPart()
	}
	if !m.any {
		m.first, m.any = rec.At, true
	}
	m.last = max(m.last, rec.At)
	switch rec.Kind {
	case trace.Stderr:
		m.stderr++
	case trace.Event:
		m.event(rec)
	case trace.Text:
		m.to[index(rec.Dir)].add(length(rec))
		m.texts[index(rec.Dir)]++
		m.keepBig(rec, line, "", "text")
	case trace.Frame:
		m.to[index(rec.Dir)].add(length(rec))
		m.frame(rec, line)
	}
}

// event counts an event of the recording, such as the start of the agent.
func (m *meter) event(rec *trace.Record) {
	if m.events == nil {
		m.events = map[string]int64{}
	}
	if len(m.events) < maxMethods {
		m.events[rec.Name]++
	}
	switch rec.Name {
	case "lost":
		m.lost += rec.Detail.Count
	case "exit":
		if rec.Detail.Code != nil {
			code := *rec.Detail.Code
			m.exit = &code
		}
	}
}

// frame counts a frame, and pairs an answer with its request.
func (m *meter) frame(rec *trace.Record, line int64) {
	f := m.read.Read(rec.Data)
	side := index(rec.Dir)
	kind, method := "odd", f.Method
	switch {
	case f.Request(), f.Notification():
		kind = "notification"
		c := m.calls(f.Method, rec.Dir)
		c.size.addNumber(length(rec))
		if f.Request() {
			kind, c.request = "request", true
			q := pending{method: c.key.method, session: f.Session, at: int64(rec.At)}
			if m.pending[side].addRequest(f.ID, q) {
				c.unanswered++
			}
		}
	case f.Answer():
		kind = "answer"
		if q, ok := m.pending[1-side].takeRequest(f.ID); ok {
			c := m.calls(q.method, directions[1-side])
			c.latency.addNumber(int64(rec.At) - q.at)
			c.answers.addNumber(length(rec))
			if f.Error != nil {
				c.errors++
			}
			method = q.method
			m.answered(&q, &f, rec.At)
		}
	}
	m.keepBig(rec, line, method, kind)
	if f.Session != "" {
		m.addToSession(&f, rec)
	}
}

// calls returns the statistics of a method.
func (m *meter) calls(method string, dir trace.Direction) *calls {
	key := callKey{method, dir}
	if c := m.methods[key]; c != nil {
		return c
	}
	if m.methods == nil {
		m.methods = map[callKey]*calls{}
	}
	if len(m.methods) >= maxMethods {
		key.method = otherMethod
		if c := m.methods[key]; c != nil {
			return c
		}
	}
	c := &calls{key: key}
	m.methods[key] = c
	return c
}

// keepBig keeps a frame if it is among the largest.
func (m *meter) keepBig(rec *trace.Record, line int64, method, kind string) {
	n := length(rec)
	if len(m.biggest) == maxBiggest && n <= m.biggest[maxBiggest-1].Size {
		return
	}
	m.biggest = append(m.biggest, big{line, method, kind, n})
	sort.SliceStable(m.biggest, func(i, j int) bool { return m.biggest[j].Size < m.biggest[i].Size })
	m.biggest = m.biggest[:min(len(m.biggest), maxBiggest)]
}

// sessionOf returns the statistics of a session, or nil beyond the bound.
func (m *meter) sessionOf(id string) *sessionSum {
	if s := m.sessions[id]; s != nil {
		return s
	}
	if m.sessions == nil {
		m.sessions = map[string]*sessionSum{}
	}
	if len(m.sessions) >= maxSessions || len(id) > 1024 {
		m.more++
		return nil
	}
	s := &sessionSum{id: id}
	m.sessions[id] = s
	m.order = append(m.order, s)
	return s
}

// addToSession counts a call that belongs to a session.
func (m *meter) addToSession(f *frame.Envelope, rec *trace.Record) {
	s := m.sessionOf(f.Session)
	if s == nil {
		return
	}
	switch {
	case f.Method == "session/prompt" && rec.Dir == trace.ToAgent:
		s.turns++
		if !s.running { // otherwise the prompt is queued behind the running turn
			s.prompted, s.running, s.silent = rec.At, true, true
		}
	case f.Method == "session/update" && rec.Dir == trace.ToClient:
		s.update(f, rec.At)
	}
}

// update counts an update of a session.
func (s *sessionSum) update(f *frame.Envelope, at time.Duration) {
	s.updates++
	switch f.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought", "tool_call", "tool_call_update":
		if s.running && s.silent {
			s.first.addNumber(int64(at - s.prompted))
			s.silent = false
		}
	case "state_update":
		if frame.Member(f.Update, "state") == "idle" && s.running {
			s.end(at)
			s.spend(frame.Find(f.Update, "usage"))
		}
	case "usage_update":
		s.used, s.window = number(frame.Find(f.Update, "used")), number(frame.Find(f.Update, "size"))
		if amount := frame.Find(f.Update, "cost", "amount"); amount != nil {
			if cost, err := strconv.ParseFloat(string(amount), 64); err == nil {
				s.cost, s.currency = cost, frame.Member(f.Update, "cost", "currency")
			}
		}
	}
}

func (s *sessionSum) end(at time.Duration) {
	s.turn.addNumber(int64(at - s.prompted))
	s.running = false
}

// tokenSorts are the kinds of tokens that are counted.
var tokenSorts = []string{"totalTokens", "inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens"}

// spend adds the tokens of a turn.
func (s *sessionSum) spend(usage []byte) {
	for _, sort := range tokenSorts {
		if n := number(frame.Find(usage, sort)); n > 0 {
			if s.tokens == nil {
				s.tokens = map[string]int64{}
			}
			s.tokens[sort] += n
		}
	}
}

func number(data []byte) int64 {
	var n int64
	if json.Unmarshal(data, &n) != nil {
		return 0
	}
	return max(0, n)
}

// answered counts the answers that concern sessions: those that end a turn or open a session.
func (m *meter) answered(q *pending, f *frame.Envelope, at time.Duration) {
	switch q.method {
	case "session/new", "session/fork":
		if id := frame.Member(f.Result, "sessionId"); id != "" {
			m.sessionOf(id)
		}
	case "session/prompt":
		s := m.sessions[q.session]
		if s == nil {
			return
		}
		// In version 2 the answer only acknowledges the prompt; a state_update ends the turn.
		if s.running && (f.Error != nil || frame.Find(f.Result, "stopReason") != nil) {
			s.end(at)
		}
		s.spend(frame.Find(f.Result, "usage"))
	}
}
