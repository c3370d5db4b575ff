package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// A link is a connection to another node, for all sessions that are visited there.
type link struct {
	g    *Gateway
	node string
	conn *jsonrpc.Conn

	mu     sync.Mutex
	visits map[string]*visit
}

// linkSettings are the bounds of a connection between nodes.
var linkSettings = jsonrpc.Settings{MaxFrame: 96 << 20, MaxRequests: 4096}

func (l *link) all() []*visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.visits))
}

// visit returns the visit that a message is about, unless it has ended.
func (l *link) visit(p *wireSession) *visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.visits[p.Session]; v != nil && v.number == p.Visit {
		return v
	}
	return nil
}

// records is called with what the owner has committed.
func (l *link) records(_ context.Context, p *wireRecords) error {
	if l.visit(&p.wireSession) == nil {
		return nil
	}
	records := make([]engine.Record, 0, len(p.Records))
	for i := range p.Records {
		r, err := p.Records[i].record()
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	l.g.cfg.Log.Publish(p.Session, records)
	return nil
}

func (l *link) ask(_ context.Context, p *wireAsk) error {
	if v := l.visit(&p.wireSession); v != nil {
		return v.put(p)
	}
	return nil
}

func (l *link) asked(_ context.Context, p *wireAnswer) error {
	if v := l.visit(&p.wireSession); v != nil {
		v.withdraw(p.ID)
	}
	return nil
}

func (l *link) present(_ context.Context, p *wirePresent) error {
	if v := l.visit(&p.wireSession); v != nil {
		l.g.present.learn(v.id, v.peer, p.crowd, false)
	}
	return nil
}

func (l *link) ended(_ context.Context, p *wireSession) error {
	if v := l.visit(p); v != nil {
		v.over(0)
	}
	return nil
}

// A visit is a session that runs on another node, as long as somebody here watches it.
type visit struct {
	l      *link
	id     string
	number uint64 // of the visit; see wireOpen
	ctx    context.Context
	cancel context.CancelCauseFunc
	opened chan struct{} // closed when it is known whether the other node has the session
	err    error         // then; why it has not
	peer   *peer

	mu       sync.Mutex
	watchers map[*watcher]bool
	asks     map[string]*ask
	early    map[string]bool // questions that were withdrawn before the visit was opened; nil once it is
	idle     *time.Timer     // ends the visit
	calls    int             // prompts that the owner has not answered
	leaving  bool            // it ends when these are answered
}

var _ place = (*visit)(nil)

// visitIdle is how long a visit lasts that nobody needs.
const visitIdle = time.Minute

// visit visits a session on another node. begin is for a session that is new.
func (g *Gateway) visit(ctx context.Context, node, id string, begin bool) (*visit, error) {
	l, err := g.link(ctx, node)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	v := l.visits[id]
	first := v == nil
	if first {
		v = &visit{
			l: l, id: id, number: g.visitNumber(), opened: make(chan struct{}), peer: newPeer(true), watchers: make(map[*watcher]bool),
			asks: make(map[string]*ask), early: make(map[string]bool),
		}
		v.ctx, v.cancel = context.WithCancelCause(context.Background())
		l.visits[id] = v
	}
	l.mu.Unlock()
	if !first {
		select {
		case <-v.opened:
			return v, v.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	v.err = v.open(ctx, begin)
	v.mu.Lock()
	switch {
	case v.err != nil:
	case v.ctx.Err() != nil || l.conn.Err() != nil: // meanwhile
		v.err = errGone
	default:
		v.idle = time.AfterFunc(visitIdle, v.rest)
	}
	v.mu.Unlock()
	if v.err == nil {
		g.present.join(v.ctx, id, v.peer)
		g.work.Go(func() { g.inform(v.ctx, v.wire(), v.peer, l.conn) })
	}
	close(v.opened)
	if v.err != nil {
		v.end(v.err)
		v.depart() // the other node may have admitted it
		return nil, v.err
	}
	if l.conn.Err() != nil { // since then
		v.end(errGone)
	}
	return v, nil
}

// visitNumber returns the number of a visit that begins.
func (g *Gateway) visitNumber() uint64 {
	for {
		last := g.visits.Load()
		next := max(last+1, uint64(time.Now().UnixNano()))
		if g.visits.CompareAndSwap(last, next) {
			return next
		}
	}
}

// wire returns what messages about the visit begin with.
func (v *visit) wire() wireSession { return wireSession{v.id, v.number} }

// depart has the other node end the visit.
func (v *visit) depart() {
	p := v.wire()
	_ = rpcLeave.Notify(v.l.g.ctx, v.l.conn, &p)
}

func (v *visit) open(ctx context.Context, begin bool) error {
	rpc := rpcOpen
	if begin {
		rpc = rpcBegin
	}
	res, err := rpc.Call(ctx, v.l.conn, &wireOpen{v.wire(), v.l.g.self().Name})
	if err != nil {
		return fmt.Errorf("open the session on node %s: %w", v.l.node, err)
	}
	if err := res.Failure.err(); err != nil {
		return err
	}
	for i := range res.Asks {
		if err := v.put(&res.Asks[i]); err != nil {
			return err
		}
	}
	v.l.g.present.learn(v.id, v.peer, res.There, true)
	v.mu.Lock()
	v.early = nil
	v.mu.Unlock()
	return nil
}

// end ends the visit.
func (v *visit) end(err error) {
	v.cancel(err)
	v.l.g.present.part(v.id, v.peer)
	v.mu.Lock()
	if v.idle != nil {
		v.idle.Stop()
	}
	v.mu.Unlock()
	v.l.mu.Lock()
	defer v.l.mu.Unlock()
	if v.l.visits[v.id] == v {
		delete(v.l.visits, v.id)
	}
}

// overTime is how long an owner may take to say what has become of prompts after a session has left it.
const overTime = 3 * time.Second

// over is called when the session does not run at the owner any more, which has just answered some prompts. The visit
// ends when the others are answered, too: what the owner has not queued is sent to the next one.
func (v *visit) over(answered int) {
	v.mu.Lock()
	v.calls -= answered
	first := !v.leaving
	v.leaving = true
	last := v.calls == 0
	v.mu.Unlock()
	switch {
	case last:
		v.end(errGone)
	case first:
		end := time.AfterFunc(overTime, func() { v.end(errGone) })
		context.AfterFunc(v.ctx, func() { end.Stop() })
	}
}

// rest is called when nobody has needed the visit for a while.
func (v *visit) rest() {
	v.mu.Lock()
	needed := len(v.watchers) > 0
	if !needed {
		v.cancel(errGone)
	}
	v.mu.Unlock()
	if needed {
		return
	}
	v.end(errGone)
	v.depart()
}

func (v *visit) gone() <-chan struct{} { return v.ctx.Done() }

func (v *visit) enter(w *watcher) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx.Err() != nil {
		return errGone
	}
	v.watchers[w] = true
	return nil
}

func (v *visit) leave(w *watcher) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.watchers, w)
	if len(v.watchers) == 0 && v.ctx.Err() == nil && v.idle != nil {
		v.idle.Reset(visitIdle)
	}
}

// greeting is what the owner has kept.
func (v *visit) greeting(ctx context.Context) (greeting, error) { return v.l.g.greeting(ctx, v.id) }

func (v *visit) last(ctx context.Context) (uint64, error) {
	head, err := v.l.g.cfg.Log.Head(ctx, v.id)
	return head.Seq, err
}

// submit sends a prompt to the owner, whose answer is the end of its turn.
func (v *visit) submit(ctx context.Context, t *turn) (*turn, error) {
	content, err := json.Marshal(acpv2.PromptRequest{Prompt: t.content})
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	if v.leaving || v.ctx.Err() != nil {
		v.mu.Unlock()
		return nil, errGone
	}
	v.calls++
	t.ctx, t.cancel = context.WithCancelCause(v.ctx)
	if t.stopped != nil {
		t.cancel(t.stopped)
	}
	v.mu.Unlock()
	// The owner queues prompts in the order in which they are sent. A client that leaves waits no more for a node that reads
	// nothing.
	sending, cancel := context.WithCancel(v.ctx)
	stop := context.AfterFunc(ctx, cancel)
	call, err := rpcPrompt.Start(sending, v.l.conn, &wirePrompt{v.wire(), t.id, t.by, t.from, t.rank, t.operation, content, t.trace})
	stop()
	v.l.g.work.Go(func() {
		defer cancel()
		v.await(t, call, err)
	})
	return t, nil
}

// await waits until the owner has run a turn. err is why it was not sent there.
func (v *visit) await(t *turn, call *jsonrpc.Pending[wireEnd], err error) {
	defer t.cancel(nil)
	defer context.AfterFunc(t.ctx, func() {
		if from, stopped := stoppedBy(context.Cause(t.ctx)); stopped {
			_ = rpcCancel.Notify(v.ctx, v.l.conn, &wireCancel{v.wire(), t.id, t.by, from})
		}
	})()
	var res *wireEnd
	if err == nil {
		res, err = call.Wait()
	}
	if err == nil {
		err = res.Failure.err()
	}
	switch { // the log knows, or the next owner
	case v.ctx.Err() != nil, v.l.conn.Err() != nil:
		t.unqueued.Store(res != nil && res.Unqueued)
		v.end(errGone)
		return
	case errors.Is(err, errGone):
		t.unqueued.Store(res.Unqueued)
		v.over(1)
		return
	case res == nil:
		t.settle(turnEnd{err: err, refused: true})
	default:
		t.settle(turnEnd{stop: res.Stop, err: err, refused: res.Refused, seq: res.Seq, first: res.First})
	}
	v.mu.Lock()
	v.calls--
	last := v.leaving && v.calls == 0
	v.mu.Unlock()
	if last {
		v.end(errGone)
	}
}

func (v *visit) cancelRunning(by, from string, only acp.MessageID) {
	_ = rpcCancel.Notify(v.ctx, v.l.conn, &wireCancel{v.wire(), only, by, from})
}

func (v *visit) setOption(ctx context.Context, id acp.SessionConfigID, value acp.SessionConfigOptionValue) error {
	raw, err := json.Marshal(acpv2.SetSessionConfigOptionRequest{SessionID: acp.SessionID(v.id), ConfigID: id, Value: value})
	if err != nil {
		return err
	}
	res, err := rpcOption.Call(ctx, v.l.conn, &wireOption{v.wire(), raw})
	if err != nil {
		return err
	}
	return res.Failure.err()
}

// put is called with a question that is open.
func (v *visit) put(w *wireAsk) error {
	a, err := w.ask()
	if err != nil {
		return fmt.Errorf("question %s: %w", w.ID, err)
	}
	a.ctx, a.cancel = context.WithCancel(v.ctx)
	v.mu.Lock()
	if v.asks[a.id] != nil || v.early[a.id] {
		v.mu.Unlock()
		a.cancel()
		return nil
	}
	v.asks[a.id] = a
	watchers := slices.Collect(maps.Keys(v.watchers))
	v.mu.Unlock()
	for _, w := range watchers {
		if w.has(a.seq) { // the others are asked once they have come to it
			w.ask(a, a.seq)
		}
	}
	return nil
}

// withdraw is called with a question that is not open any more.
func (v *visit) withdraw(id string) {
	v.mu.Lock()
	a := v.asks[id]
	delete(v.asks, id)
	if v.early != nil && len(v.early) < engine.MaxRecords { // as many as a visit begins with
		v.early[id] = true
	}
	v.mu.Unlock()
	if a != nil {
		a.cancel()
	}
}

func (v *visit) question(id string) *ask {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asks[id]
}

func (v *visit) questions(upTo uint64) []*ask {
	v.mu.Lock()
	defer v.mu.Unlock()
	return openUpTo(v.asks, upTo)
}

func (v *visit) asking(a *ask) {
	_ = rpcAsking.Notify(v.ctx, v.l.conn, &wireAnswer{wireSession: v.wire(), ID: a.id})
}

func (v *visit) answered(a *ask, d decision) {
	_ = rpcAnswer.Notify(v.ctx, v.l.conn, &wireAnswer{v.wire(), a.id, d.by, &d})
}

func (v *visit) unanswered(a *ask) {
	_ = rpcAnswer.Notify(v.ctx, v.l.conn, &wireAnswer{wireSession: v.wire(), ID: a.id})
}
