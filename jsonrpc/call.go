package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goacp/acp/internal/wire"
)

// call is one of our requests that waits for its response. Calls are reused,
// within their connection only: their channels must not leave a
// testing/synctest bubble.
type call struct {
	entry   entry // for queueing the response
	id      int64
	method  string
	lane    string
	result  any    // what the result is decoded into
	token   *entry // the notification inside whose handler the call was made
	onReply func(result any, err error)
	verbose bool            // an error keeps its text
	until   <-chan struct{} // the lane waits for it behind the response; nil for nothing

	// What the reader made of the response. It is the reader's until the
	// response is placed.
	reply     error
	replySize int
	staged    bool          // there was a response: a second one is dropped
	replying  chan struct{} // closed when onReply has returned; nil when it does not run

	err     error         // the outcome; set by complete
	done    chan struct{} // receives once when the call is complete
	gone    bool          // the caller does not wait any more
	crowded bool          // there were other calls when this one was made
	held    bool          // the reader is looking at it: not to be reused
}

const keepCalls = 256

// A CallOption changes how one call behaves.
type CallOption func(*callOptions)

type callOptions struct {
	await   bool
	atMost  time.Duration // to await; 0 is for ever
	onReply func(result any, err error)
	sendIf  func() bool
	keep    bool // the text of an error
	until   <-chan struct{}
	onSent  func() // the request is in the output buffer
}

// optionsOf allocates only when there are options.
func optionsOf(opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{}
	}
	o := new(callOptions)
	for _, opt := range opts {
		opt(o)
	}
	return *o
}

// outgoing is what outgoing middleware passes through.
type outgoing struct {
	result any
	callOptions
}

// AwaitAnswer makes a call whose ctx is done wait for the peer's answer after it
// has asked the peer to cancel. The call then returns that answer, be it a result,
// -32800 or another error.
func AwaitAnswer() CallOption {
	return func(o *callOptions) { o.await, o.atMost = true, 0 } // S38
}

// AwaitAnswerFor is for protocol layers. It is [AwaitAnswer] for at most d after
// ctx is done, if d is positive. After that the call returns as it does without
// the option.
func AwaitAnswerFor(d time.Duration) CallOption {
	return func(o *callOptions) { o.await, o.atMost = true, d }
}

// OnReply is for protocol layers. It has f called when the response arrives,
// before the call returns and before the next frame is looked at. f is called on
// the reader and must not block. It is called at most once, and not at all if
// there is no response or the call has returned.
//
// If err is nil, result is the pointer the response was decoded into, before any
// middleware has seen it: a *R for [Method.Call], a *json.RawMessage for
// [Conn.Call]. f must not keep it. Otherwise result is nil, and err is what the
// call returns unless it is interrupted.
func OnReply(f func(result any, err error)) CallOption {
	return func(o *callOptions) { o.onReply = f }
}

// KeepError is for protocol layers. If the peer answers with an error, the call fails
// with a [*RawError], which has that error as it was sent, for layers that forward
// answers.
func KeepError() CallOption {
	return func(o *callOptions) { o.keep = true }
}

// HoldUntil is for protocol layers. What comes after the response in its lane is not
// handled until done is closed, so that the response can be forwarded ahead of it.
func HoldUntil(done <-chan struct{}) CallOption {
	return func(o *callOptions) { o.until = done }
}

// SendIf is for protocol layers. It calls f when it is the message's turn to be
// sent. If f returns true, the message is sent ahead of everything that is sent
// after f was called; if f returns false, the call fails with [ErrNotSent]. So
// the decision and the place of the message among those that are sent are one
// step.
//
// f is called under the lock of the output: it must be quick and must not use the
// connection. It is called at most once, or once for each time middleware sends
// the message, and not at all for a message that cannot be sent.
func SendIf(f func() bool) CallOption {
	return func(o *callOptions) { o.sendIf = f }
}

// Call sends a request and waits for its response. The result is a pointer; see
// "Values" in the package documentation for what it and params may be. Nil params are
// left out; a nil result is not decoded.
//
//	what happens                       the error
//	the peer answers with an error     an *Error
//	the answer is not a valid response wraps ErrInvalidResponse
//	ctx is done                        wraps ctx.Err() and the cause
//	the connection ends                wraps ErrClosed and, if the peer closed it,
//	                                   io.EOF or io.ErrUnexpectedEOF
//	too much arrives first             wraps ErrQueueFull; inside handlers only
//
// When ctx is done, Call returns at once: the peer is asked to cancel in the
// background, and its late answer is dropped. If ctx is done before the request is
// in the output buffer, nothing is sent.
//
// A call made inside a handler should use the handler's ctx or one derived from
// it, so that its response is not held behind that handler. Inside a
// notification handler it must.
func (c *Conn) Call(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	// The result is decoded here and not on the reader, which might still be
	// at it when an interrupted call has returned.
	res, err := c.do(ctx, method, params, new(json.RawMessage), optionsOf(opts))
	if err != nil || result == nil {
		return err
	}
	raw, ok := res.(*json.RawMessage)
	if !ok {
		return typeError((*json.RawMessage)(nil), res)
	}
	var d wire.Decoder
	d.Reset(*raw, false)
	if _, ok := result.(*json.RawMessage); !ok && d.Null() {
		return nil
	}
	decodeValue(&d, result)
	if err := d.Finish(); err != nil {
		return invalidResult(method, err)
	}
	return nil
}

// Notify sends a notification. Params are as for [Conn.Call]. It returns when the
// notification is in the output buffer, and waits for room there until ctx is
// done. Notifications and calls of one goroutine are sent in order. Inside a
// handler Notify fails with [ErrQueueFull] if there is no room and too much is
// queued to read on until there is some.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	return c.notify(ctx, method, params, nil)
}

func (c *Conn) notify(ctx context.Context, method string, params any, sendIf func() bool) error {
	if c.outgoing != nil {
		r := &Request{Method: method, Params: params, conn: c, flags: flagNotification}
		if sendIf != nil {
			r.out = &outgoing{callOptions: callOptions{sendIf: sendIf}}
		}
		_, err := c.outgoing(ctx, r)
		return err
	}
	return c.sendNote(ctx, method, params, sendIf)
}

func (c *Conn) sendNote(ctx context.Context, method string, params any, sendIf func() bool) error {
	c.waits(ctx, true)
	defer c.waits(ctx, false)
	if c.pacer != nil && c.cfg.Lane != nil {
		if err := c.pace(ctx, method, c.cfg.Lane(method, params)); err != nil {
			return err
		}
	}
	v, err := flatten(params)
	if err != nil {
		return fmt.Errorf("jsonrpc: %s: %w", method, err)
	}
	m := message{kind: messageNotify, method: method, value: v, sendIf: sendIf}
	return c.out.send(ctx, &m, lazy)
}

// do makes a call, through the middleware if there is any, and returns the
// decoded result.
func (c *Conn) do(ctx context.Context, method string, params, result any, o callOptions) (any, error) {
	if c.outgoing != nil {
		return c.outgoing(ctx, &Request{Method: method, Params: params, conn: c, out: &outgoing{result, o}})
	}
	return result, c.roundTrip(ctx, method, params, result, o)
}

// send is the innermost outgoing handler.
func (c *Conn) send(ctx context.Context, r *Request) (any, error) {
	switch {
	case r.out == nil:
		return nil, c.sendNote(ctx, r.Method, r.Params, nil)
	case r.IsNotification():
		return nil, c.sendNote(ctx, r.Method, r.Params, r.out.sendIf)
	}
	if err := c.roundTrip(ctx, r.Method, r.Params, r.out.result, r.out.callOptions); err != nil {
		return nil, err
	}
	return r.out.result, nil
}

func (c *Conn) roundTrip(ctx context.Context, method string, params, result any, o callOptions) error {
	cl, err := c.begin(ctx, method, params, result, o)
	if err != nil {
		return err
	}
	return c.await(ctx, cl, o)
}

// begin sends the request of a call.
func (c *Conn) begin(ctx context.Context, method string, params, result any, o callOptions) (cl *call, err error) {
	if ctx.Err() != nil {
		return nil, ctxError(ctx, method)
	}
	c.waits(ctx, true)
	defer func() {
		if err != nil {
			c.waits(ctx, false)
		}
	}()
	var lane string
	if c.cfg.Lane != nil {
		lane = c.cfg.Lane(method, params)
		if c.pacer != nil {
			if err := c.pace(ctx, method, lane); err != nil {
				return nil, err
			}
		}
	}
	v, err := flatten(params)
	if err != nil {
		return nil, fmt.Errorf("jsonrpc: %s: %w", method, err)
	}
	if cl, err = c.newCall(ctx, method, lane, result, o); err != nil {
		return nil, err
	}
	m := message{kind: messageCall, method: method, call: cl.id, value: v, sendIf: o.sendIf}
	u := urgent
	if cl.crowded {
		u = crowded
	}
	if err := c.out.send(ctx, &m, u); err != nil {
		c.forget(cl)
		return nil, err
	}
	if o.onSent != nil {
		o.onSent()
	}
	return cl, nil
}

// await waits for the response of a call that has begun.
func (c *Conn) await(ctx context.Context, cl *call, o callOptions) error {
	defer c.waits(ctx, false)
	if ctx.Done() == nil {
		<-cl.done
		return c.finish(cl)
	}
	select {
	case <-cl.done:
		return c.finish(cl)
	case <-ctx.Done():
	}
	return c.interrupt(ctx, cl, o)
}

// waits calls Config.Waiting when a call or a notification begins to wait, and when
// it no longer does.
func (c *Conn) waits(ctx context.Context, begins bool) {
	if c.cfg.Waiting != nil {
		c.cfg.Waiting(ctx, begins)
	}
}

// newCall enters a call into the table.
func (c *Conn) newCall(ctx context.Context, method, lane string, result any, o callOptions) (*call, error) {
	token, _ := ctx.Value(entryKey{}).(*entry)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.err != nil {
		return nil, c.ending.err
	}
	var cl *call
	if n := len(c.calls.free); n > 0 {
		cl = c.calls.free[n-1]
		c.calls.free = c.calls.free[:n-1]
	} else {
		cl = &call{done: make(chan struct{}, 1)}
		cl.entry.kind = kindResponse
		cl.entry.Params = cl
	}
	cl.id = c.calls.next
	c.calls.next++
	cl.method, cl.lane, cl.result, cl.onReply, cl.verbose, cl.until = method, lane, result, o.onReply, o.keep, o.until
	cl.crowded = len(c.calls.pending) > 0
	c.calls.pending[cl.id] = cl
	if !c.enterCall(cl, token) {
		delete(c.calls.pending, cl.id)
		c.calls.free = append(c.calls.free, cl)
		return nil, queueFull(method)
	}
	return cl, nil
}

// remove takes a call out of the table and reports whether it was there: whoever
// removes a call completes it. The caller holds c.mu.
func (c *Conn) remove(cl *call) bool {
	if c.calls.pending[cl.id] != cl {
		return false
	}
	delete(c.calls.pending, cl.id)
	if cl.token != nil {
		c.leaveCall(cl)
	}
	return true
}

// complete lets the caller of Call continue. It is for whoever removed the call. The
// caller holds the connection's mu.
func (cl *call) complete(err error) {
	if !cl.gone {
		cl.err = err
		cl.done <- struct{}{}
	}
}

// finish takes the outcome of a complete call.
func (c *Conn) finish(cl *call) error {
	c.awaitOnReply(cl)
	err := cl.err
	c.mu.Lock()
	if len(c.calls.free) < keepCalls && !cl.held {
		cl.reply, cl.replySize, cl.staged = nil, 0, false
		cl.method, cl.lane, cl.result, cl.token, cl.onReply, cl.err, cl.until = "", "", nil, nil, nil, nil, nil
		c.calls.free = append(c.calls.free, cl)
	}
	c.mu.Unlock()
	return err
}

// awaitOnReply lets onReply return before the call does. It is called when the
// call is no longer in the table, so that onReply does not begin any more.
func (c *Conn) awaitOnReply(cl *call) {
	if cl.onReply == nil {
		return
	}
	c.mu.Lock()
	replying := cl.replying
	c.mu.Unlock()
	if replying != nil {
		<-replying
	}
}

// forget gives up a call that was never sent.
func (c *Conn) forget(cl *call) {
	c.mu.Lock()
	removed := c.remove(cl)
	cl.gone = !removed // somebody else completes it
	c.mu.Unlock()
	if removed {
		_ = c.finish(cl)
	} else {
		c.awaitOnReply(cl)
	}
}

// interrupt ends the wait of a call whose ctx is done. Nothing of the call is kept:
// a late response is recognized by its id, which is below that of the next call.
func (c *Conn) interrupt(ctx context.Context, cl *call, o callOptions) error {
	c.mu.Lock()
	waiting := c.calls.pending[cl.id] == cl
	if waiting && !o.await {
		c.remove(cl)
	}
	id, method := cl.id, cl.method
	c.mu.Unlock()
	if waiting {
		c.sendCancel(id)
	}
	if o.await {
		var enough <-chan time.Time
		if o.atMost > 0 {
			timer := time.NewTimer(o.atMost)
			defer timer.Stop()
			enough = timer.C
		}
		select {
		case <-cl.done:
			return c.finish(cl)
		case <-enough:
		}
		c.mu.Lock()
		waiting = c.remove(cl)
		c.mu.Unlock()
	}
	if !waiting {
		// The response is here. Either it is complete, or it is queued behind
		// its lane, which ctx does not wait for.
		select {
		case <-cl.done:
			return c.finish(cl)
		default:
		}
		c.mu.Lock()
		cl.gone = true
		c.mu.Unlock()
	}
	c.awaitOnReply(cl)
	return ctxError(ctx, method)
}

// sendCancel asks the peer to cancel one of our requests. It does not wait: it
// may exceed the output buffer's bound by a bound of its own, beyond which
// cancellations are not sent.
func (c *Conn) sendCancel(id int64) {
	params := make([]byte, 0, 40)
	params = append(params, `{"requestId":`...)
	params = wire.AppendInt(params, id)
	params = append(params, '}')
	m := message{kind: messageNotify, method: cancelMethod, value: json.RawMessage(params)}
	if err := c.out.send(c.cfg.BaseContext, &m, bypass); err != nil {
		c.log.Debug("cancellation not sent", "error", err)
	}
}

func queueFull(method string) error {
	return fmt.Errorf("jsonrpc: %s: %w", method, ErrQueueFull)
}

func invalidResult(method string, err error) error {
	return fmt.Errorf("%w to %s: %w", ErrInvalidResponse, method, err)
}
