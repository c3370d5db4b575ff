package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/jsonrpc"
)

// ErrUpdatesLost is wrapped by the error that [Reply.Updates] yields, once, where
// updates are missing:
//
//   - The reply was full, and nobody read it while other prompts of the session were
//     in flight, or a call about the session was made, or [Client.Update] got the
//     updates. The oldest updates are missing.
//   - The agent sent an update that was nested too deeply or was too large. Which
//     session it was for is not known, so every reply in flight yields the error. It
//     may come before updates that arrived earlier.
var ErrUpdatesLost = errors.New("acp: updates were lost")

var errNobodyRead = fmt.Errorf("%w because nobody read them", ErrUpdatesLost)

// A Reply is the agent's reply to one prompt, while it arrives and afterwards.
// [ClientSession.Prompt] makes it. It is safe for concurrent use, but only one
// goroutine at a time may read the updates.
//
// Read it with [Reply.Updates], [Reply.Text] or [Reply.Wait], or with Updates and
// then Wait for the result. A program that gets its updates from [Client.Update]
// calls Wait, or nothing. Until one of them is called, and while the reader is slow,
// the reply holds updates:
//
//	1,024 updates, or about 16 MiB of them   the reply is full; one update always fits
//	a full reply                             the agent waits, until somebody reads or the
//	                                         prompt's ctx is done, and with it all sessions
//	                                         of the connection
//	… unread for 1 s, with Client.Update     loses its oldest updates
//	… during a call about the session        loses its oldest updates
//	… unread, while other prompts of the     loses its oldest updates
//	  session are in flight
//
// A call about the session is one such as [ClientSession.SetMode] or
// [ClientSession.Close], whose answer may be behind the updates.
// A reply that has lost updates reports [ErrUpdatesLost].
//
// All updates of the session from the sending of the prompt to the end of its
// turn belong to the reply. When several prompts of a session are in flight,
// version 2 says where each of them begins. Version 1 does not: each reply that
// is being read yields everything, and one that is not begins when the prompts
// before it have ended.
type Reply struct {
	s    *ClientSession
	ctx  context.Context
	done chan struct{}
	over atomic.Bool // done is closed; set with mu held

	buffer replyBuffer // of whoever reads
	call   replyCall   // of whoever waits for the answer
	turn   replyTurn   // of whoever delivers the session's updates
	stop   replyStop   // of whoever cancels

	mu     sync.Mutex // guards the following, and what says so in the parts
	id     MessageID
	result *Result // once over is set
	err    error
}

// replyCall is the request of a prompt and its answer.
type replyCall struct {
	state  atomic.Uint32           // a callState
	cancel context.CancelCauseFunc // withdraws the request

	mark   timeline.Mark[clientItem] // where the answer stands among the updates
	placed bool                      // the mark has its place; of whoever gives it one
	result clientPrompted            // set before the mark is resolved
	err    error                     // in place of it

	// Guarded by the reply's mu:
	answer  clientAnswer // waits for the answer; nil before and once somebody does
	hurried bool         // somebody has to, as soon as there is one
}

// callState says where a prompt's request is. Middleware may send it again.
//
//	callUnsent ──▶ callSent ──▶ callAnswered
//	                  ▲──────────────┘
type callState = uint32

const (
	callUnsent   callState = iota
	callSent               // the agent may be working on it
	callAnswered           // with what ends the turn, which only version 1 does
)

// replyTurn is what an agent of version 2 has said about the prompt's turn.
type replyTurn struct {
	accepted atomic.Bool   // it took the prompt up; set by whoever delivers, with the reply's mu held
	taken    chan struct{} // closed then; nil when nobody waits; guarded by the reply's mu
}

// replyStop is what is done to end a prompt early.
type replyStop struct {
	cancelling atomic.Bool // the session was cancelled after the prompt was sent

	// Guarded by the reply's mu:
	forget func() bool // keeps the end of the prompt's ctx from being noticed
	giveUp *time.Timer

	// Guarded by the session's mu:
	number    uint64 // among the prompts of the session that went out
	told      bool   // session/cancel was sent because ctx is done
	abandoned bool   // the reply has ended, and the agent perhaps works on the prompt
}

// A Result is how a turn ended.
type Result struct {
	// StopReason says why the turn ended; it is empty if an agent of version 2 gave
	// no reason.
	StopReason StopReason
	// Usage counts the tokens of the turn, if the agent reports them. Experimental.
	Usage *Usage
	// Error is the agent's error if StopReason is [StopError]. [Reply.Wait] returns
	// it too, as an error.
	Error *acpv2.Error
	// Meta is _meta of the message that ended the turn, or nil.
	Meta json.RawMessage
}

// Prompt sends a message of the user to the agent: see
// [ClientSession.PromptRequest].
func (s *ClientSession) Prompt(ctx context.Context, blocks ...ContentBlock) *Reply {
	return s.PromptRequest(ctx, &acpv2.PromptRequest{Prompt: blocks})
}

// PromptRequest sends a message of the user to the agent. It returns when the
// message is in the output buffer, so everything sent later, above all a
// cancellation, arrives after it. Failures are reported by the reply.
// PromptRequest fills in the session's id and sends the other fields of req,
// which must not be modified until the reply is done.
//
// A prompt may be sent while another is in flight. Agents of version 2 handle
// them in order. Of those of version 1 some do, others refuse it and some never
// answer.
//
// When ctx is done, the agent is asked to stop. The reply ends with the error of
// ctx when the agent has stopped, or after [Client.CancelGrace]. If an answer
// arrived in time, the result is returned along with the error. In version 1,
// session/cancel stops the whole session, so it is sent only for the oldest
// prompt in flight. A later one is withdrawn by its request id, which not all
// agents support, and its reply ends at once.
func (s *ClientSession) PromptRequest(ctx context.Context, req *acpv2.PromptRequest) *Reply {
	r := s.newReply(ctx)
	r.send(req)
	return r
}

func (s *ClientSession) newReply(ctx context.Context) *Reply {
	return &Reply{s: s, ctx: ctx, done: make(chan struct{})}
}

// send sends the prompt and returns when it is in the output buffer.
func (r *Reply) send(req *acpv2.PromptRequest) {
	s := r.s
	p := *req
	p.SessionID = s.id
	ctx := r.ctx
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, r.call.cancel = context.WithCancelCause(ctx)
	if err := r.begin(&p); err != nil {
		r.finish(nil, err)
		r.call.cancel(nil)
		return
	}
	answer, err := s.conn.proto().prompt(ctx, &p, jsonrpc.SendIf(r.sending), jsonrpc.OnReply(r.replied))
	if err != nil {
		answer = func() (clientPrompted, error) { return clientPrompted{}, err }
	}
	r.mu.Lock()
	r.call.answer = answer
	hurried := r.call.hurried
	r.mu.Unlock()
	if hurried || s.conn.inHook(r.ctx) {
		r.hurry()
	}
	// In version 1 begin has posted something to deliver. The goroutine that does
	// so is usually done in time to wait for the answer, too.
	if !s.conn.spawn(func() {
		defer func() { // also if a hook ends its goroutine
			if answer := r.claim(); answer != nil {
				r.run(answer)
			}
		}()
		if s.conn.Version() == 1 {
			s.line.Settle()
		}
	}) && r.claim() != nil {
		_, err := answer() // fails, since the connection has ended
		r.abandon(s.conn.explain(cmp.Or(err, s.conn.conn.Err())))
	}
}

// claim returns the function that waits for the answer, the first time, or nil
// otherwise.
func (r *Reply) claim() clientAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.call.answer
	r.call.answer = nil
	return answer
}

// hurry makes sure that the answer is waited for now: it has arrived, or nobody
// wants to wait for it any longer, and the goroutine that would do so may be held
// up by a hook.
func (r *Reply) hurry() {
	r.mu.Lock()
	r.call.hurried = true
	r.mu.Unlock()
	if answer := r.claim(); answer != nil && !r.s.conn.spawn(func() { r.run(answer) }) {
		// It has failed with the connection, so there is nothing to wait for.
		_, err := answer()
		r.abandon(r.s.conn.explain(cmp.Or(err, r.s.conn.conn.Err())))
	}
}

// begin checks a prompt and enters its reply among those in flight.
func (r *Reply) begin(p *acpv2.PromptRequest) error {
	s := r.s
	if r.ctx.Err() != nil {
		return r.ctxErr()
	}
	caps := s.conn.peer.Load().caps.Session
	if caps == nil {
		return unsupported("sessions")
	}
	if err := clientCheckContent(caps.Prompt, p.Prompt); err != nil {
		return err
	}
	v1 := s.conn.Version() == 1
	s.mu.Lock()
	if s.closed != nil {
		defer s.mu.Unlock()
		return s.closed
	}
	others := s.replies
	r.buffer.begun = v1 || len(others) == 0 // nobody else has the reply yet
	s.replies = append(slices.Clip(others), r)
	s.calls.Turn()
	if v1 {
		s.prompted++
		r.id = MessageID("prompt-" + strconv.FormatUint(s.prompted, 10))
	}
	s.mu.Unlock()
	for _, o := range others {
		o.buffer.poke()
	}
	if r.ctx.Done() != nil {
		stop := context.AfterFunc(r.ctx, r.interrupt)
		r.mu.Lock()
		r.stop.forget = stop
		r.mu.Unlock()
	}
	if v1 {
		s.line.Post(clientItem{do: func(ctx context.Context) { s.promptSent(ctx, r, p) }})
	}
	return nil
}

// replied is called on the reader when the answer arrives.
func (r *Reply) replied(any, error) {
	if r.s.conn.Version() == 1 {
		r.call.state.Store(callAnswered)
	}
	r.place()
	r.hurry()
}

// place gives the answer its place in the session's timeline.
func (r *Reply) place() {
	if !r.call.placed { // middleware may ask again
		r.call.placed = true
		r.s.line.Place(&r.call.mark)
	}
}

// run waits for the answer.
func (r *Reply) run(answer clientAnswer) {
	s := r.s
	res, err := answer()
	r.call.cancel(nil)
	r.place() // if nothing was answered, or by middleware
	err = s.conn.explain(err)
	r.call.result, r.call.err = res, err
	if v1 := s.conn.Version() == 1; v1 && s.conn.inHook(r.ctx) || err != nil && r.ctx.Err() != nil {
		// Whoever waits for the result may be holding up the timeline, or has
		// waited long enough for it.
		if v1 && r.call.sent() && r.ctx.Err() != nil && r.first() {
			r.cancelSession()
		}
		r.finish(r.outcome())
	}
	s.line.Resolve(&r.call.mark, clientItem{answer: r})
	s.line.Settle()
}

// ctxErr is the error of a prompt whose ctx is done.
func (r *Reply) ctxErr() error {
	err, cause := r.ctx.Err(), context.Cause(r.ctx)
	if cause == err {
		return fmt.Errorf("acp: prompt: %w", err)
	}
	return fmt.Errorf("acp: prompt: %w: %w", err, cause)
}

// outcome makes the result that Wait returns from an answer that ends the turn.
func (r *Reply) outcome() (res *Result, err error) {
	answer, err := &r.call.result, r.call.err
	switch {
	case err == nil:
		res = &Result{StopReason: answer.stopReason, Usage: answer.usage, Meta: answer.meta}
	case errors.Is(err, jsonrpc.ErrRequestCancelled) && (r.stop.cancelling.Load() || r.s.conn.Version() > 1 && r.ctx.Err() == nil):
		res, err = &Result{StopReason: StopCancelled}, nil // withdrawn before it began (S42), perhaps when it was sent before
	}
	if r.ctx.Err() != nil {
		err = r.ctxErr()
	}
	return res, err
}

// abandon ends a reply whose turn has not ended.
func (r *Reply) abandon(err error) {
	r.s.mu.Lock()
	r.stop.abandoned = true
	r.s.mu.Unlock()
	r.s.leave(r)
	if r.call.sent() && errors.Is(err, jsonrpc.ErrClosed) && !errors.Is(err, ErrOutcomeUnknown) {
		r.finish(nil, &cutOffError{err})
	} else {
		r.finish(nil, err)
	}
	r.call.cancel(err)
	r.hurry() // the request is withdrawn by who waits for its answer
}

// leave removes a prompt from those in flight. It returns those that were sent
// after it, and whether there are any others.
func (s *ClientSession) leave(r *Reply) (younger []*Reply, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.replies, r); i >= 0 {
		younger = s.replies[i+1:]
		s.replies = slices.Concat(s.replies[:i], younger)
	}
	return younger, len(s.replies) > 0
}

// finish ends a reply. The first end counts.
func (r *Reply) finish(res *Result, err error) {
	if r.settle(res, err) && errors.Is(err, ErrOutcomeUnknown) && r.s.conn.conn.Err() != nil {
		r.s.interrupt(r)
	}
}

// settle is finish without what others have to do with it. It reports whether this is
// the first end.
func (r *Reply) settle(res *Result, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over.Load() {
		return false
	}
	r.result, r.err = res, err
	r.over.Store(true)
	if r.stop.forget != nil {
		r.stop.forget()
	}
	if r.stop.giveUp != nil {
		r.stop.giveUp.Stop()
	}
	close(r.done)
	r.buffer.end()
	return true
}

// takenUp returns a channel that is closed when an agent of version 2 has said
// that it accepted the prompt.
func (r *Reply) takenUp() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn.taken == nil {
		r.turn.taken = make(chan struct{})
		if r.turn.accepted.Load() {
			close(r.turn.taken)
		}
	}
	return r.turn.taken
}

// Done returns a channel that is closed when the turn has ended, or will never
// end. Waiting for it is not reading: without [Client.Update], if nobody reads and the
// reply is full, the turn does not end.
func (r *Reply) Done() <-chan struct{} { return r.done }

// MessageID returns the id of the user's message in the conversation. In version
// 2 it is known once the agent has accepted the prompt; in version 1 it is
// generated here.
func (r *Reply) MessageID() MessageID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Wait waits until the turn has ended and returns its result. Updates that are
// held or arrive later are discarded unless somebody reads them.
//
//	why the turn failed                     the error
//	the agent says so, in either version    a *jsonrpc.Error; in version 2 its code is
//	                                        -32603 if the agent gives none
//	the prompt's ctx is done                wraps that of ctx
//	the session was closed                  wraps ErrSessionClosed
//	the agent does not take such content    wraps errors.ErrUnsupported
//	the connection has ended                wraps jsonrpc.ErrClosed
//
// There may be a result along with the error.
//
// [Client.Update] cannot wait for the end of a turn of its own session, since
// that is reported after the update at hand. In version 2 Wait and Updates fail
// there as soon as that is noticed, if the prompt was sent with the hook's ctx.
func (r *Reply) Wait() (*Result, error) {
	r.buffer.leave(true)
	if r.awaitsItself() {
		return nil, errAwaitsItself
	}
	<-r.done
	return r.result, r.err
}
