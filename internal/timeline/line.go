// Package timeline delivers everything about one subject in one order: the items of a
// stream, items that the program posts between them, and responses in their places among
// them.
//
// It is made for a layer that receives items in order, but knows of a response only that
// everything before it has been handled, not that nothing after it has. Items are
// therefore counted twice: when they arrive, by the reader, and when they are delivered.
// For a response the reader places a [Mark], which records how many items had arrived.
// When that many have been delivered, the mark is next. It holds up everything after it
// until its caller has said what to deliver in its place.
//
// An item is delivered by its own handler, which waits for the item's turn. So the item
// keeps its place in the order of the layer below, and a peer that is too fast is slowed
// down. Two kinds of deliveries happen outside of handlers: posted items, and items in
// the place of a mark. If a hook that runs in such a delivery makes a call, the response
// could be held up by the handler of the next item. While a call of such a [Hook] waits,
// handlers therefore hand their items over to the queue and return, up to [MaxHandover]
// of them.
package timeline

import (
	"context"
	"sync"
	"sync/atomic"
)

// MaxHandover is the number of items that may be handed over to the queue. Handlers of
// further items wait.
const MaxHandover = 4096

// Config configures a [Line]. It must not be modified once the line is in use.
type Config[T any] struct {
	// Deliver is called with every item, one at a time and in order. No lock is held.
	// It may end its goroutine.
	Deliver func(ctx context.Context, item T)
	// Context is the parent of the contexts of deliveries outside of handlers. When it
	// is done, handlers stop waiting.
	Context context.Context
	// Spawn runs f in another goroutine, or returns false.
	Spawn func(f func()) bool
	// Detours says that other calls may be made between the arrival of a response and
	// the return of the call that it answers. Handlers, which might hold up the
	// responses of these calls, then hand their items over instead of waiting for a
	// mark while nothing is being delivered.
	Detours bool
	// Owner is returned by [Hook.Owner].
	Owner any
}

// A Line is one timeline. [Line.Init] makes it ready; it must not be copied. It is safe
// for concurrent use.
//
// Five counters describe its progress:
//
//	arrived    items that have arrived; counted by the reader, without a lock
//	entered    calls of Handle, to detect a handler that makes none
//	delivered  items whose delivery has begun, or that were lost
//	posted     items that were posted
//	begun      posted items whose delivery has begun
//
// A mark records arrived and posted. It is next when delivered and begun have reached
// these values.
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
	busy    bool          // something is being delivered
	hook    *Hook         // the hook it is delivered in, if that is outside of a handler
	calls   int           // calls made in hooks that wait for their response
	changed chan struct{} // closed when one of these changes; nil if nothing waits for it
}

// entry is something to deliver or to skip.
type entry[T any] struct {
	kind entryKind
	item T
	lost uint64        // in a gap: the number of missing items
	done chan struct{} // closed after the delivery; may be nil
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

// Start sets the beginning of a line that is not yet in use: the mark m, which may be nil,
// followed by the items whose handlers have already run, and then by lost items that are
// missing. arrived is the number of items that have arrived, including those whose
// handlers have not run.
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

// Arrived counts n items that have arrived. The reader calls it. [Line.Handle] must be
// called for each of them later: see [Line.Account].
func (l *Line[T]) Arrived(n uint64) { l.arrived.Add(n) }

// Handle delivers an item that has arrived. The item's handler calls it with its ctx. It
// returns when the item has been delivered or handed over.
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

// Account calls the handler of an item that has arrived. If the handler does not call
// [Line.Handle], Account skips the item's place.
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

// Post adds an item that has not arrived: after everything that was posted and handed
// over so far, and before items whose handlers have not run. The caller must call
// [Line.Kick] or [Line.Settle] next.
func (l *Line[T]) Post(item T) {
	l.mu.Lock()
	l.posted++
	l.queue = append(l.queue, entry[T]{kind: entryPosted, item: item})
	l.mu.Unlock()
}

// Kick calls [Line.Settle] in another goroutine. It is for callers in which hooks must not
// run, because they may hold locks of the application.
func (l *Line[T]) Kick() {
	if !l.cfg.Spawn(l.Settle) {
		l.Settle()
	}
}

// Settle delivers everything that can be delivered, unless another goroutine is doing so.
func (l *Line[T]) Settle() {
	l.mu.Lock()
	defer l.mu.Unlock() // also if a delivery ends its goroutine
	l.drain(l.cfg.Context, false)
}

// Flush delivers everything that can be delivered, and waits while other goroutines do,
// until nothing is left and the marks are resolved, or until ctx is done.
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

// pending reports whether something is to be delivered before the next item.
func (l *Line[T]) pending() bool { return len(l.queue) > 0 || l.due() }

// due reports whether a mark is next.
func (l *Line[T]) due() bool {
	return len(l.marks) > 0 && l.marks[0].arrived <= l.delivered && l.marks[0].posted <= l.begun
}

// drain delivers everything that can be delivered, unless another goroutine is doing so.
// ctx is that of the handler that calls it, or that of the line.
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

// next removes and returns the entry that is to be delivered next, if that is known.
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

// passed records that an entry has been delivered or skipped.
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

// notify wakes the goroutines in wait.
func (s *state) notify() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// dropFirst removes the first element of a queue. An empty queue keeps no memory.
func dropFirst[E any](queue []E) []E {
	if len(queue) == 1 {
		return nil
	}
	clear(queue[:1])
	return queue[1:]
}
