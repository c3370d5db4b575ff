package trace

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/trace"
)

// Bounds of a meter.
const (
	maxMethods  = 256  // that are told apart; the others are one
	maxSessions = 1000 // that are told one by one
	maxBiggest  = 5
	otherMethod = "(others)"
)

// A meter sums up what passes. The zero value is ready.
type meter struct {
	read     frame.Reader
	methods  map[callKey]*calls
	sessions map[string]*sessionSum
	order    []*sessionSum
	more     int64 // sessions beyond the bound
	pending  [2]pendings
	to       [2]amount // agent, client
	texts    [2]int64
	stderr   int64
	lost     int64
	events   map[string]int64
	exit     *int
	biggest  []big
	span     time.Duration // of the parts that are over
	last     time.Duration // of the last record of this one
	first    time.Duration
	any      bool
}

type amount struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (a *amount) add(n int64) { a.Count++; a.Bytes += n }

type callKey struct {
	method string
	dir    trace.Direction
}

// calls are those of one method by one side.
type calls struct {
	key        callKey
	request    bool
	errors     int64
	unanswered int64
	size       spread // of the frames that call
	answers    spread // of those that answer
	latency    spread
}

type big struct {
	Line   int64  `json:"line"`
	Method string `json:"method"` // of an answer, that of the request
	Type   string `json:"type"`
	Size   int64  `json:"size"`
}

// A sessionSum is what is known of a session.
type sessionSum struct {
	id       string
	updates  int64
	turns    int64
	prompted time.Duration
	running  bool
	silent   bool // nothing came yet in this turn
	first    spread
	turn     spread
	tokens   map[string]int64
	used     int64
	window   int64
	cost     float64
	currency string
}

// part says that another connection begins, as it does when the agent is started.
func (m *meter) part() {
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

// add counts a record of the given line.
func (m *meter) add(rec *trace.Record, line int64) {
	if m.any && rec.Kind == trace.Event && rec.Name == "start" {
		m.part()
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

func (m *meter) frame(rec *trace.Record, line int64) {
	f := m.read.Read(rec.Data)
	side := index(rec.Dir)
	kind, method := "odd", f.Method
	switch {
	case f.Request(), f.Notification():
		kind = "notification"
		c := m.calls(f.Method, rec.Dir)
		c.size.add(length(rec))
		if f.Request() {
			kind, c.request = "request", true
			q := pending{method: c.key.method, session: f.Session, at: int64(rec.At)}
			if m.pending[side].put(f.ID, q) {
				c.unanswered++
			}
		}
	case f.Answer():
		kind = "answer"
		if q, ok := m.pending[1-side].take(f.ID); ok {
			c := m.calls(q.method, directions[1-side])
			c.latency.add(int64(rec.At) - q.at)
			c.answers.add(length(rec))
			if f.Error != nil {
				c.errors++
			}
			method = q.method
			m.answered(&q, &f, rec.At)
		}
	}
	m.keepBig(rec, line, method, kind)
	if f.Session != "" {
		m.session(&f, rec)
	}
}

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

func (m *meter) keepBig(rec *trace.Record, line int64, method, kind string) {
	n := length(rec)
	if len(m.biggest) == maxBiggest && n <= m.biggest[maxBiggest-1].Size {
		return
	}
	m.biggest = append(m.biggest, big{line, method, kind, n})
	slices.SortStableFunc(m.biggest, func(a, b big) int { return cmp.Compare(b.Size, a.Size) })
	m.biggest = m.biggest[:min(len(m.biggest), maxBiggest)]
}

// open returns a session, nil beyond the bound.
func (m *meter) open(id string) *sessionSum {
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

// session notes what a call says of its session.
func (m *meter) session(f *frame.Envelope, rec *trace.Record) {
	s := m.open(f.Session)
	if s == nil {
		return
	}
	switch {
	case f.Method == "session/prompt" && rec.Dir == trace.ToAgent:
		s.turns++
		if !s.running { // another one may be queued behind it
			s.prompted, s.running, s.silent = rec.At, true, true
		}
	case f.Method == "session/update" && rec.Dir == trace.ToClient:
		s.update(f, rec.At)
	}
}

func (s *sessionSum) update(f *frame.Envelope, at time.Duration) {
	s.updates++
	switch f.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought", "tool_call", "tool_call_update":
		if s.running && s.silent {
			s.first.add(int64(at - s.prompted))
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
	s.turn.add(int64(at - s.prompted))
	s.running = false
}

// tokenSorts are the sorts of tokens that are counted.
var tokenSorts = []string{"totalTokens", "inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens"}

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

// answered notes what an answer says of sessions: turns that end, sessions that open.
func (m *meter) answered(q *pending, f *frame.Envelope, at time.Duration) {
	switch q.method {
	case "session/new", "session/fork":
		if id := frame.Member(f.Result, "sessionId"); id != "" {
			m.open(id)
		}
	case "session/prompt":
		s := m.sessions[q.session]
		if s == nil {
			return
		}
		// In version 2 the answer is a receipt.
		if s.running && (f.Error != nil || frame.Find(f.Result, "stopReason") != nil) {
			s.end(at)
		}
		s.spend(frame.Find(f.Result, "usage"))
	}
}
