package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/goacp/acp/internal/wire"
)

// job is what a worker does: a request's handler, or a lane.
type job struct {
	request *entry
	lane    *lane
}

// keepWorkers is how many workers stay when there is nothing to do. Their
// stacks have grown: a fresh goroutine would have to copy its own several times
// before its answer is written.
const keepWorkers = 2

// assign hands a job to a worker that waits, or to a new one. The caller holds c.mu.
func (c *Conn) assign(j job) {
	// Jobs that were not taken yet may fill the channel: that is not waited for.
	if c.work.parked > 0 && len(c.jobs) < cap(c.jobs) {
		c.work.parked--
		c.jobs <- j
		return
	}
	go c.worker(j)
}

func (c *Conn) worker(j job) {
	growStack(0)
	for {
		if j.lane != nil {
			c.runLane(j.lane)
		} else {
			c.serve(j.request)
		}
		c.mu.Lock()
		if c.work.parked >= keepWorkers || c.ending.started {
			c.mu.Unlock()
			return
		}
		c.work.parked++
		c.mu.Unlock()
		if j = <-c.jobs; j == (job{}) {
			return
		}
	}
}

// growStack makes a fresh goroutine's stack as large as handling and answering
// needs while there is next to nothing on it to be copied. Without it 64 callers cost
// 47 to 50 % more processor time (ADR 0016).
//
//go:noinline
func growStack(i int) byte {
	var b [5 << 10]byte
	return b[i]
}

// dismiss ends the workers that wait. It is called once. The caller holds c.mu.
func (c *Conn) dismiss() {
	c.work.parked = 0 // none parks any more
	close(c.jobs)
}

// startRequest starts a request's handler, or has the request wait for its turn. The
// caller holds c.mu.
func (c *Conn) startRequest(e *entry) {
	if c.work.running-c.work.yielded >= c.cfg.MaxRequests {
		c.work.waiting.push(e)
		c.room.queued += e.charge
		return
	}
	e.state = requestRunning
	c.work.running++
	c.assign(job{request: e})
}

// serve runs the handlers of a request and of those that waited for it to end.
func (c *Conn) serve(e *entry) {
	survive(func() {
		for e != nil {
			res, err := c.handleRequest(e)
			if !c.returns(e, requestDone) {
				break
			}
			c.reply(e, res, err)
			e = c.nextRequest()
		}
	}, func() {
		if !c.returns(e, requestDone) {
			return
		}
		c.reply(e, nil, errGoexit)
		if next := c.nextRequest(); next != nil {
			go c.worker(job{request: next})
		}
	})
}

// returns ends a request for everybody but the one who answers it: its handler has
// returned, or is given up. Its id is free before the answer is on its way, since
// the peer may reuse it as soon as it has that. returns reports false if somebody
// else answers.
func (c *Conn) returns(e *entry, how requestState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.state == requestRunning:
		e.state = how
		c.unregister(e)
		c.endCalls(e)
		c.work.answering++
		return true
	case how == requestDone:
		return e.state == requestDone // its encoder has exited
	}
	return false
}

// answerEarly is [Request.Answer].
func (c *Conn) answerEarly(e *entry, res any, err error) bool {
	if !c.returns(e, requestGivenUp) {
		return false
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.work.answering--
		c.work.running--
		c.startWaiting()
		c.checkQuiet()
	}()
	survive(func() { c.reply(e, res, err) }, func() { c.reply(e, nil, errGoexit) })
	return true
}

// nextRequest ends a request's turn and begins that of the next one.
func (c *Conn) nextRequest() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work.answering--
	for c.work.running-c.work.yielded <= c.cfg.MaxRequests {
		e := c.work.waiting.pop()
		if e == nil {
			break
		}
		c.release(e)
		if e.state == requestQueued {
			e.state = requestRunning
			return e
		}
	}
	c.work.running--
	c.checkQuiet()
	return nil
}

// startWaiting starts requests that wait for their turn after another has given up
// its place. The caller holds c.mu.
func (c *Conn) startWaiting() {
	for c.work.running-c.work.yielded < c.cfg.MaxRequests {
		e := c.work.waiting.pop()
		if e == nil {
			return
		}
		c.release(e)
		if e.state == requestQueued {
			c.startRequest(e)
		}
	}
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func (c *Conn) handleRequest(e *entry) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if c.incoming != nil {
		return c.incoming(e, &e.Request)
	}
	return e.route.call(e, &e.Request)
}

// reply answers a request.
func (c *Conn) reply(e *entry, res any, err error) {
	m := c.outcome(e, res, err)
	c.mu.Lock()
	u := urgent
	if c.work.running > 1 {
		u = crowded // other answers are likely to follow soon
	}
	c.mu.Unlock()
	err = c.out.send(context.Background(), &m, u)
	if err != nil && m.kind == messageResult && !errors.Is(err, ErrClosed) {
		// The result could not be encoded.
		m.kind, m.value, m.err = messageError, nil, c.internalError(e.Method, err)
		err = c.out.send(context.Background(), &m, u)
	}
	if err != nil {
		c.log.Debug("answer not sent", "method", e.Method, "error", err)
	}
	c.runAfter(e)
	e.in.cancel(nil)
}

// runAfter calls what AfterAnswer was given. A panic there, like one in the handler,
// does not end the connection.
func (c *Conn) runAfter(e *entry) {
	in := e.in
	in.mu.Lock()
	after := in.after
	in.after, in.answered = nil, true
	in.mu.Unlock()
	if after == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("AfterAnswer panicked", "method", e.Method, "panic", p, "stack", string(debug.Stack()))
			c.diagnose(Event{Kind: EventHandlerError, Method: e.Method, Err: fmt.Errorf("panic: %v", p)})
		}
	}()
	after()
}

// outcome makes the answer of what a handler returned. Results and errors have
// methods of their own, which may panic.
func (c *Conn) outcome(e *entry, res any, err error) (m message) {
	m = message{kind: messageResult, method: e.Method, id: e.ID, reply: true}
	defer func() {
		if p := recover(); p != nil {
			m.kind, m.err = messageError, c.internalError(e.Method, &panicError{p, debug.Stack()})
		}
	}()
	if err == nil {
		if m.value, err = flatten(res); err != nil {
			err = fmt.Errorf("encoding the result: %w", err)
		}
	}
	if err != nil {
		m.kind, m.value, m.err = messageError, nil, c.wireError(e, err)
		if raw := (*RawError)(nil); errors.As(err, &raw) && raw != nil && raw.Err == m.err {
			m.value = raw.Text
		}
	}
	return m
}

// refuseRequest answers a request that Preempt refused, on the reader.
func (c *Conn) refuseRequest(e *entry, err error) {
	m := c.outcome(e, nil, err)
	c.mu.Lock()
	c.unregister(e)
	c.mu.Unlock()
	e.in.cancel(nil)
	c.answer(m.id, m.err)
}

// unregister frees a request's id for reuse. The caller holds c.mu.
func (c *Conn) unregister(e *entry) {
	if key := e.ID.key(); c.work.inbound[key] == e {
		delete(c.work.inbound, key)
	}
}

// wireError turns a handler's error into the one that is sent (S26–S28).
func (c *Conn) wireError(e *entry, err error) *Error {
	var we *Error
	if errors.As(err, &we) && we != nil {
		return we
	}
	if e.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		cause := context.Cause(e)
		if errors.As(cause, &we) && we != nil {
			return we
		}
		if cause == ErrClosed { // not the peer's doing
			return &Error{Code: CodeInternalError, Message: "Internal error: the connection is closing"}
		}
		return ErrRequestCancelled
	}
	return c.internalError(e.Method, err)
}

// internalError hides an error's text behind a correlation id.
func (c *Conn) internalError(method string, err error) *Error {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	ref := hex.EncodeToString(b[:])
	if pe, ok := err.(*panicError); ok {
		c.log.Error("request handler panicked", "method", method, "correlationId", ref, "panic", pe.value, "stack", string(pe.stack))
	} else {
		c.log.Error("request handler failed", "method", method, "correlationId", ref, "error", err)
	}
	c.diagnose(Event{Kind: EventHandlerError, Method: method, Code: CodeInternalError, Err: err})
	data := append([]byte(`{"correlationId":"`+ref), '"')
	if c.cfg.ExposeErrors {
		data = wire.AppendString(append(data, `,"details":`...), errorText(err))
	}
	we := *ErrInternal
	we.Data = append(data, '}')
	return &we
}

// errorText is err.Error() where that may be called: a handler's error may be a
// nil pointer in disguise.
func errorText(err error) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("%T", err)
		}
	}()
	return err.Error()
}

// cancelRequest cancels one of the peer's requests, on the reader (S36, S37).
// One that has not started is answered here and never will.
func (c *Conn) cancelRequest(id ID) {
	c.mu.Lock()
	e := c.work.inbound[id.key()]
	if e == nil {
		c.mu.Unlock()
		return
	}
	early := e.state == requestQueued
	if early {
		e.state = requestCancelled
		delete(c.work.inbound, id.key())
	}
	c.mu.Unlock()
	cause := *ErrRequestCancelled
	data, _ := e.ID.AppendJSON([]byte(`{"requestId":`))
	cause.Data = append(data, '}')
	e.in.cancel(&cause)
	if early {
		c.answer(e.ID, &cause)
	}
}

// answer sends an error from the reader. While the peer does not read its
// answers, at some point we do not read its messages either.
func (c *Conn) answer(id ID, err *Error) {
	m := message{kind: messageError, id: id, err: err}
	if e := c.out.send(context.Background(), &m, bypass); e == errNoRoom {
		_ = c.out.send(context.Background(), &m, urgent)
	}
}
