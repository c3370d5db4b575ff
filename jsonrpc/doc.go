// Package jsonrpc is a JSON-RPC 2.0 engine for peers that stream: both ends make
// calls and send notifications, over one [Stream], at the same time. It knows
// nothing of the Agent Client Protocol but was made for it.
//
// A [Conn] is one end of a connection. Calls are made with [Method.Call] and
// [Notification.Notify], or untyped with [Conn.Call] and [Conn.Notify];
// handlers are registered in a [Mux] by [Method.Handle] and
// [Notification.Handle]. Middleware, of one type for both directions, wraps
// either.
//
//	var echo = jsonrpc.Method[EchoRequest, EchoResponse]{Name: "_example/echo"}
//
//	mux := new(jsonrpc.Mux)
//	echo.Handle(mux, func(ctx context.Context, req *EchoRequest) (*EchoResponse, error) { … })
//	conn := jsonrpc.NewConn(jsonrpc.Stdio(), jsonrpc.Config{Mux: mux})
//	err := conn.Wait()
//
// # Order
//
// Incoming messages form one timeline per lane. The lane of a message is what
// [Config.Lane] makes of its method and params; the lane of a response is that
// of the call it answers. Within a lane:
//
//   - Notifications are handled one at a time, in the order in which they
//     arrived.
//   - A response completes its call after every notification that arrived
//     before it in the lane has been handled.
//   - A request starts after every notification that arrived before it in the
//     lane has been handled, and then runs concurrently with everything else,
//     in a goroutine of its own.
//
// Lanes never wait for each other. A lane exists only while something of it is
// queued or handled, so lanes cost nothing however many names there are.
//
// A notification handler may make calls. It must make them with the ctx it was
// given, or one derived from it: then, while the handler runs, the response is
// not held behind it but completes the call when it arrives. While it waits,
// what the peer may need first does not wait for it: requests of its lane
// start, and responses in its lane to calls that other handlers make, those of
// requests and of other lanes, complete at once. So handlers that wait for
// each other's lanes do not wait for each other. All other responses keep their
// place. A call with another ctx in the same lane would wait for the handler
// that waits for it.
//
// Outgoing messages of one goroutine are written in the order in which they
// were sent. An answer is written after everything its handler sent.
//
// # Preemption
//
// [Config.Preempt] sees requests and notifications on the reading goroutine, in
// wire order, before they are queued. The context of a request exists by then
// and can be cancelled through [Request.Cancel]. A notification that cancels
// something therefore always finds the request it is about, be it queued,
// running or not yet started. The notification $/cancel_request acts in the
// same place: it cancels the context of the request it names; one that has not
// started is answered with -32800 and never starts. Such cancellations overtake
// everything that is queued.
//
// # What is answered
//
// Every request is answered exactly once. A frame that is no JSON gets -32700,
// one that is JSON but no message, batches included, gets -32600, both with id
// null. Notifications and whatever looks like a response are never answered. A
// line that does not begin with { or [ and is not JSON either is taken for
// noise, such as a log message of the peer: it is counted, reported to
// [Config.Diagnose] and skipped. A method nobody handles gets -32601. Params
// that do not fit get -32602 with the path of the field and the reason in data,
// never with a value. A request whose id is already in flight gets -32600.
//
// A handler's [*Error], wrapped or not, is sent as it is. Any other error and a
// panic become -32603 with a correlation id; the text goes to [Config.Logger].
// A handler that returns its context's error after a $/cancel_request answers
// -32800, and -32603 after the connection has begun to end.
//
// Neither a panic nor runtime.Goexit in handlers, codecs, Lane, Preempt or
// OnReply harms more than the message at hand, nor does a panic in Diagnose or
// the Logger.
//
// # Bounds
//
// Incoming frames are bounded by [Config.MaxFrame], 64 MiB by default, on any
// stream. A larger frame is skipped without being kept and reported; the
// request or call it belongs to fails if an id can be read from its first
// 64 kB. Messages that are nested deeper than 512 objects and arrays are not
// decoded: a request is refused under its own id, a call fails with [ErrTooDeep],
// and each is reported as [EventTooDeep].
//
// What was received but not handled is bounded by [Config.MaxQueued], 32 MiB by
// default. A queued message counts 512 bytes and twice the length of its frame,
// since decoded values take more room than their text. While more than 4 MiB is
// queued, notifications with params of up to 16 kB are kept as text and decoded
// again when it is their turn, unless there is a Preempt, which may have kept
// them; these count 160 bytes and the length of their params. Beyond the bound,
// by at most 64 kB or one frame, the connection stops reading, so that the
// peer's writes block: nothing is dropped, and nobody is disconnected for being
// slow.
//
// While a handler waits for the response to a call made with its ctx, or for
// room in the output buffer, the peer may have to be read before it goes on. So
// reading then goes on, up to [Config.MaxQueuedHard]. There such calls, and
// sends of handlers that wait for room, fail with [ErrQueueFull], so that the
// handlers can end, and their answers go ahead. Two sides can block each other
// for good only when each has left more unread than all these bounds together:
// MaxQueuedHard of messages, and MaxQueued of answers to what it was sent.
//
// At most [Config.MaxRequests] request handlers run at once, 256 by default.
// Further requests wait in order, without holding up their lane, and count as
// queued. What else is read, cancellations first, is not behind them. A handler
// that waits in a call made with its ctx, on the same connection, is not one of
// those; instead it counts 8 kB as queued. The params of requests that run are
// not counted: they take up to MaxRequests times MaxFrame, and more.
//
// Output is collected in one buffer, so that many small messages become one
// write. Beyond 64 kB senders wait, as long as their ctx allows. On Linux a pipe
// into which 256 kB went in large pieces is made to hold as much, unless it does
// already, where the system allows it: the two sides then wait for each other
// less. No sender ever waits in a write to the stream. A message whose ctx was
// done before it was in the buffer is not sent; what is in the buffer is sent
// whole and in order. Cancellations of calls and answers may exceed the bound by
// 1 MiB. Beyond that cancellations are not sent and answers of handlers wait.
// The answers the engine gives by itself, and those of Preempt, may add
// MaxQueued; beyond that the connection stops reading.
//
// Calls that wait are bounded by the goroutines that make them. A call that was
// given up leaves nothing behind: its late response is recognised by its id
// alone. An idle connection keeps one goroutine and up to two parked workers.
//
// # Ending
//
// At EOF, calls whose response has arrived complete in order, and calls without
// one fail, each after the notifications that arrived in its lane, with an error
// that wraps [ErrClosed] and io.EOF. Queued notifications are handled to the
// end as long as they make progress. Request handlers, and what they continue
// after their answer ([Request.Continue]), get [Config.Grace] to finish before
// they are cancelled. Answers are still written: the peer may have closed one
// direction only. After a write error the same happens, but reading goes on for
// up to the grace, since the peer may have answered before it went away.
//
// [Conn.Close] does the same from this side, except that calls fail at once,
// what arrives is ignored, and what is still queued after the grace is dropped
// and reported. In any case the connection ends within a bounded time once
// nothing moves any more: a handler that ignores its cancelled context for
// another grace is reported and left behind. Then the stream is closed and
// [Conn.Done] is closed; no goroutine, file or timer of the connection is left.
//
// # Privacy
//
// Nothing that was received is logged but methods, codes, member names and
// sizes. The text of handlers' own errors is logged.
package jsonrpc
