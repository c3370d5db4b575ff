package acp

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/goacp/acp/jsonrpc"
)

// A Trace is a W3C trace context. It travels in _meta of requests, under the
// names traceparent, tracestate and baggage. The context of a handler or hook
// carries the trace of its request, and a request carries the trace of the
// context it is made with. Notifications, and so updates, carry none.
type Trace struct {
	Parent  string `json:"traceparent"`
	State   string `json:"tracestate,omitempty"`
	Baggage string `json:"baggage,omitempty"`
}

type traceKey struct{}

// WithTrace returns a context that carries a trace.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceFrom returns the trace that a context carries.
func TraceFrom(ctx context.Context) (Trace, bool) {
	t, ok := ctx.Value(traceKey{}).(Trace)
	return t, ok
}

// metaOf returns the field of params that is sent as _meta, if there is one.
func metaOf(params any) (v reflect.Value, ok bool) {
	v = reflect.ValueOf(params)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return v, false
	}
	f := v.Elem().FieldByName("Meta")
	return f, f.IsValid() && f.Type() == reflect.TypeFor[json.RawMessage]()
}

// traceIncoming adds the trace of a request to its context. Notifications are
// left alone: they are many, and must be cheap.
func traceIncoming(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if !req.IsNotification() {
			if meta, ok := metaOf(req.Params); ok && meta.Len() > 0 {
				var t Trace
				if json.Unmarshal(meta.Bytes(), &t) == nil && t.Parent != "" {
					ctx = WithTrace(ctx, t)
				}
			}
		}
		return next(ctx, req)
	}
}

// call makes a call with the trace of its context, if that has one.
func call[P, R any](ctx context.Context, m jsonrpc.Method[P, R], c *jsonrpc.Conn, params *P, opts ...jsonrpc.CallOption) (*R, error) {
	if t, ok := TraceFrom(ctx); ok {
		params = t.addTo(params).(*P)
	}
	return m.Call(ctx, c, params, opts...)
}

// start is call in two steps: see [jsonrpc.Method.Start].
func start[P, R any](ctx context.Context, m jsonrpc.Method[P, R], c *jsonrpc.Conn, params *P, opts ...jsonrpc.CallOption) (*jsonrpc.Pending[R], error) {
	if t, ok := TraceFrom(ctx); ok {
		params = t.addTo(params).(*P)
	}
	return m.Start(ctx, c, params, opts...)
}

// addTo returns a copy of params with the trace in its _meta, or params itself if
// it has no _meta or already has a trace.
func (t Trace) addTo(params any) any {
	meta, ok := metaOf(params)
	if !ok {
		return params
	}
	fields := map[string]json.RawMessage{}
	if meta.Len() > 0 && json.Unmarshal(meta.Bytes(), &fields) != nil || fields["traceparent"] != nil {
		return params
	}
	if fields == nil {
		fields = map[string]json.RawMessage{} // it was null
	}
	set := func(name, v string) {
		if v != "" {
			fields[name], _ = json.Marshal(v) // strings always encode
		}
	}
	set("traceparent", t.Parent)
	set("tracestate", t.State)
	set("baggage", t.Baggage)
	data, err := json.Marshal(fields)
	if err != nil {
		return params
	}
	changed := reflect.New(reflect.TypeOf(params).Elem())
	changed.Elem().Set(reflect.ValueOf(params).Elem())
	changed.Elem().FieldByName("Meta").SetBytes(data)
	return changed.Interface()
}
