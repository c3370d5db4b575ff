package jsonrpc

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/goacp/acp/internal/wire"
)

// A lane is one timeline of incoming messages. It exists only while something
// of it is queued or its worker runs; the worker ends with the queue.
type lane struct {
	name    string
	queue   fifo
	current *entry // the notification whose handler runs
	early   int    // entries in the queue that may overtake

	held    *entry            // the request whose handler has not called Proceed; nil for none
	passed  []<-chan struct{} // what HoldUntil says of the responses that have passed it
	notes   int               // notifications in the queue
	replies bool              // there may be responses in the queue before the first of them
}

// notes are notifications in a row of one lane, linked to each other.
type notes struct {
	first, last *entry
	n           int
	charge      int // of all of them
}

// placeNotes is place for notifications. The caller holds c.mu.
func (c *Conn) placeNotes(s notes) {
	if c.ending.deaf {
		for e := s.first; e != nil; {
			e, e.next = e.next, nil
		}
		return
	}
	l := c.work.lanes[s.first.Lane]
	if l == nil {
		l = c.newLane(s.first.Lane)
	}
	l.queue.pushAll(s.first, s.last)
	l.notes += s.n
	c.room.queued += s.charge
}

// place puts a request or a response where it belongs. The reader calls it in wire
// order. The caller holds c.mu.
func (c *Conn) place(e *entry) {
	if e.kind == kindResponse {
		cl := e.call()
		cl.held = false
		c.placeResponse(cl, cl.reply, chargeOf(cl.replySize))
		return
	}
	if c.ending.deaf || e.state != requestQueued {
		return
	}
	l := c.work.lanes[e.Lane]
	switch {
	case l != nil && l.current != nil && l.current.calls > 0, l == nil && e.in.proceed == nil:
		c.startRequest(e)
		return
	case l == nil:
		l = c.newLane(e.Lane)
	}
	c.enqueue(l, e)
}

// enqueue adds an entry to a lane. The caller holds c.mu.
func (c *Conn) enqueue(l *lane, e *entry) {
	l.queue.push(e)
	c.room.queued += e.charge
	if e.early() {
		l.early++
	}
	l.replies = l.replies || e.kind == kindResponse && l.notes == 0
}

// placeResponse completes a call, now or after what is queued in its lane. The
// caller holds c.mu.
func (c *Conn) placeResponse(cl *call, err error, charge int) {
	if !c.remove(cl) {
		return // interrupted meanwhile
	}
	l := c.work.lanes[cl.lane]
	if l == nil && cl.until != nil && !cl.gone {
		l = c.newLane(cl.lane)
	}
	if l == nil || l.current != nil && c.live(cl.token) && (l.current == cl.token || l.current.calls > 0) {
		cl.complete(err)
		return
	}
	if l.held != nil && (l.held == cl.token && c.live(cl.token) || l.held.in.passable && l.notes == 0) {
		l.pass(cl, err)
		return
	}
	if !c.live(cl.token) {
		cl.token = nil
	}
	cl.err = err
	cl.entry.charge = charge
	c.enqueue(l, &cl.entry)
}

// newLane makes a lane and starts its worker. The caller holds c.mu.
func (c *Conn) newLane(name string) *lane {
	l := &lane{name: name}
	c.work.lanes[name] = l
	c.assign(job{lane: l})
	return l
}

// runLane is a lane's worker. If a handler exits, another worker takes over.
func (c *Conn) runLane(l *lane) {
	survive(func() { c.handleLane(l) }, func() {
		c.mu.Lock()
		c.leaveNote(l)
		c.mu.Unlock()
		go c.worker(job{lane: l})
	})
}

// handleLane handles what is queued in a lane, and ends the lane.
func (c *Conn) handleLane(l *lane) {
	var again *redecoder
	c.mu.Lock()
	for {
		e := l.queue.pop()
		if e == nil {
			break
		}
		if e.early() {
			l.early--
		}
		switch e.kind {
		case kindResponse:
			c.awaitForwarded(e.call())
		case kindRequest:
			c.release(e)
			if e.state == requestQueued {
				c.startRequest(e)
				c.awaitProceed(l, e)
			}
			continue
		case kindNotification:
			l.current = e
			l.notes--
			l.replies = true
			c.work.noting++
			c.mu.Unlock()
			if e.text() != nil && again == nil {
				again = new(redecoder)
			}
			c.handleNote(e, again)
			c.mu.Lock()
			c.leaveNote(l)
			continue
		}
		c.work.handled++
		c.release(e)
	}
	delete(c.work.lanes, l.name)
	c.checkQuiet()
	c.mu.Unlock()
}

// awaitProceed waits until what comes after a request may be handled: see [Mux.InOrder] and
// [Request.LetReplies]. The caller holds c.mu, which awaitProceed releases while it waits.
func (c *Conn) awaitProceed(l *lane, e *entry) {
	if e.in.proceed == nil {
		return
	}
	l.held = e
	c.mu.Unlock()
	select {
	case <-e.in.proceed:
	case <-e.Done():
	}
	c.mu.Lock()
	l.held = nil
	for len(l.passed) > 0 {
		until := l.passed[0]
		l.passed = l.passed[1:]
		c.awaitHolder(until)
	}
}

// passHeld completes the responses that are queued before the first notification. What it
// has gone through once it does not go through again. The caller holds c.mu.
func (c *Conn) passHeld(l *lane) {
	if !l.replies {
		return
	}
	l.replies = false
	var rest fifo
	for l.queue.head != nil && l.queue.head.kind != kindNotification {
		e := l.queue.pop()
		if e.kind != kindResponse {
			rest.push(e)
			continue
		}
		if e.early() {
			l.early--
		}
		c.work.handled++
		c.release(e)
		l.pass(e.call(), e.call().err)
	}
	if l.queue.head != nil {
		rest.pushAll(l.queue.head, l.queue.tail)
	}
	l.queue = rest
}

// pass completes a call ahead of what the lane waits for. The caller holds the connection's mu.
func (l *lane) pass(cl *call, err error) {
	if cl.until != nil && !cl.gone {
		l.passed = append(l.passed, cl.until)
	}
	cl.complete(err) // it may be used again from now on
}

// awaitForwarded completes a call, and waits for what [HoldUntil] says. The caller holds
// c.mu, which awaitForwarded releases while it waits.
func (c *Conn) awaitForwarded(cl *call) {
	until := cl.until
	if cl.gone {
		until = nil
	}
	cl.complete(cl.err) // it may be used again from now on
	if until != nil {
		c.awaitHolder(until)
	}
}

// awaitHolder waits for what [HoldUntil] says. The caller holds c.mu, which awaitHolder
// releases while it waits.
func (c *Conn) awaitHolder(until <-chan struct{}) {
	c.mu.Unlock()
	select {
	case <-until:
	case <-c.noteCtx.Done():
	}
	c.mu.Lock()
}

// leaveNote ends a notification's turn. The caller holds c.mu.
func (c *Conn) leaveNote(l *lane) {
	c.endCalls(l.current)
	c.work.noting--
	c.work.handled++
	c.release(l.current)
	l.current = nil
}

// release takes an entry off the account and wakes the reader if it waits for that.
// The caller holds c.mu.
func (c *Conn) release(e *entry) {
	c.room.queued -= e.charge
	c.wakeReader()
}

// mayRead reports whether the reader may read on. While a handler waits for
// something that depends on the peer, the peer may depend on us. The caller holds
// c.mu.
func (c *Conn) mayRead() bool {
	return c.room.queued <= c.cfg.MaxQueued || c.ending.deaf ||
		c.room.inHandler+c.room.outWaits > 0 && c.room.queued <= c.cfg.MaxQueuedHard
}

// waitForRoom keeps the reader from reading while too much is queued. The caller
// holds c.mu, which waitForRoom releases while it waits.
func (c *Conn) waitForRoom() {
	for !c.mayRead() {
		room := make(chan struct{})
		c.room.wake = room
		full := c.room.queued > c.cfg.MaxQueuedHard
		if full {
			c.failInHandler()
		}
		c.mu.Unlock()
		if full {
			c.out.press()
		}
		<-room
		c.mu.Lock()
	}
}

// wakeReader lets the reader read on if it waits for room and there is some. The
// caller holds c.mu.
func (c *Conn) wakeReader() {
	if c.room.wake != nil && c.mayRead() {
		close(c.room.wake)
		c.room.wake = nil
	}
}

// failInHandler gives up the calls that keep the reader reading. The caller holds
// c.mu.
func (c *Conn) failInHandler() {
	for _, cl := range c.calls.pending {
		if c.live(cl.token) && c.remove(cl) {
			cl.complete(queueFull(cl.method))
		}
	}
}

// live reports whether the handler of an incoming message still runs. The caller
// holds c.mu.
func (c *Conn) live(token *entry) bool {
	switch {
	case token == nil || token.conn != c:
		return false
	case token.kind == kindRequest:
		return token.state == requestRunning
	}
	l := c.work.lanes[token.Lane]
	return l != nil && l.current == token
}

// enterCall records that a call is made inside a handler, if that still runs. While
// the handler waits for the response, which may depend on them, requests do not
// wait for a notification handler of their lane, nor for the place of a request
// handler, and responses to such calls do not wait for each other's handlers.
// enterCall returns false if so much is queued that the response could not be
// read. The caller holds c.mu.
func (c *Conn) enterCall(cl *call, token *entry) bool {
	if !c.live(token) {
		return true
	}
	if c.room.queued > c.cfg.MaxQueuedHard {
		return false
	}
	cl.token = token
	c.room.inHandler++
	token.calls++
	switch {
	case token.calls > 1:
	case token.kind == kindRequest:
		c.work.yielded++
		c.room.queued += chargeYielded
		c.startWaiting()
	default:
		c.overtake(c.work.lanes[token.Lane])
	}
	c.wakeReader()
	return true
}

// leaveCall undoes enterCall when the call is removed. The caller holds c.mu.
func (c *Conn) leaveCall(cl *call) {
	token := cl.token
	if !c.live(token) {
		return // endCalls was here
	}
	c.room.inHandler--
	token.calls--
	if token.calls == 0 && token.kind == kindRequest {
		c.unyield()
	}
}

// endCalls turns the calls that were made inside a handler and still wait into
// ordinary ones, since the handler ends. The caller holds c.mu.
func (c *Conn) endCalls(token *entry) {
	if token.calls == 0 {
		return
	}
	c.room.inHandler -= int(token.calls)
	token.calls = 0
	if token.kind == kindRequest {
		c.unyield()
	}
}

// unyield ends the wait of a request handler in calls. The caller holds c.mu.
func (c *Conn) unyield() {
	c.work.yielded--
	c.room.queued -= chargeYielded
	c.wakeReader()
}

// overtake starts and completes what need not wait for a handler that waits. The
// caller holds c.mu.
func (c *Conn) overtake(l *lane) {
	if l.early == 0 {
		return
	}
	var rest fifo
	for e := l.queue.pop(); e != nil; e = l.queue.pop() {
		switch {
		case !e.early():
			rest.push(e)
		case e.kind == kindRequest:
			c.release(e)
			if e.state == requestQueued {
				c.startRequest(e)
			}
		case c.live(e.call().token):
			c.work.handled++
			c.release(e)
			e.complete()
		default: // its handler has ended: it waits for its turn from now on, and nobody goes through the queue for it again
			e.call().token = nil
			rest.push(e)
		}
	}
	l.queue, l.early = rest, 0
}

// enterSend records that a send inside a handler waits for room in the output
// buffer, which may depend on the peer being read. full reports that so much is
// queued that the peer is not read.
func (c *Conn) enterSend(token *entry, reply bool) (entered, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !reply && !c.live(token) {
		return false, false
	}
	c.room.outWaits++
	c.wakeReader()
	return true, c.room.queued > c.cfg.MaxQueuedHard
}

// leaveSend undoes enterSend.
func (c *Conn) leaveSend() {
	c.mu.Lock()
	c.room.outWaits--
	c.mu.Unlock()
}

// handleNote runs a notification's handler.
func (c *Conn) handleNote(e *entry, again *redecoder) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("notification handler panicked", "method", e.Method, "panic", p, "stack", string(debug.Stack()))
			c.diagnose(Event{Kind: EventHandlerError, Method: e.Method, Err: fmt.Errorf("panic: %v", p)})
		}
	}()
	if text := e.text(); text != nil {
		again.decode(e, text)
	}
	var err error
	if c.incoming != nil {
		_, err = c.incoming(e, &e.Request)
	} else {
		_, err = e.route.call(e, &e.Request)
	}
	if err != nil {
		c.log.Error("notification handler failed", "method", e.Method, "error", err)
		c.diagnose(Event{Kind: EventHandlerError, Method: e.Method, Err: err})
	}
}

var _ context.Context = (*entry)(nil)

// redecoder decodes notifications that were kept as text.
type redecoder struct {
	d     wire.Decoder
	in    wire.Interner
	forms wire.Forms
}

func (r *redecoder) decode(e *entry, text []byte) {
	r.d.In, r.d.Forms = &r.in, &r.forms
	r.d.Reset(text, false)
	e.Params = e.route.decode(&r.d)
}
