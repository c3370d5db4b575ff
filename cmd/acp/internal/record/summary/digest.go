// Package summary reads what passes between a client and an agent as people would: which answer
// belongs to which request and how long it took, which session a frame is about, what it says in a
// line, and the conversation that the updates of each session make.
//
// Nothing that passes is an error: a line that is not JSON-RPC is reported as such. The constants
// and types say what bounds there are.
package summary

import (
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/trace"
)

// A Type says what a record is.
type Type string

// The types.
const (
	Request      Type = "request"
	Notification Type = "notification"
	Answer       Type = "answer" // with a result
	Failure      Type = "error"  // an answer with an error
	Odd          Type = "odd"    // JSON that is none of these
	Text         Type = "text"   // a line that is not JSON
	Stderr       Type = "stderr"
	Event        Type = "event"
)

// An Item is what a record means. It owns all it refers to.
type Item struct {
	Type   Type
	Method string // of answers, that of the request; of events, their name
	Update string // which kind of update a session/update brings
	ID     string // as it is in the frame, of requests and answers
	// Session is the id of the session it is about, or "". That of an answer is the session of its
	// request, or the one that it opens.
	Session string
	// Asked is the number of the request that it answers, from 1, or 0. That request went the other
	// way, recently, and was not answered before.
	Asked int64
	Took  time.Duration // since the request, if Asked
	Code  int           // of failures
	// Summary says in a line of at most 160 cells what the record is about. It holds no control
	// characters.
	Summary string
}

// The bounds of a Follower.
const (
	// MaxPending bounds the requests of each direction that have no answer yet. Beyond it the
	// oldest is forgotten.
	MaxPending = 4096
	// MaxSessions bounds the sessions whose conversations are kept. Beyond it the one that changed
	// least recently is forgotten.
	MaxSessions = 32
	// MaxConversation bounds, in bytes, the conversation of one session.
	MaxConversation = 4 << 20
	// maxName bounds ids and methods.
	maxName = 1024
	// maxLine bounds summaries, in cells.
	maxLine = 160
)

// A Follower digests the records of one connection, in order. It is for one goroutine at a time.
// The zero value is ready for use and needs no closing.
type Follower struct {
	read     frame.Reader
	count    int64
	version  int // of the protocol, 0 while not agreed
	requests [2]pending
	sessions sessions
}

// Next digests a record. It keeps nothing of it.
func (f *Follower) Next(rec *trace.Record) Item {
	f.count++
	switch rec.Kind {
	case trace.Stderr:
		return Item{Type: Stderr, Summary: line(rec.Data)}
	case trace.Event:
		if rec.Name == "start" { // no client has spoken to this agent yet
			f.Restart()
		}
		return Item{Type: Event, Method: short(rec.Name), Summary: detail(&rec.Detail)}
	case trace.Text:
		return Item{Type: Text, Summary: line(rec.Data)}
	}
	e := f.read.Read(rec.Data)
	switch {
	case e.Method != "":
		return f.request(rec, &e)
	case e.Answer():
		return f.answer(rec, &e)
	}
	return Item{Type: Odd, Summary: line(rec.Data)}
}

// Restart says that the next record is of another connection. The numbers of records and the
// conversations continue.
func (f *Follower) Restart() {
	f.version, f.requests = 0, [2]pending{}
}

// Version returns the version of the protocol that was agreed on last, or 0.
func (f *Follower) Version() int { return f.version }

// request digests a request or a notification.
func (f *Follower) request(rec *trace.Record, e *frame.Envelope) Item {
	it := Item{
		Type: Notification, Method: short(e.Method), ID: short(string(e.ID)),
		Session: e.Session, Update: short(e.Kind), Summary: summarise(e),
	}
	entry := none
	if e.ID != nil {
		it.Type = Request
	}
	if it.Session != "" {
		entry = f.fold(rec.Dir, e, it.Session)
	}
	if it.Type == Request {
		f.requests[side(rec.Dir)].add(it.ID, request{
			number: f.count, at: rec.At, method: it.Method, session: it.Session, entry: entry,
		})
	}
	return it
}

// answer digests an answer, and pairs it with its request.
func (f *Follower) answer(rec *trace.Record, e *frame.Envelope) Item {
	it := Item{Type: Answer, ID: short(string(e.ID)), Summary: ""}
	if e.Error != nil {
		it.Type = Failure
		it.Code, it.Summary = failure(e.Error)
	}
	req, ok := f.requests[1-side(rec.Dir)].take(it.ID)
	if ok {
		it.Method, it.Session, it.Asked, it.Took = req.method, req.session, req.number, rec.At-req.at
		if it.Type == Answer {
			f.answered(&req, e.Result, &it)
		}
	}
	if it.Type == Answer {
		it.Summary = result(it.Method, e.Result)
	}
	return it
}

// side is 0 for what goes to the agent.
func side(d trace.Direction) int {
	if d == trace.ToClient {
		return 1
	}
	return 0
}

// A request waits for its answer.
type request struct {
	number  int64
	at      time.Duration
	method  string
	session string
	entry   uint64 // of a question in the conversation
}

// pending are the requests of one direction that have no answer yet, by their ids.
type pending struct {
	open  map[string]request
	order []string // ids in the order of their requests; some of them answered
}

// add remembers a request, and forgets the oldest beyond the bound.
func (p *pending) add(id string, r request) {
	if p.open == nil {
		p.open = map[string]request{}
	}
	if len(p.order) >= 2*MaxPending {
		p.tidy()
	}
	for len(p.open) >= MaxPending {
		delete(p.open, p.order[0])
		p.order = p.order[1:]
	}
	p.open[id] = r
	p.order = append(p.order, id)
}

// tidy drops the ids that were answered.
func (p *pending) tidy() {
	kept := make([]string, 0, MaxPending+1)
	seen := make(map[string]bool, len(p.open))
	for _, id := range p.order {
		if _, ok := p.open[id]; ok && !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	p.order = kept
}

func (p *pending) take(id string) (request, bool) {
	r, ok := p.open[id]
	delete(p.open, id)
	return r, ok
}

// short bounds a name.
func short(s string) string {
	if len(s) > maxName {
		s = s[:maxName] + "…"
	}
	return s
}

// line makes one line of a text.
func line(data []byte) string {
	const enough = 8 * maxLine
	if len(data) > enough {
		data = data[:enough]
	}
	return safetext.Line(string(data), maxLine)
}

// detail returns what an event says.
func detail(d *trace.Detail) string {
	var s string
	add := func(word, value string) {
		if s != "" {
			s += " · "
		}
		s += word + value
	}
	if d.PID != 0 {
		add("pid ", strconv.Itoa(d.PID))
	}
	if d.Code != nil {
		add("status ", strconv.Itoa(*d.Code))
	}
	if d.Count != 0 {
		add("count ", strconv.FormatInt(d.Count, 10))
	}
	if d.Text != "" {
		add("", line([]byte(d.Text)))
	}
	return s
}
