package acp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// clientHandover bounds the updates of a session that are handed over to whoever
// delivers; beyond it their handler waits.
const clientHandover = 4096

// clientLine is the timeline of a session: its updates, in the order in which
// they arrived, and between them the places of responses.
//
// The engine hands updates over in order, but says of a response only that
// what arrived before it has been handled, not that nothing behind it has. So
// updates are counted as they arrive, on the reader, and again as they are
// delivered; a response marks the count at which it arrived, also on the
// reader. A mark is dealt with when as many updates have been delivered, and
// holds up the others until its caller has what it needs.
//
// The handler of an update delivers it, and waits until it can: so everything
// keeps its place in the engine's order, and an agent that is too fast is pushed
// back. Only while the hook that keeps the timeline busy makes a call from
// outside of a handler, whose response may be behind this handler, the update is
// handed over to whoever delivers.
type clientLine struct {
	_        [cacheLine]byte
	arrivals atomic.Uint64 // updates the reader has seen
	_        [cacheLine]byte

	mu        sync.Mutex
	busy      bool   // somebody delivers
	calls     int    // of hooks outside of handlers, that wait
	entered   uint64 // updates whose handler has run
	delivered uint64 // updates that were taken up
	posted    uint64 // things to do
	did       uint64 // of which were taken up
	marks     []*clientMark
	queue     []clientItem
	changed   chan struct{} // closed when one of these changes; nil when nobody waits
}

// cacheLine keeps apart what the reader and whoever delivers write all the time:
// two processors that take memory from each other are slower than one.
const cacheLine = 128

// clientMark is the place of a response.
type clientMark struct {
	at    uint64 // updates that arrived before it
	posts uint64 // things to do that were posted before it
	ready bool   // the following may be done
	then  func(ctx context.Context)
	reply *Reply        // is told that its answer is there; may be nil
	done  chan struct{} // closed when that was done; may be nil
}

// reached does what is to be done where the response stands.
func (m *clientMark) reached(ctx context.Context) {
	if m.done != nil {
		defer close(m.done)
	}
	if m.then != nil {
		m.then(ctx)
	}
	if r := m.reply; r != nil {
		r.s.answered(ctx, r)
	}
}

// dropFirst removes the first element of a queue. One that is empty holds nothing.
func dropFirst[T any](queue []T) []T {
	if len(queue) == 1 {
		return nil
	}
	clear(queue[:1])
	return queue[1:]
}

// clientItem is something to deliver: an update as it was received, or
// something to do.
type clientItem struct {
	v1   *acpv1.SessionNotification
	v2   *acpv2.UpdateSessionNotification
	do   func(ctx context.Context)
	skip uint64 // updates that are counted but were lost
}

// count is how many of the updates that arrived the item stands for.
func (it *clientItem) count() uint64 {
	if it.v1 != nil || it.v2 != nil {
		return 1
	}
	return it.skip
}

// update delivers an update in its turn. It is called by the handler of the
// update, with its ctx.
func (s *ClientSession) update(ctx context.Context, it clientItem) {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered++
	for {
		s.drain(ctx, true)
		if !l.busy && len(l.queue) == 0 && !l.due() {
			l.delivered += it.count()
			s.run(func() { s.deliver(ctx, it) })
			s.drain(ctx, true)
			return
		}
		if l.handsOver(s.conn) || ctx.Err() != nil || s.conn.ctx.Err() != nil {
			l.queue = append(l.queue, it)
			return
		}
		l.wait(ctx, s.conn.ctx.Done())
	}
}

// handsOver reports whether an update must not wait in its handler.
func (l *clientLine) handsOver(c *ClientConn) bool {
	// Middleware may make calls of its own before the one whose response is
	// marked returns.
	return (l.calls > 0 || !l.busy && c.middleware) && len(l.queue) < clientHandover
}

// wait waits until something has changed, or ended. It is called with mu held.
func (l *clientLine) wait(ctx context.Context, ended <-chan struct{}) {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	changed := l.changed
	l.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	case <-ended:
	}
	l.mu.Lock()
}

// notify wakes those who wait. It is called with mu held.
func (l *clientLine) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// run does part of a delivery. It is called with mu held, and does not hold it
// meanwhile. A hook that ends its goroutine must not keep the timeline busy.
func (s *ClientSession) run(f func()) {
	l := &s.line
	l.busy = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.busy = false
		l.notify()
	}()
	f()
}

// due reports whether a response is next, dealt with or not.
func (l *clientLine) due() bool {
	return len(l.marks) > 0 && l.marks[0].at <= l.delivered && l.marks[0].posts <= l.did
}

// drain delivers what can be delivered, unless somebody else does. It is called
// with mu held. ctx is that of the handler it is called in, or else that of the
// connection.
func (s *ClientSession) drain(ctx context.Context, handler bool) {
	l := &s.line
	for !l.busy {
		var m *clientMark
		var it clientItem
		switch {
		case l.due():
			if m = l.marks[0]; !m.ready {
				return
			}
			l.marks = dropFirst(l.marks)
		case len(l.queue) > 0:
			it = l.queue[0]
			l.queue = dropFirst(l.queue)
			l.delivered += it.count()
			if it.do != nil {
				l.did++
			}
		default:
			return
		}
		next := func(ctx context.Context) {
			if m != nil {
				m.reached(ctx)
			} else {
				s.deliver(ctx, it)
			}
		}
		if handler {
			s.run(func() { next(ctx) })
			continue
		}
		h := &clientHook{Context: ctx, s: s}
		s.apart = true
		s.run(func() {
			defer h.end()
			next(h)
		})
	}
}

// clientHook stands for what is delivered outside of a handler, and is the context
// of that. It counts the calls that are made inside and wait.
type clientHook struct {
	context.Context
	s     *ClientSession
	calls int
	ended bool
}

type clientHookKey struct{}

func (h *clientHook) Value(key any) any {
	if _, ok := key.(clientHookKey); ok {
		return h
	}
	return h.Context.Value(key)
}

func clientHookFrom(ctx context.Context) *clientHook {
	h, _ := ctx.Value(clientHookKey{}).(*clientHook)
	return h
}

// runs reports whether the hook has not returned.
func (h *clientHook) runs() bool {
	h.s.line.mu.Lock()
	defer h.s.line.mu.Unlock()
	return !h.ended
}

// calling notes that a call begins to wait, or ends.
func (h *clientHook) calling(n int) {
	l := &h.s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if !h.ended {
		h.calls += n
		l.calls += n
		l.notify()
	}
}

// end notes that the hook has returned: what still waits does not keep it.
func (h *clientHook) end() {
	l := &h.s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	h.ended = true
	h.s.apart = false
	l.calls -= h.calls
}

// kick has somebody else deliver what can be delivered: hooks must not run
// where the application called a method, perhaps with its locks held.
func (s *ClientSession) kick() {
	if !s.conn.spawn(s.settle) {
		s.settle()
	}
}

// settle delivers what can be delivered, in a goroutine of the connection.
func (s *ClientSession) settle() {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock() // also if a hook ends its goroutine
	s.drain(s.conn.ctx, false)
}

// post does something in its turn: behind what was posted and handed over, and
// ahead of what has not been handled yet. Somebody has to kick then.
func (l *clientLine) post(do func(ctx context.Context)) {
	l.mu.Lock()
	l.posted++
	l.queue = append(l.queue, clientItem{do: do})
	l.mu.Unlock()
}

// place marks where a response stands. It is called on the reader, so that no
// update arrives meanwhile, or when it does not matter.
func (s *ClientSession) place(m *clientMark) {
	l := &s.line
	l.mu.Lock()
	m.at, m.posts = l.arrivals.Load(), l.posted
	l.marks = append(l.marks, m)
	l.mu.Unlock()
}

// resolve says what to do where the response stands.
func (s *ClientSession) resolve(m *clientMark, then func(ctx context.Context)) {
	l := &s.line
	l.mu.Lock()
	m.ready, m.then = true, then
	l.mu.Unlock()
	s.kick()
}

// ordered makes a call that concerns the session, and does something where its
// response stands among the updates, unless the call fails. The caller goes on
// when that is done; inside a hook, whose end it may have to wait for, at once.
func (s *ClientSession) ordered(ctx context.Context, call func(opt jsonrpc.CallOption) error, then func(ctx context.Context)) error {
	defer s.calling()()
	m := &clientMark{done: make(chan struct{})}
	placed := false
	err := call(jsonrpc.OnReply(func(any, error) {
		s.place(m)
		placed = true
	}))
	switch {
	case err == nil:
		if !placed { // answered by middleware
			s.place(m)
		}
		s.resolve(m, then)
		s.conn.await(ctx, m)
	case placed:
		s.resolve(m, nil)
	}
	return s.conn.explain(err)
}

// await waits until a mark was dealt with.
func (c *ClientConn) await(ctx context.Context, m *clientMark) {
	if c.inHook(ctx) {
		return
	}
	select {
	case <-m.done:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

// countUpdates is the outermost middleware where there is other middleware,
// which may swallow an update: its place must not stay open.
func (c *ClientConn) countUpdates(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method != methodSessionUpdate || !req.IsNotification() {
			return next(ctx, req)
		}
		s, ok := c.Session(SessionID(req.Lane))
		if !ok {
			return next(ctx, req)
		}
		l := &s.line
		l.mu.Lock()
		before := l.entered
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.entered == before {
				l.entered++
				l.queue = append(l.queue, clientItem{skip: 1})
				s.drain(ctx, true)
			}
		}()
		return next(ctx, req)
	}
}

// hookWaiting returns what notes that a hook outside of a handler waits.
func hookWaiting(c *ClientConn) func(ctx context.Context, begins bool) {
	return func(ctx context.Context, begins bool) {
		switch h := clientHookFrom(ctx); {
		case h == nil || h.s.conn != c:
		case begins:
			h.calling(1)
		default:
			h.calling(-1)
		}
	}
}
