// Package jsonrpc is a JSON-RPC 2.0 engine for peers that stream: both ends make
// calls and send notifications, over one [Stream], at the same time. It knows
// nothing of the Agent Client Protocol but was made for it.
//
// A [Conn] is one end of a connection. Calls are made with [Method.Call] and
// [Notification.Notify], or untyped with [Conn.Call] and [Conn.Notify].
// [Method.Handle] and [Notification.Handle] register handlers in a [Mux].
// A [Middleware] wraps either direction.
//
//	var echo = jsonrpc.Method[EchoRequest, EchoResponse]{Name: "_example/echo"}
//
//	mux := new(jsonrpc.Mux)
//	echo.Handle(mux, func(ctx context.Context, req *EchoRequest) (*EchoResponse, error) { … })
//	conn := jsonrpc.NewConn(jsonrpc.Stdio(), jsonrpc.Config{Mux: mux})
//	err := conn.Wait()
//
// # Values
//
// Params, results and the params of notifications may be of any type that
// encoding/json takes. Two kinds are faster:
//
//	type                              encoded by             decoded by
//	json.RawMessage                   as it is               as it is
//	the types of acpv1 and acpv2      AppendJSON             the engine, together with the frame
//	with AppendJSON                   AppendJSON             encoding/json
//	any other                         encoding/json          encoding/json
//
// AppendJSON is a method AppendJSON(dst []byte) ([]byte, error), of the value or its
// pointer, that appends one JSON value without line breaks to dst and returns the
// extended slice. It is called while the value is written into the output buffer, under
// a lock, so it must be quick and must not use the connection. If it fails, nothing of
// the message is sent.
//
// # Order
//
// Incoming messages form one timeline per lane. [Config.Lane] names the lane of
// a message by its method and params; a response is in the lane of the call it
// answers. Within a lane:
//
//   - Notifications are handled one at a time, in the order in which they
//     arrived.
//   - A response completes its call after every notification that arrived
//     before it in the lane has been handled.
//   - A request starts after every notification that arrived before it in the
//     lane has been handled. It then runs concurrently with everything else, in
//     a goroutine of its own.
//
// Lanes never wait for each other. A lane exists only while something in it is
// queued or handled, so lanes cost nothing, however many names there are.
//
// A notification handler may make calls, but only with the ctx it was given or
// one derived from it. While the handler runs, the response to such a call is
// not held behind the handler: it completes the call when it arrives. While the
// handler waits, it does not hold up what the peer may need first either:
// requests of its lane start, and responses in its lane to calls that other
// handlers make complete at once. So handlers that wait for each other's lanes
// do not block each other. All other responses keep their place. A call with
// another ctx, in the same lane, would wait for the very handler that waits for
// it.
//
// Outgoing messages of one goroutine are written in the order in which they
// were sent. An answer is written after everything its handler sent.
//
// All of this is about the order in which the stream returns messages. A stream that
// carries lanes apart, as HTTP does, keeps the order within each of them; between lanes
// there is none in any case. What it can bring too early, or too late, is what belongs
// to a lane and travels outside of it: package acphttp says what that is.
//
// # Cancellation
//
// The notification $/cancel_request acts as soon as it is read, ahead of
// everything that is queued: it cancels the context of the request it names. A
// request that has not started is answered with -32800 and never starts.
// [Config.Preempt] lets a protocol act at the same point. The context of a
// request exists by then, so a notification that cancels something always finds
// the request it means, whether that is queued or running.
//
// # What is answered
//
// Every request is answered exactly once. Notifications, and anything that looks
// like a response, are never answered.
//
//	received                                         answer
//	a frame that is not JSON                         -32700, id null
//	JSON that is not a message; a batch              -32600, id null
//	a line that is neither JSON nor begins like it   none: it is noise
//	a request with an id that is in flight           -32600
//	a request for a method without a handler         -32601
//	a request whose params do not fit                -32602; data has path and reason
//
//	a handler                                        answer
//	returns an *Error, wrapped or not                that error
//	returns ctx's error after $/cancel_request       -32800
//	returns ctx's error while the connection ends    -32603
//	returns another error, panics or exits           -32603, with a correlation id
//
// Noise, such as a log message of the peer, is a line that is not JSON and does
// not begin with { or [. It is counted, reported to [Settings.Diagnose] and
// skipped. The data of -32602 never holds a value the peer sent. The text behind
// a correlation id goes to [Config.Logger].
//
// Handlers, codecs, Lane, Preempt and OnReply are foreign code, which may panic
// or end its goroutine with [runtime.Goexit]. Either harms the message at hand and
// nothing else. Goexit matters because testing.T.FailNow calls it: a test that
// fails inside a handler must not leave the peer waiting for an answer. Panics in
// Diagnose and the Logger are survived, too.
//
// # Bounds
//
// At each bound somebody waits, or one message fails. Nothing is dropped because
// somebody is slow, and nobody is disconnected for it.
//
//	what                            bound                            beyond it
//	a frame                         Settings.MaxFrame (64 MiB)       it is skipped and reported
//	its nesting                     512 objects and arrays           it is not decoded, and reported
//	received and not yet handled    Settings.MaxQueued (32 MiB)      the connection stops reading
//	… while a handler waits         Settings.MaxQueuedHard (160 MiB) what it waits for fails
//	request handlers at once        Settings.MaxRequests (256)       requests wait in order
//	output not yet written          64 kB                            senders wait
//	… answers and cancellations     1 MiB more                       answers wait, cancellations are not sent
//	… answers of the engine itself  Settings.MaxQueued more          the connection stops reading
//
// In detail:
//
//   - Frames: a request in a frame that is too large or nested too deeply is
//     refused. A call that such a frame answers fails with [ErrFrameTooLarge] or
//     [ErrTooDeep]. The id of a frame that is too large is looked for in its
//     first 64 kB.
//   - Queued messages: each counts 512 bytes and twice the length of its frame,
//     since decoded values take more room than their text. While more than 4 MiB
//     is queued, notifications with params of up to 16 kB are kept as text and
//     decoded again when it is their turn; each of these counts 160 bytes and the
//     length of its params. A connection with a Preempt, which may have kept what
//     it saw, does not do that. The bound may be exceeded by 64 kB or one frame.
//   - Handlers that wait: the peer may have to be read before a handler gets the
//     response to a call made with its ctx, or room in the output buffer. So the
//     connection meanwhile reads on, up to MaxQueuedHard. There, such calls and
//     sends fail with [ErrQueueFull], so that the handlers can end, and their
//     answers no longer wait for room. Two peers can block each other for good
//     only if each has left more unread than all these bounds together:
//     MaxQueuedHard of messages, and MaxQueued of answers to what it was sent.
//   - Requests: those that wait for others to end do not hold up their lane, count
//     as queued, and can be cancelled. A handler that waits in a call made with
//     its ctx, on the same connection, does not count for MaxRequests; it counts
//     8 kB as queued instead. The params of requests that run are not counted:
//     they take up to MaxRequests times MaxFrame, and more.
//   - Output: it is collected in one buffer, so that many small messages become one
//     write. Senders wait for room there as long as their ctx allows, but never
//     in a write to the stream. A message whose ctx is done before it is in the
//     buffer is not sent; what is in the buffer is sent whole and in order. On
//     Linux a pipe into which 256 kB went in large pieces is made to hold as much,
//     where the system allows it, so that the two sides wait for each other less.
//   - Calls: they are bounded by the goroutines that make them. A call that was
//     given up leaves nothing behind: its late response is recognized by its id
//     alone.
//
// An idle connection keeps one goroutine and up to two parked workers.
//
// # Ending
//
// When the peer closes its direction, calls whose response has arrived complete in
// order. Calls without one fail, each after the notifications that arrived in
// its lane, with an error that wraps [ErrClosed], io.EOF and, since the peer may have
// handled them, [ErrOutcomeUnknown]. Queued notifications are handled to the end, as
// long as they make progress. Request handlers, and what they continue after their
// answer ([Request.Continue]), have [Settings.Grace] to finish before they are
// cancelled. Answers are still written, since the peer may have closed one direction
// only. After a write error the same
// happens, but reading continues for up to the grace, since the peer may have
// answered before it went away.
//
// [Conn.Close] does the same from this side, except that calls fail at once, what
// arrives is ignored, and what is still queued after the grace is dropped and
// reported. In any case the connection ends within a bounded time once nothing
// moves any more: a handler that ignores its cancelled context for another grace is
// reported and left behind. Then the stream is closed and [Conn.Done] is closed; no
// goroutine, file or timer of the connection is left.
//
// # Privacy
//
// Of what was received, only methods, codes, member names and sizes are logged. The
// text of handlers' own errors is logged.
//
// # For transports
//
// A [Stream] is all that a transport has to be. Some things more make it a better one:
// an [EagerStream] knows what it has read already, and a [BatchStream] writes several
// frames at once, so that they cost less; one that numbers frames ([Frame.Number]) tells
// handlers which one their message came in;
// a [Pacer] has lanes that wait for readers of their own, and a [Forgetter] keeps
// something for each lane; an [UnansweredError] fails one call where the rest of the connection is well. The error of a connection that
// broke should wrap [ErrOutcomeUnknown].
//
// # For protocol layers
//
// The following serve packages that build a protocol on a connection, as package
// acp does. Everybody else can skip them.
//
//   - [Config.Preempt], [Config.Waiting], [Config.Linger] and [Conn.SetMux] act on
//     the connection as a whole, and [Conn.Forget] on a lane.
//   - [Request.OnDone], [Request.AfterAnswer], [Request.Answer], [Request.Proceed]
//     and [Request.Continue] act on an incoming request beyond its handler.
//   - [Method.Start] with [Pending], [OnReply] and [AwaitAnswerFor] take calls
//     apart.
//   - [SendIf], [Notification.NotifyIf] and [ErrNotSent] decide whether a message
//     is sent when its turn comes.
//   - [Mux.InOrder], [Request.LetReplies], [Mux.Direct], [DirectHandler], [HoldUntil],
//     [KeepError] and [RawError] are for forwarding what one connection receives to another one, in
//     order and unchanged.
package jsonrpc
