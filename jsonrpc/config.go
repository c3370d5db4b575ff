package jsonrpc

import (
	"context"
	"log/slog"
	"time"
)

// DefaultGrace is how long handlers may continue when a connection ends, unless
// [Settings.Grace] sets another time.
const DefaultGrace = time.Second

// Defaults of the other bounds in [Settings]; see also [DefaultMaxFrame].
const (
	defaultMaxQueued    = 32 << 20
	defaultMaxRequests  = 256
	defaultFlushTimeout = 5 * time.Second
)

// cancelMethod is the notification that cancels a request (S36).
const cancelMethod = "$/cancel_request"

// A Config configures a [Conn]. The zero value is useful: it can make calls and
// answers every request with "method not found". [NewConn] copies it. Its
// functions must be safe for concurrent use unless they say otherwise.
type Config struct {
	// Settings are the bounds, the middleware and the diagnosis, which any
	// protocol leaves to its users.
	Settings

	// Mux finds the handlers of incoming requests and notifications; nil handles
	// nothing. It must not be changed once a connection uses it.
	Mux *Mux

	// Lane names the timeline of a message: see the package documentation. For
	// an incoming message, params is what the handler will get: a pointer to
	// the decoded type, or a json.RawMessage. For an outgoing call, params is
	// what the caller gave, and the lane is the one of its response. Lane is
	// called on the reader for incoming messages and must be quick. If it is
	// nil, all messages are in one lane, "".
	Lane func(method string, params any) string

	// Logger gets what goes wrong: errors and panics of handlers, and malformed
	// messages by method, code and path. It never gets params, results or other
	// payload. If it is nil, errors and panics of handlers go to
	// [slog.Default], and what is noticed on the wire is discarded.
	Logger *slog.Logger

	// Preempt is for protocol layers. It is called on the reader, in wire order
	// and before the message is queued, with every incoming request and
	// notification that has a handler and well-formed params. It must not
	// block. The request's context exists by then: Preempt may keep the Request
	// to cancel it later, until [Request.Context] is done, which happens
	// however the request ends. A non-nil error refuses the message: it is the
	// answer to a request; a notification is dropped and reported.
	Preempt func(*Request) error

	// Waiting is for protocol layers. It is called with begins == true before a
	// call or a notification is sent, which may block, and with false once the
	// call has its response or the notification is in the output buffer. ctx is
	// the caller's. It is called where the call is made, inside all middleware,
	// and must be quick.
	Waiting func(ctx context.Context, begins bool)

	// Linger is for protocol layers. It is called when the peer has closed its
	// direction, and Grace begins only when it returns, so that handlers can
	// wait for what takes long to begin, such as starting a program. It must
	// return when ctx is done, which is when no handler runs any more or the
	// connection is closed; after another Grace it is reported as abandoned and
	// left behind. It should have a bound of its own, and may call Close.
	Linger func(ctx context.Context)

	flushTimeout time.Duration // of tests
}

// Settings are the part of a [Config] that does not depend on the protocol: what
// package acp lets the users of an agent or a client choose, too. The zero value
// means the defaults. See the package documentation for how the bounds work
// together.
type Settings struct {
	// MaxFrame bounds incoming frames, in bytes; 0 means [DefaultMaxFrame]. A
	// larger frame is reported, and answered if its id can be read. The streams
	// of this package skip it without keeping it; on other streams it is
	// dropped.
	MaxFrame int

	// MaxQueued bounds what was received and not yet handled, in bytes as the
	// connection counts them; 0 means 32 MiB. At the bound the
	// connection stops reading.
	//
	// While a handler waits for the response to a call of its own, or for room
	// to send, the connection reads on up to MaxQueuedHard. Beyond that, such
	// calls and sends fail with [ErrQueueFull]. MaxQueuedHard is at least
	// MaxQueued; 0 means MaxQueued plus the larger of MaxQueued and twice
	// MaxFrame, so that a response of any size can be read.
	MaxQueued, MaxQueuedHard int

	// MaxRequests bounds the request handlers that run at once; 0 means
	// 256. Further requests wait in order. Handlers that wait
	// in a call made with their ctx do not count.
	MaxRequests int

	// Grace is how long handlers may continue once the connection has begun to
	// end, before their contexts are cancelled, and again how long they may
	// take to return after that; 0 means [DefaultGrace]. What is left to write
	// then may take 5 s.
	Grace time.Duration

	// Incoming middleware wraps the handling of every request and notification
	// that has a handler, Outgoing every call and notification that is sent.
	// The first element is the outermost. Params is what the handler will get
	// in Incoming, and what the caller gave in Outgoing. The result of an
	// outgoing call is a pointer to what was decoded: a *R for [Method.Call]
	// and a *json.RawMessage for [Conn.Call]. Middleware may replace it by
	// another of the same type. It is nil if there is an error.
	Incoming, Outgoing []Middleware

	// Diagnose, if set, is called with what the connection noticed and
	// survived. It is called on whatever goroutine noticed it and must not
	// block.
	Diagnose func(Event)

	// ExposeErrors sends the text of errors that are not an *Error to the
	// peer, in the member details of the error's data. By default the peer gets
	// a correlation id only.
	ExposeErrors bool

	// BaseContext is the parent of all handler contexts; nil means
	// context.Background(). Cancelling it does not close the connection.
	BaseContext context.Context
}

// An EventKind names what a connection noticed.
type EventKind uint8

// Kinds of events.
const (
	EventNoise                 EventKind = iota + 1 // a line that is not JSON; Data holds its beginning
	EventInvalidFrame                               // a frame that is not a message was answered with Code; Data holds its beginning
	EventFrameTooLarge                              // a frame beyond the limit was skipped; Size is its length
	EventUnknownNotification                        // a notification without a handler was ignored
	EventMalformedNotification                      // a notification with unfit params was ignored; Path and Reason say why
	EventRefusedNotification                        // Preempt refused a notification
	EventMalformedRequest                           // a request with unfit params was refused; Path and Reason say why
	EventUnknownResponse                            // a response to no call was ignored; Data is its id, in JSON
	EventMalformedResponse                          // a response was not valid, which fails its call
	EventHandlerError                               // a handler failed with Err, and the peer does not see that error
	EventDiscarded                                  // Count messages were dropped because the connection was closed on this side
	EventAbandoned                                  // Count handlers ignored their cancelled context and were left behind
	EventTooDeep                                    // a message nested too deeply was not decoded; Size is its length
)

// An Event is something a connection noticed and survived. Which fields are set
// depends on the kind. Apart from Data, they hold nothing the peer sent but names
// of methods and members.
type Event struct {
	Kind   EventKind
	Method string
	Code   int
	Path   string
	Reason string
	Size   int64
	Count  int
	Err    error
	Data   []byte // of noise and invalid frames: the first bytes; of a response to no call: its id. At most 1 kB, valid during the call
}

// Stats counts what a connection has read and written since it was made.
type Stats struct {
	FramesIn, FramesOut uint64
	Noise               uint64 // lines that were not JSON
	Invalid             uint64 // frames that were not messages, and answered with an error
	Oversize            uint64 // frames skipped for their size
	TooDeep             uint64 // messages not decoded for their nesting
	Replaced            uint64 // invalid UTF-8 sequences and lone surrogates replaced by U+FFFD
	Writes              uint64 // writes to the stream
}
