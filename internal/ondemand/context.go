// Package ondemand has contexts that are created when they are first used. Every request
// has a context, and most requests end before it is used: then it costs only the space of
// a [Context] (ADR 0016).
package ondemand

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// A Context is a context that can be cancelled, like those of [context.WithCancelCause].
// The underlying context is created when Done or Value is first called; Err and Cause do
// not need it. A Context is safe for concurrent use. Parent must be set before its first
// use, after which it must not be copied.
type Context struct {
	Parent context.Context

	mu   sync.Mutex
	over error           // the cause, if it was cancelled before made was created
	made context.Context // the underlying context; nil until it is created
	stop context.CancelCauseFunc
}

// Cancel ends the context. The first cause counts; nil means [context.Canceled].
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	if c.made == nil {
		if c.over == nil && c.Parent.Err() == nil {
			c.over = cmp.Or(cause, context.Canceled)
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.stop(cause) // calls functions that others have registered
}

// Made reports whether the underlying context was created.
func (c *Context) Made() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made != nil
}

// make returns the underlying context. It runs no foreign code if the parent is a context
// of package context.
func (c *Context) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		parent := c.Parent
		if c.over != nil {
			parent = context.WithoutCancel(parent) // its end came later
		}
		c.made, c.stop = context.WithCancelCause(parent)
		if c.over != nil {
			c.stop(c.over)
		}
	}
	return c.made
}

// Cause is [context.Cause] of the context.
func (c *Context) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return context.Cause(c.made)
	case c.over != nil:
		return c.over
	}
	return context.Cause(c.Parent)
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.Parent.Deadline() }

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} { return c.make().Done() }

// Err implements [context.Context].
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.over != nil:
		return context.Canceled
	}
	return c.Parent.Err()
}

// Value implements [context.Context]. The keys of package context, with which it looks for
// a parent, need the underlying context.
func (c *Context) Value(key any) any { return c.make().Value(key) }
