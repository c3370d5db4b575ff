package acp

import (
	"context"
	"slices"
	"sync"
)

// A gate lets one goroutine in at a time, in the order in which they came. It is
// a mutex whose callers can stop waiting.
type gate struct {
	mu      sync.Mutex // held for a moment only
	inside  bool
	waiting []chan struct{} // closed when it is somebody's turn
}

// enter waits for the caller's turn. If ctx is done first, it returns the cause.
// A gate that is free lets the caller in even then.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if !g.inside {
		g.inside = true
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	if i := slices.Index(g.waiting, turn); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.mu.Unlock()
	} else {
		g.mu.Unlock()
		g.leave() // it became the caller's turn meanwhile
	}
	return context.Cause(ctx)
}

// leave lets the next goroutine in.
func (g *gate) leave() {
	g.mu.Lock()
	if len(g.waiting) > 0 {
		close(g.waiting[0])
		g.waiting = slices.Delete(g.waiting, 0, 1)
	} else {
		g.inside = false
	}
	g.mu.Unlock()
}
