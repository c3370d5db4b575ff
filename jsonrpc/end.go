package jsonrpc

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Close ends the connection gracefully:
//
//   - New calls, and calls that wait, fail with [ErrClosed]. What arrives is
//     ignored.
//   - Handlers that run have [Settings.Grace] to finish before their contexts are
//     cancelled. Queued messages are handled for as long, and then dropped.
//   - What was sent, answers included, is written for at most 5 s. Then the
//     stream is closed.
//
// Close returns when all of that is done. While handlers, work that they continue
// (see [Request.Continue]) or [Config.Linger] still run, however, it returns as soon
// as what was sent so far is written, so that it may be called inside a handler. It
// may be called repeatedly and always returns nil. [Conn.Wait] waits for the end and
// returns its cause.
func (c *Conn) Close() error {
	c.mu.Lock()
	if !c.ending.closing {
		c.ending.closing, c.ending.deaf = true, true
		close(c.closeAsked)
		c.failPending(ErrClosed, false)
		c.wakeReader()
		c.startEnd(nil)
	}
	busy := c.work.running+c.work.noting+c.work.continued > 0 || c.work.lingers
	c.mu.Unlock()
	if !busy {
		<-c.done
		return nil
	}
	timer := time.NewTimer(c.cfg.flushTimeout)
	defer timer.Stop()
	c.out.drain(timer.C, false)
	return nil
}

// readEnded is called by the reader when the stream has nothing more to give.
func (c *Conn) readEnded(err error) {
	cause := err
	if err == io.EOF {
		err = nil
	} else {
		err = fmt.Errorf("jsonrpc: reading: %w", err)
	}
	c.mu.Lock()
	if c.ending.closing {
		err = nil
	}
	c.failPending(closedBy(cause), true)
	close(c.readDone)
	c.startEnd(err)
	c.mu.Unlock()
}

// writeFailed is called with the first write error. The peer may have answered
// before it went away, so what it sent is still read, up to the grace.
func (c *Conn) writeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.err == nil {
		// Otherwise the outcome is known: an answer that comes too late for
		// a peer that has left is no failure of the connection.
		c.ending.err = closedBy(err)
		c.ending.result = fmt.Errorf("jsonrpc: writing: %w", err)
	}
	c.startEnd(nil)
}

// failPending fails all calls: in order, each at the end of its lane, so that what
// was received before is handled first, or at once. The caller holds c.mu.
func (c *Conn) failPending(err error, inOrder bool) {
	if c.ending.err == nil {
		c.ending.err = err
	}
	err = &cutOffError{err}
	for _, cl := range c.calls.pending {
		if inOrder {
			c.placeResponse(cl, err, 0)
		} else if c.remove(cl) {
			cl.complete(err)
		}
	}
}

// startEnd starts the goroutine that ends the connection. The caller holds c.mu.
func (c *Conn) startEnd(err error) {
	if c.ending.result == nil {
		c.ending.result = err
	}
	if !c.ending.started {
		c.ending.started = true
		c.dismiss()
		go c.end()
	}
}

// checkQuiet wakes end if no handler runs and nothing is queued. The caller holds
// c.mu.
func (c *Conn) checkQuiet() {
	if c.ending.quiet != nil && c.isQuiet() {
		close(c.ending.quiet)
		c.ending.quiet = nil
	}
}

// isQuiet reports whether no handler runs, nothing continues after its answer, and
// nothing is queued. The caller holds c.mu.
func (c *Conn) isQuiet() bool { return c.work.running+c.work.continued == 0 && len(c.work.lanes) == 0 }

// linger runs Config.Linger if the peer has closed its direction. over is closed when
// it has returned, and nil if it does not run. end ends it, as far as it heeds its
// ctx, and must be called.
func (c *Conn) linger() (over <-chan struct{}, end func()) {
	if c.cfg.Linger == nil {
		return nil, func() {}
	}
	select {
	case <-c.readDone:
	default: // closed here, or there is nobody to answer to
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.setLingers(true)
	go func() {
		defer close(done)
		defer c.setLingers(false)
		c.guardLinger(ctx)
	}()
	return done, sync.OnceFunc(func() {
		cancel()
		timer := time.NewTimer(c.cfg.Grace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			c.event("Linger ignored its cancelled context", Event{Kind: EventAbandoned, Count: 1})
		}
	})
}

// setLingers records whether Config.Linger runs, which may call Close.
func (c *Conn) setLingers(runs bool) {
	c.mu.Lock()
	c.work.lingers = runs
	c.mu.Unlock()
}

// guardLinger calls Config.Linger and survives its panics.
func (c *Conn) guardLinger(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("Linger panicked", "panic", p)
		}
	}()
	c.cfg.Linger(ctx)
}

// end ends the connection, whatever the reason.
func (c *Conn) end() {
	timer := time.NewTimer(c.cfg.Grace)
	defer timer.Stop()
	c.awaitReader(timer)
	lingering, end := c.linger()
	c.awaitHandlers(timer, lingering, end)
	end()

	timer.Reset(c.cfg.flushTimeout)
	c.out.drain(timer.C, false)
	c.mu.Lock()
	err := c.ending.err // calls made from now on fail with it, too
	c.mu.Unlock()
	c.out.shut(err)

	// Closing the stream ends what is under way on it, except on terminals
	// and the like. Nothing is left to chance: each wait has its bound.
	closed := make(chan struct{})
	go func() {
		_ = c.stream.Close()
		close(closed)
	}()
	timer.Reset(c.cfg.Grace)
	select {
	case <-closed:
	case <-timer.C:
	}
	timer.Reset(c.cfg.Grace)
	c.out.drain(timer.C, true)
	timer.Reset(c.cfg.Grace)
	select {
	case <-c.readDone:
	case <-timer.C:
	}
	c.cancelRequests(ErrClosed)
	c.cancelNotes(ErrClosed)
	close(c.done)
}

// awaitReader lets the reader continue for a while after a failed write.
func (c *Conn) awaitReader(timer *time.Timer) {
	select {
	case <-c.readDone:
	case <-c.closeAsked:
	case <-timer.C:
		c.mu.Lock()
		c.ending.deaf = true
		c.wakeReader()
		c.failPending(closedBy(c.ending.result), true)
		c.mu.Unlock()
	}
}

// awaitHandlers waits for handlers and queues. There is no limit until lingering is
// closed, which stop brings about. Then requests have one grace before their
// contexts are cancelled. Queued notifications are handled to the end as long as
// they make progress, unless Close was called.
func (c *Conn) awaitHandlers(timer *time.Timer, lingering <-chan struct{}, stop func()) {
	const (
		running = iota
		requestsCancelled
		allCancelled
	)
	stage, asked := running, c.closeAsked
	var handled uint64
	for {
		if lingering == nil {
			timer.Reset(c.cfg.Grace)
		} else {
			timer.Stop()
		}
		c.mu.Lock()
		moved := c.work.handled != handled
		handled = c.work.handled
		if c.isQuiet() {
			c.mu.Unlock()
			return
		}
		if c.ending.quiet == nil {
			c.ending.quiet = make(chan struct{})
		}
		quiet, lanes := c.ending.quiet, len(c.work.lanes)
		c.mu.Unlock()

		select {
		case <-quiet:
			return
		case <-asked:
			asked, lingering = nil, nil
			stop()
			continue
		case <-lingering:
			lingering = nil
			continue
		case <-timer.C:
		}
		switch {
		case stage == running && asked == nil:
			c.cancelRequests(ErrClosed)
			c.cancelNotes(ErrClosed)
			c.drop()
			stage = allCancelled
		case stage == running:
			c.cancelRequests(ErrClosed)
			stage = requestsCancelled
		case stage == requestsCancelled && asked != nil && lanes > 0 && (moved || c.moved(handled)):
			// still making progress
		case stage == requestsCancelled:
			c.cancelNotes(ErrClosed)
			stage = allCancelled
		default:
			c.drop()
			c.mu.Lock()
			n := c.work.running - c.work.answering + c.work.continued + c.work.noting
			c.mu.Unlock()
			if n > 0 { // others have returned; their answers wait for room
				c.event("handlers ignored their cancelled contexts", Event{Kind: EventAbandoned, Count: n})
			}
			return
		}
	}
}

// moved reports whether lanes are done with more entries than since.
func (c *Conn) moved(since uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work.handled != since
}

// drop empties the queues. Responses that were received still reach their
// callers.
func (c *Conn) drop() {
	c.mu.Lock()
	n := 0
	c.ending.deaf = true
	for e := c.work.waiting.pop(); e != nil; e = c.work.waiting.pop() {
		c.release(e)
		n++
	}
	for _, l := range c.work.lanes {
		for e := l.queue.pop(); e != nil; e = l.queue.pop() {
			c.release(e)
			if e.kind == kindResponse {
				e.complete()
			} else {
				n++
			}
		}
		l.early, l.notes = 0, 0
	}
	c.mu.Unlock()
	if n > 0 {
		c.event("queued messages dropped", Event{Kind: EventDiscarded, Count: n})
	}
}
