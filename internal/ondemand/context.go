// Package ondemand has contexts that are made when somebody asks for them. Every
// request has a context, and most requests end before anybody asks: then it costs
// nothing but the room for this (ADR 0016).
package ondemand

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// A Context is a context that can be cancelled, as [context.WithCancelCause] makes
// them. It is made when it is asked for Done or a value; Err and Cause do not need
// that. It is safe for concurrent use. Parent is set before it is used, and it must
// not be copied then.
type Context struct {
	Parent context.Context

	mu   sync.Mutex
	over error           // why it was cancelled, before there was one
	made context.Context // nil until then
	stop context.CancelCauseFunc
}

// Cancel ends the context; the first cause counts, and no cause is
// [context.Canceled].
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
	c.stop(cause) // runs what others have registered
}

// Made reports whether somebody has asked for it.
func (c *Context) Made() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made != nil
}

// make returns what the context is made of. Nothing that is called here runs foreign
// code if the parent is of package context.
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

// Value implements [context.Context]. What package context asks for, to find a
// parent, above all, is there only when it is made.
func (c *Context) Value(key any) any { return c.make().Value(key) }
