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
	name     string
	queue    fifo
	current  *entry // the notification whose handler runs
	waits    int    // calls made inside that handler
	requests int    // requests in the queue
}

const (
	// What an entry counts towards MaxQueued: decoded values take more room
	// than their text, and every entry has a cost of its own.
	chargeEntry   = 160
	chargeDecoded = 512
	// keepText is the length of the queue, in bytes, beyond which small
	// notifications are kept as text and decoded again when it is their turn.
	keepText = 1 << 20

	keepLanes = 16
)

// place puts one entry where it belongs. It is called with mu held, by the
// reader, in wire order.
func (c *Conn) place(e *entry) {
	if e.kind == kindResponse {
		e.call.held = false
		c.placeResponse(e.call, e.call.reply, chargeDecoded+2*e.call.replySize)
		return
	}
	if c.deaf {
		return
	}
	l := c.lanes[e.Lane]
	if e.kind == kindRequest {
		if e.state != requestQueued {
			return
		}
		if l == nil || l.waits > 0 {
			c.startRequest(e)
			return
		}
		l.requests++
	}
	if l == nil {
		l = c.newLane(e.Lane)
	}
	c.enqueue(l, e)
}

func (c *Conn) enqueue(l *lane, e *entry) {
	l.queue.push(e)
	c.queued += e.charge
}

// placeResponse completes a call, now or behind what is queued in its lane.
func (c *Conn) placeResponse(cl *call, err error, charge int) {
	if !c.remove(cl) {
		return // interrupted meanwhile
	}
	l := c.lanes[cl.lane]
	if l == nil || cl.token != nil && l.current == cl.token {
		cl.complete(err)
		return
	}
	cl.err = err
	cl.entry.charge = charge
	c.enqueue(l, &cl.entry)
}

// newLane makes a lane and starts its worker.
func (c *Conn) newLane(name string) *lane {
	var l *lane
	if n := len(c.freeLanes); n > 0 {
		l = c.freeLanes[n-1]
		c.freeLanes = c.freeLanes[:n-1]
	} else {
		l = new(lane)
	}
	l.name = name
	c.lanes[name] = l
	c.work(job{lane: l})
	return l
}

// runLane is a lane's worker.
func (c *Conn) runLane(l *lane) {
	exited := true // stays so only if a handler calls runtime.Goexit
	defer func() {
		if exited {
			c.mu.Lock()
			c.leaveNote(l)
			c.mu.Unlock()
			go c.worker(job{lane: l})
		}
	}()
	var again *redecoder
	c.mu.Lock()
	for {
		e := l.queue.pop()
		if e == nil {
			break
		}
		switch e.kind {
		case kindResponse:
			e.call.complete(e.call.err)
		case kindRequest:
			l.requests--
			c.release(e)
			if e.state == requestQueued {
				c.startRequest(e)
			}
			continue
		case kindNotification:
			l.current = e
			c.noting++
			c.mu.Unlock()
			if e.raw != nil {
				if again == nil {
					again = new(redecoder)
				}
				again.decode(e)
			}
			c.handleNote(e)
			c.mu.Lock()
			c.leaveNote(l)
			continue
		}
		c.handled++
		c.release(e)
	}
	delete(c.lanes, l.name)
	if len(c.freeLanes) < keepLanes {
		*l = lane{}
		c.freeLanes = append(c.freeLanes, l)
	}
	c.checkQuiet()
	c.mu.Unlock()
	exited = false
}

// leaveNote ends a notification's turn: calls that were made inside its handler
// and still wait are ordinary calls of the lane from now on.
func (c *Conn) leaveNote(l *lane) {
	c.inHandler -= l.waits
	c.noting--
	c.handled++
	c.release(l.current)
	l.current, l.waits = nil, 0
}

// release takes an entry off the account and lets the reader go on if it waits
// for that.
func (c *Conn) release(e *entry) {
	c.queued -= e.charge
	c.wakeReader()
}

// mayRead reports whether the reader may go on.
func (c *Conn) mayRead() bool {
	return c.queued <= c.cfg.MaxQueued || c.deaf ||
		c.inHandler > 0 && c.queued <= c.cfg.MaxQueuedHard
}

// waitForRoom keeps the reader from reading while too much is queued. It is
// called with mu held.
func (c *Conn) waitForRoom() {
	for !c.mayRead() {
		if c.inHandler > 0 {
			c.failInHandler()
			continue
		}
		room := make(chan struct{})
		c.room = room
		c.mu.Unlock()
		<-room
		c.mu.Lock()
	}
}

// failInHandler gives up the calls that keep the reader reading.
func (c *Conn) failInHandler() {
	for _, cl := range c.pending {
		if cl.token == nil {
			continue
		}
		if l := c.lanes[cl.token.Lane]; l != nil && l.current == cl.token && c.remove(cl) {
			cl.complete(queueFull(cl.method))
		}
	}
}

// enterCall notes that a call is made inside a notification handler, if that
// handler still runs. Requests of the lane do not wait for the handler while it
// waits: the answer to its call may depend on them. It returns false when so
// much is queued that the response could not be read.
func (c *Conn) enterCall(cl *call, token *entry) bool {
	l := c.lanes[token.Lane]
	if l == nil || l.current != token {
		return true
	}
	if c.queued > c.cfg.MaxQueuedHard {
		return false
	}
	cl.token = token
	c.inHandler++
	l.waits++
	if l.requests > 0 {
		c.startRequests(l)
	}
	c.wakeReader()
	return true
}

// startRequests starts the requests in a lane's queue ahead of their turn.
func (c *Conn) startRequests(l *lane) {
	var rest fifo
	for e := l.queue.pop(); e != nil; e = l.queue.pop() {
		if e.kind != kindRequest {
			rest.push(e)
			continue
		}
		c.release(e)
		if e.state == requestQueued {
			c.startRequest(e)
		}
	}
	l.queue, l.requests = rest, 0
}

// wakeReader lets the reader go on if it waits for room and there is some.
func (c *Conn) wakeReader() {
	if c.room != nil && c.mayRead() {
		close(c.room)
		c.room = nil
	}
}

// leaveCall undoes enterCall when the call is removed.
func (c *Conn) leaveCall(cl *call) {
	if l := c.lanes[cl.token.Lane]; l != nil && l.current == cl.token {
		c.inHandler--
		l.waits--
	}
}

// handleNote runs a notification's handler.
func (c *Conn) handleNote(e *entry) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("notification handler panicked", "method", e.Method, "panic", p, "stack", string(debug.Stack()))
			c.diagnose(Event{Kind: EventHandlerError, Method: e.Method, Err: fmt.Errorf("panic: %v", p)})
		}
	}()
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
	d  wire.Decoder
	in wire.Interner
}

func (r *redecoder) decode(e *entry) {
	r.d.In = &r.in
	r.d.Reset(e.raw, false)
	e.Params = e.route.decode(&r.d)
	e.raw = nil
}
