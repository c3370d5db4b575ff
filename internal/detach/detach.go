// Package detach calls functions of applications that are given a context and may
// ignore it, such as a hook that asks a user who has gone home. The caller continues as
// soon as the context is done. The function is left behind in a goroutine, which ends
// when the function returns. The number of such functions is bounded.
package detach

import (
	"context"
	"errors"
	"sync/atomic"
)

// Max bounds the calls of one [Calls] that have not returned, including those that
// nobody waits for any more.
const Max = 256

var (
	// ErrBusy is returned instead of calling a function when Max others run.
	ErrBusy = errors.New("too many hooks run")
	// ErrExited is returned for a function that ended its goroutine.
	ErrExited = errors.New("the hook ended its goroutine")
)

// Calls counts the functions that run. The zero value is ready. It is safe for
// concurrent use and must not be copied.
type Calls struct{ running atomic.Int32 }

// Running returns how many functions have been called and have not returned.
func (c *Calls) Running() int { return int(c.running.Load()) }

// Do calls f in a goroutine of its own and returns what f returns, or the error of ctx
// as soon as ctx is done; what f returns later is dropped. f must not panic.
func Do[T any](ctx context.Context, c *Calls, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if c.running.Add(1) > Max {
		c.running.Add(-1)
		return none, ErrBusy
	}
	done := make(chan result, 1)
	go func() {
		defer c.running.Add(-1)
		r := result{err: ErrExited}
		defer func() { done <- r }()
		value, err := f()
		r = result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
