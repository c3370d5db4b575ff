package jsonrpc

import (
	"errors"
	"fmt"
)

// ErrOutcomeUnknown is wrapped by the error of a call that the peer may have handled
// although its response will not arrive, because the connection ended, or the
// transport broke on the way. A caller that repeats such a call may have it carried out
// twice.
var ErrOutcomeUnknown = errors.New("outcome unknown: the peer may have handled the request")

// An UnansweredError is what ReadFrame of a [Stream] returns when one call will get
// no response although the stream can still be used: a transport that sends each
// message in a request of its own learns that one of them was not delivered. The
// connection fails that call, in the order of its lane, and reads on. It ignores an
// UnansweredError that names no call in flight.
//
// Callers do not see it: their error wraps Err, which should wrap
// [ErrOutcomeUnknown] unless it is certain that the peer has not got the request.
type UnansweredError struct {
	ID  []byte // the id of the request, as JSON text
	Err error  // why there is no response
}

// Error returns the reason.
func (e *UnansweredError) Error() string { return "jsonrpc: no response: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *UnansweredError) Unwrap() error { return e.Err }

// cutOffError is the error of calls that were made when the connection ended.
type cutOffError struct{ error }

// Unwrap returns why the connection ended, and ErrOutcomeUnknown.
func (e *cutOffError) Unwrap() []error { return []error{e.error, ErrOutcomeUnknown} }

// unanswered returns what an error of ReadFrame says of a single call.
func unanswered(err error) *UnansweredError {
	var u *UnansweredError
	errors.As(err, &u)
	return u
}

// fail fails a call that will get no response.
func (r *reader) fail(u *UnansweredError) {
	if cl, _, _ := r.lookup(u.ID); cl != nil {
		cl.reply = fmt.Errorf("jsonrpc: %s: %w", cl.method, u.Err)
		r.stageCall(cl, 0)
	}
}
