package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keepBuffer bounds the two write buffers a connection keeps; larger ones
	// go back to a pool.
	keepBuffer = 128 << 10
	// sparse is how long ago the last write must be for a notification to be
	// written at once rather than left to the flusher.
	sparse = 100 * time.Microsecond
)

var (
	epoch      = time.Now()
	bigBuffers sync.Pool // of *[]byte
)

var errLineBreak = errors.New("jsonrpc: encoded value holds a line break")

// outbox is the sending side of a connection: one buffer that senders encode
// into, and at most one goroutine at a time, a sender or the flusher, that
// writes it to the stream. Encoding happens under mu, writing does not, so no
// sender is ever held up by a peer that does not read.
type outbox struct {
	stream Stream
	batch  batchStream // the stream, if it takes many frames at once, framed
	many   BatchStream // the stream, if it takes many frames at once
	list   [][]byte    // of whoever writes, for many
	try    bool        // batch has attempts that do not block
	tap    func(sent bool, frame []byte)
	conn   *Conn // not to be used with mu held

	mu      sync.Mutex
	buf     []byte // frames nobody has begun to write
	spans   []span // where they are, for streams that take them one by one, and for taps
	spare   []byte
	carry   []byte // the rest of a batch that an attempt wrote in part
	unsent  int    // bytes in the hands of the writing goroutine
	big     int    // size of a recent large batch, to prepare for the next
	writing bool
	err     error         // sticky
	room    chan struct{} // closed when senders may continue; nil when none waits
	way     chan struct{} // closed when handlers that wait must not; nil when none waits
	idle    chan struct{} // closed when everything is written; nil when nobody waits
	last    time.Duration // of the last write, since epoch

	frames, writes atomic.Uint64
}

// span is where a frame is in a buffer, without what its framing adds.
type span struct{ from, to int }

// init sets the outbox up. tap may be nil. With one all is left to the flusher, so that no
// sender waits for it.
func (o *outbox) init(s Stream, tap func(sent bool, frame []byte), c *Conn) {
	o.stream, o.tap, o.conn = s, tap, c
	if b, ok := s.(batchStream); ok {
		o.batch, o.try = b, b.canTry() && tap == nil
	} else if m, ok := s.(BatchStream); ok {
		o.many = m
	}
}

type urgency uint8

const (
	lazy    urgency = iota // may wait for company
	crowded                // somebody waits for it, and company is near
	urgent                 // somebody waits for it
	bypass                 // as urgent, and does not wait for room
)

// limit returns how many unsent bytes keep m from being sent.
func (o *outbox) limit(m *message, u urgency, pressed bool) int {
	switch {
	case pressed, u == bypass && m.kind == messageError:
		return highWater + bypassWater + o.conn.cfg.MaxQueued
	case m.reply, u == bypass:
		return highWater + bypassWater
	}
	return highWater
}

// send encodes m into the buffer and sees to it that it is written. It waits
// for room, honouring ctx; when ctx is done before the frame is in the buffer,
// nothing is sent.
func (o *outbox) send(ctx context.Context, m *message, u urgency) error {
	o.mu.Lock()
	pressed := false
	for o.err == nil && len(o.buf)+o.unsent >= o.limit(m, u, pressed) {
		if u == bypass {
			o.mu.Unlock()
			return errNoRoom
		}
		if o.room == nil {
			o.room = make(chan struct{})
		}
		if o.way == nil {
			o.way = make(chan struct{})
		}
		room, way := o.room, o.way
		o.mu.Unlock()
		err := o.wait(ctx, m, room, way, pressed)
		if err != nil && (err != errPressed || !m.reply) {
			if err == errPressed {
				err = queueFull(m.method)
			}
			return err
		}
		pressed = pressed || err != nil
		o.mu.Lock()
	}
	if o.err != nil {
		o.mu.Unlock()
		return o.err
	}
	if u != bypass && ctx.Err() != nil {
		o.mu.Unlock()
		return ctxError(ctx, m.method)
	}
	if err := o.encode(m); err != nil {
		o.mu.Unlock()
		return err
	}
	o.kick(u)
	return nil
}

// wait waits until there may be room. Handlers do not wait while so much is
// queued that the connection has stopped reading for good: if the peer has
// stopped, too, neither would ever continue.
func (o *outbox) wait(ctx context.Context, m *message, room, way chan struct{}, pressed bool) error {
	token, _ := ctx.Value(entryKey{}).(*entry)
	entered, full := o.conn.enterSend(token, m.reply)
	if entered {
		defer o.conn.leaveSend()
	}
	switch {
	case !entered || pressed:
		way = nil
	case full:
		return errPressed
	}
	select {
	case <-room:
		return nil
	case <-way:
		return errPressed
	case <-ctx.Done():
		return ctxError(ctx, m.method)
	}
}

// press ends the waits of handlers: answers go ahead, up to a bound of their
// own, and other sends fail.
func (o *outbox) press() {
	o.mu.Lock()
	if o.way != nil {
		close(o.way)
		o.way = nil
	}
	o.mu.Unlock()
}

var errPressed = errors.New("jsonrpc: nobody reads")

var errNoRoom = errors.New("jsonrpc: output buffer full")

// encode appends the frame. Generated codecs do not panic, but hand-written ones
// might, and must not take the connection with them. The caller holds o.mu.
func (o *outbox) encode(m *message) (err error) {
	start := len(o.buf)
	protect(func() { err = o.add(m) }, func(p any) {
		o.buf = o.buf[:start]
		if p == errGoexit {
			o.mu.Unlock()
			return
		}
		err = fmt.Errorf("jsonrpc: encoding %s panicked: %v", m.method, p)
	})
	return err
}

// add is encode without protection. The caller holds o.mu.
func (o *outbox) add(m *message) (err error) {
	start := len(o.buf)
	if cap(o.buf) < o.big && start == 0 {
		if b, _ := bigBuffers.Get().(*[]byte); b != nil {
			if o.spare == nil {
				o.spare = o.buf
			}
			o.buf = (*b)[:0]
		}
	}
	b := o.buf
	if o.batch != nil {
		b = o.batch.beginFrame(b)
	}
	body := len(b)
	b, err = m.append(b)
	switch {
	case err != nil:
	case bytes.IndexByte(b[body:], '\n') >= 0:
		err = errLineBreak
	case m.sendIf != nil && !m.sendIf():
		err = ErrNotSent
	}
	if err == nil {
		size := len(b) - body
		if o.batch != nil {
			b = o.batch.endFrame(b, start)
		}
		if o.batch == nil || o.tap != nil {
			to := len(b)
			if b[to-1] == '\n' { // of the framing: the frame has none
				to--
			}
			o.spans = append(o.spans, span{to - size, to})
		}
		o.frames.Add(1)
		o.buf = b
	} else {
		o.buf = b[:start]
	}
	return err
}

// kick sees to it that what is in the buffer is written. The caller holds o.mu, which
// kick releases.
func (o *outbox) kick(u urgency) {
	if o.writing {
		o.mu.Unlock() // whoever writes takes this frame along
		return
	}
	o.writing = true
	if u == crowded {
		o.mu.Unlock()
		yieldToSenders()
		o.mu.Lock()
		if o.err != nil {
			o.rest()
			o.mu.Unlock()
			return
		}
	}
	if o.try {
		now := time.Since(epoch)
		if u != lazy || now-o.last > sparse {
			o.last = now
			o.attempt()
			return
		}
		o.last = now
	}
	go o.flush()
	o.mu.Unlock()
}

// attempt writes what the stream takes without blocking and leaves the rest to the
// flusher. The caller holds o.mu, which attempt releases.
func (o *outbox) attempt() {
	for range 2 {
		b := o.take()
		o.mu.Unlock()
		n, err := o.batch.tryWrite(b)
		o.writes.Add(1)
		o.mu.Lock()
		o.unsent -= n
		if err != nil {
			o.stop(err)
			return
		}
		if n < len(b) {
			o.carry = b[n:]
			break
		}
		o.recycle(b)
		if len(o.buf) == 0 {
			o.rest()
			o.mu.Unlock()
			return
		}
	}
	go o.flush()
	o.mu.Unlock()
}

// take hands the buffered frames to the writing goroutine. The caller holds o.mu.
func (o *outbox) take() []byte {
	b := o.buf
	o.buf, o.spare = o.spare[:0], nil
	o.unsent = len(b)
	if len(b) > keepBuffer {
		o.big = len(b)
	} else {
		o.big -= o.big / 8
	}
	return b
}

// recycle keeps the buffer of what was written, and lets senders continue. The caller
// holds o.mu.
func (o *outbox) recycle(b []byte) {
	if cap(b) <= keepBuffer {
		o.spare = b[:0]
	} else if cap(b) <= 64<<20 {
		big := b[:0] // a variable of its own, or every b would be on the heap
		bigBuffers.Put(&big)
	}
	if o.room != nil && len(o.buf)+o.unsent < highWater {
		close(o.room)
		o.room = nil
	}
}

// rest ends the writing goroutine's turn. The caller holds o.mu.
func (o *outbox) rest() {
	o.writing = false
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
}

// stop records a write error and lets everybody who waits continue. The writing
// goroutine calls it. The caller holds o.mu, which stop releases.
func (o *outbox) stop(err error) {
	first := o.fail(closedBy(err))
	o.rest()
	o.mu.Unlock()
	if first {
		o.conn.writeFailed(err)
	}
}

// fail makes all later sends fail. The caller holds o.mu.
func (o *outbox) fail(err error) (first bool) {
	if o.err != nil {
		return false
	}
	o.err = err
	o.buf, o.spans, o.spare = nil, nil, nil
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	return true
}

// flush is the flusher: it writes until nothing is left.
func (o *outbox) flush() {
	growStack(0)
	o.mu.Lock()
	for o.err == nil {
		b := o.carry
		o.carry = nil
		var spans []span
		if len(b) == 0 {
			if len(o.buf) == 0 {
				break
			}
			b = o.take()
			spans, o.spans = o.spans, nil
		}
		o.mu.Unlock()
		err := o.write(b, spans)
		o.mu.Lock()
		o.last = time.Since(epoch)
		o.unsent = 0
		if err != nil {
			o.stop(err)
			return
		}
		if o.spans == nil {
			o.spans = spans[:0]
		}
		o.recycle(b)
	}
	o.rest()
	o.mu.Unlock()
}

func (o *outbox) write(b []byte, spans []span) error {
	if o.many != nil {
		return o.writeMany(b, spans)
	}
	for _, s := range spans {
		if o.tap != nil {
			o.tap(true, b[s.from:s.to])
		}
		if o.batch != nil {
			continue
		}
		o.writes.Add(1)
		if err := o.stream.WriteFrame(b[s.from:s.to]); err != nil {
			return err
		}
	}
	if o.batch == nil {
		return nil
	}
	o.writes.Add(1)
	return o.batch.writeAll(b)
}

// writeMany is write for streams that take many frames at once.
func (o *outbox) writeMany(b []byte, spans []span) error {
	o.list = o.list[:0]
	for _, s := range spans {
		if o.tap != nil {
			o.tap(true, b[s.from:s.to])
		}
		o.list = append(o.list, b[s.from:s.to])
	}
	o.writes.Add(1)
	err := o.many.WriteFrames(o.list)
	clear(o.list) // does not keep the buffer
	if cap(o.list) > 4096 {
		o.list = nil
	}
	return err
}

// drain waits until everything is written, or, with failed set, until nobody
// writes any more. It gives up when the timer fires.
func (o *outbox) drain(timeout <-chan time.Time, failed bool) {
	for {
		o.mu.Lock()
		if !o.writing || o.err != nil && !failed {
			o.mu.Unlock()
			return
		}
		if o.idle == nil {
			o.idle = make(chan struct{})
		}
		idle := o.idle
		o.mu.Unlock()
		select {
		case <-idle:
		case <-timeout:
			return
		}
	}
}

// shut makes later sends fail with err.
func (o *outbox) shut(err error) {
	o.mu.Lock()
	o.fail(err)
	o.mu.Unlock()
}
