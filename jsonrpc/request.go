package jsonrpc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/internal/ondemand"
)

// A Request is a request or a notification on its way to a handler or, in
// outgoing middleware, to the peer. The connection does not reuse it. Middleware
// may replace Params by a value of the same type and must not change the other
// fields.
type Request struct {
	// Method is the method's name.
	Method string
	// ID is the id of an incoming request. It is absent in notifications and
	// outgoing messages.
	ID ID
	// Params points to the decoded params, or is a json.RawMessage where the
	// handler takes raw params.
	Params any
	// Lane is what [Config.Lane] returned for an incoming message.
	Lane string
	// Frame is the [Frame.Number] of what an incoming message came in.
	Frame uint64

	conn  *Conn
	flags requestFlags
	kind  entryKind    // of the entry around it
	state requestState // guarded by Conn.mu
	calls int32        // made inside the handler, and waiting; guarded by Conn.mu
	in    *inbound     // of incoming requests; nil otherwise
	route *route
	out   *outgoing
}

type requestFlags uint8

const flagNotification requestFlags = 1

// IsNotification reports whether no answer is expected.
func (r *Request) IsNotification() bool { return r.flags&flagNotification != 0 }

// Conn returns the connection the message came from or goes to.
func (r *Request) Conn() *Conn { return r.conn }

// Cancel cancels the context of an incoming request's handler with the given
// cause, before or while the handler runs; the handler is called in any case. If it
// then returns the context's error, the answer is the *Error in cause, or -32800 if
// there is none. Cancel may be called by any goroutine, repeatedly and late. For
// other messages it does nothing.
func (r *Request) Cancel(cause error) {
	if r.in != nil {
		r.in.cancel(cause)
	}
}

// Context returns the context of a message:
//
//   - For an incoming request it exists before the handler starts. It is done, at
//     the latest, when the request is finished in any way: answered, refused,
//     cancelled before it started, or dropped because the connection ended. So
//     what [Config.Preempt] registers about a request can be removed with
//     [context.AfterFunc].
//   - For a notification it is the context that all notifications share, which is
//     done when the connection ends.
//   - For an outgoing message it is context.Background().
func (r *Request) Context() context.Context {
	switch {
	case r.in != nil:
		return &r.in.entry
	case r.conn != nil && r.route != nil:
		return r.conn.noteCtx
	}
	return context.Background()
}

// OnDone is for protocol layers. It has f called with the cause when the context
// of an incoming request is done. It is a cheaper [context.AfterFunc] on
// [Request.Context]: f is called in the goroutine that ends the request, often the
// reader, and must be quick. A request has one such function, which
// [Config.Preempt] may register. forget keeps f from being called and reports
// whether it did so in time. For other messages OnDone does nothing.
func (r *Request) OnDone(f func(cause error)) (forget func() bool) {
	in := r.in
	if in == nil {
		return func() bool { return false }
	}
	in.mu.Lock()
	in.onDone = f
	in.mu.Unlock()
	if in.ctx.Err() != nil { // who ended it has perhaps not seen f
		go in.done()
	}
	return func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		inTime := in.onDone != nil
		in.onDone = nil
		return inTime
	}
}

// AfterAnswer is for protocol layers. The handler of an incoming request calls it
// to have f called once that handler has returned and its answer is in the output
// buffer, or could not be sent. Functions are called in the order in which they
// were given, in the handler's goroutine; they must be quick and must not end that
// goroutine. Clean-up that must happen however a request ends, even if its handler
// never starts, needs [Request.Context]. For other messages AfterAnswer does
// nothing.
func (r *Request) AfterAnswer(f func()) {
	in := r.in
	if in == nil {
		return
	}
	in.mu.Lock()
	if in.answered {
		in.mu.Unlock()
		f()
		return
	}
	defer in.mu.Unlock()
	if first := in.after; first != nil {
		in.after = func() { first(); f() }
	} else {
		in.after = f
	}
}

// Answer is for protocol layers. It answers an incoming request in place of its
// handler, which runs, so that a handler can be given up. Any goroutine may call
// it. To the connection the request is finished then: its
// context is done, the handler counts as returned, nothing waits for it, and what
// it returns later, through middleware or not, is dropped. Functions given to
// AfterAnswer are called in the goroutine that calls Answer.
//
// Answer reports whether it answered. It does not if the handler has not started or
// has returned, after an earlier Answer, and for other messages.
func (r *Request) Answer(result any, err error) bool {
	return r.in != nil && r.conn.answerEarly(&r.in.entry, result, err)
}

// Proceed is for protocol layers. The handler of an incoming request calls it to have
// what comes after the request in its lane handled, if [Mux.InOrder] holds that back.
// Any goroutine may call it, repeatedly and late. For other messages it does nothing.
func (r *Request) Proceed() {
	if r.in != nil && r.in.proceed != nil {
		r.in.letGo.Do(func() { close(r.in.proceed) })
	}
}

// LetReplies is for protocol layers. The handler of an incoming request that [Mux.InOrder]
// holds in its place calls it before it waits for something that may depend on the peer:
// from then on responses pass the request. They still do not pass notifications. A
// response to a call that was made inside the handler passes in any case. Any goroutine
// may call LetReplies. For other messages it does nothing.
func (r *Request) LetReplies() {
	if r.in == nil || r.in.proceed == nil {
		return
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	r.in.passable = true
	if l := c.work.lanes[r.Lane]; l != nil && l.held == &r.in.entry {
		c.passHeld(l)
	}
}

// Continue is for protocol layers. The handler of an incoming request calls it,
// before it returns, to declare work that continues after the answer, for methods
// whose answer only says that something has begun. A connection that ends waits
// for such work as for a handler: after [Settings.Grace] it calls cancel with the
// cause, in a goroutine of its own, which may run beside done and return after it.
// done must be called when the work has ended; any goroutine may call it, repeatedly.
// If it never is, the end of the connection takes a few times Settings.Grace longer.
// The work does not count for [Settings.MaxRequests]: callers must bound it. For other
// messages Continue does nothing.
func (r *Request) Continue(cancel func(cause error)) (done func()) {
	c := r.conn
	if r.in == nil {
		return func() {}
	}
	c.mu.Lock()
	c.work.continued++
	c.mu.Unlock()
	stop := context.AfterFunc(c.requestCtx, func() { cancel(context.Cause(c.requestCtx)) })
	return sync.OnceFunc(func() {
		stop()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.work.continued--
		c.checkQuiet()
	})
}

// A Handler handles a message. The result of a request is a value that this
// package can encode (see [Conn.Call]); the result of a notification is ignored.
type Handler func(ctx context.Context, req *Request) (result any, err error)

// A Middleware wraps a handler, for incoming or for outgoing messages.
type Middleware func(Handler) Handler

func chain(h Handler, mw []Middleware) Handler {
	for i := len(mw) - 1; i >= 0; i-- {
		h = mw[i](h)
	}
	return h
}

// RequestFrom returns the incoming message to which a handler's ctx, or a context
// derived from it, belongs, or nil for other contexts.
func RequestFrom(ctx context.Context) *Request {
	if e, ok := ctx.Value(entryKey{}).(*entry); ok {
		return &e.Request
	}
	return nil
}

type entryKey struct{}

// entry is what travels through the lanes: a notification, a request or the
// response of a call. It is also the context of the handler, so that a
// notification costs no allocation of its own: entries come from slabs and are
// never reused, so a context may outlive its handler.
//
// What Params holds is the handler's, but for two: the *call of a response, and
// keptText in place of what has to be decoded again.
type entry struct {
	Request
	next   *entry
	charge int
}

// keptText is params kept as text while the queue is long.
type keptText []byte

// inbound is the entry of a request. It is not in a slab, so that requests,
// which may run for long, keep nothing but themselves alive.
type inbound struct {
	entry

	mu       sync.Mutex
	after    func()            // to run when it has been answered, or nil
	answered bool              // it has been
	onDone   func(cause error) // see Request.OnDone; nil once it was taken
	proceed  chan struct{}     // closed by letGo, see Request.Proceed; nil unless the lane waits
	letGo    sync.Once
	passable bool             // see Request.LetReplies; guarded by the connection's mu
	ctx      ondemand.Context // most handlers answer without asking for it
}

// cancel ends the request's context; the first cause counts.
func (in *inbound) cancel(cause error) {
	in.ctx.Cancel(cause)
	in.done()
}

// done calls what OnDone was given, once.
func (in *inbound) done() {
	in.mu.Lock()
	f := in.onDone
	in.onDone = nil
	in.mu.Unlock()
	if f == nil {
		return
	}
	if in.ctx.Made() {
		// The end of the connection reaches it a moment after the context that it was made from.
		<-in.ctx.Done()
	}
	f(in.ctx.Cause())
}

// endRequests calls what OnDone was given for all requests, when their contexts are
// done.
func (c *Conn) endRequests() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.work.inbound))
	c.mu.Unlock()
	for _, e := range all {
		e.in.done()
	}
}

type entryKind uint8

const (
	kindNotification entryKind = iota
	kindRequest
	kindResponse
)

type requestState uint8

const (
	requestQueued requestState = iota
	requestRunning
	requestCancelled // answered while it was queued
	requestDone      // the handler has returned
	requestGivenUp   // answered while the handler runs
)

// text returns the params if they were kept as text, and otherwise nil.
func (e *entry) text() keptText {
	t, _ := e.Params.(keptText)
	return t
}

// call returns the call of a response.
func (e *entry) call() *call { return e.Params.(*call) }

// complete lets the caller of Call continue with a response that was queued. The
// caller holds the connection's mu.
func (e *entry) complete() {
	cl := e.call()
	cl.complete(cl.err)
}

// early reports whether the entry may have to be dealt with ahead of its turn,
// while the handler that is before it waits in a call.
func (e *entry) early() bool {
	return e.kind == kindRequest || e.kind == kindResponse && e.call().token != nil
}

// The following make an entry the context of its handler.

func (e *entry) Deadline() (time.Time, bool) { return e.conn.cfg.BaseContext.Deadline() }

func (e *entry) Done() <-chan struct{} {
	if e.in != nil {
		return e.in.ctx.Done()
	}
	return e.conn.noteCtx.Done()
}

func (e *entry) Err() error {
	if e.in != nil {
		return e.in.ctx.Err()
	}
	return e.conn.noteCtx.Err()
}

// Value also finds the entry behind a handler's context.
func (e *entry) Value(key any) any {
	if _, ok := key.(entryKey); ok {
		return e
	}
	if e.in != nil {
		return e.in.ctx.Value(key) // what package context asks for, above all
	}
	return e.conn.noteCtx.Value(key)
}

// fifo is a queue of entries.
type fifo struct{ head, tail *entry }

func (q *fifo) push(e *entry) { q.pushAll(e, e) }

// pushAll adds entries that are linked to each other already.
func (q *fifo) pushAll(first, last *entry) {
	if q.tail == nil {
		q.head = first
	} else {
		q.tail.next = first
	}
	q.tail = last
}

func (q *fifo) pop() *entry {
	e := q.head
	if e != nil {
		if q.head = e.next; q.head == nil {
			q.tail = nil
		}
		e.next = nil // an entry that is kept must not keep those behind it
	}
	return e
}
