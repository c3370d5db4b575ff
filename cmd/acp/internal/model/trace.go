package model

import (
	"context"
	"net/http"
	"strings"
)

// A traceKey is that of a trace in a context.
type traceKey struct{}

// A traced context has a W3C trace context.
type traced struct{ parent, state string }

const maxTraceState = 512 // bytes

// WithTrace returns a context whose requests to providers belong to a trace: they have the
// headers traceparent and tracestate. What is not a trace is left out. Baggage is not
// handed on, since it may say more than a provider needs to know.
func WithTrace(ctx context.Context, parent, state string) context.Context {
	if !isParent(parent) {
		return ctx
	}
	if len(state) > maxTraceState || strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		state = ""
	}
	return context.WithValue(ctx, traceKey{}, traced{parent, state})
}

// isParent reports whether a text is a version, a trace, a span and flags, in hexadecimal
// digits of lower case.
func isParent(text string) bool {
	fields := strings.Split(text, "-")
	if len(fields) != 4 {
		return false
	}
	for i, n := range []int{2, 32, 16, 2} {
		if len(fields[i]) != n || strings.Trim(fields[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return true
}

// SetTrace adds the headers of the trace of a context, if it has one.
func SetTrace(ctx context.Context, h http.Header) {
	t, ok := ctx.Value(traceKey{}).(traced)
	if !ok {
		return
	}
	h.Set("Traceparent", t.parent)
	if t.state != "" {
		h.Set("Tracestate", t.state)
	}
}
