package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A QueuedPrompt is a prompt of an agent with a [Agent.Queue] hook. The agent says where its turn begins and ends, for
// example where a log says so that several clients are sent. Its methods may be called from any goroutine. Experimental.
type QueuedPrompt struct {
	s       *AgentSession
	p       *prompt
	ctx     turnContext
	blocks  []ContentBlock
	meta    json.RawMessage
	message MessageID

	answers chan queueAnswer // has room for the one there is
	sent    chan struct{}    // closed when the request's answer is on its way, or cannot be sent

	mu    sync.Mutex
	state queuedState
	over  func() // of [jsonrpc.Request.Continue]; nil while the request is open
}

// A queuedState says how far a queued prompt has come.
type queuedState uint8

const (
	queuedWaits queuedState = iota
	queuedBegun
	queuedOver
)

// A queueAnswer is the answer to the request of a queued prompt: that its turn has begun, or in version 1 its outcome.
type queueAnswer struct {
	begun   bool
	message MessageID
	TurnEnd
}

// A TurnEnd is how a turn has ended: see [QueuedPrompt.End].
type TurnEnd struct {
	Stop StopReason
	Err  error           // why the turn has failed, or has not begun; then Stop does not matter
	Meta json.RawMessage // of the answer in version 1: an object, or nil
}

// Session returns the session that the prompt is for.
func (q *QueuedPrompt) Session() *AgentSession { return q.s }

// Blocks returns the prompt's content, which must not be modified.
func (q *QueuedPrompt) Blocks() []ContentBlock { return q.blocks }

// Meta returns _meta of the prompt.
func (q *QueuedPrompt) Meta() json.RawMessage { return q.meta }

// PromptID returns an id for the prompt as a message of the conversation.
func (q *QueuedPrompt) PromptID() MessageID { return q.message }

// Context returns a context that is done when the client cancels the prompt, or the session (its cause is [ErrCancelled] or
// [jsonrpc.ErrRequestCancelled]), and when the prompt is over. A client that cancels waits for [QueuedPrompt.End].
func (q *QueuedPrompt) Context() context.Context { return &q.ctx }

// Begin says that the turn begins, with the id of the prompt in the conversation, which the agent sends next. In version 2
// that answers the client's request: Begin returns when the answer is on its way, and waits for Queue to have returned. In
// version 1 it waits for nothing. It does nothing if the turn has begun or is over.
func (q *QueuedPrompt) Begin(id MessageID) {
	if !q.advance(queuedBegun) {
		return
	}
	c := q.s.c
	c.mu.Lock()
	q.p.begin()
	c.mu.Unlock()
	if c.Version() > 1 {
		q.give(queueAnswer{begun: true, message: id})
	}
}

// End says how the turn has ended, or that it will not begin. In version 1 that answers the client's request, and so it does
// in version 2 if the turn has not begun: with Err, or else as one that was cancelled. End returns when the answer is on its
// way, and waits for Queue to have returned. The end of a turn that has begun is an update in version 2, an
// [IdleStateUpdate], which the agent sends after End. End does nothing if the turn is over.
func (q *QueuedPrompt) End(e TurnEnd) { q.end(e) }

// end is End, and reports whether the prompt was not over.
func (q *QueuedPrompt) end(e TurnEnd) bool {
	q.mu.Lock()
	was := q.state
	q.state = queuedOver
	over := q.over
	q.mu.Unlock()
	if was == queuedOver {
		return false
	}
	if over != nil {
		defer over()
	}
	q.settle(was)
	if was == queuedWaits || q.s.c.Version() == 1 {
		q.give(queueAnswer{TurnEnd: e})
	}
	return true
}

// advance moves the prompt to a later state. It reports whether it was in an earlier one.
func (q *QueuedPrompt) advance(to queuedState) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state >= to {
		return false
	}
	q.state = to
	return true
}

// settle lets the prompt, which is over, leave the queue when its request has an answer. A client that has that may send the
// next prompt, which must not count this one.
func (q *QueuedPrompt) settle(was queuedState) {
	c := q.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if was == queuedWaits {
		q.p.refuse()
	} else if q.p.settle() {
		c.leave(q.s.id, q.p)
	}
}

// give answers the request, and waits until the answer is on its way.
func (q *QueuedPrompt) give(a queueAnswer) {
	q.answers <- a
	select {
	case <-q.sent:
	case <-q.s.c.base.Done():
	}
}

// ends reports whether prompts are cancelled since their session or connection ends.
func ends(cause error) bool {
	return errors.Is(cause, ErrSessionClosed) || errors.Is(cause, jsonrpc.ErrClosed) || errors.Is(cause, errShutdown)
}

// abandon ends a prompt whose session or connection ends, for which the agent is not waited for.
func (q *QueuedPrompt) abandon(cause error) {
	q.mu.Lock()
	begun := q.state == queuedBegun
	q.mu.Unlock()
	switch {
	case !ends(cause):
		return // the client has cancelled it, and the agent says what becomes of it
	case !begun && !errors.Is(cause, ErrSessionClosed):
		q.End(TurnEnd{Err: errShutdown})
		return
	}
	s := q.s
	if !begun || s.c.Version() == 1 || s.acquireBehind(s.ctx, true) != nil {
		q.End(TurnEnd{Stop: StopCancelled})
		return
	}
	defer s.releaseSending()
	if q.end(TurnEnd{Stop: StopCancelled}) { // the next prompt may arrive as soon as the client sees the end
		_ = s.send(s.ctx, &IdleStateUpdate{StopReason: StopCancelled})
	}
}

// queued has the Queue hook take a prompt, and returns the answer to its request.
func (c *AgentConn) queued(ctx context.Context, id SessionID, blocks []ContentBlock, meta json.RawMessage) queueAnswer {
	s, p, _, err := c.enter(ctx, id, blocks)
	if err != nil {
		c.refuse(id, jsonrpc.RequestFrom(ctx))
		return queueAnswer{TurnEnd: TurnEnd{Err: err}}
	}
	q := &QueuedPrompt{
		s: s, p: p, ctx: turnContext{p.ctx, ctx}, blocks: blocks, meta: meta, message: s.nextMessage(),
		answers: make(chan queueAnswer, 1), sent: make(chan struct{}),
	}
	p.req.AfterAnswer(func() { close(q.sent) })
	err = p.inLine(s.ctx, func() error {
		if ends(context.Cause(p.ctx)) {
			return p.refusal()
		}
		a := c.agent.Load()
		call := &Call{Method: acpv2.MethodSessionPrompt.Name, SessionID: id, Queued: q}
		return c.guard("Queue", func() error {
			return through(&q.ctx, a.Middleware, call, func(ctx context.Context) error { return a.Queue(ctx, q) })
		})
	})
	if err != nil && q.advance(queuedOver) {
		q.settle(queuedWaits)
		return queueAnswer{TurnEnd: TurnEnd{Err: err}}
	}
	p.queued.Store(q)
	if cause := context.Cause(p.ctx); cause != nil {
		go q.abandon(cause) // it came before
	}
	a := <-q.answers
	if a.begun {
		q.goesOn()
	}
	return a
}

// goesOn is called before the request of a turn that has begun is answered, in version 2: it does not stand for the turn any
// more.
func (q *QueuedPrompt) goesOn() {
	c := q.s.c
	c.mu.Lock()
	q.p.answer()
	c.mu.Unlock()
	over := q.p.req.Continue(q.p.cancel)
	q.mu.Lock()
	q.over = over
	ended := q.state == queuedOver
	q.mu.Unlock()
	if ended {
		over()
	}
}
