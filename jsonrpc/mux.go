package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goacp/acp/internal/wire"
)

// A Mux is a table of methods. [Method.Handle] and [Notification.Handle] register
// handlers by exact name; a name may have both a request handler and a notification
// handler. Registering a name twice panics. The zero value is ready to use. A Mux
// may serve any number of connections at once, and must not be changed once one
// uses it.
type Mux struct {
	// StrictIDs refuses requests whose ids are neither strings nor integers, as
	// version 2 of ACP requires.
	StrictIDs bool

	// InOrder is for protocol layers. It has the handlers of requests start in the
	// order of their lane: what comes after a request waits until its handler calls
	// [Request.Proceed] or returns, or its context is done. So messages can be forwarded
	// in order. A handler that may need a response first calls [Request.LetReplies].
	// Requests that arrive while a notification handler of their lane waits in a call
	// do not wait for that handler.
	InOrder bool

	routes       map[string]*routes
	fallback     *route
	noteFallback *route
}

// routes is what a name stands for.
type routes struct {
	name          string
	request, note *route
}

// route is one handler.
type route struct {
	decode func(d *wire.Decoder) any
	none   func() any // what omitted and null params are; nil decodes {}
	handle func(ctx context.Context, params any) (any, error)
	empty  any           // what is sent for a nil result
	raw    Handler       // fallback: takes the whole message
	direct DirectHandler // called by the reader if nothing else of the lane is under way
	ready  func() bool   // whether direct may be called so
}

// DirectHandler is for protocol layers. It handles notifications: see [Mux.Direct].
type DirectHandler func(ctx context.Context, lane string, params []byte) error

// Direct is for protocol layers. It registers the handler of a notification that is
// forwarded: while nothing of its lane is queued or handled, and ready returns true, h is
// called by the reader, before that reads on, with the text of the params as it was
// received, which h must not change or keep. Otherwise h is called in the lane. h may wait for room in the output
// buffer of another connection, which keeps this one from reading, and for nothing else.
// Incoming middleware and [Config.Preempt] do not see what the reader hands over.
// Omitted params are nil.
func (m *Mux) Direct(name string, ready func() bool, h DirectHandler) {
	m.register(name, true, &route{
		decode: decodeNew[json.RawMessage],
		none:   newRaw,
		direct: h,
		ready:  ready,
		raw: func(ctx context.Context, r *Request) (any, error) {
			raw, _ := r.Params.(*json.RawMessage)
			if raw == nil {
				return nil, typeError((*json.RawMessage)(nil), r.Params)
			}
			return nil, h(ctx, r.Lane, *raw)
		},
	})
}

// Fallback registers the handler of requests that no other handler takes. Their
// Params is a json.RawMessage, nil if there are none. Without a fallback such
// requests are answered with -32601, as a fallback can do by returning
// [MethodNotFound]. Fallback panics if h is nil, and if there is a fallback
// already.
func (m *Mux) Fallback(h Handler) {
	if h == nil || m.fallback != nil {
		panic("jsonrpc: a nil or a second fallback")
	}
	m.fallback = rawRoute(h)
}

// FallbackNotification registers the handler of notifications that no other handler
// takes. Without one they are ignored and reported. FallbackNotification panics
// if h is nil, and if there is such a handler already.
func (m *Mux) FallbackNotification(h Handler) {
	if h == nil || m.noteFallback != nil {
		panic("jsonrpc: a nil or a second fallback for notifications")
	}
	m.noteFallback = rawRoute(h)
}

func rawRoute(h Handler) *route {
	return &route{decode: decodeRaw, none: func() any { return json.RawMessage(nil) }, raw: h}
}

func decodeRaw(d *wire.Decoder) any {
	return d.RawCopy()
}

// MethodNotFound returns the error that answers a request without a handler.
func MethodNotFound(method string) *Error {
	data, _ := wire.AppendRaw([]byte(`{"method":`), wire.AppendString(nil, method))
	return &Error{
		Code:    CodeMethodNotFound,
		Message: `"Method not found": ` + method,
		Data:    append(data, '}'),
	}
}

func (m *Mux) register(name string, note bool, r *route) {
	if name == "" {
		panic("jsonrpc: method without a name")
	}
	if m.routes == nil {
		m.routes = make(map[string]*routes)
	}
	e := m.routes[name]
	if e == nil {
		e = &routes{name: name}
		m.routes[name] = e
	}
	slot := &e.request
	if note {
		slot = &e.note
	}
	if *slot != nil {
		panic("jsonrpc: a second handler for " + name)
	}
	*slot = r
}

// find returns the handlers registered for the name, or nil.
func (m *Mux) find(name []byte) *routes {
	if m == nil {
		return nil
	}
	return m.routes[string(name)]
}

// route returns what handles a message of the name, nil meaning nothing.
func (e *routes) route(m *Mux, note bool) *route {
	if e != nil {
		if note && e.note != nil {
			return e.note
		}
		if !note && e.request != nil {
			return e.request
		}
	}
	switch {
	case m == nil:
		return nil
	case note:
		return m.noteFallback
	}
	return m.fallback
}

// call runs the handler.
func (r *route) call(ctx context.Context, req *Request) (any, error) {
	if r.raw != nil {
		return r.raw(ctx, req)
	}
	res, err := r.handle(ctx, req.Params)
	if res == nil && err == nil {
		res = r.empty
	}
	return res, err
}

// typeError is the error of middleware that replaced params or a result by a value
// of another type.
func typeError(want, got any) error {
	return fmt.Errorf("jsonrpc: params are %T instead of %T", got, want)
}

var (
	emptyObject any = json.RawMessage("{}")
	nullValue   any = json.RawMessage("null")
)
