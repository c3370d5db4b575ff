package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// An Observer observes what the gateway does. It gets no content. Its methods are called from any goroutine, many of
// them often: they must be quick, and must not call the gateway.
type Observer interface {
	// Begin is called as something begins that takes time. The trace of ctx, if it has one, is that of whoever
	// caused it; that of the context that Begin returns is passed on, to the agent in particular. end is called
	// once.
	Begin(ctx context.Context, s Span) (inner context.Context, end func(outcome string))
	// Happened is called when something has happened.
	Happened(e Event)
}

// A SpanKind says what takes time.
type SpanKind string

// The kinds of spans, and their outcomes.
const (
	SpanTurn       SpanKind = "turn"        // the stop reason, "error" or "lost"
	SpanTool       SpanKind = "tool"        // the status of the call, "open" if the turn has ended first
	SpanPermission SpanKind = "permission"  // the kind of the option, or "accepted", "declined", "cancelled", "unanswered"
	SpanAppend     SpanKind = "append"      // "ok" or "error"
	SpanReplay     SpanKind = "replay"      // likewise
	SpanStart      SpanKind = "agent_start" // likewise
)

// A Span is something that takes time. ID is that of the prompt or the tool call, where there is one.
type Span struct {
	Kind           SpanKind
	Session, Agent string
	ID, Tool       string // of a tool call: its name, or its kind
	Records, Bytes int    // of an append
}

// An EventKind says what has happened.
type EventKind string

// The kinds of events.
const (
	EventExit    EventKind = "agent_exit"   // Why is "stopped", "killed" or "exited"
	EventFirst   EventKind = "first_update" // Took is since the turn began
	EventJoin    EventKind = "join"         // a client came to a session: Why is "new", "resume", which includes load, "fork" or "refused"
	EventClaim   EventKind = "claim"        // this node owns a session from now on: Why is "ok" or "error"
	EventLease   EventKind = "lease"        // Why is "lapsed" or "taken"
	EventRefused EventKind = "refused"      // a client's request: Why is the reason of the [jsonrpc.Failure]
	EventSent    EventKind = "sent"         // a record reached a client: Took is since it was appended. Only some are reported.
	EventCompact EventKind = "compacted"    // N records of a session were dropped
	EventDelete  EventKind = "deleted"      // a session was deleted: Why is "client" or "retention"
)

// An Event is something that has happened.
type Event struct {
	Kind  EventKind
	Agent string
	Why   string
	Took  time.Duration
	N     int
}

// quiet observes nothing.
type quiet struct{}

func (quiet) Begin(ctx context.Context, _ Span) (context.Context, func(string)) {
	return ctx, func(string) {}
}
func (quiet) Happened(Event) {}

// Stats are what a gateway has at present.
type Stats struct {
	Sessions, Running, Asking int // that this node owns, in which a turn runs, in which a question is open
	Watchers, Agents          int
	Draining                  bool
	Lease                     time.Duration // until the lease lapses unless it is renewed
}

// Stats returns what the gateway has at present.
func (g *Gateway) Stats() Stats {
	self := g.self()
	st := Stats{Sessions: self.Sessions, Agents: self.Agents, Draining: self.Draining, Lease: time.Until(g.Lease().Deadline()), Watchers: int(g.watching.Load())}
	for _, s := range g.all() {
		s.mu.Lock()
		if len(s.queue) > 0 {
			st.Running++
		}
		if len(s.asks) > 0 {
			st.Asking++
		}
		s.mu.Unlock()
	}
	return st
}

// Ready returns why the gateway should get no new clients at present, or nil: because it is drained, has no lease, or
// cannot reach its database.
func (g *Gateway) Ready(ctx context.Context) error {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case g.isDraining():
		return errors.New("draining")
	case time.Until(g.Lease().Deadline()) <= 0:
		return errors.New("the lease has lapsed")
	}
	if _, err := g.cfg.Log.List(ctx, engine.Query{Limit: 1}); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	return nil
}

// watchCalls is a middleware that reports who comes to a session, and what is refused to clients for a reason.
func (g *Gateway) watchCalls(ctx context.Context, call *acp.Call, next func(context.Context) error) error {
	err := g.outage(ctx, next(ctx))
	if how, ok := joins[call.Method]; ok {
		if err != nil {
			how = "refused"
		}
		g.cfg.Observer.Happened(Event{Kind: EventJoin, Why: how})
	}
	if err == nil && call.Method == acpv2.MethodSessionDelete.Name {
		g.cfg.Observer.Happened(Event{Kind: EventDelete, Why: "client"})
	}
	g.notesRefusal(err)
	return err
}

// notesRefusal reports that a client is refused something, if it is and that has a reason.
func (g *Gateway) notesRefusal(err error) {
	if f, ok := errors.AsType[*jsonrpc.Failure](err); ok && f.Reason != "" && f.Reason != records.ReasonAgent { // the agent has failed
		g.cfg.Observer.Happened(Event{Kind: EventRefused, Why: f.Reason})
	}
}

// outage returns what a client is answered if something has failed because the database cannot be reached, of which it would
// hear as an internal error.
func (g *Gateway) outage(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, new(*jsonrpc.Error)), errors.As(err, new(*jsonrpc.Failure)):
		return err
	case errors.Is(err, engine.ErrLapsed), errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrUnknown), errors.As(err, new(net.Error)),
		time.Now().After(g.Lease().Deadline()):
	default:
		return err
	}
	if g.cfg.Nodes == nil {
		g.cfg.Logger.Warn("gateway: sessions cannot be read or written", "error", err)
		return &jsonrpc.Failure{Message: "the server cannot read or write its sessions: its log says why", Reason: "unavailable", RetryAfter: 5 * time.Second}
	}
	g.cfg.Logger.Warn("gateway: the database cannot be reached", "error", err)
	return &jsonrpc.Failure{Message: "the server cannot reach its database at present: try again in a moment", Reason: "unavailable", RetryAfter: 5 * time.Second}
}

// joins are the ways to a session.
var joins = map[string]string{
	acpv2.MethodSessionNew.Name: "new", acpv2.MethodSessionResume.Name: "resume", acpv2.MethodSessionFork.Name: "fork",
}

// outcomeOf is the outcome of what only succeeds or fails.
func outcomeOf(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// Bounds of what is observed of one turn.
const (
	maxTools   = 256
	maxAppends = 256
	maxName    = 64 // of a tool, in bytes
)

// An observed is a turn that runs.
type observed struct {
	s     *session
	agent string
	ctx   context.Context // with the trace of the turn
	end   func(string)
	begun time.Time

	mu      sync.Mutex
	first   bool // it has said something
	over    bool
	tools   map[acp.ToolCallID]func(string)
	started int // tool calls
	appends int
}

// observe begins the observation of a turn.
func (s *session) observe(t *turn) *observed {
	s.mu.Lock()
	agent := s.info.Agent
	s.mu.Unlock()
	o := &observed{s: s, agent: agent, begun: time.Now(), tools: make(map[acp.ToolCallID]func(string))}
	o.ctx, o.end = s.g.cfg.Observer.Begin(t.ctx, Span{Kind: SpanTurn, Session: s.id, Agent: agent, ID: string(t.id)})
	s.turning.Store(o)
	return o
}

// finish ends the observation.
func (o *observed) finish(end records.End, err error) {
	o.s.turning.Store(nil)
	o.mu.Lock()
	o.over = true
	open := o.tools
	o.tools = nil
	o.mu.Unlock()
	for _, end := range open {
		end("open")
	}
	switch {
	case end.Lost:
		o.end("lost")
	case err != nil || end.Error != "":
		o.end("error")
	default:
		o.end(string(cmp.Or(end.Stop, acp.StopEndTurn)))
	}
}

// update is called with what the agent says in the turn; o may be nil.
func (o *observed) update(u acp.SessionUpdate) {
	if o == nil {
		return
	}
	o.mu.Lock()
	first := !o.first
	o.first = true
	o.mu.Unlock()
	if first {
		o.s.g.cfg.Observer.Happened(Event{Kind: EventFirst, Agent: o.agent, Took: time.Since(o.begun)})
	}
	call, ok := u.(*acpv2.ToolCallUpdate)
	if !ok {
		return
	}
	status, _ := call.Status.Get()
	over := ids.IsOver(status)
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.tools[call.ToolCallID]
	if end == nil && o.started < maxTools && !o.over && len(call.ToolCallID) <= engine.MaxName {
		o.started++
		_, end = o.s.g.cfg.Observer.Begin(o.ctx, Span{Kind: SpanTool, Session: o.s.id, Agent: o.agent, Tool: toolName(call)})
		o.tools[call.ToolCallID] = end
	}
	if over && end != nil {
		delete(o.tools, call.ToolCallID)
		end(string(status))
	}
}

// toolName returns the name of a tool for programs, or its kind. Anything that could be content is not a name.
func toolName(call *acpv2.ToolCallUpdate) string {
	name, _ := call.Name.Get()
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r))
	}) {
		kind, _ := call.Kind.Get()
		switch kind {
		case acpv2.ToolKindRead, acpv2.ToolKindEdit, acpv2.ToolKindDelete, acpv2.ToolKindMove, acpv2.ToolKindSearch, acpv2.ToolKindExecute, acpv2.ToolKindFetch, acpv2.ToolKindThink:
			return string(kind)
		}
		return "other"
	}
	return name
}

// appending is called before records of the session are appended, and returns what is called with the outcome.
func (s *session) appending(records []engine.Record) func(error) {
	size := 0
	for i := range records {
		size += len(records[i].Data)
	}
	ctx := context.Background()
	if o := s.turning.Load(); o != nil {
		o.mu.Lock()
		if o.appends++; o.appends <= maxAppends {
			ctx = o.ctx
		}
		o.mu.Unlock()
	}
	_, end := s.g.cfg.Observer.Begin(ctx, Span{Kind: SpanAppend, Session: s.id, Records: len(records), Bytes: size})
	return func(err error) { end(outcomeOf(err)) }
}

// sentEvery is which of the records that reach a client are reported.
const sentEvery = 16

// arrived reports how long a record took to a client.
func (g *Gateway) arrived(r *engine.Record) {
	if r.Seq%sentEvery == 0 {
		g.cfg.Observer.Happened(Event{Kind: EventSent, Took: time.Since(r.At)})
	}
}

// observeAsk begins the observation of a question.
func (s *session) observeAsk(ctx context.Context) func(a *ask, d decision, err error) {
	if o := s.turning.Load(); o != nil {
		ctx = o.ctx
	}
	_, end := s.g.cfg.Observer.Begin(ctx, Span{Kind: SpanPermission, Session: s.id})
	return func(a *ask, d decision, err error) {
		switch {
		case errors.Is(err, errNoAnswer):
			end("unanswered")
		case err != nil:
			end("cancelled")
		case d.Option != "" && a.permission != nil:
			kind := acp.PermissionOptionKind("other")
			for _, option := range a.permission.Options {
				if option.OptionID == d.Option && known(option.Kind) {
					kind = option.Kind
				}
			}
			end(string(kind))
		default:
			end(string(d.outcome()))
		}
	}
}

// known reports whether a kind of option is one of the protocol.
func known(kind acp.PermissionOptionKind) bool {
	switch kind {
	case acpv2.PermissionOptionKindAllowOnce, acpv2.PermissionOptionKindAllowAlways, acpv2.PermissionOptionKindRejectOnce, acpv2.PermissionOptionKindRejectAlways:
		return true
	}
	return false
}

// traceOf returns the trace of a client's request, as far as agents get it. Baggage stays here: it is the client's
// own, and may say what the agent is not to know.
func traceOf(ctx context.Context) acp.Trace {
	t, _ := acp.TraceFrom(ctx)
	t.Baggage = ""
	if len(t.Parent) > maxParent || len(t.State) > maxState {
		return acp.Trace{}
	}
	return t
}

// Bounds of a trace, in bytes: what the W3C specifies.
const (
	maxParent = 128
	maxState  = 512
)

// agentName returns the name of the session's agent.
func (s *session) agentName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.Agent
}

// exit says why the agent has ended.
func (b *backend) exit() string {
	if why := b.why.Load(); why != nil {
		return *why
	}
	return "exited"
}
