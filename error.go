package acp

import (
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

var (
	// ErrTurnEnded is returned by sending through a [Turn], or through an [Output]
	// or a [ToolCallHandle] of one, after that turn has ended. What happens later
	// must be sent through the session: see [AgentSession].
	ErrTurnEnded = errors.New("acp: the turn has ended")
	// ErrSessionClosed is returned when a session is used after it was closed. If
	// its connection has ended, the error wraps [jsonrpc.ErrClosed] instead.
	ErrSessionClosed = errors.New("acp: the session is closed")
	// ErrFileChanged is returned by [Output.ReplaceFile] if the file is not what it was.
	ErrFileChanged = errors.New("acp: the file has changed")
	// ErrReopen is returned by a transport that can be opened only once.
	ErrReopen = errors.New("acp: the transport cannot be opened again")
	// ErrInitialize is wrapped by the error of [Client.Connect] when the agent's
	// initialize response is unusable: it has no version, a version that the client
	// does not speak, or capabilities that cannot be read.
	ErrInitialize = errors.New("acp: the agent's answer to initialize")

	// errNotBegun is returned by sending in an Accept hook.
	errNotBegun = errors.New("acp: the turn has not begun")
)

// ErrCancelled is the cause of a turn's context when the client cancelled the
// turn or closed its session: see [context.Cause].
var ErrCancelled = errors.New("acp: cancelled by the client")

// unsupportedError names what the peer did not advertise.
type unsupportedError struct {
	peer string // client or agent
	what string
}

func (e *unsupportedError) Error() string {
	return "acp: " + e.what + ": not advertised by the peer: " + errors.ErrUnsupported.Error()
}

func (e *unsupportedError) Unwrap() error { return errors.ErrUnsupported }

// unsupported is for what the agent did not advertise; clientLacks is for what
// the client did not.
func unsupported(what string) error { return &unsupportedError{"agent", what} }
func clientLacks(what string) error { return &unsupportedError{"client", what} }

// shownError is an error of this package that a peer may see, with the error that
// is sent to it.
type shownError struct {
	error
	told *jsonrpc.Error
}

func (e *shownError) Unwrap() []error { return []error{e.error, e.told} }

// shown lets the peer see errors that reveal nothing about the application: that
// the peer lacks something is no secret, and the user can act on it.
func shown(err error) error {
	lack, ok := errors.AsType[*unsupportedError](err)
	if !ok {
		return err
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	return &shownError{err, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the %s does not support %s", lack.peer, lack.what)}
}

// invalidParams is the answer to a request with an unacceptable field. It has the
// form that the engine gives to fields that do not decode.
func invalidParams(path, reason string) *jsonrpc.Error {
	return jsonrpc.ErrInvalidParams.WithData(map[string]string{"path": "params." + path, "reason": reason})
}

// SessionNotFound is the answer to a request about a session that the agent does
// not have. Hooks return it as their error. It wraps
// [jsonrpc.ErrResourceNotFound].
func SessionNotFound(id SessionID) error {
	return jsonrpc.ErrResourceNotFound.WithData(&acpv2.SessionNotFoundErrorData{SessionID: id})
}

// A Failure is an error of the application itself, such as a rate limit, in the form
// the other side can act on. A hook returns it as its error; errors.As finds it in what
// a call returns, if that is what the peer answered. See [jsonrpc.Failure].
//
//	type Failure struct {
//		Code       int           // from -32099 to -32001, except for codes of the protocol
//		Message    string        // for people
//		Reason     string        // for programs, such as "rate_limit" or "quota"
//		RetryAfter time.Duration // when it may work again; 0 is unknown
//		Scope      string        // what it applies to, such as "account"
//	}
type Failure = jsonrpc.Failure

// correlationID returns an id under which a log has what the peer is not told.
func correlationID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
