package acp

import (
	"context"
	"sync"
	"sync/atomic"
)

// proxyFresh holds back what comes from new sessions until their answers, which name
// them, have been passed on. The answer is in another lane than what follows it. The
// zero value is ready for use.
type proxyFresh struct {
	n  atomic.Int32 // sessions; most of the time there is none
	mu sync.Mutex
	m  map[string]chan struct{} // closed when the answer was passed on
}

// add is called when the answer arrives. It reports whether remove must be called.
func (f *proxyFresh) add(session string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.m[session]; ok {
		return false
	}
	if f.m == nil {
		f.m = map[string]chan struct{}{}
	}
	f.m[session] = make(chan struct{})
	f.n.Add(1)
	return true
}

// remove lets the session's messages pass.
func (f *proxyFresh) remove(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.m[session]; ok {
		close(c)
		delete(f.m, session)
		f.n.Add(-1)
	}
}

// wait waits until the client may know the session.
func (f *proxyFresh) wait(ctx context.Context, session string) {
	if f.n.Load() == 0 || session == "" {
		return
	}
	f.mu.Lock()
	c := f.m[session]
	f.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}
