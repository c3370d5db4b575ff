package acphttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goacp/acp"
)

// A connection over WebSocket whose server keeps what it has sent outlives its
// WebSocket. It is like one over HTTP with a single stream; both sides count the
// messages they get, so that no message has to say its number. A client that has lost
// its WebSocket opens another one, on which it sends
//
//	{"jsonrpc":"2.0","method":"stream/resume","params":{"connectionId":ID,"cursor":TAG-N}}
//
// TAG is what came with the first WebSocket in the header Last-Event-ID, and N how many
// messages the client has got. The answer is
//
//	{"jsonrpc":"2.0","method":"stream/resumed","params":{"received":M}}
//
// followed by what the client has not got; or stream/resume_failed, with a reason. M is
// how many messages the server has got: the client sends again what came after them.

// resumeParams is what a client asks for.
type resumeParams struct {
	ConnectionID string `json:"connectionId"`
	Cursor       string `json:"cursor"`
}

// serveSocket begins a connection that may outlive its WebSocket, and carries it until
// the WebSocket ends.
func (s *Server) serveSocket(ws *socket, c *conn, first []byte) {
	c.over.received = 1 // nobody else has the connection yet
	h, _ := peek(first)
	c.over.begun.begin(h.id)
	_ = c.in.put(c.ctx, append([]byte(nil), first...), false)
	go func() {
		defer c.finish()
		s.serve(c, acp.Over(c))
	}()
	rd, ok := c.takeSocket(ws, "")
	c.closed() // the WebSocket counts now
	if ok {
		c.carry(ws, rd)
	}
}

// resumeSocket carries a connection that was carried by another WebSocket.
func (s *Server) resumeSocket(ws *socket, principal string, text []byte) {
	var request struct{ Params resumeParams }
	_ = json.Unmarshal(text, &request)
	s.mu.Lock()
	c := s.conns[request.Params.ConnectionID]
	s.mu.Unlock()
	if c == nil || c.principal != principal || !c.flat || c.isShut() || request.Params.Cursor == "" {
		ws.refuseResume("unknown connection")
		return
	}
	rd, ok := c.takeSocket(ws, request.Params.Cursor)
	if !ok {
		ws.refuseResume("the stream cannot be resumed from there")
		return
	}
	defer ws.endWith(c)()
	c.mu.Lock()
	received := c.over.received
	c.mu.Unlock()
	if err := ws.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"received":%d}}`, methodResumed, received)); err != nil {
		c.letSocketGo(ws, rd)
		return
	}
	c.carry(ws, rd)
}

func (w *socket) refuseResume(reason string) {
	_ = w.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"reason":%q}}`, methodResumeFailed, reason))
	w.end(closePolicy, reason)
}

// takeSocket makes a WebSocket the one that carries the connection. One that did before
// ends first, so that it is known what has come over it.
func (c *conn) takeSocket(ws *socket, cursor string) (*reader, bool) {
	ws.carried = make(chan struct{})
	for {
		c.mu.Lock()
		old := c.over.ws
		if old == nil {
			break
		}
		c.mu.Unlock()
		old.end(closeAbnormal, "")
		<-old.carried
	}
	c.over.ws = ws
	c.mu.Unlock()
	if c.opened() != nil {
		c.letSocketGo(ws, nil)
		return nil, false
	}
	_, rd, err := c.attach("", cursor)
	if err != nil {
		c.closed()
		c.letSocketGo(ws, nil)
		return nil, false
	}
	return rd, true
}

// letSocketGo is called when a WebSocket no longer carries the connection.
func (c *conn) letSocketGo(ws *socket, rd *reader) {
	if rd != nil {
		c.mu.Lock()
		st := c.streams[""]
		c.mu.Unlock()
		if st != nil {
			c.detach("", st, rd)
		}
		c.closed()
	}
	c.mu.Lock()
	c.over.ws = nil
	c.mu.Unlock()
	close(ws.carried)
}

// carry moves messages in both directions until the WebSocket ends.
func (c *conn) carry(ws *socket, rd *reader) {
	ws.ping(c.s.limits.KeepAlive * 5 / 3)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		c.writeSocket(ws, rd)
	}()
	left := c.readSocket(ws)
	ws.end(closeAbnormal, "") // unless it was closed otherwise
	rd.rouse()
	<-wrote
	c.letSocketGo(ws, rd)
	if left {
		c.leave()
	}
}

// readSocket takes what comes. It reports whether the client has left in an orderly
// way.
func (c *conn) readSocket(ws *socket) (left bool) {
	for {
		text, err := ws.m.Read()
		if err != nil {
			return errors.Is(err, io.EOF) && !ws.closed.Load()
		}
		h, ok := ws.in.peek(text)
		if !ok { // the agent says so
			h = head{}
		}
		if len(h.id) > c.s.limits.MaxID+2 || len(h.session) > c.s.limits.MaxID {
			ws.end(closePolicy, "an id is too long")
			c.shut(errLimit)
			return false
		}
		if h.method == methodInitialize && h.id != "" && !c.over.begun.again(h.id) {
			c.mu.Lock()
			err = c.queue("", initializedAlready(h.id))
			c.mu.Unlock()
		} else {
			// A WebSocket has an order of its own: what waits holds up what
			// comes after it.
			err = c.in.put(ws.alive, append([]byte(nil), text...), true)
		}
		if err != nil {
			return false
		}
		c.mu.Lock()
		c.over.received++
		c.mu.Unlock()
	}
}

// A frameBatch is what is written to a WebSocket at once.
type frameBatch struct {
	text   []byte
	frames [][]byte // in text, or in what was text before it grew
}

// put gives the batch back.
func (b *frameBatch) put() {
	if cap(b.text) <= 2*batchSize && cap(b.frames) <= maxBatchFrames {
		clear(b.frames) // which may be in another text
		b.text, b.frames = b.text[:0], b.frames[:0]
		frameBatches.Put(b)
	}
}

// maxBatchFrames bounds the frames of a batch that is used again.
const maxBatchFrames = 1024

var frameBatches = sync.Pool{New: func() any { return new(frameBatch) }}

// writeSocket sends what waits.
func (c *conn) writeSocket(ws *socket, rd *reader) {
	for !ws.closed.Load() {
		b := frameBatches.Get().(*frameBatch)
		over := c.takeFrames(rd, b)
		if len(b.frames) == 0 {
			b.put() // one that waits holds none
			if over {
				if ws.end(c.closeCode()) {
					c.leave() // the client has answered, so it has got everything
				}
				return
			}
			select {
			case <-rd.wake:
				continue
			case <-ws.alive.Done():
				return
			}
		}
		if err := ws.write(b.frames...); err != nil {
			ws.end(closeAbnormal, "")
			return
		}
		b.put()
	}
}

// takeFrames is take for WebSockets. It fills an empty batch.
func (c *conn) takeFrames(rd *reader, b *frameBatch) (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[""]
	if c.gone || st == nil || st.reader != rd {
		return true
	}
	err := st.log.Read(rd.pos, func(seq uint64, frame []byte) bool {
		from := len(b.text)
		b.text = append(b.text, frame...)
		b.frames = append(b.frames, b.text[from:len(b.text):len(b.text)])
		c.count(st, rd, seq, len(frame))
		return len(b.text) < batchSize
	})
	if err != nil {
		c.s.log().Error("acphttp: read a log", "error", err)
		b.frames = b.frames[:0]
		return true
	}
	c.took(st, rd, len(b.frames) > 0)
	return c.ended
}
