package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/turnstile"
	"github.com/goacp/acp/jsonrpc"
)

// A prompt is a request for a turn, from its arrival on the reader to the end of
// the turn. The prompts of a session form a queue in order of arrival; the first
// one may run. Two things have states, the prompt's place and its request:
//
//	            advance         advance         begin           settle
//	promptQueued ──▶ promptSecond ──▶ promptFirst ──▶ promptRunning ──▶ promptSettled
//	     ├───────────────┼────────────────┼────── refuse ─────────────────▲ │
//	     └───────────────┴────────────────┴─────── leave ───────────────────┘
//	                                        ▼
//	                                   promptLeft
//
//	          answer                end
//	requestOpen ──▶ requestAnswered ──▶ requestEnded
//	     └────────────── end ────────────▲
//
// A prompt leaves the queue when neither its turn runs nor its request is open, or
// when the turn before it takes it over. In version 1 the response to the request
// ends the turn, so the next prompt runs once that has been sent. In version 2 the
// request is answered when the turn begins, so the next one runs once the turn is
// settled.
type prompt struct {
	req *jsonrpc.Request
	// ctx is the turn's. It ends with the request's as long as the request is
	// open, which in version 2 it is until the turn begins.
	ctx   context.Context
	stop  context.CancelCauseFunc
	watch atomic.Pointer[Turn] // whose hook is given up when ctx is done, or nil
	// life is done when the session or the connection ends; nil without a Queue hook. The
	// client may have cancelled the prompt before.
	life   context.Context
	die    context.CancelCauseFunc
	first  chan struct{}    // closed when there is none before it
	second chan struct{}    // closed when there is at most one before it
	line   *turnstile.Place // for the Received or Queue hook; nil without one
	// forget keeps AgentConn.closed from being called when the request's context
	// ends. It reports whether it was in time.
	forget func() bool

	// Guarded by the connection's mu:
	place   promptPlace
	request promptRequest
}

// promptPlace says where a prompt is on its way through the queue.
type promptPlace uint8

const (
	promptQueued  promptPlace = iota // at least two are before it
	promptSecond                     // one is
	promptFirst                      // none is: it may become a turn
	promptTaken                      // the Queue hook has it, and begins its turn
	promptRunning                    // it has a turn
	promptSettled                    // which has ended, or it was refused one
	promptLeft                       // it is not in the queue any more
)

// promptRequest says whether a prompt's request still ends its context.
type promptRequest uint8

const (
	requestOpen     promptRequest = iota
	requestAnswered               // the answer is decided while the turn goes its own way: version 2
	requestEnded                  // it has been answered, or was cancelled
)

// The transitions of a prompt are called with the connection's mu held. Those that
// return done report that the prompt has to leave the queue.

// advance moves a prompt that waits to the i-th place of the queue.
func (p *prompt) advance(i int) {
	if p.place == promptQueued {
		p.place = promptSecond
		close(p.second)
	}
	if i == 0 && p.place == promptSecond {
		p.place = promptFirst
		close(p.first)
	}
}

// begin gives a prompt a turn, unless it has left.
func (p *prompt) begin() {
	if p.place != promptLeft {
		p.place = promptRunning
	}
}

// settle notes that a prompt's turn has ended.
func (p *prompt) settle() (done bool) {
	if p.place == promptRunning {
		p.place = promptSettled
	}
	return p.done()
}

// refuse notes that a prompt that waits gets no turn. It leaves the queue when its
// answer has been sent, but a client that has the answer may send the next prompt
// before that, which must not count this one.
func (p *prompt) refuse() {
	if p.place < promptRunning {
		p.place = promptSettled
	}
}

// answer notes that the request does not stand for the turn any more.
func (p *prompt) answer() {
	if p.request == requestOpen {
		p.request = requestAnswered
	}
}

// end notes that the request has ended, and why. The context ends with one that is
// open.
func (p *prompt) end(cause error) (done bool) {
	if p.request == requestOpen {
		p.cancel(cause)
	}
	p.request = requestEnded
	return p.done()
}

// done reports whether nothing holds the prompt in the queue.
func (p *prompt) done() bool {
	return p.place != promptRunning && p.place != promptTaken && p.request != requestOpen
}

// arrived puts a prompt into its session's queue. It runs on the reader, before
// anything that came later is looked at, so that a cancel always finds the
// prompts it is for and no others (S40, S42). Its error refuses the prompt.
func (c *AgentConn) arrived(id SessionID, req *jsonrpc.Request) error {
	p := &prompt{req: req}
	p.ctx, p.stop = context.WithCancelCause(c.values)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusing {
		return errShutdown
	}
	if len(c.prompts[id]) == 0 { // as nearly always
		p.place, p.first, p.second = promptFirst, passed, passed
	} else {
		p.first, p.second = make(chan struct{}), make(chan struct{})
	}
	a := c.agent.Load()
	if a.Queue != nil {
		p.life, p.die = context.WithCancelCause(c.values)
	}
	if a.Received != nil || a.Queue != nil {
		p.line = c.receiving.Come(string(id))
	}
	c.prompts[id] = append(c.prompts[id], p)
	c.waiting++
	c.advance(id)
	if c.over {
		p.cancel(jsonrpc.ErrClosed)
	}
	p.forget = req.OnDone(func(cause error) { c.closed(id, p, cause) })
	return nil
}

// cancel ends the prompt's context; the first cause counts. If its turn runs, the watch
// on that begins to count the grace.
func (p *prompt) cancel(cause error) {
	p.stop(cause)
	if t := p.watch.Swap(nil); t != nil {
		go t.giveUp()
	}
	if p.die != nil && (cause == nil || endsPrompts(cause)) {
		p.die(cause)
	}
}

// refusal is the answer to a prompt whose context ended before it had a turn.
func (p *prompt) refusal() error {
	cause := context.Cause(p.ctx)
	if errors.Is(cause, jsonrpc.ErrClosed) {
		return errShutdown
	}
	return cause
}

// passed is closed, for prompts that do not wait.
var passed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// closed notes that the request of a prompt has ended, or was cancelled.
func (c *AgentConn) closed(id SessionID, p *prompt, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.end(cause) {
		c.leave(id, p)
	}
}

// advance notifies the first prompts of a session of their places. It is called with
// mu held.
func (c *AgentConn) advance(id SessionID) {
	list := c.prompts[id]
	for i, p := range list[:min(2, len(list))] {
		p.advance(i)
	}
}

// leave removes a prompt from the queue. It is called with mu held.
func (c *AgentConn) leave(id SessionID, p *prompt) {
	if p.place == promptLeft {
		return
	}
	p.place = promptLeft
	c.waiting--
	p.cancel(nil)
	if p.line != nil {
		p.line.Drop()
	}
	list := c.prompts[id]
	if i := slices.Index(list, p); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(c.prompts, id)
	} else {
		c.prompts[id] = list
		c.advance(id)
	}
	for _, w := range c.drains[id] {
		w()
	}
	if c.waiting == 0 && c.empty != nil {
		close(c.empty) // and it stays so
	}
}

// find returns the prompt that arrived has put into the queue for a request, and how
// many prompts are ahead of it.
func (c *AgentConn) find(id SessionID, req *jsonrpc.Request) (p *prompt, before int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.prompts[id] {
		if p.req == req {
			return p, before
		}
		if p.place != promptSettled {
			before++
		}
	}
	return nil, 0 // its request has ended
}

// refuse notes that the prompt of a request gets no turn.
func (c *AgentConn) refuse(id SessionID, req *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.prompts[id] {
		if p.req == req {
			p.refuse()
		}
	}
}

// errCloses is why prompts are cancelled when their session is closed. An agent whose
// sessions outlive that can tell it apart.
var errCloses = fmt.Errorf("%w: %w", ErrCancelled, ErrSessionClosed)

// cancelPrompts cancels the prompts of a session that have arrived so far, the latest
// first: once the one that runs is cancelled, so are those that wait for its end. It
// reports whether there are any.
func (c *AgentConn) cancelPrompts(id SessionID, cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.prompts[id]) {
		p.cancel(cause)
	}
	return len(c.prompts[id]) > 0
}

// cancelled is called on the reader with a session/cancel.
func (c *AgentConn) cancelled(id SessionID, req *jsonrpc.Request) {
	if c.cancelPrompts(id, ErrCancelled) || c.agent.Load().Cancel == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idleCancels) < maxPrompts { // middleware may keep them from their handler
		c.idleCancels[req] = true
	}
}

// cancel handles a session/cancel. Whether it is one for the Cancel hook was known when
// it arrived.
func (c *AgentConn) cancel(ctx context.Context, id SessionID) error {
	req := jsonrpc.RequestFrom(ctx)
	c.mu.Lock()
	idle := c.idleCancels[req]
	delete(c.idleCancels, req)
	c.mu.Unlock()
	s, ok := c.Session(id)
	if !idle || !ok {
		return nil
	}
	return c.guard("Cancel", func() error {
		c.agent.Load().Cancel(ctx, s)
		return nil
	})
}

// drained waits until the prompts of a session that are there now have left.
func (c *AgentConn) drained(ctx context.Context, id SessionID) error {
	c.mu.Lock()
	waiting := slices.Clone(c.prompts[id])
	changed := make(chan struct{}, 1)
	remove := c.onLeave(id, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	c.mu.Unlock()
	defer remove()
	for {
		c.mu.Lock()
		waiting = slices.DeleteFunc(waiting, func(p *prompt) bool { return p.place == promptLeft })
		c.mu.Unlock()
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.base.Done():
			return context.Cause(c.base)
		}
	}
}

// onLeave has f called, with mu held, whenever a prompt of a session leaves. onLeave
// itself is called with mu held, too.
func (c *AgentConn) onLeave(id SessionID, f func()) (remove func()) {
	c.leaves++
	key := c.leaves
	if c.drains[id] == nil {
		c.drains[id] = map[int]func(){}
	}
	c.drains[id][key] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.drains[id], key); len(c.drains[id]) == 0 {
			delete(c.drains, id)
		}
	}
}

// maxPrompts bounds the prompts of a connection, including those that run.
const maxPrompts = 4096

// busy is the answer to a prompt that cannot wait.
func busy(what string) error {
	return &Failure{Message: what, Reason: "busy", Scope: "session"}
}

// checkContent refuses content the agent did not advertise. Blocks of unknown types
// are passed on if they are a vendor's own (S84).
func checkContent(blocks []ContentBlock, can PromptContent) error {
	for i, b := range blocks {
		ok := true
		switch b := b.(type) {
		case *ImageContent:
			ok = can.Image
		case *AudioContent:
			ok = can.Audio
		case *EmbeddedResource:
			ok = can.EmbeddedContext
		case *acpv2.SkillReference:
			ok = can.SkillInline || can.Skill && i == 0
		case *UnknownContentBlock:
			ok = len(b.Type) > 0 && b.Type[0] == '_'
		}
		if !ok {
			return invalidParams("prompt["+strconv.Itoa(i)+"].type", "not advertised")
		}
	}
	return nil
}

// enter finds the prompt of a request in the queue of its session, and refuses what may not wait there. before is how
// many prompts are ahead of it.
func (c *AgentConn) enter(ctx context.Context, id SessionID, blocks []ContentBlock) (_ *AgentSession, _ *prompt, before int, err error) {
	a := c.agent.Load()
	s, err := c.sessionFor(ctx, id, blocks)
	if err != nil {
		return nil, nil, 0, err
	}
	p, before := c.find(id, jsonrpc.RequestFrom(ctx))
	if p == nil {
		return nil, nil, 0, context.Cause(ctx)
	}
	p.req.AfterAnswer(func() {
		if p.forget() {
			c.closed(id, p, context.Canceled)
		}
	})
	if before > 0 {
		switch {
		case a.Busy == BusyReject:
			return nil, nil, 0, busy("another prompt of the session is running")
		case before > a.MaxHeld || c.crowded():
			return nil, nil, 0, busy("too many prompts are waiting")
		}
	}
	return s, p, before, nil
}

// sessionFor returns the session that a message of the user is for, once its history has been replayed.
func (c *AgentConn) sessionFor(ctx context.Context, id SessionID, blocks []ContentBlock) (*AgentSession, error) {
	s, ok := c.Session(id)
	if !ok {
		return nil, SessionNotFound(id)
	}
	s.flush() // a client that prompts it knows its id
	if err := checkContent(blocks, c.agent.Load().Content); err != nil {
		return nil, err
	}
	if !isClosed(s.ready) {
		select {
		case <-s.ready: // its history is being replayed
		case <-s.ctx.Done():
			return nil, SessionNotFound(id)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s, s.checkSkills(blocks)
}

// admit waits until a prompt may become part of the conversation, and returns its
// turn. If the turn that runs has taken the prompt, admit returns that offer instead,
// which the caller has to end.
func (c *AgentConn) admit(ctx context.Context, id SessionID, blocks []ContentBlock, meta json.RawMessage) (t *Turn, taken *offer, err error) {
	defer func() {
		if err != nil {
			c.refuse(id, jsonrpc.RequestFrom(ctx))
		}
	}()
	s, p, before, err := c.enter(ctx, id, blocks)
	if err != nil {
		return nil, nil, err
	}
	own := newTurn(ctx, s, p, blocks, meta)
	defer own.unlessBegun(&t)
	if err := c.receive(own); err != nil {
		return nil, nil, err
	}
	accepted := false // by the Accept hook
	if before > 0 && c.agent.Load().Busy == BusySteer {
		if taken, accepted, err = c.steer(own); taken != nil || err != nil {
			return nil, taken, err
		}
	}
	t, err = c.begin(own, accepted)
	return t, nil, err
}

// unlessBegun ends a turn that was not admitted.
func (t *Turn) unlessBegun(admitted **Turn) {
	if *admitted == nil {
		t.stopSending(errNotBegun)
	}
}

// begin waits until a prompt is the first of its session, and has it become part of the conversation.
func (c *AgentConn) begin(own *Turn, accepted bool) (*Turn, error) {
	a, p := c.agent.Load(), own.p
	if !isClosed(p.first) {
		select {
		case <-p.first:
		case <-p.ctx.Done():
			return nil, p.refusal()
		}
	}
	// The turn before has left, but its end may be about to be sent. Behind the answer to this
	// prompt, a client of version 2 would take it for the end of this one's turn (S87).
	if own.session.acquire(p.ctx) == nil {
		own.session.releaseSending()
	}
	c.mu.Lock()
	p.begin()
	c.mu.Unlock()
	asked := false // stays so only if Accept ends its goroutine
	defer func() {
		if !asked {
			own.leave()
		}
	}()
	var err error
	if a.Accept != nil && !accepted && own.ctx.Err() == nil {
		err = c.guard("Accept", func() error { return a.Accept(&own.ctx, own) })
	}
	asked = true
	if own.ctx.Err() != nil {
		// Cancelled while it was held: it never became part of the
		// conversation, whatever Accept makes of that.
		err = p.refusal()
	}
	if err != nil {
		own.leave()
		return nil, err
	}
	return own, nil
}

// receive calls the Received hook.
func (c *AgentConn) receive(t *Turn) error {
	if t.p.line == nil {
		return nil
	}
	return t.p.inLine(t.p.ctx, func() error {
		if t.p.ctx.Err() != nil {
			return t.p.refusal()
		}
		return c.guard("Received", func() error { return c.agent.Load().Received(&t.ctx, t) })
	})
}

// inLine calls f after the calls for the prompts that arrived earlier, unless ctx is done before.
func (p *prompt) inLine(ctx context.Context, f func() error) error {
	if !p.line.Enter(ctx) {
		return p.refusal()
	}
	defer p.line.Leave() // also if f ends its goroutine
	return f()
}

func (c *AgentConn) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting > maxPrompts
}
