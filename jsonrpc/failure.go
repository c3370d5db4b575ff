package jsonrpc

import (
	"encoding/json"
	"time"
)

// A Failure is an error of the application itself, such as a rate limit, in the form
// the other side can act on: on the wire it is an [Error] with a code of the range that
// JSON-RPC leaves to applications, and with the other fields in its data.
//
// A handler returns a *Failure as its error. The caller finds it with errors.As in the
// error of the call:
//
//	var failure *jsonrpc.Failure
//	if errors.As(err, &failure) { … }
//
// An error that the peer answered with is also an [*Error]. errors.As makes a new
// Failure of an Error each time.
type Failure struct {
	Code       int           // from -32099 to -32001, except for codes of the protocol; any other is sent as -32001
	Message    string        // for people
	Reason     string        // for programs, such as "rate_limit" or "quota"; "" means none
	RetryAfter time.Duration // when it may work again; 0 is unknown; sent in seconds
	Scope      string        // what it applies to, such as "account"; "" means unknown
}

// failureData is a Failure's data on the wire.
type failureData struct {
	Reason     string  `json:"reason,omitempty"`
	RetryAfter float64 `json:"retryAfter,omitempty"`
	Scope      string  `json:"scope,omitempty"`
}

const (
	failureFirst = -32099
	failureLast  = -32001
)

// failureCode reports whether a code is one for applications. Some of the range
// are the protocol's.
func failureCode(code int) bool {
	return code >= failureFirst && code <= failureLast &&
		code != CodeResourceNotFound && code != CodeUnsupportedVersion
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns what goes over the wire, an [*Error].
func (f *Failure) Unwrap() error {
	code := f.Code
	if !failureCode(code) {
		code = failureLast
	}
	return Errorf(code, "%s", f.Message).WithData(failureData{f.Reason, f.RetryAfter.Seconds(), f.Scope})
}

// As lets errors.As find a [*Failure] in an error with a code for applications.
func (e *Error) As(target any) bool {
	f, ok := target.(**Failure)
	if !ok || !failureCode(e.Code) {
		return false
	}
	v := &Failure{Code: e.Code, Message: e.Message}
	var data failureData
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &data) == nil {
		const longest = 1 << 31 // seconds; more than that is nonsense
		v.Reason, v.Scope = data.Reason, data.Scope
		v.RetryAfter = time.Duration(max(0, min(data.RetryAfter, longest)) * float64(time.Second))
	}
	*f = v
	return true
}
