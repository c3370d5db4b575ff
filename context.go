package acp

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// A lazyContext is a context that can be cancelled, as [context.WithCancelCause]
// makes them, but one that is made when somebody asks for it, by Done or Value: most
// turns end without that. parent, and values if it is not nil, are set before it is
// used; it must not be copied then.
type lazyContext struct {
	parent context.Context
	values context.Context // asked for what parent has not

	mu   sync.Mutex
	over error           // why it was cancelled, before there was one
	made context.Context // nil until then
	stop context.CancelCauseFunc
}

// cancel ends the context; the first cause counts.
func (l *lazyContext) cancel(cause error) {
	l.mu.Lock()
	if l.made == nil {
		if l.over == nil && l.parent.Err() == nil {
			l.over = cmp.Or(cause, context.Canceled)
		}
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.stop(cause)
}

// make returns what the context is made of.
func (l *lazyContext) make() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		parent := l.parent
		if l.over != nil {
			parent = context.WithoutCancel(parent) // its end came later
		}
		l.made, l.stop = context.WithCancelCause(parent)
		if l.over != nil {
			l.stop(l.over)
		}
	}
	return l.made
}

func (l *lazyContext) Deadline() (time.Time, bool) { return l.parent.Deadline() }

func (l *lazyContext) Done() <-chan struct{} { return l.make().Done() }

func (l *lazyContext) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.made != nil:
		return l.made.Err()
	case l.over != nil:
		return context.Canceled
	}
	return l.parent.Err()
}

// cause is [context.Cause] for less.
func (l *lazyContext) cause() error {
	if l.Err() == nil {
		return nil
	}
	return context.Cause(l)
}

// Value asks the context first: package context looks for parents in there.
func (l *lazyContext) Value(key any) any {
	if v := l.make().Value(key); v != nil || l.values == nil {
		return v
	}
	return l.values.Value(key)
}
