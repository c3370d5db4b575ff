package acphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// ErrStalled is why sending fails, or a connection ends, when its client has read
// nothing for [Limits.StallTimeout] although something waited for it.
var ErrStalled = errors.New("acphttp: the client does not read")

var (
	errLimit = errors.New("acphttp: the connection exceeds a limit")
	errIdle  = errors.New("acphttp: the client is gone")
)

// drainTime is how long a client may take to fetch what an agent said before it
// ended.
const drainTime = 30 * time.Second

// maxRoutes bounds what is remembered of requests without an answer. Those beyond
// that are answered on the stream of the connection.
const maxRoutes = 1 << 16

// conn is one connection over HTTP: the stream its agent reads and writes, and what
// waits in the streams its client reads.
type conn struct {
	s         *Server
	id        string
	tag       string // begins the cursors of the connection's streams
	overHTTP  bool
	flat      bool // over WebSockets, one after the other: there is one stream for everything
	principal string
	ctx       context.Context // done when the connection is given up
	cancel    context.CancelCauseFunc
	in        inbox
	out       peeker // of the goroutine that writes
	reap      *time.Timer
	served    chan struct{} // closed when Serve has returned

	mu       sync.Mutex
	streams  map[string]*stream
	waiting  int                // streams of sessions with something in them and no reader
	asked    map[string]asked   // the client's requests, by id
	routes   routes             // of what the agent says
	initial  chan []byte        // gets the answer to initialize; nil after that
	first    string             // the id of initialize
	unsent   int                // bytes, in all streams
	progress chan struct{}      // closed when a client takes something; nil unless somebody waits
	ended    bool               // the agent says nothing more
	gone     bool               // the client gets nothing more
	idle     bool               // the connection is given up because none was open
	late     *time.Timer        // gives an agent up that does not end after its client; nil before
	past     past               // streams of closed sessions
	numbers  window             // of messages, see HeaderMessage
	posting  map[uint64]posting // messages that are being accepted
	over     carried            // how WebSockets carry the connection
	attends  attends
}

// routes says what messages are about that do not say so.
type routes struct {
	asks     map[string]route  // the agent's requests, by id
	children map[string]string // the streams of the parents of subagents, by session
}

// route is where a request of the agent has gone. The stream of what a subagent asks is
// its parent's.
type route struct{ session, stream string }

// carried is what is known of a connection that WebSockets carry, one after the other.
type carried struct {
	ws       *socket // the present one; nil between two
	received uint64  // messages that have come
	begun    handshake
}

// posting is a numbered message that is being accepted.
type posting struct {
	done chan struct{} // closed when that has been decided
}

// asked is what is known of a request of the client.
type asked struct {
	method  string
	session string
}

func newConn(s *Server, id, principal string) *conn {
	c := &conn{
		s: s, id: id, tag: id[:8], principal: principal,
		in:      inbox{soft: s.limits.MaxUnread, hard: 2*s.limits.MaxUnread + s.limits.MaxMessage},
		served:  make(chan struct{}),
		streams: make(map[string]*stream),
		asked:   make(map[string]asked),
		routes:  routes{asks: make(map[string]route), children: make(map[string]string)},
		posting: make(map[uint64]posting),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// stream is what waits for one reader of a connection.
type stream struct {
	log     Log
	taken   uint64 // the last event that a reader was given
	unsent  int    // bytes of the events after that
	reader  *reader
	room    chan struct{} // closed when something is taken; nil unless somebody waits
	closed  bool          // the session was, or was deleted
	deleted bool          // the session was
	left    uint64        // when the last reader has left, of past.left; 0 before
	base    uint64        // the last event of the session as it was before it was closed
	offset  uint64        // what the cursors of its events are above their numbers
}

// reader is a request that reads a stream.
type reader struct {
	pos  uint64        // the last event it has read
	wake chan struct{} // has room for one
	end  chan struct{} // closed when another reader takes over
}

func (r *reader) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ReadFrame implements [jsonrpc.Stream].
func (c *conn) ReadFrame() (jsonrpc.Frame, error) {
	f, err := c.in.get()
	if err != nil {
		return f, err
	}
	// A client that sends requests and reads no answers would have the agent keep both.
	if err := c.readRoom(); err != nil {
		c.shut(err)
		return jsonrpc.Frame{}, err
	}
	return f, nil
}

// Buffered implements [jsonrpc.EagerStream].
func (c *conn) Buffered() bool { return c.in.buffered() }

// BeforeRead implements [jsonrpc.EagerStream].
func (c *conn) BeforeRead(f func() error) { c.in.before = f }

// Close implements [jsonrpc.Stream]. What was written can still be read.
func (c *conn) Close() error {
	c.in.close(os.ErrClosed, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.rouse()
	return nil
}

// WriteFrame implements [jsonrpc.Stream]. It waits while too much waits for the
// client.
func (c *conn) WriteFrame(data []byte) error { return c.write(data) }

// WriteFrames implements [jsonrpc.BatchStream].
func (c *conn) WriteFrames(frames [][]byte) error { return c.write(frames...) }

func (c *conn) write(frames ...[]byte) error {
	if c.flat {
		c.over.begun.look(frames)
	}
	c.mu.Lock()
	for _, data := range frames {
		if c.ended && !c.gone {
			c.mu.Unlock()
			return os.ErrClosed
		}
		h := c.out.glance(data)
		if c.initial != nil && h.isResponse() && h.id == c.first {
			c.initial <- append([]byte(nil), data...)
			c.initial = nil
			continue
		}
		name, ends := c.route(&h)
		c.adopt(&h, name, data)
		if err := c.queue(name, data); err != nil {
			c.mu.Unlock()
			c.shut(err)
			return err
		}
		if ends != "" { // and so have its subagents
			maps.DeleteFunc(c.routes.children, func(_, parent string) bool { return parent == name })
		}
		if st := c.streams[name]; ends != "" && st != nil && !c.gone {
			st.closed, st.deleted, st.base = true, ends == methodDelete, st.log.Last()
		}
	}
	c.mu.Unlock()
	if err := c.awaitRoom(); err != nil {
		c.shut(err)
		return err
	}
	return nil
}

// route returns the stream on which a message of the agent goes out. The caller holds
// c.mu.
//
// If it is the last one of a session, ends is the method that ended that.
//
// Answers to session/load go out on the stream of the connection, as those of the
// SDKs do, unless the client reads the session's: there they keep their place after
// the history. A cancellation follows the request that it cancels. What is about a
// subagent goes out on the stream of its parent: clients open none for it.
func (c *conn) route(h *head) (name, ends string) {
	switch {
	case c.flat:
		return "", ""
	case h.isResponse():
		a := c.asked[h.id]
		delete(c.asked, h.id)
		switch a.method {
		case methodLoad:
			if st := c.streams[a.session]; st == nil || st.reader == nil {
				return "", ""
			}
		case methodDelete, methodClose:
			if !h.failed && a.session != "" {
				ends = a.method
			}
		}
		return a.session, ends
	case h.method == methodCancelRequest:
		return c.routes.asks[h.cancels].stream, ""
	}
	name = c.streamOf(h.session)
	if h.isRequest() && len(c.routes.asks) < maxRoutes {
		c.routes.asks[h.id] = route{h.session, name}
	}
	return name, ""
}

// streamOf returns the stream for what is about a session. The caller holds c.mu.
func (c *conn) streamOf(session string) string {
	if parent, ok := c.routes.children[session]; ok && c.streams[session] == nil {
		return parent
	}
	return session
}

// maxChildren bounds the subagents that are known. Those beyond that have streams of
// their own.
const maxChildren = 4096

var subagentUpdate = []byte(`"subagent_update"`)

// adopt notes a subagent that a message announces, unless the client knows its session
// by other means. name is the stream of the message. The caller holds c.mu.
func (c *conn) adopt(h *head, name string, data []byte) {
	if c.flat || h.method != "session/update" || !bytes.Contains(data, subagentUpdate) {
		return
	}
	var m struct {
		Params struct {
			Update struct {
				SessionUpdate string `json:"sessionUpdate"`
				SessionID     string `json:"sessionId"`
			} `json:"update"`
		} `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // what cannot be read announces nothing
	id := m.Params.Update.SessionID
	if m.Params.Update.SessionUpdate != "subagent_update" || id == "" || len(id) > c.s.limits.MaxID || id == name || c.streams[id] != nil {
		return
	}
	if _, known := c.routes.children[id]; known || len(c.routes.children) < maxChildren && !c.gone {
		c.routes.children[id] = name
	}
}

// queue adds a message to a stream. The caller holds c.mu.
func (c *conn) queue(name string, data []byte) error {
	if c.gone {
		return nil // as if it had been sent and not arrived
	}
	st, err := c.stream(name)
	if err != nil {
		return err
	}
	if st.unsent == 0 && st.reader == nil && name != "" {
		if c.waiting++; c.waiting > c.s.limits.MaxWaitingSessions {
			return fmt.Errorf("%w: MaxWaitingSessions", errLimit)
		}
	}
	if err := st.log.Append(oneLine(data)); err != nil {
		return fmt.Errorf("acphttp: keep a message: %w", err)
	}
	st.unsent += len(data)
	c.holds(len(data))
	if st.reader != nil {
		st.reader.rouse()
	}
	return nil
}

// oneLine returns a message without line breaks, which end the lines of events. In
// JSON they can only stand between values.
func oneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	line := bytes.Clone(data)
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// stream returns a stream, made if there is none. The caller holds c.mu.
func (c *conn) stream(name string) (*stream, error) {
	if st := c.streams[name]; st != nil {
		return st, nil
	}
	if len(name) > c.s.limits.MaxID {
		return nil, fmt.Errorf("%w: MaxID", errLimit)
	}
	var log Log
	if c.s.NewLog == nil {
		log = NewLog(c.s.Keep)
	} else {
		var err error
		if log, err = c.s.NewLog(c.id, name); err != nil {
			return nil, fmt.Errorf("acphttp: keep a stream: %w", err)
		}
	}
	st := &stream{log: log, taken: log.Last(), base: log.Last(), offset: c.past.end(name)}
	c.streams[name] = st
	return st, nil
}

// Pace implements [jsonrpc.Pacer]: what a session sends waits for its own reader, which
// over WebSockets is the one of all sessions.
func (c *conn) Pace(ctx context.Context, lane string) error {
	if c.flat {
		lane = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		st := c.streams[lane]
		if st == nil || st.unsent < c.s.limits.MaxUnsentSession || c.gone || c.ended {
			return nil
		}
		if st.room == nil {
			st.room = make(chan struct{})
		}
		if err := c.wait(ctx, st.room, nil); err != nil {
			return err
		}
	}
}

// rouse wakes everybody who waits for something of the connection. The caller holds
// c.mu.
func (c *conn) rouse() {
	for _, st := range c.streams {
		if st.reader != nil {
			st.reader.rouse()
		}
		c.signal(&st.room)
	}
	c.signal(&c.progress)
}

// signal closes a channel that somebody waits for.
func (c *conn) signal(ch *chan struct{}) {
	if *ch != nil {
		close(*ch)
		*ch = nil
	}
}

// leave ends the connection because its client has left: the agent reads the end of
// its input.
func (c *conn) leave() {
	c.in.close(io.EOF, false)
	c.drop()
	c.expire()
}

// leaveGrace is how long an agent may take to end after the end of its input.
const leaveGrace = 10 * time.Second

// expire gives the connection up if its agent does not end soon.
func (c *conn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.served:
	default:
		if c.late == nil {
			c.late = time.AfterFunc(leaveGrace, func() { c.cancel(errIdle) })
		}
	}
}

// shut gives the connection up.
func (c *conn) shut(err error) {
	c.cancel(err)
	c.in.close(err, true)
	c.drop()
}

// drop ends all streams. What is in them is given up.
func (c *conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	c.gone = true
	c.rouse()
	clear(c.asked)
	clear(c.routes.asks)
	clear(c.routes.children)
	c.holds(-c.unsent)
	c.waiting = 0
	for _, st := range c.streams {
		st.unsent = 0
		if err := st.log.Close(); err != nil {
			c.s.log().Warn("acphttp: close a log", "error", err)
		}
	}
	if c.attends.timer != nil {
		c.attends.timer.Stop()
	}
	if c.reap != nil {
		c.reap.Stop()
	}
}

// isShut reports whether the connection is over for its client.
func (c *conn) isShut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// finish is called when the agent says nothing more. The client may fetch what it has
// said, for a while. One that can resume gets that time even if all was sent: it says
// when it has got it, by leaving.
func (c *conn) finish() {
	_ = c.Close()
	close(c.served)
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	for {
		c.mu.Lock()
		if c.gone || c.unsent == 0 && !c.s.resumable() {
			c.mu.Unlock()
			break
		}
		if c.progress == nil {
			c.progress = make(chan struct{})
		}
		progress := c.progress
		c.mu.Unlock()
		select {
		case <-progress:
			continue
		case <-timer.C:
		}
		break
	}
	c.drop()
	c.cancel(errIdle)
	c.s.remove(c)
}

// opened and closed count the requests of a connection that are open. One without any
// is given up after a while; opened fails if it was.
func (c *conn) opened() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.idle {
		return status(http.StatusNotFound, "unknown "+HeaderConnectionID)
	}
	c.attends.active++
	c.reap.Stop()
	if c.attends.timer != nil {
		c.attends.timer.Stop()
	}
	if c.attends.away {
		go c.attend()
	}
	return nil
}

func (c *conn) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attends.active--; c.attends.active == 0 && !c.gone {
		c.reap.Reset(c.s.limits.IdleTimeout)
		c.awaySoon()
	}
}

func (c *conn) reapIdle() {
	c.mu.Lock()
	c.idle = c.attends.active == 0
	idle := c.idle
	c.mu.Unlock()
	if idle {
		c.shut(errIdle)
	}
}
