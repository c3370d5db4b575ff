package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/goacp/acp/internal/wire"
)

// Codes of JSON-RPC 2.0 and of ACP. Any other int32 may be used.
const (
	CodeParseError         = -32700 // the frame is not JSON
	CodeInvalidRequest     = -32600 // the frame is JSON but not a message
	CodeMethodNotFound     = -32601 // no handler for the request's method
	CodeInvalidParams      = -32602 // the params do not have the shape the method asks for
	CodeInternalError      = -32603 // the handler failed
	CodeRequestCancelled   = -32800 // the request was cancelled by its sender
	CodeAuthRequired       = -32000 // the sender has to authenticate first
	CodeResourceNotFound   = -32002 // a session or another resource does not exist
	CodeUnsupportedVersion = -32022 // the protocol version is not supported
)

// An Error is an error that the peer sent, or that a handler chose to send. Failures
// on this side of the connection are never of this type.
//
// A handler that returns an error whose chain holds an *Error answers with that
// code, message and data. errors.Is(err, &Error{Code: CodeAuthRequired}), or
// one of the Err variables below, compares codes only.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil if there is none
}

// Sentinels for errors.Is, which compares the code only. Handlers may also return
// them as they are.
var (
	ErrParse              = &Error{Code: CodeParseError, Message: "Parse error"}
	ErrInvalidRequest     = &Error{Code: CodeInvalidRequest, Message: "Invalid request"}
	ErrMethodNotFound     = &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	ErrInvalidParams      = &Error{Code: CodeInvalidParams, Message: "Invalid params"}
	ErrInternal           = &Error{Code: CodeInternalError, Message: "Internal error"}
	ErrRequestCancelled   = &Error{Code: CodeRequestCancelled, Message: "Request cancelled"}
	ErrAuthRequired       = &Error{Code: CodeAuthRequired, Message: "Authentication required"}
	ErrResourceNotFound   = &Error{Code: CodeResourceNotFound, Message: "Resource not found"}
	ErrUnsupportedVersion = &Error{Code: CodeUnsupportedVersion, Message: "Unsupported protocol version"}
)

// Errorf returns an Error with a formatted message and no data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithData returns a copy of e that carries v, encoded as JSON. A value that
// cannot be encoded leaves the data empty.
func (e *Error) WithData(v any) *Error {
	c := *e
	c.Data, _ = json.Marshal(v)
	return &c
}

// Error returns the message, the reason in the data, if any (see [Error.Detail]),
// the code, and the id under which the peer has logged the error, if the data has a
// correlationId.
func (e *Error) Error() string {
	code := strconv.Itoa(e.Code)
	if e.Message == "" {
		code = "error " + code
	}
	if id := e.correlationID(); id != "" {
		code += ", correlationId " + id
	}
	detail := e.Detail()
	switch {
	case e.Message != "" && detail != "":
		return e.Message + ": " + detail + " (" + code + ")"
	case e.Message != "":
		return e.Message + " (" + code + ")"
	case detail != "":
		return detail + " (" + code + ")"
	}
	return code
}

// RawError is for protocol layers. It is the error of a peer with its text: see
// [KeepError]. A handler that returns it answers with that text,
// unchanged. errors.As finds the [*Error] in it.
type RawError struct {
	Err  *Error
	Text json.RawMessage // the error object; must not be changed
}

// Error returns that of the peer's error.
func (e *RawError) Error() string { return e.Err.Error() }

// Unwrap returns the peer's error.
func (e *RawError) Unwrap() error { return e.Err }

// said reports whether an error is what the peer answered.
func said(err error) bool {
	switch err.(type) {
	case *Error, *RawError:
		return true
	}
	return false
}

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// AppendJSON appends the error object. Data that is not JSON is left out.
func (e *Error) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		n := len(dst)
		var err error
		if dst, err = wire.AppendRaw(append(dst, `,"data":`...), e.Data); err != nil {
			dst = dst[:n]
		}
	}
	return append(dst, '}'), nil
}

// MarshalJSON returns the error object as it is sent: code, message and, if there
// is any, data.
func (e Error) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON reads an error object, which must have an integer code and a string
// message.
func (e *Error) UnmarshalJSON(data []byte) error {
	var d wire.Decoder
	d.Reset(data, false)
	var v Error
	v.decodeJSON(&d)
	if err := d.Finish(); err != nil {
		return errors.New("jsonrpc: error object: " + err.Error())
	}
	*e = v
	return nil
}

// decodeJSON reads an error object: an integer code and a string message are
// required.
func (e *Error) decodeJSON(d *wire.Decoder) {
	at := d.Pos()
	var code, message bool // S32
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch string(k) {
		case "code":
			e.Code, code = int(d.Int64()), true
		case "message":
			e.Message, message = d.Str(), true
		case "data":
			e.Data = d.RawCopy()
		default:
			d.Skip()
		}
	}
	if !d.Bad() && !code {
		d.Missing(at, "code")
	}
	if !d.Bad() && !message {
		d.Missing(at, "message")
	}
}

// Local failures, all found with errors.Is.
var (
	// ErrClosed means that the connection has ended or is ending, whichever side
	// ended it. If it was the peer, the error also wraps io.EOF, or what reading
	// or writing returned.
	ErrClosed = errors.New("jsonrpc: connection closed")
	// ErrFrameTooLarge means that a frame exceeded [Settings.MaxFrame].
	ErrFrameTooLarge = errors.New("jsonrpc: frame too large")
	// ErrTooDeep means that a message is nested deeper than 512 objects and
	// arrays.
	ErrTooDeep = errors.New("jsonrpc: message nested too deeply")
	// ErrInvalidResponse means that the answer to a call was not a valid
	// response, or that its result could not be decoded.
	ErrInvalidResponse = errors.New("jsonrpc: invalid response")
	// ErrNotSent is for protocol layers. It is the error of a call or
	// notification whose [SendIf] function decided against sending it.
	ErrNotSent = errors.New("jsonrpc: not sent")
	// ErrQueueFull means that a call or a notification inside a handler was given
	// up because more arrived while it waited than may be kept: see
	// [Settings.MaxQueued].
	ErrQueueFull = errors.New("jsonrpc: too much queued while a handler waited")
)

// closedError is ErrClosed with a cause.
type closedError struct{ cause error }

func (e *closedError) Error() string { return ErrClosed.Error() + ": " + e.cause.Error() }

func (e *closedError) Is(target error) bool { return target == ErrClosed }

func (e *closedError) Unwrap() error { return e.cause }

func closedBy(cause error) error {
	if cause == nil || cause == ErrClosed {
		return ErrClosed
	}
	return &closedError{cause}
}

// ctxError names the call that a done ctx ended. errors.Is finds both the
// ctx's error and its cause.
func ctxError(ctx context.Context, method string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != nil && cause != err {
		return fmt.Errorf("jsonrpc: %s: %w: %w", method, err, cause)
	}
	return fmt.Errorf("jsonrpc: %s: %w", method, err)
}

// A FrameTooLargeError is the error of [Stream.ReadFrame] for a frame that exceeds
// the limit. The frame was skipped, so that the next one can be read.
// errors.Is(err, ErrFrameTooLarge) holds.
type FrameTooLargeError struct {
	Limit int
	Size  int64 // in bytes; the announced size if there is a header
	// Prefix is the beginning of the frame, up to 64 kB. It is valid until the
	// next ReadFrame, and nil in the errors that calls return.
	Prefix []byte
}

// Error returns the size and the limit.
func (e *FrameTooLargeError) Error() string {
	return fmt.Sprintf("jsonrpc: frame of %d bytes exceeds the limit of %d", e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrFrameTooLarge) hold.
func (e *FrameTooLargeError) Is(target error) bool { return target == ErrFrameTooLarge }
