package jsonrpc

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/goacp/acp/internal/wire"
)

// A Method is a request with params of type P and a result of type R.
//
// Values are encoded and decoded as the package documentation says under "Values".
type Method[P, R any] struct {
	Name string
}

// Call sends the request and waits for its response: see [Conn.Call] for how that
// ends. Nil params are sent as {}, or left out if P is json.RawMessage.
func (m Method[P, R]) Call(ctx context.Context, c *Conn, params *P, opts ...CallOption) (*R, error) {
	res, err := c.do(ctx, m.Name, paramsOf(params), new(R), optionsOf(opts))
	if err != nil {
		return nil, err
	}
	r, ok := res.(*R)
	if !ok {
		return nil, typeError((*R)(nil), res)
	}
	return r, nil
}

// Handle registers the handler of the request in mux. Each request is handled in a
// goroutine of its own; see the package documentation for when it starts. The
// params are never nil: omitted and null ones are decoded as {}, or stay empty if
// P is json.RawMessage. They, and whatever they point to, belong to the handler. A
// nil result is sent as {}, or as null if R is json.RawMessage.
func (m Method[P, R]) Handle(mux *Mux, h func(ctx context.Context, params *P) (*R, error)) {
	mux.typed(m.Name, reflect.TypeFor[P](), reflect.TypeFor[R](), decodeNew[P], func(ctx context.Context, params any) (any, error) {
		p, ok := params.(*P)
		if !ok {
			return nil, typeError((*P)(nil), params)
		}
		r, err := h(ctx, p)
		if err != nil || r == nil {
			return nil, err
		}
		return r, nil
	})
}

// A Notification is a message with params of type P that is never answered.
type Notification[P any] struct {
	Name string
}

// Notify sends the notification: see [Conn.Notify].
func (n Notification[P]) Notify(ctx context.Context, c *Conn, params *P) error {
	return c.notify(ctx, n.Name, paramsOf(params), nil)
}

// NotifyIf is for protocol layers. It is Notify with [SendIf]: it calls f when it is
// the notification's turn to be sent, and fails with [ErrNotSent] if f returns
// false.
func (n Notification[P]) NotifyIf(ctx context.Context, c *Conn, params *P, f func() bool) error {
	return c.notify(ctx, n.Name, paramsOf(params), f)
}

// Handle registers the handler of the notification in mux. Notifications of a lane
// are handled one at a time, in wire order. An error is logged and reported to
// [Settings.Diagnose]; the peer does not learn of it.
func (n Notification[P]) Handle(mux *Mux, h func(ctx context.Context, params *P) error) {
	mux.typed(n.Name, reflect.TypeFor[P](), nil, decoderOf[P](), func(ctx context.Context, params any) (any, error) {
		p, ok := params.(*P)
		if !ok {
			return nil, typeError((*P)(nil), params)
		}
		return nil, h(ctx, p)
	})
}

func decoderOf[P any]() func(d *wire.Decoder) any {
	if f := wire.MakerOf[P](); f != nil {
		return f
	}
	return decodeNew[P]
}

func decodeNew[P any](d *wire.Decoder) any {
	p := new(P)
	decodeValue(d, p)
	return p
}

// What follows does not depend on the types at compile time: there are hundreds of methods, and each would have its copy.

// typed registers the handler of a request, or of a notification if result is nil.
func (m *Mux) typed(
	name string, params, result reflect.Type, decode func(*wire.Decoder) any, handle func(context.Context, any) (any, error),
) {
	r := &route{decode: decode, handle: handle}
	if params == reflect.TypeFor[json.RawMessage]() {
		r.none = newRaw
	}
	if result != nil {
		r.empty = emptyOf(result)
	}
	m.register(name, result == nil, r)
}

// newRaw returns what stands for omitted params that are raw.
func newRaw() any { return new(json.RawMessage) }

func paramsOf[P any](params *P) any {
	if params != nil {
		return params
	}
	return omitted(reflect.TypeFor[P]())
}

// omitted returns what is sent for nil params of a type.
func omitted(params reflect.Type) any {
	if isObject(params) {
		return emptyObject
	}
	return nil
}

// emptyOf returns what is sent for a nil result of a type: S14, S23.
func emptyOf(result reflect.Type) any {
	if isObject(result) {
		return emptyObject
	}
	return nullValue
}

func isObject(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return true
	}
	return false
}
