package timeline

import "context"

// A Hook is a delivery outside of a handler, and its context. It counts the calls made in
// it that wait for their response: see [Hook.Waiting].
type Hook struct {
	context.Context
	line *state

	// Guarded by the line's mu:
	calls int // that wait for their response
	ended bool
}

type hookKey struct{}

// HookFrom returns the hook that ctx belongs to, which may have ended, or nil.
func HookFrom(ctx context.Context) *Hook {
	h, _ := ctx.Value(hookKey{}).(*Hook)
	return h
}

// Value returns the hook itself to [HookFrom].
func (h *Hook) Value(key any) any {
	if _, ok := key.(hookKey); ok {
		return h
	}
	return h.Context.Value(key)
}

// Owner returns the Owner of the hook's line.
func (h *Hook) Owner() any { return h.line.owner }

// Running reports whether the delivery has not ended.
func (h *Hook) Running() bool {
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	return !h.ended
}

// Waiting records that a call made in the hook begins to wait for its response, or that it
// has stopped waiting. While one waits, handlers do not.
func (h *Hook) Waiting(begins bool) {
	l := h.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.ended {
		return
	}
	n := 1
	if !begins {
		n = -1
	}
	h.calls += n
	l.calls += n
	l.notify()
}

// end records that the delivery has ended: calls that still wait no longer count.
// It is called with mu held.
func (h *Hook) end() {
	h.ended = true
	h.line.calls -= h.calls
}
