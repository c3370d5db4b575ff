// Package interrupt distinguishes one wish to end from two: some senders deliver the same signal
// twice.
package interrupt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// An Error is the cancellation cause of a context after a signal has asked the process to end. It matches
// [context.Canceled].
type Error struct{ Signal os.Signal }

// Error implements the error interface.
func (e *Error) Error() string { return fmt.Sprintf("cancelled: %v", e.Signal) }

// Is makes it match [context.Canceled], as the cause of a cancelled context should.
func (e *Error) Is(target error) bool { return target == context.Canceled }

// By returns the signal that has cancelled a context, or nil if there was none.
func By(ctx context.Context) os.Signal {
	if e, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return e.Signal
	}
	return nil
}

// Window is how long after a signal another one of the same kind expresses the same wish. GNU
// timeout signals its child and then the child's whole group, and shells pass on what the terminal
// has sent already; the second signal then follows within milliseconds. Nobody presses a key twice
// that fast and means two things by it.
const Window = 500 * time.Millisecond

// A Filter drops repeated signals. The zero value is ready to use, by one goroutine at a time.
type Filter struct {
	last map[os.Signal]time.Time
}

// Counts reports whether a signal that arrived at now is a wish of its own: the first of its kind,
// or one that came [Window] or more after the last one that counted.
func (f *Filter) Counts(s os.Signal, now time.Time) bool {
	if last, ok := f.last[s]; ok && now.Sub(last) < Window {
		return false
	}
	if f.last == nil {
		f.last = map[os.Signal]time.Time{}
	}
	f.last[s] = now
	return true
}
