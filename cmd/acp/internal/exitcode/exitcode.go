// Package exitcode names the exit statuses of the program. They are documented in docs/cli.md and
// never change their meaning.
package exitcode

import (
	"errors"
	"fmt"
)

// A Code is an exit status of the program.
type Code int

// The exit statuses.
const (
	Done       Code = 0  // what was asked for is done
	Failed     Code = 1  // something failed on this side
	Usage      Code = 2  // wrong flags, arguments or configuration; nothing was started
	Refused    Code = 3  // the agent refused the prompt
	Cancelled  Code = 4  // the turn was cancelled
	Denied     Code = 5  // a permission that the agent asked for was denied
	Agent      Code = 6  // the agent could not be started, or ended
	Protocol   Code = 7  // the agent answered with an error, or not in the protocol
	Timeout    Code = 8  // a time limit was reached
	Cost       Code = 9  // a limit of cost was reached
	Auth       Code = 10 // the agent requires a login, or the gateway another token
	Incomplete Code = 11 // the agent stopped at a limit of its own: tokens or requests
	Broken     Code = 12 // the agent did something that a rule denies, without asking
	Unanswered Code = 13 // the agent has no language model that could answer the prompt
	Empty      Code = 14 // the language model has ended its turn without an answer
)

// An Error is an error with the exit status of the program.
type Error struct {
	Code Code
	Err  error
}

// Error returns the text of the error below.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error below.
func (e *Error) Unwrap() error { return e.Err }

// With returns err with an exit status, and nil for nil.
func With(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Errorf is fmt.Errorf with an exit status.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Of returns the exit status that belongs to err: Done for nil, that of the
// outermost Error, and Failed if there is none.
func Of(err error) Code {
	if err == nil {
		return Done
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}
