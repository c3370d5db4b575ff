package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/turnstile"
	"github.com/goacp/acp/jsonrpc"
)

// A host is a connection of another node, which visits sessions of this one.
type host struct {
	g    *Gateway
	conn *jsonrpc.Conn

	line turnstile.Turnstile // of prompts that are to be queued, by session

	mu     sync.Mutex
	guests map[string]*guest
	places map[*jsonrpc.Request]*turnstile.Place // of those whose handlers have not begun
}

// A guest is a visit of a session by another node.
type guest struct {
	h      *host
	s      *session
	node   string          // that visits
	number uint64          // see wireOpen
	ctx    context.Context // until the visit ends
	cancel context.CancelFunc
	ending sync.Once
	peer   *peer

	mu         sync.Mutex
	ended      bool                    // no prompt is queued any more
	submitting sync.WaitGroup          // prompts that are being queued
	turns      map[acp.MessageID]*turn // that the other node waits for
	cancelled  []acp.MessageID         // prompts that were cancelled before they were known
	asked      map[string]int          // how many of its clients are being asked
}

// ServeNode serves another node until it leaves, ctx ends or the gateway closes.
func (g *Gateway) ServeNode(ctx context.Context, stream jsonrpc.Stream) error {
	h := &host{g: g, guests: make(map[string]*guest), places: make(map[*jsonrpc.Request]*turnstile.Place)}
	mux := new(jsonrpc.Mux)
	rpcOpen.Handle(mux, func(ctx context.Context, p *wireOpen) (*wireOpened, error) { return h.open(ctx, p, false) })
	rpcBegin.Handle(mux, func(ctx context.Context, p *wireOpen) (*wireOpened, error) { return h.open(ctx, p, true) })
	rpcPrompt.Handle(mux, h.prompt)
	rpcOption.Handle(mux, h.option)
	rpcSteer.Handle(mux, h.steer)
	rpcChange.Handle(mux, h.change)
	rpcFiles.Handle(mux, h.files)
	rpcLeave.Handle(mux, func(_ context.Context, p *wireSession) error {
		if v := h.guest(p); v != nil {
			v.end(false)
		}
		return nil
	})
	rpcCancel.Handle(mux, h.cancel)
	rpcAsking.Handle(mux, h.asking)
	rpcAnswer.Handle(mux, h.answer)
	rpcPresent.Handle(mux, h.present)
	rpcDrain.Handle(mux, g.drained)
	rpcRemove.Handle(mux, g.removed)
	rpcCount.Handle(mux, g.counted)
	rpcFigures.Handle(mux, g.figures)
	rpcAttentive.Handle(mux, g.lookedAt)
	rpcWaits.Handle(mux, g.told)
	h.mu.Lock() // handlers wait for the connection
	conn := jsonrpc.NewConn(stream, jsonrpc.Config{Settings: linkSettings, Mux: mux, Lane: laneOf, Preempt: h.arrives, Logger: g.cfg.Logger})
	h.conn = conn
	h.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer context.AfterFunc(g.ctx, func() { _ = conn.Close() })()
	<-conn.Done()
	h.mu.Lock()
	guests := slices.Collect(maps.Values(h.guests))
	h.mu.Unlock()
	for _, guest := range guests {
		guest.end(true)
	}
	return conn.Wait()
}

// connected returns the connection, whose handlers may run before ServeNode knows it.
func (h *host) connected() *jsonrpc.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conn
}

// guest returns the visit that a message is about, unless it has ended.
func (h *host) guest(p *wireSession) *guest {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.guests[p.Session]; v != nil && v.number == p.Visit {
		return v
	}
	return nil
}

// open lets the other node visit a session, which this node owns from then on, unless a third one does.
func (h *host) open(ctx context.Context, p *wireOpen, begin bool) (*wireOpened, error) {
	var s *session
	err := h.g.takes(ctx, p.Session)
	if err == nil {
		s, err = h.g.own(ctx, p.Session)
	}
	if err == nil && begin {
		_, err = s.backend(ctx, s.g.tenancy.lobby.patience())
	}
	if err != nil {
		return &wireOpened{Failure: failed(err)}, nil
	}
	v := &guest{h: h, s: s, node: p.Node, number: p.Visit, peer: newPeer(false), turns: make(map[acp.MessageID]*turn), asked: make(map[string]int)}
	v.ctx, v.cancel = context.WithCancel(s.ctx)
	before, admitted := s.admit(v)
	// What they have queued does not run once this has an answer.
	for _, old := range before {
		old.end(true)
	}
	if ctx.Err() != nil || h.connected().Err() != nil { // it has left already
		v.end(false)
	}
	if !admitted || v.ctx.Err() != nil {
		return &wireOpened{Failure: failed(errGone)}, nil
	}
	// A question whose record has just been committed may not have its number yet: it comes again.
	last := s.own.Head().Seq
	from := max(last-min(last, engine.MaxRecords), s.compacted(last))
	h.g.work.Go(func() { v.run(from) })
	h.g.present.join(v.ctx, s.id, v.peer)
	h.g.work.Go(func() { h.g.inform(v.ctx, v.wire(), v.peer, h.connected()) })
	res := &wireOpened{There: h.g.present.crowd(s.id, nil, v.peer)}
	for _, a := range s.questions(last) {
		w, err := v.wireAsk(a)
		if err != nil {
			return nil, err
		}
		res.Asks = append(res.Asks, w)
	}
	return res, nil
}

// admit adds a visit of another node, unless the session is given up or the node has begun a later visit. It returns
// the earlier visits of the node, which may have come over another connection that is not known to be broken.
func (s *session) admit(v *guest) (before []*guest, admitted bool) {
	v.h.mu.Lock() // so that an earlier visit does not take the place of a later one
	defer v.h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.given() {
		v.cancel()
		return nil, false
	}
	for old := range s.guests {
		switch {
		case old.node != v.node:
		case old.number > v.number:
			v.cancel()
			return nil, false
		default:
			before = append(before, old)
		}
	}
	s.guests[v] = true
	v.h.guests[s.id] = v
	s.touch()
	return before, true
}

// wire returns what messages about the visit begin with.
func (v *guest) wire() wireSession { return wireSession{v.s.id, v.number} }

// wireAsk returns a question as other nodes get it.
func (v *guest) wireAsk(a *ask) (wireAsk, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	w, err := a.toWire(v.s.id)
	w.wireSession = v.wire()
	return w, err
}

// end ends the visit, and returns when it has ended. With withdraw, prompts without a name that have not begun do not
// run any more: the other node looks into the log for what has become of them, and says that they did not run. It
// reports whether the visit had not been ended before.
func (v *guest) end(withdraw bool) (first bool) {
	v.ending.Do(func() {
		first = true
		v.finish(withdraw)
	})
	return first
}

func (v *guest) finish(withdraw bool) {
	v.cancel()
	v.h.g.present.part(v.s.id, v.peer)
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.submitting.Wait()
	v.mu.Lock()
	turns := slices.Collect(maps.Values(v.turns))
	v.mu.Unlock()
	for _, t := range turns {
		if withdraw && t.operation == "" {
			v.s.withdraw(t)
		}
	}
	v.h.mu.Lock()
	if v.h.guests[v.s.id] == v {
		delete(v.h.guests, v.s.id)
	}
	v.h.mu.Unlock()
	v.mu.Lock()
	asked := v.asked
	v.asked = make(map[string]int)
	v.mu.Unlock()
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for id, n := range asked {
		if a := v.s.asks[id]; a != nil {
			a.asked -= n
		}
	}
	delete(v.s.guests, v)
	v.s.touch()
}

// run sends what is committed, until the visit ends.
func (v *guest) run(after uint64) {
	conn := v.h.connected()
	for r, err := range v.s.g.cfg.Log.Follow(v.ctx, v.s.id, after) {
		if err == nil {
			err = v.send(conn, r)
		}
		if err != nil {
			break
		}
	}
	// Also if the log cannot be read: the other node reads it by itself, or visits again.
	if v.end(true) {
		p := v.wire()
		_ = rpcOver.Notify(v.s.g.ctx, conn, &p)
	}
}

// send sends a record, and what it means for questions.
func (v *guest) send(conn *jsonrpc.Conn, r engine.Record) error {
	id := v.wire()
	if err := rpcRecords.Notify(v.ctx, conn, &wireRecords{id, []wireRecord{toWire(r)}}); err != nil {
		return err
	}
	switch r.Kind {
	case kindAsk:
		var record records.Asked
		if err := json.Unmarshal(r.Data, &record); err != nil {
			return err
		}
		if a := v.s.question(record.ID); a != nil {
			return v.tell(conn, a, r.Seq)
		}
	case kindAnswer:
		var record records.Decided
		if err := json.Unmarshal(r.Data, &record); err != nil {
			return err
		}
		return rpcAsked.Notify(v.ctx, conn, &wireAnswer{wireSession: id, ID: record.ID})
	}
	return nil
}

// tell sends a question. seq is the number of its record.
func (v *guest) tell(conn *jsonrpc.Conn, a *ask, seq uint64) error {
	w, err := v.wireAsk(a)
	if err != nil {
		return err
	}
	w.Seq = seq
	return rpcAsk.Notify(v.ctx, conn, &w)
}

// arrives is called on the reader. Prompts are queued in the order in which they arrive, although each has a handler of its
// own.
func (h *host) arrives(r *jsonrpc.Request) error {
	p, ok := r.Params.(*wirePrompt)
	if !ok {
		return nil
	}
	place := h.line.Come(p.Session)
	h.mu.Lock()
	h.places[r] = place
	h.mu.Unlock()
	r.OnDone(func(error) {
		if place := h.place(r); place != nil {
			place.Drop()
		}
	})
	return nil
}

// place returns the place in line of a prompt, once; nil if the request is over.
func (h *host) place(r *jsonrpc.Request) *turnstile.Place {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := h.places[r]
	delete(h.places, r)
	return place
}

// prompt queues a prompt and waits for the end of its turn.
func (h *host) prompt(ctx context.Context, p *wirePrompt) (*wireEnd, error) {
	place := h.place(jsonrpc.RequestFrom(ctx))
	if place == nil || !place.Enter(ctx) {
		if place != nil {
			place.Drop()
		}
		return &wireEnd{Failure: failed(errGone), Unqueued: true}, nil
	}
	v, runs, failure, err := h.queue(ctx, p)
	place.Leave()
	if failure != nil || err != nil {
		return failure, err
	}
	select {
	case <-runs.done:
		v.mu.Lock()
		delete(v.turns, p.ID)
		v.mu.Unlock()
		end := &wireEnd{Stop: runs.stop, Failure: failed(unkept(runs.err)), Refused: runs.refused, Seq: runs.seq}
		if runs.id != p.ID {
			end.First = runs.id
		}
		return end, nil
	case <-v.ctx.Done(): // the visit ends, which needs the turn
	case <-ctx.Done(): // or is about to
	}
	return &wireEnd{Failure: failed(errGone), Unqueued: runs.unqueued.Load()}, nil
}

// queue queues a prompt, and returns the turn that runs it, or why none does.
func (h *host) queue(ctx context.Context, p *wirePrompt) (v *guest, runs *turn, failure *wireEnd, err error) {
	v = h.guest(&p.wireSession)
	if v == nil {
		return nil, nil, &wireEnd{Failure: failed(errGone), Unqueued: true}, nil
	}
	var req acpv2.PromptRequest
	if err := json.Unmarshal(p.Content, &req); err != nil {
		return nil, nil, nil, fmt.Errorf("the prompt: %w", err)
	}
	t := &turn{id: p.ID, by: p.By, from: p.From, rank: p.Rank, content: req.Prompt, operation: p.Operation, trace: p.Trace, done: make(chan struct{})}
	if runs, err = v.submit(ctx, t); err != nil {
		failure = &wireEnd{Failure: failed(unkept(err)), Refused: true, Unqueued: isMoving(err)}
	}
	return v, runs, failure, nil
}

func (h *host) present(_ context.Context, p *wirePresent) error {
	if v := h.guest(&p.wireSession); v != nil {
		h.g.present.learn(v.s.id, v.peer, p.crowd, false)
	}
	return nil
}

func (h *host) cancel(_ context.Context, p *wireCancel) error {
	v := h.guest(&p.wireSession)
	if v == nil {
		return nil
	}
	if p.ID == "" {
		v.s.cancelRunning(p.By, p.From, "")
		return nil
	}
	v.mu.Lock()
	t := v.turns[p.ID]
	if t == nil {
		if len(v.cancelled) == maxCancelled {
			v.cancelled = slices.Delete(v.cancelled, 0, 1)
		}
		v.cancelled = append(v.cancelled, p.ID)
	}
	v.mu.Unlock()
	if t != nil {
		t.cancel(&stopError{p.From})
	} else { // the turn of an earlier visit
		v.s.cancelRunning(p.By, p.From, p.ID)
	}
	return nil
}

// maxCancelled bounds the cancellations of a visit that are kept for prompts that are not known yet. Most of them have
// just ended.
const maxCancelled = 2 * maxTurns

// submit queues a prompt.
func (v *guest) submit(ctx context.Context, t *turn) (*turn, error) {
	v.mu.Lock()
	if v.ended {
		v.mu.Unlock()
		return nil, errGone
	}
	unnamed := t.operation == "" // it is queued at once; the others may wait for the database
	if unnamed {
		v.submitting.Add(1)
		defer v.submitting.Done()
	}
	v.mu.Unlock()
	runs, err := v.s.submit(ctx, t)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns[t.id] = runs
	if i := slices.Index(v.cancelled, t.id); i >= 0 {
		v.cancelled = slices.Delete(v.cancelled, i, i+1)
		runs.cancel(&stopError{t.from})
	}
	return runs, nil
}

func (h *host) option(ctx context.Context, p *wireOption) (*wireEnd, error) {
	v := h.guest(&p.wireSession)
	if v == nil {
		return &wireEnd{Failure: failed(errGone)}, nil
	}
	var req acpv2.SetSessionConfigOptionRequest
	if err := json.Unmarshal(p.Request, &req); err != nil {
		return nil, fmt.Errorf("the option: %w", err)
	}
	return &wireEnd{Failure: failed(v.s.setOption(ctx, req.ConfigID, req.Value))}, nil
}

func (h *host) asking(_ context.Context, p *wireAnswer) error {
	v := h.guest(&p.wireSession)
	if v == nil {
		return nil
	}
	if a := v.s.question(p.ID); a != nil {
		v.mu.Lock()
		v.asked[p.ID]++
		v.mu.Unlock()
		v.s.asking(a)
	}
	return nil
}

func (h *host) answer(_ context.Context, p *wireAnswer) error {
	v := h.guest(&p.wireSession)
	if v == nil {
		return nil
	}
	a := v.s.question(p.ID)
	v.mu.Lock()
	was := v.asked[p.ID] > 0
	if was {
		if v.asked[p.ID]--; v.asked[p.ID] == 0 {
			delete(v.asked, p.ID)
		}
	}
	v.mu.Unlock()
	switch {
	case a == nil || !was:
	case p.Decision == nil:
		v.s.unanswered(a)
	default:
		d := *p.Decision
		d.by = p.By
		h.g.work.Go(func() { v.s.answered(a, d) }) // it is committed, which may take long
	}
	return nil
}
