package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// An ownPrompt is a prompt of the client itself that is not over. Its turn begins and ends for the client where the
// log says so, among everything else that the client is sent.
type ownPrompt struct {
	req  promptRequest
	sent *turn // as the client has sent it

	// Guarded by the watcher's lock.
	state     ownState
	id        acp.MessageID // in the log: that of sent, unless the prompt was sent before
	end       turnEnd       // once it is ownEnded
	at        place         // that it was sent to last; nil for none
	runs      *turn         // there, once it is queued
	cancelled bool          // by the client
}

// A promptRequest is a client's request for a turn: an [acp.QueuedPrompt].
type promptRequest interface {
	Context() context.Context
	Begin(id acp.MessageID)
	End(e acp.TurnEnd)
}

// An ownState says how far a prompt of the client has come.
type ownState uint8

const (
	ownSending ownState = iota // a place has not said yet whether it takes it
	ownQueued                  // it has
	ownUnsent                  // no place has it
	ownLost                    // the place that had it is gone: the log may say more
	ownBegun                   // its turn runs, as far as the client was sent the log
	ownEnded                   // it ended long ago; the client learns that when no turn of its own runs
	ownOver                    // the client knows how it has ended
)

// maxOperation bounds the name of an operation, in bytes.
const maxOperation = 256

// receive queues a prompt, also while earlier ones of the client wait or run. It runs then whether the client stays
// or not.
func (g *Gateway) receive(ctx context.Context, q *acp.QueuedPrompt) error {
	w, ok := q.Session().Value.(*watcher)
	if !ok {
		return acp.SessionNotFound(q.Session().ID())
	}
	who, err := w.entitled(ctx)
	if err != nil {
		return err
	}
	if !who.may(MayPrompt) {
		return who.errRole("send prompts")
	}
	content := skills.Plain(q.Blocks()) // as everybody sees it; the agent gets a skill again
	if err := w.allowCommand(ctx, &who, content); err != nil {
		return err
	}
	m, err := metaOf(q.Meta())
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
	o := newOwnPrompt(q, &turn{id: q.PromptID(), by: w.who.User, from: w.who.name(), rank: who.rank(), content: content, operation: m.Operation, trace: traceOf(ctx)}, p)
	later, err := w.adds(o)
	if err != nil {
		return err
	}
	context.AfterFunc(q.Context(), func() { w.cancels(o) })
	if later { // behind those that wait for another place
		return nil
	}
	if err = w.hand(ctx, p, o); err != nil && !w.refuses(o) {
		return nil // the log has it all the same
	}
	return unkept(err)
}

// newOwnPrompt returns a prompt that is about to be sent to a place.
func newOwnPrompt(req promptRequest, sent *turn, p place) *ownPrompt {
	return &ownPrompt{req: req, sent: sent, id: sent.id, at: p}
}

// attempt returns the turn of a prompt at another place.
func (o *ownPrompt) attempt() *turn {
	s := o.sent
	return &turn{
		id: s.id, by: s.by, from: s.from, rank: s.rank, content: s.content, operation: s.operation, trace: s.trace,
		cancel: func(error) {}, done: make(chan struct{}),
	}
}

// adds adds a prompt to those of the client. It reports whether the prompt is sent later, because earlier ones were
// sent to a place that is gone, and have to be sent again first. It fails if nothing more is sent to the client.
func (w *watcher) adds(o *ownPrompt) (later bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isClosed(w.over) { // and tellEnds does not see it
		return false, w.ended()
	}
	later = slices.ContainsFunc(w.own, (*ownPrompt).waitsForPlace)
	w.own = append(w.own, o)
	o.cancelled = wantsCancelled(o.req)
	if later {
		o.state, o.at = ownUnsent, nil
		w.resolve()
	}
	return later, nil
}

// refuses drops a prompt that does not run. It reports false if the client learns of it in another way.
func (w *watcher) refuses(o *ownPrompt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.state >= ownBegun {
		return false
	}
	w.drop(o)
	return true
}

// drop is called with a prompt that ends for the client. The caller holds mu.
func (w *watcher) drop(o *ownPrompt) {
	o.state = ownOver
	w.own = slices.DeleteFunc(w.own, func(other *ownPrompt) bool { return other == o })
	w.resolve() // the next one may have waited for it
}

// is reports whether the log has the prompt under an id. The caller holds the watcher's lock.
func (o *ownPrompt) is(id acp.MessageID) bool { return o.id == id || o.sent.id == id }

// waitsForPlace reports whether the prompt is not known to be queued where the session is now, and will be sent
// there. The caller holds the watcher's lock.
func (o *ownPrompt) waitsForPlace() bool {
	return o.state == ownSending || (o.state == ownUnsent || o.state == ownLost) && !o.cancelled
}

// isUnsent reports whether the place that the prompt was sent to last has not queued it. The caller holds the
// watcher's lock.
func (o *ownPrompt) isUnsent() bool {
	return o.state == ownUnsent || o.state == ownLost && o.runs != nil && o.runs.unqueued.Load()
}

// hand sends a prompt of the client to a place. An error says that it does not run. If the session moves, the prompt
// is sent to the next place, which the watcher may have entered already.
func (w *watcher) hand(ctx context.Context, p place, o *ownPrompt) error {
	t := o.attempt()
	w.mu.Lock()
	if o.cancelled {
		t.stopped = &stopError{w.who.name()}
	}
	w.mu.Unlock()
	runs, err := p.submit(ctx, t)
	w.mu.Lock()
	gone := isClosed(p.gone()) // looked at with the lock held: run skips the prompts that are being sent
	unsent := isMoving(err) || err != nil && gone
	begun := o.state != ownSending
	switch {
	case unsent && !begun:
		o.state = ownUnsent
	case err == nil:
		o.runs = runs
		if !begun {
			o.id, o.state = cmp.Or(runs.id, o.id), ownQueued
			if gone {
				o.state = ownLost
			}
		}
	}
	cancelled := o.cancelled // meanwhile
	w.resolve()              // others may have waited for it
	w.mu.Unlock()
	switch {
	case unsent:
		return nil
	case err != nil:
		return err
	}
	if cancelled {
		runs.cancel(&stopError{w.who.name()})
	}
	w.queued(o, p.before(runs))
	w.g.work.Go(func() { w.await(p, o, runs) })
	return nil
}

// await waits for what becomes of a prompt at a place, as far as the log does not tell the client: that its first try
// has begun or ended before the client sent it again, or that it does not run.
func (w *watcher) await(p place, o *ownPrompt, runs *turn) {
	var written <-chan struct{}
	if runs.id != o.sent.id {
		written = runs.written
	}
	for {
		select {
		case <-written:
			if written = nil; runs.begun > 0 && w.reached(w.ctx, runs.begun, nil) == nil {
				w.beginsBefore(o, runs.begun)
			}
			continue
		case <-runs.done:
		case <-w.over:
			return
		case <-p.gone():
			if !isClosed(runs.done) { // before
				return
			}
		}
		break
	}
	if end := runs.turnEnd; w.reached(w.ctx, end.seq, nil) == nil {
		w.tellEnd(o, end, cmp.Or(end.first, runs.id))
	}
}

// begins is called with a prompt that the client is about to be sent. It returns the client's own ones that this is,
// which have begun: one, unless the client has sent it twice.
func (w *watcher) begins(p *records.Prompt) (all []*ownPrompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := acp.MessageID(p.ID)
	for _, o := range w.own {
		if o.state >= ownBegun || !o.is(id) && !o.repeats(p) {
			continue
		}
		o.id, o.state = id, ownBegun
		all = append(all, o)
		if o.cancelled && o.at != w.at { // where that was not known
			w.cancelAt(w.at, id)
		}
	}
	return all
}

// repeats reports whether a prompt of the log is the first try.
func (o *ownPrompt) repeats(p *records.Prompt) bool {
	if p.Operation == "" || p.Operation != o.sent.operation || p.By != o.sent.by {
		return false
	}
	raw, err := records.RawPrompt(o.sent.content)
	return err == nil && bytes.Equal(raw, p.Raw)
}

// cancelAt cancels a turn of the client at another place than it was sent to. The caller holds mu.
func (w *watcher) cancelAt(p place, id acp.MessageID) {
	w.g.work.Go(func() { p.cancelRunning(w.now().canceller(), w.who.name(), id) })
}

// beginsBefore is called once the client was sent everything up to where its prompt has begun, which it has sent
// again. begun is a record not before the prompt's, and before the next one's. If the client was sent the end, too, it
// would take another one for that.
func (w *watcher) beginsBefore(o *ownPrompt, begun uint64) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	begins := o.state < ownBegun && w.turn > 0 && w.turn <= begun
	if begins {
		o.state = ownBegun
	}
	w.mu.Unlock()
	if begins {
		o.req.Begin(o.id)
	}
}

// sendPrompt sends the client a prompt, and that its turn runs.
func (w *watcher) sendPrompt(p *records.Prompt, seq uint64) error {
	own := false
	w.turn, w.returns = seq, p.Operation != "" && p.By == w.who.User
	for _, o := range w.begins(p) {
		o.req.Begin(acp.MessageID(p.ID))
		if o.sent.id == acp.MessageID(p.ID) { // otherwise its message says so
			own = true
			w.notify(w.ctx, MethodBegun, Begun{acp.SessionID(w.id), o.sent.id, o.sent.operation})
		}
	}
	message := p.Message(w.who.User)
	if own {
		message.Meta = nil // the client knows who says that
	}
	if !own || w.session.Conn().Version() > 1 {
		if err := w.session.Send(message); err != nil {
			return err
		}
	}
	return w.session.Send(&w.pos.running)
}

// ends is called with the end of a turn that the client is about to be sent, or has, from an earlier connection. It
// returns the client's own prompts that are over from then on.
func (w *watcher) ends(id acp.MessageID, end turnEnd, has bool) (all []*ownPrompt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range slices.Clone(w.own) {
		switch {
		case !o.is(id) || o.state == ownEnded:
		case has:
			o.id, o.end, o.state = id, end, ownEnded
		default:
			w.drop(o)
			all = append(all, o)
		}
	}
	return all
}

// sendEnd sends the client the end of a turn.
func (w *watcher) sendEnd(end *records.End, r *engine.Record) error {
	id, outcome := acp.MessageID(end.Prompt), outcomeOfEnd(end, r.Seq)
	all := w.ends(id, outcome, w.session.Conn().Version() > 1 && w.pos.has())
	if len(all) > 0 {
		var at json.RawMessage
		ownmeta.Read(positionMeta(r.Seq, markOf(r), 0), &at)
		outcome.meta = ownmeta.Add(outcome.meta, at)
		for _, o := range all {
			o.req.Begin(id) // unless it has
			o.req.End(w.answer(&outcome))
		}
	}
	if len(all) > 0 && w.session.Conn().Version() == 1 {
		return nil // the answer says it
	}
	return sendEnd(w.session, end, r)
}

// answer returns an end as the client is answered.
func (w *watcher) answer(end *turnEnd) acp.TurnEnd {
	err := w.g.outage(w.ctx, unkept(end.err))
	w.g.notesRefusal(err)
	return acp.TurnEnd{Stop: end.stop, Err: err, Meta: end.meta}
}

// tellEnd tells the client, between two records, the end of a prompt that the log does not tell it: the prompt did not
// run, or had ended when the client sent it again. id is what the log calls the prompt.
func (w *watcher) tellEnd(o *ownPrompt, end turnEnd, id acp.MessageID) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	was := o.state
	if was >= ownEnded || was == ownBegun && end.refused { // the log knows better
		w.mu.Unlock()
		return
	}
	ran := was == ownBegun || end.seq > 0 && !end.refused
	if ran && was != ownBegun && w.session.Conn().Version() > 1 {
		o.id, o.end, o.state = id, end, ownEnded
		w.mu.Unlock()
		w.tellEnded()
		return
	}
	w.drop(o)
	w.mu.Unlock()
	said := w.answer(&end)
	o.req.End(said)
	if !ran || w.session.Conn().Version() == 1 {
		return
	}
	w.turn = 0 // whatever the log says later
	w.sendIdle(id, &end, said.Err)
	w.tellEnded()
}

// tellEnded tells a client of version 2 the ends of prompts that it has sent again. It takes the next end that it is
// sent for that of every turn of its own that runs, so none may be its own, or may turn out to be one that it sends
// again. The caller holds telling.
func (w *watcher) tellEnded() {
	w.mu.Lock()
	var all []*ownPrompt
	for _, o := range w.own {
		switch {
		case o.state == ownBegun, w.turn > 0 && w.returns:
			w.mu.Unlock()
			return
		case o.state == ownEnded:
			all = append(all, o)
		}
	}
	for _, o := range all {
		w.drop(o)
	}
	w.mu.Unlock()
	for _, o := range all {
		o.req.Begin(o.id)
		said := w.answer(&o.end)
		o.req.End(said)
		if w.turn == 0 {
			_ = w.session.Send(&acp.RunningStateUpdate{}) // like what follows, it fails if the client has left
		}
		w.sendIdle(o.id, &o.end, said.Err)
		if w.turn > 0 {
			_ = w.session.Send(&acp.RunningStateUpdate{}) // the turn of somebody else does
		}
	}
}

// sendIdle sends a client of version 2 the end of a turn of its own.
func (w *watcher) sendIdle(id acp.MessageID, end *turnEnd, err error) {
	idle := (&records.End{Prompt: string(id), Stop: end.stop, By: end.by, Meta: end.meta}).Update()
	if err != nil {
		idle.StopReason, idle.Error = acp.StopError, records.ErrorOf(err)
	}
	_ = w.session.Send(idle)
}

// tellEnds tells the client how its prompts have ended, as far as that is known: nothing more of the log is sent.
func (w *watcher) tellEnds() {
	w.mu.Lock()
	own := slices.Clone(w.own)
	w.mu.Unlock()
	for _, o := range own {
		w.mu.Lock()
		runs, id, end := o.runs, o.id, turnEnd{err: w.ended()}
		w.mu.Unlock()
		if runs != nil && isClosed(runs.done) { // meanwhile
			end = runs.turnEnd
		}
		w.tellEnd(o, end, cmp.Or(end.first, id))
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	w.turn = 0 // whatever runs, its end is not sent
	w.tellEnded()
}

// cancels is called when the context of a prompt is done. The client may have cancelled it, or the session's prompts;
// or it has left or closed the session, which ends no turn.
func (w *watcher) cancels(o *ownPrompt) {
	if !wantsCancelled(o.req) {
		return
	}
	// What the client has cancelled with it, and waits for its end, must not run then.
	var behind []*ownPrompt
	w.mu.Lock()
	if i := slices.Index(w.own, o); i >= 0 {
		behind = slices.Clone(w.own[i+1:])
	}
	w.mu.Unlock()
	for _, later := range slices.Backward(behind) {
		if wantsCancelled(later.req) {
			w.cancelOwn(later)
		}
	}
	w.cancelOwn(o)
}

// wantsCancelled reports whether the client has cancelled a prompt.
func wantsCancelled(req promptRequest) bool {
	cause := context.Cause(req.Context())
	return !errors.Is(cause, acp.ErrSessionClosed) && (errors.Is(cause, acp.ErrCancelled) || errors.Is(cause, jsonrpc.ErrRequestCancelled))
}

// cancelOwn cancels a prompt of the client.
func (w *watcher) cancelOwn(o *ownPrompt) {
	w.mu.Lock()
	o.cancelled = true
	runs, id := o.runs, o.id
	lost := o.state == ownLost || o.state == ownBegun && o.at != nil && isClosed(o.at.gone())
	w.resolve() // it may be over
	w.mu.Unlock()
	stop := &stopError{w.who.name()}
	if runs != nil { // otherwise hand cancels it, which knows then what runs
		runs.cancel(stop)
	}
	if lost { // it runs elsewhere, if at all
		w.place().cancelRunning(w.now().canceller(), stop.by, id)
	}
}

// cancel is called when a client cancels what others have asked for. Its own prompts are cancelled by the library.
func (g *Gateway) cancel(ctx context.Context, as *acp.AgentSession) {
	w, ok := as.Value.(*watcher)
	switch {
	case !ok:
	case w.now().may(MayPrompt):
		w.place().cancelRunning(w.now().canceller(), w.who.name(), "")
	default:
		g.refused(ctx, w.now(), acpv2.NotificationSessionCancel.Name, w.id, w.now().errRole("cancel turns"))
	}
}
