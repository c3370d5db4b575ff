package gateway

import (
	"context"
	"sync"
	"sync/atomic"
)

// flights let one caller at a time make something of a session. The zero value is ready for use.
type flights struct {
	mu sync.Mutex
	by map[string]*flight
}

// A flight is the making of something. Whoever makes it calls end.
type flight struct {
	f     *flights
	id    string
	ended chan struct{}
	stale atomic.Bool // the session was deleted meanwhile
}

// begin waits until nobody makes anything of a session, and begins.
func (f *flights) begin(ctx context.Context, id string) (*flight, error) {
	for {
		f.mu.Lock()
		other := f.by[id]
		if other == nil {
			if f.by == nil {
				f.by = make(map[string]*flight)
			}
			mine := &flight{f: f, id: id, ended: make(chan struct{})}
			f.by[id] = mine
			f.mu.Unlock()
			return mine, nil
		}
		f.mu.Unlock()
		select {
		case <-other.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *flight) end() {
	l.f.mu.Lock()
	delete(l.f.by, l.id)
	l.f.mu.Unlock()
	close(l.ended)
}

// spoil makes what is being made of a session stale: it must not be remembered. It is called before what is remembered is
// dropped.
func (f *flights) spoil(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.by[id]; l != nil {
		l.stale.Store(true)
	}
}
