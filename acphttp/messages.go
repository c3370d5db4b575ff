package acphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// Close codes of WebSocket that a server of ACP uses.
const (
	closeNormal   = 1000
	closeGoing    = 1001
	closeProtocol = 1002
	closeAbnormal = 1006
	closePolicy   = 1008
	closeTryLater = 1013
)

// An Upgrader makes a WebSocket of a request. Package acpws has one.
type Upgrader interface {
	// Upgrade answers the request. header is what the answer must have in
	// addition to what an upgrade needs. maxMessage bounds what is received in one
	// message, in bytes; more ends the WebSocket with code 1009. Upgrade does
	// not need to check the request's origin. If it fails, it has answered the
	// request.
	Upgrade(w http.ResponseWriter, r *http.Request, header http.Header, maxMessage int) (Messages, error)
}

// Messages is an open WebSocket, as a server and [NewMessageStream] need it. One
// goroutine at a time reads, and one writes.
type Messages interface {
	// Read returns the next text message, which is valid until the next Read. It
	// skips binary ones. It returns io.EOF if the peer has closed the WebSocket in
	// an orderly way.
	Read() ([]byte, error)
	// Write sends text messages.
	Write(texts ...[]byte) error
	// Ping sends a ping and waits for the answer, which needs a Read that is
	// under way. It may be called while something is written.
	Ping(ctx context.Context) error
	// Close closes the WebSocket with a code, and ends what is under way. With the
	// code 1006 it says nothing to the peer, which may be gone. It may be called at
	// any time and repeatedly; the first call counts. It takes a few seconds at
	// most. It reports whether the peer has answered the first call, and so has
	// got everything.
	Close(code int, reason string) (answered bool)
}

// batchRefused answers a JSON-RPC batch.
const batchRefused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: JSON-RPC batches are not supported"}}`

// initializedAlready answers initialize on a connection that it has begun.
func initializedAlready(id string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"Initialize not allowed on existing connection"}}`, id)
}

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// upgrade serves a connection over WebSocket, and returns when it has ended.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, principal string) error {
	if s.Upgrade == nil {
		return status(http.StatusUpgradeRequired, "WebSocket is not served here")
	}
	c := s.newConn(principal, false)
	if err := s.await(c); err != nil {
		return err
	}
	release := sync.OnceFunc(func() {
		c.cancel(errIdle)
		c.drop()
		s.remove(c)
	})
	kept := false // it outlives this WebSocket
	defer func() {
		if !kept {
			release()
		}
	}()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	header := http.Header{HeaderConnectionID: {c.id}}
	if s.resumable() {
		header.Set(headerCursor, string(c.cursorOf(nil, 0)))
	}
	m, err := s.Upgrade.Upgrade(w, r, header, s.limits.MaxMessage)
	if err != nil {
		return nil // it has answered
	}
	ws := &socket{c: c, m: m}
	// Not derived from the connection's: cancelling it would break the WebSocket
	// before it is closed.
	ws.alive, ws.stop = context.WithCancel(context.Background())
	defer ws.Close()
	forget := ws.endWith(c)
	defer forget()
	first, method, ok := ws.first()
	switch {
	case !ok:
		return nil
	case method == methodResume:
		forget()
		release() // it is not needed
		s.resumeSocket(ws, principal, first)
		return nil
	}
	if err := s.register(c); err != nil {
		ws.end(closeTryLater, "too many connections")
		return nil
	}
	switch {
	case s.resumable():
		kept = true
		s.serveSocket(ws, c, first)
	default:
		ws.next = first
		ws.ping(s.limits.KeepAlive * 5 / 3)
		s.serve(c, acp.Over(ws))
	}
	return nil
}

// endWith closes the WebSocket when its connection is given up. The function it returns
// undoes that.
func (w *socket) endWith(c *conn) func() bool {
	return context.AfterFunc(c.ctx, func() { w.end(c.closeCode()) })
}

// closeCode returns why a WebSocket of the connection is closed.
func (c *conn) closeCode() (code int, reason string) {
	switch {
	case c.ctx.Err() == nil:
		return closeNormal, ""
	case errors.Is(context.Cause(c.ctx), ErrServerClosed):
		return closeGoing, "the server is closing"
	}
	return closePolicy, "the connection was given up"
}

// socket is a connection over WebSocket: the stream of its agent.
type socket struct {
	c       *conn
	m       Messages
	in      peeker      // of the goroutine that reads
	next    []byte      // the first message, until it is read
	stall   *time.Timer // of the goroutine that writes: it has waited for too long
	stalled atomic.Bool
	closed  atomic.Bool
	once    sync.Once
	alive   context.Context // until Close
	stop    context.CancelFunc
	pings   sync.WaitGroup
	carried chan struct{} // closed when it no longer carries a connection
	write1  sync.Mutex    // one writes at a time
	writing atomic.Bool
	begun   handshake
}

// handshake knows whether initialize was refused, and so may come again.
type handshake struct {
	settled atomic.Bool // it was answered well

	mu      sync.Mutex
	id      string
	refused bool
}

// begin notes the id of the first initialize.
func (h *handshake) begin(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id, h.refused = id, false
}

// again reports whether another initialize may come, and if so notes its id.
func (h *handshake) again(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.refused {
		return false
	}
	h.id, h.refused = id, false
	return true
}

// look looks for the answer to initialize among what the agent sends.
func (h *handshake) look(frames [][]byte) {
	if h.settled.Load() {
		return
	}
	for _, f := range frames {
		head, _ := peek(f)
		h.mu.Lock()
		if head.isResponse() && head.id == h.id {
			h.refused = head.failed
			h.settled.Store(!head.failed)
		}
		h.mu.Unlock()
	}
}

// first reads up to the first message that the agent has to see, which must be
// initialize, or that resumes another connection. Anything that is not a message is
// answered here until then.
func (w *socket) first() (text []byte, method string, ok bool) {
	late := time.AfterFunc(w.c.s.limits.InitializeTimeout, func() { w.end(closePolicy, "no initialize") })
	defer late.Stop()
	for {
		text, err := w.m.Read()
		if err != nil {
			w.end(closePolicy, "no initialize")
			return nil, "", false
		}
		h, ok := w.in.peek(text)
		var answer string
		switch {
		case !ok:
			answer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`
		case h.batch:
			answer = batchRefused
		case !h.object || h.method == "" && !h.outcome:
			answer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`
		case h.method == "": // a response to nothing
			continue
		case h.method == methodResume && h.id == "" && w.c.s.resumable():
			return text, h.method, true
		case h.method != methodInitialize:
			w.end(closeProtocol, "First message must be initialize")
			return nil, "", false
		case h.id == "":
			w.end(closeProtocol, "Initialize request must include an ID")
			return nil, "", false
		case len(h.id) > w.c.s.limits.MaxID:
			w.end(closePolicy, "the id is too long")
			return nil, "", false
		default:
			return text, h.method, true
		}
		if w.write([]byte(answer)) != nil {
			return nil, "", false
		}
	}
}

// ping notices, from now on, that the peer is gone.
func (w *socket) ping(every time.Duration) {
	w.pings.Go(func() {
		timer := time.NewTimer(every)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-w.alive.Done():
				return
			}
			if w.writing.Load() { // which has a bound of its own, and a ping would wait for it
				timer.Reset(every)
				continue
			}
			ctx, cancel := context.WithTimeout(w.alive, 2*every)
			err := w.m.Ping(ctx)
			cancel()
			if err != nil && !w.writing.Load() {
				w.end(closePolicy, "the peer does not answer pings")
				return
			}
			timer.Reset(every)
		}
	})
}

// ReadFrame implements [jsonrpc.Stream].
func (w *socket) ReadFrame() (jsonrpc.Frame, error) {
	for {
		text := w.next
		w.next = nil
		first := text != nil
		if !first {
			var err error
			if text, err = w.m.Read(); err != nil {
				w.c.expire()
				if w.closed.Load() {
					err = os.ErrClosed
				} else if !errors.Is(err, io.EOF) {
					err = errors.Join(io.ErrUnexpectedEOF, err)
				}
				return jsonrpc.Frame{}, err
			}
		}
		h, ok := w.in.peek(text)
		if !ok { // the agent says so
			h = head{}
		}
		if first {
			w.begun.begin(h.id)
		}
		if len(h.id) > w.c.s.limits.MaxID+2 || len(h.session) > w.c.s.limits.MaxID {
			w.end(closePolicy, "an id is too long")
			return jsonrpc.Frame{}, errLimit
		}
		if h.method == methodInitialize && h.id != "" && !first && !w.begun.again(h.id) {
			if err := w.write(initializedAlready(h.id)); err != nil {
				return jsonrpc.Frame{}, err
			}
			continue
		}
		return jsonrpc.Frame{Data: text}, nil
	}
}

// WriteFrame implements [jsonrpc.Stream].
func (w *socket) WriteFrame(data []byte) error { return w.WriteFrames([][]byte{data}) }

// WriteFrames implements [jsonrpc.BatchStream].
func (w *socket) WriteFrames(frames [][]byte) error {
	w.begun.look(frames)
	return w.write(frames...)
}

func (w *socket) write(frames ...[]byte) error {
	w.write1.Lock()
	defer w.write1.Unlock()
	late := w.c.s.limits.StallTimeout
	if w.stall == nil {
		w.stall = time.AfterFunc(late, func() {
			w.stalled.Store(true)
			w.end(closePolicy, "the client does not read")
		})
	} else {
		w.stall.Reset(late)
	}
	w.writing.Store(true)
	err := w.m.Write(frames...)
	w.writing.Store(false)
	w.stall.Stop()
	switch {
	case err == nil:
		return nil
	case w.stalled.Load():
		return ErrStalled
	case w.closed.Load():
		return os.ErrClosed
	}
	return err
}

// Close implements [jsonrpc.Stream].
func (w *socket) Close() error {
	w.end(w.c.closeCode())
	w.stop()
	w.pings.Wait()
	return nil
}

// end closes the WebSocket. The first reason counts. It reports whether this is the
// first, and the peer has answered.
func (w *socket) end(code int, reason string) (answered bool) {
	w.once.Do(func() {
		w.closed.Store(true)
		w.stop()
		answered = w.m.Close(code, reason)
	})
	return answered
}

// A BrokenError is the end of a connection that neither side has closed: the network
// failed, or a server on the way. It wraps the reason and
// [jsonrpc.ErrOutcomeUnknown], since the peer may have handled calls that it could no
// longer answer.
type BrokenError struct{ Err error }

// Error returns the reason.
func (e *BrokenError) Error() string { return "the connection broke: " + e.Err.Error() }

// Unwrap returns the reason and ErrOutcomeUnknown.
func (e *BrokenError) Unwrap() []error { return []error{e.Err, jsonrpc.ErrOutcomeUnknown} }
