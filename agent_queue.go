package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A QueuedPrompt is a prompt of an agent with a [Agent.Queue] hook. The agent says where its turn begins and ends,
// for example where a log says so that several clients are sent. Its methods may be called from any goroutine, but
// Begin and End not by the hook itself, for whose end they wait. Experimental.
type QueuedPrompt struct {
	s       *AgentSession
	p       *prompt // whose place says how far it has come
	ctx     turnContext
	blocks  []ContentBlock
	meta    json.RawMessage
	message MessageID

	answers chan queueAnswer // has room for the one there is
	sent    chan struct{}    // closed when the request's answer is on its way, or cannot be sent
	over    func()           // of [jsonrpc.Request.Continue]; nil while the request is open; guarded by the connection's mu
}

// A queueAnswer is the answer to the request of a queued prompt: that its turn has begun, or in version 1 its
// outcome.
type queueAnswer struct {
	begun   bool
	message MessageID
	TurnEnd
}

// A TurnEnd is how a turn has ended: see [QueuedPrompt.End].
type TurnEnd struct {
	Stop StopReason      // unless Err is set
	Err  error           // why the turn has failed, or has not begun
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

// Context returns a context that is done when the client cancels the prompt, or the session (its cause is
// [ErrCancelled] or [jsonrpc.ErrRequestCancelled]), and when the prompt is over. A client that cancels waits for
// [QueuedPrompt.End].
func (q *QueuedPrompt) Context() context.Context { return &q.ctx }

// Begin says that the turn begins, with the id of the prompt in the conversation, which the agent sends next. In
// version 2 that answers the client's request: Begin returns when the answer is on its way. In version 1 it waits for
// nothing. It does nothing if the turn has begun or is over.
func (q *QueuedPrompt) Begin(id MessageID) {
	c := q.s.c
	c.mu.Lock()
	begins := q.p.place == promptTaken
	if begins {
		q.p.place = promptRunning
	}
	c.mu.Unlock()
	if begins && c.Version() > 1 {
		q.give(queueAnswer{begun: true, message: id})
	}
}

// End says how the turn has ended, or that it will not begin. In version 1 End answers the client's request, and
// returns when the answer is on its way. In version 2 End does so only if the turn has not begun: with Err, or else as
// one that was cancelled. The end of a turn that has begun is an update there, an [IdleStateUpdate], which the agent
// sends after End. End does nothing if the turn is over.
func (q *QueuedPrompt) End(e TurnEnd) { q.end(q.settle(), e) }

// settle ends the prompt for the queue, which it leaves when its request has an answer: a client that has that may
// send the next one, which must not count this one. It returns where the prompt was.
func (q *QueuedPrompt) settle() (was promptPlace) { return q.settleUpTo(promptRunning) }

// settleUpTo is settle for a prompt that has come as far as a place at most.
func (q *QueuedPrompt) settleUpTo(last promptPlace) (was promptPlace) {
	c := q.s.c
	c.mu.Lock()
	was, over := q.p.place, q.over
	if was <= last {
		q.p.place = promptSettled
		if q.p.done() {
			c.leave(q.s.id, q.p)
		}
	}
	c.mu.Unlock()
	if over != nil {
		over()
	}
	return was
}

// end answers the request of a prompt that was settled, if that is how the client learns of the end.
func (q *QueuedPrompt) end(was promptPlace, e TurnEnd) {
	if was == promptTaken || was == promptRunning && q.s.c.Version() == 1 {
		q.give(queueAnswer{TurnEnd: e})
	}
}

// give answers the request, and waits until the answer is on its way.
func (q *QueuedPrompt) give(a queueAnswer) {
	q.answers <- a
	q.await()
}

// await waits until the request has its answer.
func (q *QueuedPrompt) await() {
	select {
	case <-q.sent:
	case <-q.s.c.base.Done():
	}
}

// abandon ends a prompt whose session or connection ends, for which the agent is not waited for. The client has
// cancelled it by closing the session; the end of a connection cancels nothing, and says nothing of the turn.
func (q *QueuedPrompt) abandon() {
	cause := context.Cause(q.p.life)
	switch {
	case !endsPrompts(cause):
		return // it is over
	case !errors.Is(cause, ErrSessionClosed):
		q.End(TurnEnd{Err: errShutdown})
		return
	}
	s, c := q.s, q.s.c
	for told := c.Version() == 1; ; told = true {
		sends := s.acquireBehind(s.ctx, true) == nil // the client is sent the end of the turn before the answer to its request
		c.mu.Lock()
		running := q.p.place == promptRunning
		c.mu.Unlock()
		if running && !told { // nor is that before the client knows that it has begun
			if sends {
				s.releaseSending()
			}
			q.await()
			continue
		}
		was := q.settle()
		if sends && was == promptRunning && c.Version() > 1 {
			_ = s.send(s.ctx, &IdleStateUpdate{StopReason: StopCancelled})
		}
		if sends {
			s.releaseSending()
		}
		q.end(was, TurnEnd{Stop: StopCancelled})
		return
	}
}

// endsPrompts reports whether prompts are cancelled because their session or connection ends, and not because the
// client wants that, or they are over.
func endsPrompts(cause error) bool {
	switch {
	case errors.Is(cause, ErrSessionClosed):
		return true
	case cause == nil, errors.Is(cause, context.Canceled), errors.Is(cause, ErrCancelled), errors.Is(cause, jsonrpc.ErrRequestCancelled):
		return false
	}
	return true
}

// queued has the Queue hook take a prompt, and returns the answer to its request.
func (c *AgentConn) queued(ctx context.Context, id SessionID, blocks []ContentBlock, meta json.RawMessage) queueAnswer {
	s, p, _, err := c.enter(ctx, id, blocks)
	if err == nil {
		err = c.take(p)
	}
	if err != nil {
		c.refuse(id, jsonrpc.RequestFrom(ctx))
		return queueAnswer{TurnEnd: TurnEnd{Err: err}}
	}
	q := &QueuedPrompt{
		s: s, p: p, ctx: turnContext{p.ctx, ctx}, blocks: blocks, meta: meta, message: s.nextMessage(),
		answers: make(chan queueAnswer, 1), sent: make(chan struct{}),
	}
	p.req.AfterAnswer(func() { close(q.sent) })
	if err = c.offer(ctx, q); err != nil {
		if q.settleUpTo(promptTaken) == promptTaken {
			return queueAnswer{TurnEnd: TurnEnd{Err: err}}
		}
		c.agent.Load().Logger.Error("acp: the Queue hook has failed, but the turn has begun", "error", err)
	}
	context.AfterFunc(p.life, q.abandon)
	a := <-q.answers
	if a.begun {
		q.goesOn()
	}
	return a
}

// take notes that the Queue hook is about to get a prompt, which does not leave the queue before it is over.
func (c *AgentConn) take(p *prompt) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.place == promptLeft { // withdrawn at this moment
		return p.refusal()
	}
	p.place = promptTaken
	return nil
}

// offer calls the Queue hook.
func (c *AgentConn) offer(ctx context.Context, q *QueuedPrompt) error {
	life := &turnContext{q.p.life, ctx}
	return q.p.inLine(life, func() error {
		if life.Err() != nil {
			return q.p.refusal()
		}
		a := c.agent.Load()
		call := &Call{Method: acpv2.MethodSessionPrompt.Name, SessionID: q.s.id, Queued: q}
		return c.guard("Queue", func() error {
			return through(life, a.Middleware, call, func(ctx context.Context) error { return a.Queue(ctx, q) })
		})
	})
}

// goesOn is called before the request of a turn that has begun is answered, in version 2: it does not stand for the
// turn any more.
func (q *QueuedPrompt) goesOn() {
	c := q.s.c
	over := q.p.req.Continue(q.p.cancel)
	c.mu.Lock()
	q.p.answer()
	q.over = over
	ended := q.p.place >= promptSettled
	c.mu.Unlock()
	if ended {
		over()
	}
}
