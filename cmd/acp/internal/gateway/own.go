package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// A promptSlot follows the request of a prompt, whose turn receive puts in.
type promptSlot struct {
	mu       sync.Mutex
	w        *watcher
	o        *ownTurn
	answered bool // the request
}

// occupy is called with a prompt that is received.
func (s *promptSlot) occupy(w *watcher, o *ownTurn) {
	s.mu.Lock()
	s.w, s.o = w, o
	answered := s.answered
	s.mu.Unlock()
	if answered {
		o.tell()
	}
}

// answer is called when the request has its answer, which in version 1 is the end of the turn.
func (s *promptSlot) answer() {
	s.mu.Lock()
	s.answered = true
	o := s.o
	s.mu.Unlock()
	if o != nil {
		o.tell()
	}
}

func (s *promptSlot) take() (*watcher, *ownTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w, s.o
}

type promptSlotKey struct{}

// ownOf returns the prompt of a client to which the context of a hook belongs, or nil.
func ownOf(ctx context.Context) (w *watcher, o *ownTurn) {
	if slot, ok := ctx.Value(promptSlotKey{}).(*promptSlot); ok {
		return slot.take()
	}
	return nil, nil
}

// watchPrompts notices when a prompt of a client has its answer, and what that is.
func (g *Gateway) watchPrompts(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		slot := new(promptSlot)
		switch r.Params.(type) {
		case *acpv1.PromptRequest:
			r.AfterAnswer(slot.answer)
		case *acpv2.PromptRequest:
		default:
			return next(ctx, r)
		}
		res, err := next(context.WithValue(ctx, promptSlotKey{}, slot), r)
		w, o := slot.take()
		if o == nil {
			return res, err
		}
		if err != nil {
			slot.answer() // nothing else will say so in version 2
		}
		// The library has not made a turn of it, and will not: it was refused or cancelled while it waited, or its
		// client has left.
		if _, answered := res.(*acpv1.PromptResponse); (err != nil || answered) && !o.hasStarted() {
			w.cancels(o, context.Cause(o.ctx))
			w.answered(o)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch res := res.(type) {
		case *acpv1.PromptResponse:
			if err == nil && len(res.Meta) == 0 {
				res.Meta = o.position
			}
		case *acpv2.PromptResponse:
			if err == nil && o.repeat {
				res.Meta = ownmeta.Of(map[string]bool{"repeated": true}) // the answer names a message that no other client sees
			}
		}
		return res, err
	}
}

// maxOperation bounds the name of an operation, in bytes.
const maxOperation = 256

// receive queues a prompt, also while earlier ones of the client wait or run. It is kept then: it runs whether the client
// stays or not.
func (g *Gateway) receive(ctx context.Context, t *acp.Turn) error {
	w, ok := t.Session().Value.(*watcher)
	if !ok {
		return acp.SessionNotFound(t.Session().ID())
	}
	who, err := w.entitled(ctx)
	if err != nil {
		return err
	}
	if !who.Prompt {
		return who.errRole("send prompts")
	}
	content := skills.Plain(t.Blocks()) // as everybody sees it; the agent gets a skill again
	if err := w.allowCommand(ctx, &who, content); err != nil {
		return err
	}
	m, err := metaOf(t.Meta())
	if err != nil {
		return err
	}
	if len(m.Operation) > maxOperation {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the operationId has %d bytes; %d are allowed", len(m.Operation), maxOperation)
	}
	p, err := w.here(ctx)
	if err == nil {
		err = g.allowPrompt(ctx, &who, w.paid.Swap(false))
	}
	if err != nil {
		return err
	}
	mine := &turn{id: t.PromptID(), by: w.who.User, from: w.who.name(), rank: who.rank(), content: content, operation: m.Operation, trace: traceOf(ctx), cancel: func(error) {}, done: make(chan struct{})}
	o := newOwnTurn(ctx, mine, p)
	slot, ok := ctx.Value(promptSlotKey{}).(*promptSlot)
	if !ok {
		return errors.New("gateway: a prompt without a request")
	}
	slot.occupy(w, o)
	if w.adds(o) { // behind those that wait for another place
		return nil
	}
	runs, unsent, err := w.hand(ctx, p, o, mine)
	switch {
	case unsent: // the next place has an answer
	case err != nil:
		return unkept(err)
	case runs == mine:
		w.queued(o, p.before(mine))
	default: // it was sent before, and waits, runs or has ended
		w.queued(o, p.before(runs))
		w.g.work.Go(func() { w.await(p, o, runs) })
	}
	return nil
}

// newOwnTurn returns a prompt that is about to be sent to a place. ctx is that of its turn.
func newOwnTurn(ctx context.Context, t *turn, p place) *ownTurn {
	return &ownTurn{
		id: t.id, ctx: ctx, sent: t, turn: t, at: p, sending: true,
		arrived: make(chan struct{}), started: make(chan struct{}), past: make(chan struct{}), told: make(chan struct{}),
	}
}

// adds adds a prompt to those of the client that are not answered. It reports whether the prompt is sent later, because
// earlier ones were sent to a place that is gone, and have to be sent again first.
func (w *watcher) adds(o *ownTurn) (later bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, before := range w.own {
		later = later || before.waitsForPlace()
	}
	w.own = append(w.own, o)
	if later {
		o.sending, o.unsent, o.lost, o.at = false, true, true, nil
		w.resolve()
	}
	return later
}

// accept waits until the turn of a prompt has come and the client was sent everything before it: in version 2 it takes the
// next end of a turn for this one's. A prompt that was sent before begins with the message of its first try, or has begun.
func (g *Gateway) accept(ctx context.Context, _ *acp.Turn) error {
	w, o := ownOf(ctx)
	done := o.sent.done
	for {
		select {
		case <-o.arrived:
		case <-done: // perhaps without having begun
			if o.sent.refused {
				return unkept(o.sent.err)
			}
			if w.comes(o) { // the agent was faster than the client, to which others' turns are still being sent
				done = nil
				continue
			}
			if err := w.reached(ctx, o.sent.seq, o.arrived); err != nil {
				return err
			}
			return w.interrupts(ctx, o)
		case <-w.over: // there is no next place
			return w.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return nil
	}
}

// isRepeated reports whether a prompt is known to have been sent before, so that its message is not in the log.
func (w *watcher) isRepeated(o *ownTurn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.repeat
}

// isAside reports whether what is sent with a context is said by the library as the turn of a prompt begins, and is not part of
// a record: its message is not in the log, and the log may not say at this moment that the turn begins.
func isAside(ctx context.Context, message bool) bool {
	w, o := ownOf(ctx)
	if o == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.repeat && (message || o.aside)
}

// comes reports whether the log has a prompt whose turn has ended, so that the client is about to be sent it.
func (w *watcher) comes(o *ownTurn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !o.begun && o.sent.repeat {
		o.repeat = true
	}
	return o.sent.seq > 0 && !o.repeat
}

// interrupts keeps other records from the client until the library has sent it the end of a prompt whose turn has ended long
// ago: in between the client would take the end of another turn for that.
func (w *watcher) interrupts(ctx context.Context, o *ownTurn) error {
	select {
	case <-o.arrived:
		return nil // or at this moment
	default:
	}
	for {
		w.mu.Lock()
		if !w.gap.sending && w.gap.aside == nil {
			w.gap.aside, o.aside = o, true
			w.mu.Unlock()
			break
		}
		changed := w.gap.changed.wait()
		w.mu.Unlock()
		select {
		case <-changed:
		case <-w.over:
			return w.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.g.work.Go(func() {
		select {
		case <-o.told:
		case <-w.ctx.Done():
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gap.aside = nil
		w.gap.changed.give()
	})
	return nil
}

// catchesUp is called with the turn of the first try of a prompt, which has begun. The library begins it, too, once the
// client was sent everything up to there, unless it has ended by then, or earlier prompts are before it.
func (w *watcher) catchesUp(o *ownTurn, t *turn) {
	if w.reached(w.ctx, t.begun, o.arrived) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !o.over && !o.begun && w.leads(o) {
		o.first, o.begun, o.aside = t.id, true, true
		o.arrives()
	}
}

// prompt waits until the agent has handled a prompt that was accepted.
func (g *Gateway) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	w, o := ownOf(ctx)
	defer w.answered(o)
	close(o.started)
	if w.isRepeated(o) {
		defer func() { // it may have ended long ago, while another turn runs
			w.mu.Lock()
			defer w.mu.Unlock()
			w.repeated = true
		}()
	}
	select {
	case <-o.turn.done:
	case <-w.over:
	case <-ctx.Done():
		if !w.cancels(o, context.Cause(ctx)) {
			return "", context.Cause(ctx)
		}
		select {
		case <-o.turn.done:
		case <-w.over:
		}
	}
	select {
	case <-o.turn.done:
	default:
		return "", w.ended()
	}
	_ = w.reached(w.ctx, o.turn.seq, o.past)
	t.SetAnswerMeta(o.turn.meta)
	return o.turn.stop, unkept(o.turn.err)
}

// hasStarted reports whether the library has begun the turn.
func (o *ownTurn) hasStarted() bool {
	select {
	case <-o.started:
		return true
	default:
		return false
	}
}

// cancels cancels a prompt of the client, if that wants it: it has cancelled the session's prompts, or this one. It
// reports whether it does; the client may have left, or closed the session, instead.
func (w *watcher) cancels(o *ownTurn, cause error) bool {
	if !wantsCancelled(cause) {
		return false
	}
	// What the client has cancelled with it, and waits for its end, must not run then.
	var behind []*ownTurn
	w.mu.Lock()
	if i := slices.Index(w.own, o); i >= 0 {
		behind = slices.Clone(w.own[i+1:])
	}
	w.mu.Unlock()
	for _, later := range slices.Backward(behind) {
		if wantsCancelled(context.Cause(later.ctx)) {
			w.cancelOwn(later)
		}
	}
	w.cancelOwn(o)
	return true
}

// wantsCancelled reports whether the client has cancelled a prompt, by the reason why its context is done, if it is.
func wantsCancelled(cause error) bool {
	return !errors.Is(cause, acp.ErrSessionClosed) && (errors.Is(cause, acp.ErrCancelled) || errors.Is(cause, jsonrpc.ErrRequestCancelled))
}

// cancelOwn cancels a prompt of the client.
func (w *watcher) cancelOwn(o *ownTurn) {
	w.mu.Lock()
	o.cancelled = true
	lost, again, sending := o.lost && !o.isUnsent(), o.again, o.sending
	w.mu.Unlock()
	if sending {
		return // to be cancelled by hand, which knows then what runs
	}
	stop := &stopError{w.who.name()}
	o.turn.cancel(stop)
	if again != nil {
		again.cancel(stop)
	}
	if lost { // it runs elsewhere, if at all
		id := o.id
		if o.turn.id != "" {
			id = o.turn.id
		}
		w.place().cancelRunning(w.now().canceller(), stop.by, id)
	}
}

// cancel is called when a client cancels what others have asked for. Its own prompts are cancelled by the library.
func (g *Gateway) cancel(ctx context.Context, as *acp.AgentSession) {
	w, ok := as.Value.(*watcher)
	switch {
	case !ok:
	case w.now().Prompt:
		w.place().cancelRunning(w.now().canceller(), w.who.name(), "")
	default:
		g.refused(ctx, w.now(), acpv2.NotificationSessionCancel.Name, w.id, w.now().errRole("cancel turns"))
	}
}

// answered is called when a prompt of the client has an answer.
func (w *watcher) answered(o *ownTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own = slices.DeleteFunc(w.own, func(other *ownTurn) bool { return other == o })
	w.resolve() // the next one may have waited for it
}

// arrives is called when the client was sent everything before the prompt, or a first try of it.
func (o *ownTurn) arrives() { o.arriving.Do(func() { close(o.arrived) }) }

// passes is called when the client was sent everything up to the end of the turn.
func (o *ownTurn) passes() { o.passing.Do(func() { close(o.past) }) }

// tell is called when the end of the turn is on its way to the client.
func (o *ownTurn) tell() { o.telling.Do(func() { close(o.told) }) }

// told is called when the client is sent that the session is idle, which in version 2 is how it learns of the end of its
// turn.
func (w *watcher) told() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.own {
		if o.begun && o.hasStarted() {
			o.tell()
		}
	}
	if w.repeated {
		w.repeated = false
		w.restate.Store(true)
	}
	for _, o := range []*ownTurn{w.ending, w.gap.aside} {
		if o != nil && o.hasStarted() { // otherwise it was the end of another one
			o.tell()
		}
	}
}

// stopper returns who has stopped the turn of the client whose end it is about to be sent.
func (w *watcher) stopper() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending == nil {
		return ""
	}
	return w.ending.end.by
}

// finish waits until the end of a turn of the client itself is on its way: what follows it in the log must not overtake
// it.
func (w *watcher) finish(ctx, here context.Context, o *ownTurn) {
	select {
	case <-o.told:
	case <-ctx.Done():
	case <-here.Done():
		w.settle(o, o.end) // whoever ran the turn may not be able to say so any more
		select {
		case <-o.told:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	w.ending = nil
	w.mu.Unlock()
}

// leads reports whether a prompt is the first of those of the client that are not answered, so that the library starts its
// turn as soon as it may. The caller holds w.mu.
func (w *watcher) leads(o *ownTurn) bool { return len(w.own) > 0 && w.own[0] == o }
