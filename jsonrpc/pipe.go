package jsonrpc

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// pipeFrames bounds the frames that wait in each direction of a Pipe.
const pipeFrames = 64

// Pipe returns the two ends of an in-memory connection. A frame written to one end
// is read from the other; up to 64 wait in each direction before writing waits, beside
// those that the reader has taken, which are as many. Closing either end ends both: the
// other end still reads what was written before, and then io.EOF. It works inside
// testing/synctest bubbles. Both ends are an [EagerStream] and a [BatchStream], and have
// a method Buffer(bytes int), to be called before the first frame: instead of 64 frames, that
// many bytes may then wait to be read there, and frames are not Owned.
func Pipe() (Stream, Stream) {
	ab, ba := newPipeQueue(), newPipeQueue()
	return &pipeEnd{in: ba, out: ab}, &pipeEnd{in: ab, out: ba}
}

// pipeQueue is one direction. The reader takes all of it, which makes a stream of small frames cheap.
type pipeQueue struct {
	mu     sync.Mutex
	change sync.Cond
	text   []byte
	ends   []int // of the frames in text
	most   int   // bytes that may wait; 0 bounds the frames
	ended  bool  // nothing is written any more
	deaf   bool  // nothing is read any more
}

func newPipeQueue() *pipeQueue {
	q := new(pipeQueue)
	q.change.L = &q.mu
	return q
}

func (q *pipeQueue) full() bool {
	if q.most > 0 {
		return len(q.text) >= q.most
	}
	return len(q.ends) >= pipeFrames
}

// pipeEnd is one end. One goroutine may read and one may write.
type pipeEnd struct {
	in, out *pipeQueue
	before  func() error
	text    []byte // taken from in
	ends    []int
	next    int // the frame to be read
	start   int // of it
	closed  atomic.Bool
}

// Buffer sets how many bytes may wait to be read here.
func (e *pipeEnd) Buffer(bytes int) { e.in.most = bytes }

// WriteFrame implements [Stream].
func (e *pipeEnd) WriteFrame(data []byte) error { return e.write(data) }

// WriteFrames implements [BatchStream].
func (e *pipeEnd) WriteFrames(frames [][]byte) error { return e.write(frames...) }

func (e *pipeEnd) write(frames ...[]byte) error {
	q := e.out
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range frames {
		for q.full() && !q.ended && !q.deaf {
			q.change.Broadcast()
			q.change.Wait()
		}
		switch {
		case q.ended:
			return os.ErrClosed
		case q.deaf:
			return io.ErrClosedPipe
		}
		q.text = append(q.text, f...)
		q.ends = append(q.ends, len(q.text))
	}
	q.change.Broadcast()
	return nil
}

// ReadFrame implements [Stream].
func (e *pipeEnd) ReadFrame() (Frame, error) {
	if e.closed.Load() {
		return Frame{}, os.ErrClosed
	}
	for e.next == len(e.ends) {
		if e.before != nil {
			if err := e.before(); err != nil {
				return Frame{}, err
			}
		}
		if err := e.take(); err != nil {
			return Frame{}, err
		}
	}
	end := e.ends[e.next]
	data := e.text[e.start:end:end]
	e.next++
	e.start = end
	return Frame{Data: data, Owned: e.in.most == 0}, nil
}

// take gets what was written, and waits for it.
func (e *pipeEnd) take() error {
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
	if q.most == 0 || cap(text) > 2*q.most {
		text = nil // frames are the reader's own, or were large
	}
	e.text, e.ends, e.next, e.start = q.text, q.ends, 0, 0
	q.text, q.ends = text, ends
	q.change.Broadcast()
	return nil
}

// Buffered implements [EagerStream].
func (e *pipeEnd) Buffered() bool { return e.next < len(e.ends) }

// BeforeRead implements [EagerStream].
func (e *pipeEnd) BeforeRead(f func() error) { e.before = f }

// Close ends both directions. The other end still reads what was written.
func (e *pipeEnd) Close() error {
	e.closed.Store(true)
	for _, q := range []*pipeQueue{e.in, e.out} {
		q.mu.Lock()
		q.deaf = q.deaf || q == e.in
		q.ended = q.ended || q == e.out
		q.change.Broadcast()
		q.mu.Unlock()
	}
	return nil
}
