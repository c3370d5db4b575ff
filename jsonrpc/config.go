package jsonrpc

import (
	"context"
	"log/slog"
	"time"
)

// Defaults of the bounds in [Config].
const (
	DefaultMaxQueued    = 32 << 20
	DefaultMaxRequests  = 256
	DefaultGrace        = time.Second
	DefaultFlushTimeout = 5 * time.Second
)

// cancelMethod is the notification that cancels a request (S36).
const cancelMethod = "$/cancel_request"

// A Config says how a [Conn] behaves. The zero value is useful: it answers
// every request with "method not found" and can make calls. It is copied by
// [NewConn]; the functions in it must be safe for concurrent use unless said
// otherwise.
type Config struct {
	// Mux finds the handlers of incoming requests and notifications. It must
	// not be changed once in use; nil handles nothing.
	Mux *Mux

	// Incoming middleware wraps the handling of every request and
	// notification that has a handler, Outgoing every call and notification
	// that is sent. The first element is the outermost. In Incoming, Params
	// is what the handler will get; in Outgoing it is what the caller gave.
	// There the result of a call is a pointer to what was decoded, a *R for
	// [Method.Call] and a *json.RawMessage for [Conn.Call], which middleware
	// may replace by another of the same type, and nil when there is an error.
	Incoming, Outgoing []Middleware

	// Lane names the timeline a message belongs to: see the package
	// documentation. For an incoming message params is what the handler will
	// get, a pointer to the decoded type or a json.RawMessage; for an
	// outgoing call it is what the caller gave, and the lane is that of the
	// call's response. It runs on the reader for incoming messages and must
	// be quick. Nil puts everything into one lane, "".
	Lane func(method string, params any) string

	// Waiting, when set, is told with its ctx that a call or a notification is
	// about to be sent, before which it may have to wait, and that a call has
	// its response or a notification is sent: true, then false. It runs where
	// the call is made, behind all middleware, and must be quick.
	Waiting func(ctx context.Context, begins bool)

	// Preempt sees every incoming request and notification that has a handler
	// and well-formed params, on the reader goroutine, in wire order, before
	// it is queued. It must not block. The request's context exists: Preempt
	// may keep the Request to cancel it later, and forget it again when
	// [Request.Context] is done, which happens in every ending. A non-nil
	// error refuses the message: it is the answer to a request; a notification
	// is dropped and reported.
	Preempt func(*Request) error

	// MaxFrame bounds incoming frames, in bytes; 0 means DefaultMaxFrame. A
	// larger frame is reported, and answered where an id can be read. The
	// streams of this package skip it to its end without keeping it; on other
	// streams it is dropped.
	MaxFrame int

	// MaxQueued bounds what was received but not yet handled, in bytes as
	// counted by the connection (see the package documentation); 0 means
	// DefaultMaxQueued. At the bound the connection stops reading. While a
	// handler waits for the response to a call of its own, or for room to
	// send, it reads on up to MaxQueuedHard, where such calls and sends fail
	// with ErrQueueFull. MaxQueuedHard is at least MaxQueued; 0 means twice
	// MaxQueued, or MaxQueued and twice MaxFrame if that is more, so that a
	// response of any size can be read.
	MaxQueued, MaxQueuedHard int

	// MaxRequests bounds the request handlers that run at once; 0 means
	// DefaultMaxRequests. Further requests wait in order. Handlers that wait
	// in a call made with their ctx are not counted.
	MaxRequests int

	// Grace is how long handlers may go on after the connection has begun to
	// end before their contexts are cancelled, and again how long they may
	// take to return after that; 0 means DefaultGrace. FlushTimeout bounds
	// writing what is left then; 0 means DefaultFlushTimeout.
	Grace, FlushTimeout time.Duration

	// Linger, when set, is called when the peer sends no more, and Grace begins
	// when it returns. It must return when ctx is done, which is when no
	// handler runs any more or the connection is closed; after another Grace
	// it is reported as abandoned and left behind. It should have a bound of
	// its own, and may call Close. It is for what takes long to begin with, such as
	// starting a program that handlers wait for.
	Linger func(ctx context.Context)

	// ExposeErrors sends the text of errors that are not an *Error to the
	// peer, in the details member of the error's data. By default the peer
	// only gets a correlation id.
	ExposeErrors bool

	// BaseContext is the parent of all handler contexts; nil means
	// context.Background(). Cancelling it does not close the connection.
	BaseContext context.Context

	// Logger gets what goes wrong: handler errors and panics, and malformed
	// messages by method, code and path. It never gets params, results or
	// other payload. If it is nil, errors and panics of handlers go to
	// [slog.Default], and what is noticed on the wire is discarded.
	Logger *slog.Logger

	// Diagnose, when set, is told what the connection noticed and survived.
	// It runs on whatever goroutine noticed it and must not block.
	Diagnose func(Event)
}

// An EventKind says what a connection noticed.
type EventKind uint8

// Kinds of events.
const (
	EventNoise                 EventKind = iota + 1 // a line that is not JSON at all; Data holds its beginning
	EventInvalidFrame                               // a frame that is not a message, answered with Code; Data holds its beginning
	EventFrameTooLarge                              // a frame beyond the limit was skipped; Size is its length
	EventUnknownNotification                        // a notification nobody handles
	EventMalformedNotification                      // a notification with wrong params; Path and Reason say why
	EventRefusedNotification                        // a notification that Preempt refused
	EventMalformedRequest                           // a request with wrong params; Path and Reason say why
	EventUnknownResponse                            // a response to nothing we asked
	EventMalformedResponse                          // a response that failed its call, or would have
	EventHandlerError                               // a notification handler failed with Err, or a request handler with an error the peer does not see
	EventDiscarded                                  // Count messages were dropped because the connection was closed on this side
	EventAbandoned                                  // Count handlers ignored their cancelled context and were left behind
	EventTooDeep                                    // a message nested beyond the limit was dropped; Size is its length
)

// An Event is something a connection noticed and survived. Which fields are
// set depends on the kind. None but Data ever holds anything the peer sent
// besides the method and member names.
type Event struct {
	Kind   EventKind
	Method string
	Code   int
	Path   string
	Reason string
	Size   int64
	Count  int
	Err    error
	Data   []byte // of noise and invalid frames: the first bytes, at most 1 kB, valid during the call
}

// Stats counts what a connection has seen since it was made.
type Stats struct {
	FramesIn, FramesOut uint64
	Noise               uint64 // lines that were not JSON
	Invalid             uint64 // frames answered with an error because they were no message
	Oversize            uint64 // frames skipped for their size
	TooDeep             uint64 // messages dropped for their nesting
	Replaced            uint64 // invalid UTF-8 sequences and lone surrogates replaced by U+FFFD
	Writes              uint64 // writes to the stream
}
