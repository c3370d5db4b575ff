package jsonrpc

import (
	"context"
	"encoding/json"
)

// A Request is a message on its way to a handler, or, in outgoing middleware,
// on its way to the peer: a request or a notification. The connection does not
// reuse it. Middleware may replace Params by a value of the same type and must
// leave the other fields alone.
type Request struct {
	// Method is the method's name.
	Method string
	// ID is the id of an incoming request; it is absent in notifications and
	// in outgoing messages.
	ID ID
	// Params points to the decoded params, or is a json.RawMessage where the
	// handler takes raw params.
	Params any
	// Lane is what [Config.Lane] returned for an incoming message.
	Lane string

	conn  *Conn
	flags requestFlags
	kind  entryKind    // of the entry around it
	state requestState // guarded by Conn.mu
	calls int32        // made inside the handler, and waiting; guarded by Conn.mu
	in    *inbound     // nil but in incoming requests
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
// cause, before or while it runs; the handler is called in any case. If the
// handler then returns an error of the context, the answer is the *Error in
// cause if there is one and otherwise -32800. Cancel may be called from any
// goroutine, repeatedly and late. For other messages it does nothing.
func (r *Request) Cancel(cause error) {
	if r.in != nil {
		r.in.cancel(cause)
	}
}

// Context returns the context of an incoming request, which exists before its
// handler starts and is done, at the latest, when the request was dealt with in
// any way: answered, refused, cancelled before it started, or dropped because
// the connection ended. What Preempt registers about a request it may therefore
// remove with [context.AfterFunc]. For a notification it is the context that
// all notifications share, which is done when the connection ends; for an
// outgoing message it is context.Background().
func (r *Request) Context() context.Context {
	switch {
	case r.in != nil:
		return &r.in.entry
	case r.conn != nil && r.route != nil:
		return r.conn.noteCtx
	}
	return context.Background()
}

// AfterAnswer has f run when the handler of an incoming request has returned and
// its answer is in the output buffer, or could not be sent. It is for the handler
// itself, and for nothing but requests; functions run in the order in which they
// were given, in the handler's goroutine, which they must not end, and must be
// quick. What has to be done however a request ends, even if its handler never
// starts, needs [Request.Context].
func (r *Request) AfterAnswer(f func()) {
	if r.in == nil {
		return
	}
	if first := r.in.after; first != nil {
		r.in.after = func() { first(); f() }
	} else {
		r.in.after = f
	}
}

// A Handler handles a message. The result of a request is a value this package
// can encode (see [Conn.Call]); that of a notification is ignored.
type Handler func(ctx context.Context, req *Request) (result any, err error)

// A Middleware wraps a handler, for incoming or for outgoing messages.
type Middleware func(Handler) Handler

func chain(h Handler, mw []Middleware) Handler {
	for i := len(mw) - 1; i >= 0; i-- {
		h = mw[i](h)
	}
	return h
}

// RequestFrom returns the incoming message that a handler's ctx, or one derived
// from it, belongs to, or nil.
func RequestFrom(ctx context.Context) *Request {
	if e, ok := ctx.Value(entryKey{}).(*entry); ok {
		return &e.Request
	}
	return nil
}

type entryKey struct{}

// entry is what travels through the lanes: a notification, a request or the
// response of a call. It is also the context of a notification's handler, so
// that a notification costs no allocation of its own: entries come from slabs
// and are never reused, so a context may outlive its handler.
type entry struct {
	Request
	context.Context
	next   *entry
	raw    json.RawMessage // params kept as text while the queue is long
	call   *call           // the response's
	charge int
}

// inbound is the entry of a request. It is not in a slab, so that requests,
// which may run for long, keep nothing but themselves alive.
type inbound struct {
	entry
	cancel context.CancelCauseFunc
	after  func() // to run when it has been answered, or nil; the handler's
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
)

// early reports whether the entry may have to be dealt with ahead of its turn,
// while the handler that is before it waits in a call.
func (e *entry) early() bool {
	return e.kind == kindRequest || e.kind == kindResponse && e.call.token != nil
}

// Value finds the entry behind a handler's context.
func (e *entry) Value(key any) any {
	if _, ok := key.(entryKey); ok {
		return e
	}
	return e.Context.Value(key)
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
