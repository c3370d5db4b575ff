package holder

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	maxStrangers = 8               // connections that have not shown their token
	helloGrace   = 5 * time.Second // for a token to arrive
)

// A link is the connection of a gateway. Its fields below conn and news are guarded by core.mu.
type link struct {
	conn net.Conn
	news chan struct{} // its writer has to look

	sent    uint64 // last event that was sent
	flying  int    // what those cost that were sent and are not acknowledged
	written uint64 // what the gateway knows of core.written
	closed  bool   // it knows that the agent's input is closed
	stderr  bool   // it wants the standard error
	lost    bool   // the connection has ended
	last    kind   // of the last packet that it gets: another gateway has its place, or the agent is gone; or 0
}

// serve accepts connections until the listener is closed.
func (c *core) serve(l net.Listener) {
	strangers := make(chan struct{}, maxStrangers)
	for {
		select {
		case strangers <- struct{}{}:
		case <-c.over:
			return
		}
		conn, err := l.Accept()
		if err != nil {
			select {
			case <-c.over:
				return
			case <-time.After(10 * time.Millisecond): // such as too many open files
			}
			<-strangers
			continue
		}
		c.work.Go(func() { c.talk(conn, func() { <-strangers }) })
	}
}

// talk serves a connection to its end. It calls known when the gateway has shown its token, or will
// not.
func (c *core) talk(conn net.Conn, known func()) {
	l := &link{conn: conn, news: make(chan struct{}, 1)}
	defer conn.Close()
	c.mu.Lock()
	select {
	case <-c.over: // farewell does not see it any more
		c.mu.Unlock()
		known()
		return
	default:
	}
	c.links[l] = struct{}{}
	_ = conn.SetDeadline(time.Now().Add(helloGrace))
	c.mu.Unlock()
	r := bufio.NewReaderSize(conn, packetBuffer)
	answer, ok := c.greet(l, r)
	known()
	if answer.kind != 0 {
		w := bufio.NewWriterSize(conn, writeBuffer)
		if writePacket(w, answer) != nil || w.Flush() != nil {
			ok = false
		}
		if ok {
			c.converse(l, r, w)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, l)
	if c.gateway == l {
		c.gateway = nil
	}
}

// converse exchanges packets with a gateway that is attached.
func (c *core) converse(l *link, r *bufio.Reader, w *bufio.Writer) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.write(l, w)
		_ = l.conn.Close()
	}()
	for {
		p, err := readPacket(r, c.cfg.MaxFrame)
		if err != nil || !c.take(l, p) {
			break
		}
	}
	c.mu.Lock()
	l.lost = true
	last := l.last != 0
	c.mu.Unlock()
	wake(l.news)
	if !last { // otherwise the writer still has something to say, and has a deadline
		_ = l.conn.Close()
	}
	<-ended
}

// greet reads the first packet of a connection and attaches the gateway. Without an answer the
// connection is closed.
func (c *core) greet(l *link, r *bufio.Reader) (answer packet, ok bool) {
	p, err := readPacket(r, 0)
	if err != nil || p.kind != kindHello {
		return packet{}, false
	}
	var h hello
	if json.Unmarshal(p.data, &h) != nil {
		return packet{}, false
	}
	refuse := func(code, format string, args ...any) (packet, bool) {
		return packet{kind: kindRefused, data: encode(refusal{code, fmt.Sprintf(format, args...)})}, false
	}
	// The hashes have one length, whatever was sent.
	want, got := sha256.Sum256([]byte(c.cfg.Token)), sha256.Sum256([]byte(h.Token))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		return refuse(codeToken, "the token is wrong")
	}
	if h.Version != version {
		return refuse(codeVersion, "the holder speaks version %d, not %d", version, h.Version)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ending:
		return refuse(codeEnding, "the agent is being ended")
	case h.Have < c.acked:
		return refuse(codeGap, "events up to %d were acknowledged and are not kept; the gateway has those up to %d", c.acked, h.Have)
	case h.Have > c.last:
		return refuse(codeGap, "there are %d events; the gateway has %d", c.last, h.Have)
	}
	c.attach(l, h.Have)
	return packet{kind: kindWelcome, data: encode(welcome{
		Version: version, PID: os.Getpid(), Agent: c.agent.pid(), Last: c.last,
		Accepted: c.accepted, Written: c.written, Queued: c.waiting, Lease: c.cfg.Lease, MaxFrame: c.cfg.MaxFrame,
	})}, true
}

// attach makes a connection that of the gateway, in place of the one before. The lock is held.
func (c *core) attach(l *link, have uint64) {
	if old := c.gateway; old != nil {
		old.last = kindTaken
		_ = old.conn.SetDeadline(time.Now().Add(linger))
		wake(old.news)
	}
	_ = l.conn.SetDeadline(time.Time{})
	c.gateway = nil // nothing is in flight
	c.ack(have)
	l.sent, l.written = have, c.written
	c.gateway = l
	c.lease = time.Now().Add(c.cfg.Lease)
	wake(c.changed)
	wake(l.news)
}

// take handles a packet of the gateway, and reports whether the connection may continue.
func (c *core) take(l *link, p packet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gateway != l || l.last == kindTaken {
		return false
	}
	c.renew(c.cfg.Lease)
	switch p.kind {
	case kindFrame:
		return c.accept(p)
	case kindAck:
		if p.number > l.sent {
			return false
		}
		if p.number > c.acked {
			c.ack(p.number)
			wake(l.news) // there may be room for more
		}
	case kindRenew:
		c.renew(time.Duration(min(p.number, uint64(MaxLease/time.Millisecond))) * time.Millisecond)
	case kindStderr:
		l.stderr = true
		wake(l.news)
	case kindStop:
		c.stop = true
		if p.number != 0 {
			c.kill()
		}
		wake(c.changed)
	default:
		return false
	}
	return true
}

// renew moves the end of the lease, but never back. The lock is held.
func (c *core) renew(by time.Duration) {
	if end := time.Now().Add(by); end.After(c.lease) {
		c.lease = end
	}
}

// accept queues a frame for the agent. One that was accepted before is dropped, and so is one that nobody
// will read. The lock is held.
func (c *core) accept(p packet) bool {
	switch {
	case p.number <= c.accepted, c.closed != "": // which the gateway knows, or is about to learn
		return true
	case p.number != c.accepted+1, bytes.IndexByte(p.data, '\n') >= 0, len(p.data) == 0:
		return false
	case len(c.queue) > 0 && c.waiting+frameCost(p.data) > window:
		return false // the gateway must not send that
	}
	c.accepted++
	c.queue = append(c.queue, p.data)
	c.waiting += frameCost(p.data)
	wake(c.queued)
	return true
}

// write sends what there is, until the connection has ended or has nothing more to say.
func (c *core) write(l *link, w *bufio.Writer) {
	for {
		p, last := c.next(l)
		if p.kind == 0 {
			if w.Flush() != nil || last {
				return
			}
			<-l.news
			continue
		}
		if writePacket(w, p) != nil {
			return
		}
		if last {
			_ = w.Flush()
			return
		}
	}
}

// next returns the next packet for a gateway; kind 0 means that there is none. last says that nothing
// follows.
func (c *core) next(l *link) (p packet, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.last == kindTaken:
		return packet{kind: kindTaken}, true
	case l.stderr:
		l.stderr = false
		return packet{kind: kindStderr, data: []byte(c.agent.stderr())}, false
	case l.written < c.written:
		l.written = c.written
		return packet{kind: kindWritten, number: c.written}, false
	case c.closed != "" && !l.closed:
		l.closed = true
		return packet{kind: kindClosed, data: []byte(c.closed[:min(len(c.closed), maxControl)])}, false
	}
	if i := int(l.sent - c.acked); i < len(c.events) {
		e := c.events[i]
		// Not by how large the event is: the gateway acknowledges an event with what it writes later, so that one
		// that waited for everything before it could wait for ever.
		if l.flying < window {
			l.sent++
			l.flying += e.cost()
			return packet{kind: e.kind, number: l.sent, data: e.data}, false
		}
	}
	if l.last == kindGone {
		return packet{kind: kindGone, data: encode(c.exit)}, true
	}
	return packet{}, l.lost
}

// number returns a number as packets have it.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
