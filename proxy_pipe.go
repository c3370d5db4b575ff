package acp

import (
	"io"
	"os"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// maxPiped is how many bytes may wait in each direction of a framePipe before writing waits.
const maxPiped = 64 << 10

// framePipe returns the ends of a connection in memory. Other than [jsonrpc.Pipe] it passes
// all frames that wait at once, which is what makes a chain cheap: frames of a stream that
// flows fast are many.
func framePipe() (a, b *framePipeEnd) {
	ab, ba := newFrameQueue(), newFrameQueue()
	return &framePipeEnd{in: ba, out: ab}, &framePipeEnd{in: ab, out: ba}
}

// frameQueue is one direction. The reader takes all of it and gives its last buffers back.
type frameQueue struct {
	mu     sync.Mutex
	change sync.Cond
	text   []byte
	ends   []int // of the frames in text
	ended  bool  // nothing is written any more
	deaf   bool  // nothing is read any more
}

func newFrameQueue() *frameQueue {
	q := new(frameQueue)
	q.change.L = &q.mu
	return q
}

// framePipeEnd is one end. One goroutine may read and one may write.
type framePipeEnd struct {
	in, out *frameQueue
	before  func() error
	text    []byte // taken from in
	ends    []int
	next    int // the frame to be read
	start   int // of it
}

// WriteFrame implements [jsonrpc.Stream].
func (e *framePipeEnd) WriteFrame(data []byte) error { return e.write(data) }

// WriteFrames implements [jsonrpc.BatchStream].
func (e *framePipeEnd) WriteFrames(frames [][]byte) error { return e.write(frames...) }

func (e *framePipeEnd) write(frames ...[]byte) error {
	q := e.out
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.text) >= maxPiped && !q.ended && !q.deaf {
		q.change.Wait()
	}
	switch {
	case q.ended:
		return os.ErrClosed
	case q.deaf:
		return io.ErrClosedPipe
	}
	for _, f := range frames {
		q.text = append(q.text, f...)
		q.ends = append(q.ends, len(q.text))
	}
	q.change.Broadcast()
	return nil
}

// ReadFrame implements [jsonrpc.Stream].
func (e *framePipeEnd) ReadFrame() (jsonrpc.Frame, error) {
	for e.next == len(e.ends) {
		if e.before != nil {
			if err := e.before(); err != nil {
				return jsonrpc.Frame{}, err
			}
		}
		if err := e.take(); err != nil {
			return jsonrpc.Frame{}, err
		}
	}
	end := e.ends[e.next]
	data := e.text[e.start:end:end]
	e.next++
	e.start = end
	return jsonrpc.Frame{Data: data}, nil
}

// take gets what was written, and waits for it.
func (e *framePipeEnd) take() error {
	q := e.in
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ends) == 0 && !q.ended && !q.deaf {
		q.change.Wait()
	}
	switch {
	case q.deaf:
		return os.ErrClosed
	case len(q.ends) == 0:
		return io.EOF
	}
	text, ends := e.text[:0], e.ends[:0]
	if cap(text) > 2*maxPiped {
		text = nil
	}
	e.text, e.ends, e.next, e.start = q.text, q.ends, 0, 0
	q.text, q.ends = text, ends
	q.change.Broadcast()
	return nil
}

// Buffered implements [jsonrpc.EagerStream].
func (e *framePipeEnd) Buffered() bool { return e.next < len(e.ends) }

// BeforeRead implements [jsonrpc.EagerStream].
func (e *framePipeEnd) BeforeRead(f func() error) { e.before = f }

// Close ends both directions. The other end still reads what was written.
func (e *framePipeEnd) Close() error {
	for _, q := range []*frameQueue{e.in, e.out} {
		q.mu.Lock()
		q.deaf = q.deaf || q == e.in
		q.ended = q.ended || q == e.out
		q.change.Broadcast()
		q.mu.Unlock()
	}
	return nil
}
