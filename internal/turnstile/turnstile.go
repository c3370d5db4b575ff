// Package turnstile has callers do something one after the other, in the order in which
// they came, although each of them runs in a goroutine of its own.
package turnstile

import (
	"context"
	"sync"
)

// A Turnstile has one line for each key. The zero value is ready for use. Its methods
// may be called from any goroutine.
type Turnstile struct {
	mu   sync.Mutex
	last map[string]*Place
}

// A Place is a place in a line. Whoever has one calls Enter and then Leave, or Drop. Its
// methods may be called from any goroutine.
type Place struct {
	t     *Turnstile
	key   string
	ready chan struct{} // closed when nobody is before it any more

	// Guarded by t.mu:
	prev, next *Place // in the line; prev is nil for the first one
	taken      bool   // it was entered or dropped
}

// Come returns the last place of a line.
func (t *Turnstile) Come(key string) *Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &Place{t: t, key: key, ready: make(chan struct{}), prev: t.last[key]}
	if p.prev != nil {
		p.prev.next = p
	} else {
		close(p.ready)
	}
	if t.last == nil {
		t.last = make(map[string]*Place)
	}
	t.last[key] = p
	return p
}

// Enter waits until everybody before has left or dropped their places. It reports false
// if ctx is done before or the place was dropped; otherwise Leave must be called.
func (p *Place) Enter(ctx context.Context) bool {
	select {
	case <-p.ready: // also if ctx is done, too
	default:
		select {
		case <-p.ready:
		case <-ctx.Done():
			return false
		}
	}
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	taken := p.taken
	p.taken = true
	return !taken
}

// Leave lets the next one enter. It must be called once, after Enter.
func (p *Place) Leave() {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	p.remove()
}

// Drop gives up a place that was not entered; otherwise it does nothing. The next one
// still waits for those before.
func (p *Place) Drop() {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	if !p.taken {
		p.taken = true
		p.remove()
	}
}

// remove takes the place out of the line. The caller holds t.mu.
func (p *Place) remove() {
	switch {
	case p.next == nil && p.prev == nil:
		delete(p.t.last, p.key)
	case p.next == nil:
		p.t.last[p.key] = p.prev
	case p.prev == nil:
		close(p.next.ready)
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
	}
	p.prev, p.next = nil, nil
}
