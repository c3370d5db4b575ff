package timeline

import "context"

// A Hook is a delivery outside of a handler, and its context. It knows which
// calls made inside wait for their response: see [Hook.Waiting].
type Hook struct {
	context.Context
	line *state

	// Guarded by the line's mu:
	calls int // that wait
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

// Running reports whether the delivery is not over.
func (h *Hook) Running() bool {
	h.line.mu.Lock()
	defer h.line.mu.Unlock()
	return !h.ended
}

// Waiting notes that a call made inside begins to wait for its response, or that
// it does not wait any more. While one waits, handlers do not.
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

// end notes that the delivery is over: calls that still wait do not belong to it.
// It is called with mu held.
func (h *Hook) end() {
	h.ended = true
	h.line.calls -= h.calls
}
