package conformance

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of a connection to a peer.
const (
	// maxWaiting and maxWaitingBytes bound the frames that were read and not
	// looked at yet. At the bound reading stops, so that the peer's writes block.
	maxWaiting      = 4096
	maxWaitingBytes = 16 << 20
	// maxKept and maxKeptBytes bound what is kept of a scenario's frames, since
	// steps may be about any of them. Beyond them the scenario fails.
	maxKept      = 200_000
	maxKeptBytes = 256 << 20
	// maxNoise bounds what is kept of a frame that is not JSON.
	maxNoise = 512
	// maxSeen and maxSeenData bound the evidence of a result.
	maxSeen     = 32
	maxSeenData = 2 << 10
	// closeGrace is how long the end of a stream is waited for.
	closeGrace = 5 * time.Second
)

// An arrival is a frame that was received.
type arrival struct {
	data []byte
	err  error // that reading returned; only its frame is lost if it is about size
}

// A link is a connection to the peer under test. A goroutine reads, another one
// writes, and both end with close. All else belongs to the one who plays.
type link struct {
	peer *Peer
	note func(out bool, data []byte) // sees every frame, one at a time

	mu      sync.Mutex
	in      []arrival
	inBytes int
	deaf    bool
	out     [][]byte
	queued  int // frames ever given to the writer
	written int // frames ever written
	werr    error
	closed  bool
	over    bool // nothing more can be read

	noteMu sync.Mutex
	rawly  string // bytes that were written past the stream and are no line yet

	ready  chan struct{} // something was received or written
	space  chan struct{} // what was received was taken
	more   chan struct{} // there is something to write
	quit   chan struct{}
	reader chan struct{} // closed when the reader has ended
	writer chan struct{}

	nextID   int64
	answered *int // calls that were answered, counted by the one who plays
}

func newLink(p *Peer, note func(out bool, data []byte)) *link {
	l := &link{
		peer: p, note: note, answered: new(int),
		ready: make(chan struct{}, 1), space: make(chan struct{}, 1), more: make(chan struct{}, 1),
		quit: make(chan struct{}), reader: make(chan struct{}), writer: make(chan struct{}),
	}
	go l.read()
	go l.write()
	return l
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *link) read() {
	defer close(l.reader)
	for {
		if !l.mayRead() {
			return
		}
		f, err := l.peer.Stream.ReadFrame()
		a := arrival{data: f.Data, err: err}
		if err == nil && !f.Owned {
			a.data = append([]byte{}, f.Data...) // nil would be the end
		}
		if tooLarge, ok := errors.AsType[*jsonrpc.FrameTooLargeError](err); ok {
			a.data, a.err = append([]byte{}, tooLarge.Prefix...), err
		}
		if a.data != nil {
			l.tell(false, a.data)
		}
		over := err != nil && !errors.Is(err, jsonrpc.ErrFrameTooLarge)
		l.mu.Lock()
		l.over = over
		l.in = append(l.in, a)
		l.inBytes += len(a.data)
		l.mu.Unlock()
		signal(l.ready)
		if over {
			return
		}
	}
}

// mayRead waits until there is room for another frame.
func (l *link) mayRead() bool {
	for {
		l.mu.Lock()
		full := l.deaf || len(l.in) >= maxWaiting || l.inBytes >= maxWaitingBytes
		l.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-l.space:
		case <-l.quit:
			return false
		}
	}
}

// listen lets the reader continue, or stops it after the next frame.
func (l *link) listen(on bool) {
	l.mu.Lock()
	l.deaf = !on
	l.mu.Unlock()
	signal(l.space)
}

func (l *link) write() {
	defer close(l.writer)
	for {
		select {
		case <-l.more:
		case <-l.quit:
			return
		}
		for {
			l.mu.Lock()
			if len(l.out) == 0 {
				l.mu.Unlock()
				break
			}
			frame := l.out[0]
			l.out = l.out[1:]
			l.mu.Unlock()
			l.tellRaw("")
			l.tell(true, frame)
			err := l.peer.Stream.WriteFrame(frame)
			l.mu.Lock()
			l.written++
			if l.werr == nil {
				l.werr = err
			}
			l.mu.Unlock()
			signal(l.ready)
			if err != nil {
				return
			}
		}
	}
}

func (l *link) tell(out bool, data []byte) {
	l.noteMu.Lock()
	defer l.noteMu.Unlock()
	l.note(out, data)
}

// tellRaw is tell for bytes past the stream, line by line; "" ends a line.
func (l *link) tellRaw(data string) {
	l.noteMu.Lock()
	defer l.noteMu.Unlock()
	l.rawly += data
	for l.rawly != "" {
		line, rest, whole := strings.Cut(l.rawly, "\n")
		if !whole && data != "" {
			return
		}
		l.rawly = rest
		if line = strings.TrimSpace(line); line != "" {
			l.note(true, []byte(line))
		}
	}
}

// send gives a frame to the writer and returns its number.
func (l *link) send(frame []byte) int {
	l.mu.Lock()
	l.out = append(l.out, frame)
	l.queued++
	n := l.queued
	l.mu.Unlock()
	signal(l.more)
	return n
}

// sent reports whether the frame of a number was written, and whether writing
// failed.
func (l *link) sent(n int) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written >= n, l.werr
}

// take returns what was received since the last call.
func (l *link) take() []arrival {
	l.mu.Lock()
	in := l.in
	l.in, l.inBytes = nil, 0
	l.mu.Unlock()
	if in != nil {
		signal(l.space)
	}
	return in
}

// close ends the stream and both goroutines.
func (l *link) close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return
	}
	close(l.quit)
	_ = l.peer.Stream.Close()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	for _, done := range []chan struct{}{l.reader, l.writer} {
		select {
		case <-done:
		case <-grace.C: // a stream that does not keep to its contract
		}
	}
}

// await waits for a write that ends with the connection, if its stream keeps to its
// contract.
func await(done <-chan error) {
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// ended returns what is known of why the peer went away, in parentheses, or "".
func (l *link) ended() string {
	if l.peer.Ended == nil {
		return ""
	}
	if why := l.peer.Ended(); why != "" {
		return " (" + clip(why, 300) + ")"
	}
	return ""
}

// unsent is the verdict on a peer that could not be sent a frame. That a pipe is broken
// says nothing that its end does not say.
func (l *link) unsent(err error) error {
	if why := l.ended(); why != "" {
		return failed("the peer was gone before it had read what it was sent%s", why)
	}
	return failed("the peer takes nothing more: %s", clip(err.Error(), 200))
}

// id returns a fresh request id.
func (l *link) id() string {
	l.nextID++
	return strconv.FormatInt(l.nextID, 10)
}

// A letter is a frame that was received, as a scenario sees it.
type letter struct {
	at     int // its place among the scenario's
	raw    string
	val    *pattern.Value // nil if it is no JSON
	method string         // "" for responses and for anything that is not a message
	id     *pattern.Value // nil for notifications
	used   bool           // a step was about it
	due    bool           // it is the answer to a call
	done   bool           // a request that was answered
	huge   bool           // longer than the stream takes; raw is its beginning
}

func newLetter(at int, a arrival) *letter {
	m := &letter{at: at, raw: string(a.data), huge: a.err != nil}
	if m.huge {
		return m
	}
	v, err := pattern.Parse(m.raw)
	if err != nil {
		m.raw = clip(m.raw, maxNoise)
		return m
	}
	m.val, m.method, m.id = v, v.StringAt("method"), v.Get("id")
	return m
}

func (m *letter) request() bool  { return m.method != "" && m.id != nil }
func (m *letter) response() bool { return m.method == "" && m.id != nil }

// params returns what a request or notification is about; {} if it has none.
func (m *letter) params() *pattern.Value {
	if p := m.val.Get("params"); p != nil {
		return p
	}
	return &pattern.Value{Kind: pattern.Object, Text: "{}", Rest: -1}
}

// what returns a letter for people.
func (m *letter) String() string {
	switch {
	case m.huge:
		return "a frame that is too long"
	case m.val == nil:
		return "the line " + strconv.Quote(clip(m.raw, 100)) + ", which is not JSON"
	case m.method != "" && m.id != nil:
		return "the request " + clip(m.method, 100)
	case m.method != "":
		return "the notification " + clip(m.method, 100)
	case m.val.Get("error") != nil:
		return "the error " + describeError(m.val.Get("error"))
	case m.val.Get("result") != nil:
		return "the result " + clip(m.val.Get("result").Text, 200)
	}
	return "the frame " + clip(m.raw, 200)
}

// describeError returns an error object for people.
func describeError(e *pattern.Value) string {
	code, message := e.Get("code"), e.StringAt("message")
	if code == nil {
		return clip(e.Text, 200)
	}
	s := clip(code.Text, 40)
	if message != "" {
		s += " " + strconv.Quote(clip(message, 120))
	}
	return s
}

// errClosed says that the peer closed the stream.
var errClosed = errors.New("the peer closed the connection")

func ending(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errClosed
	}
	return err
}

// cause returns why a context is done.
func cause(ctx context.Context) error { return context.Cause(ctx) }
