// Package timeline delivers what arrives about one subject in one order: the items
// of a stream, what the program posts between them, and the places at which
// responses stand among them.
//
// It is for a layer that is handed items in order, but learns of a response only
// that everything ahead of it has been handled, not that nothing behind it has.
// So items are counted twice: when they arrive, by the reader, and when they are
// delivered. A response leaves a [Mark], also on the reader, which notes how many
// items had arrived. The mark is next once as many have been delivered, and then
// holds up everything behind it until its caller has said what to deliver in its
// place.
//
// An item is delivered by its own handler, which waits until it is the item's
// turn: so it keeps its place in the order of the layer below, and a peer that is
// too fast is slowed down. Two kinds of deliveries happen outside of handlers:
// what is posted and what stands in the place of a mark. A hook that runs there
// and makes a call could wait for a response that is held up by the handler of
// the next item. Therefore, while a call of such a [Hook] waits, handlers hand
// their items over to the queue and return, up to [MaxHandover] of them.
package timeline

import (
	"context"
	"sync"
	"sync/atomic"
)

// MaxHandover is how many items may wait in the queue before handlers wait
// themselves.
const MaxHandover = 4096

// Config is what a [Line] works with. It must not be changed once the line is
// used.
type Config[T any] struct {
	// Deliver is called with every item, one at a time and in order, without any
	// lock held. It may end its goroutine.
	Deliver func(ctx context.Context, item T)
	// Context is the parent of the contexts of deliveries outside of handlers.
	// Once it is done no handler waits any more.
	Context context.Context
	// Spawn runs f in another goroutine, or returns false.
	Spawn func(f func()) bool
	// Detours says that other calls may be made between the arrival of a response
	// and the return of the call it answers. While nothing is being delivered,
	// handlers then hand their items over rather than wait for a mark: the
	// response of such another call may be held up by them.
	Detours bool
	// Owner is returned by [Hook.Owner].
	Owner any
}

// A Line is one timeline. It is made by [Line.Init], must not be copied, and is
// safe for concurrent use.
//
// Five counters say how far it is:
//
//	arrived    items that have arrived; counted by the reader, without a lock
//	entered    calls of Handle, to notice a handler that makes none
//	delivered  items whose delivery has begun, or that were lost
//	posted     items that were posted
//	begun      posted items whose delivery has begun
//
// A mark notes arrived and posted, and is next when delivered and begun have
// reached these.
type Line[T any] struct {
	arrived atomic.Uint64
	cfg     Config[T]
	state
	entered   uint64
	delivered uint64
	posted    uint64
	begun     uint64
	marks     []*Mark[T]
	queue     []entry[T] // items that were handed over or posted, and gaps
}

// state is what a line shares with its hooks.
type state struct {
	owner   any
	mu      sync.Mutex    // guards everything but arrived
	busy    bool          // somebody delivers
	hook    *Hook         // in which, if that is outside of a handler
	calls   int           // of hooks, that wait
	changed chan struct{} // closed when one of these changes; nil when nobody waits
}

// entry is something to deliver, or to pass over.
type entry[T any] struct {
	kind entryKind
	item T
	lost uint64        // of a gap: how many items are missing
	done chan struct{} // closed when it is over; may be nil
}

type entryKind uint8

const (
	entryArrived entryKind = iota // an item that arrived
	entryPosted                   // an item that was posted
	entryMark                     // the item of a mark
	entryGap                      // nothing
)

// Init makes the line ready for use.
func (l *Line[T]) Init(cfg Config[T]) {
	l.cfg, l.owner = cfg, cfg.Owner
}

// Start gives a line that nobody uses yet its beginning: the mark m, which may be
// nil, and behind it the items whose handlers have run already, the last of which
// were lost. arrived is how many items have arrived, with those whose handlers
// have not run.
func (l *Line[T]) Start(m *Mark[T], arrived uint64, items []T, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m != nil {
		l.marks = append(l.marks, m)
	}
	l.arrived.Store(arrived)
	for _, item := range items {
		l.queue = append(l.queue, entry[T]{item: item})
	}
	if lost > 0 {
		l.queue = append(l.queue, entry[T]{kind: entryGap, lost: lost})
	}
}

// Arrived counts items that have arrived. It is called on the reader. Each one
// needs a call of [Line.Handle] afterwards: see [Line.Account].
func (l *Line[T]) Arrived(n uint64) { l.arrived.Add(n) }

// Handle delivers an item that has arrived. It is called by the item's handler,
// with its ctx, and returns when the item was delivered or handed over.
func (l *Line[T]) Handle(ctx context.Context, item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered++
	for {
		if l.pending() {
			l.drain(ctx, true)
		}
		if !l.busy && !l.pending() {
			l.delivered++
			l.run(ctx, nil, item, nil)
			if l.pending() {
				l.drain(ctx, true)
			}
			return
		}
		if l.handsOver() || ctx.Err() != nil || l.cfg.Context.Err() != nil {
			l.queue = append(l.queue, entry[T]{item: item})
			return
		}
		l.wait(ctx.Done(), l.cfg.Context.Done())
	}
}

// handsOver reports whether an item must not wait in its handler. It is called
// with mu held.
func (l *Line[T]) handsOver() bool {
	return (l.calls > 0 || !l.busy && l.cfg.Detours) && len(l.queue) < MaxHandover
}

// Account calls the handler of an item that has arrived. If that does not call
// [Line.Handle], the place of the item does not stay open.
func (l *Line[T]) Account(ctx context.Context, handler func()) {
	l.mu.Lock()
	before := l.entered
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.entered == before {
			l.entered++
			l.queue = append(l.queue, entry[T]{kind: entryGap, lost: 1})
			l.drain(ctx, true)
		}
	}()
	handler()
}

// Post adds an item that has not arrived: behind what was posted and handed over
// so far, and ahead of items whose handlers have not run. [Line.Kick] or
// [Line.Settle] has to be called next.
func (l *Line[T]) Post(item T) {
	l.mu.Lock()
	l.posted++
	l.queue = append(l.queue, entry[T]{kind: entryPosted, item: item})
	l.mu.Unlock()
}

// Kick has another goroutine do what [Line.Settle] does. It is for callers that
// hooks must not run in, since they may hold locks of the application.
func (l *Line[T]) Kick() {
	if !l.cfg.Spawn(l.Settle) {
		l.Settle()
	}
}

// Settle delivers what can be delivered, unless somebody else does.
func (l *Line[T]) Settle() {
	l.mu.Lock()
	defer l.mu.Unlock() // also if a delivery ends its goroutine
	l.drain(l.cfg.Context, false)
}

// Flush delivers what can be delivered, and waits while others do, until that is
// all and the marks are resolved, or until ctx is done.
func (l *Line[T]) Flush(ctx context.Context, marks ...*Mark[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil {
		l.drain(l.cfg.Context, false)
		if !l.busy && resolved(marks) {
			return
		}
		l.wait(ctx.Done(), nil)
	}
}

// Position returns how many items have been delivered, and whether something is
// being delivered.
func (l *Line[T]) Position() (delivered uint64, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delivered, l.busy
}

// Apart reports whether the delivery at hand is outside of a handler. Only
// Deliver may call it.
func (l *Line[T]) Apart() bool { return l.hook != nil }

// The following are called with mu held.

// pending reports whether something is to be delivered ahead of the next item.
func (l *Line[T]) pending() bool { return len(l.queue) > 0 || l.due() }

// due reports whether a mark is next.
func (l *Line[T]) due() bool {
	return len(l.marks) > 0 && l.marks[0].arrived <= l.delivered && l.marks[0].posted <= l.begun
}

// drain delivers what can be delivered, unless somebody else does. ctx is that of
// the handler it is called in, or that of the line.
func (l *Line[T]) drain(ctx context.Context, inHandler bool) {
	for !l.busy {
		e, ok := l.next()
		switch {
		case !ok:
			return
		case e.kind == entryGap:
			l.passed(e.done)
		case inHandler:
			l.run(ctx, nil, e.item, e.done)
		default:
			h := &Hook{Context: ctx, line: &l.state}
			l.run(h, h, e.item, e.done)
		}
	}
}

// next takes what is to be delivered next, if that is known.
func (l *Line[T]) next() (e entry[T], ok bool) {
	switch {
	case l.due():
		m := l.marks[0]
		if m.state == markPending {
			return e, false
		}
		l.marks = dropFirst(l.marks)
		e = entry[T]{kind: entryMark, item: m.item, done: m.Done}
		if m.state == markDiscarded {
			e.kind = entryGap
		}
		return e, true
	case len(l.queue) > 0:
		e = l.queue[0]
		l.queue = dropFirst(l.queue)
		switch e.kind {
		case entryArrived:
			l.delivered++
		case entryPosted:
			l.begun++
		case entryGap:
			l.delivered += e.lost
		}
		return e, true
	}
	return e, false
}

// run delivers an item, without mu, in the hook h or in a handler.
func (l *Line[T]) run(ctx context.Context, h *Hook, item T, done chan struct{}) {
	l.busy, l.hook = true, h
	l.mu.Unlock()
	defer func() { // also if the delivery ends its goroutine
		l.mu.Lock()
		l.busy = false
		if h != nil {
			h.end()
		}
		l.passed(done)
	}()
	l.cfg.Deliver(ctx, item)
}

// passed notes that an entry is over.
func (s *state) passed(done chan struct{}) {
	if done != nil {
		close(done)
	}
	s.notify()
}

// wait waits until something has changed, or one of the channels is closed.
func (s *state) wait(done, ended <-chan struct{}) {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.mu.Unlock()
	select {
	case <-changed:
	case <-done:
	case <-ended:
	}
	s.mu.Lock()
}

// notify wakes those who wait.
func (s *state) notify() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// dropFirst removes the first element of a queue. An empty one holds nothing.
func dropFirst[E any](queue []E) []E {
	if len(queue) == 1 {
		return nil
	}
	clear(queue[:1])
	return queue[1:]
}
