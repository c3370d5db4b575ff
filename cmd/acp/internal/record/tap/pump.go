package tap

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// chunk is how much is read at once: the capacity of a pipe.
const chunk = 64 << 10

// drain is how long the output of an agent that has ended is waited for, in case something it left
// behind holds the pipe open. What is in the pipe already is forwarded however long that takes.
const drain = 2 * time.Second

// A route is the way of one direction.
type route interface {
	// forward forwards what was read.
	forward(b []byte) error
	// close says that nothing follows, and closes the end where the route leads.
	close()
}

// pump forwards what it reads from src as it comes. When nobody reads at the other end any more, it
// closes src, so that whoever writes there notices; the error is that of the write. At the end of
// src it returns nil.
func pump(to route, src io.ReadCloser) error {
	defer to.close()
	buf := make([]byte, chunk)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if err := to.forward(buf[:n]); err != nil {
				_ = src.Close()
				return err
			}
		}
		if err != nil {
			return nil // whatever the error is, nothing follows
		}
	}
}

// A plain route forwards bytes unchanged. A line is recorded before its end is on the way, so that
// what the other side does about it is recorded later.
type plain struct {
	dst io.WriteCloser
	cut cutter
}

func (p *plain) forward(b []byte) error {
	p.cut.write(b)
	_, err := p.dst.Write(b)
	return err
}

func (p *plain) close() {
	_ = p.dst.Close()
	p.cut.end()
}

// A tail is the output of a process. The process may have ended while something else holds its pipe
// open: once that is known, the pipe is read only as long as there is something in it.
type tail struct {
	*os.File

	mu    sync.Mutex
	ended bool
}

// end says that the process has ended.
func (t *tail) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	// A read that waits begins again, with a deadline.
	if t.SetReadDeadline(time.Now()) != nil {
		time.AfterFunc(drain, func() { _ = t.Close() }) // pipes have no deadlines here
	}
}

// begin is called before each read and reports whether the read has a deadline.
func (t *tail) begin() (bounded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		_ = t.SetReadDeadline(time.Now().Add(drain))
	}
	return t.ended
}

// Read reads what the process wrote.
func (t *tail) Read(b []byte) (int, error) {
	for {
		bounded := t.begin()
		n, err := t.File.Read(b)
		switch {
		case n > 0, err == nil:
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && !bounded:
			// The process ended while this waited.
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
			return 0, io.EOF
		default:
			return 0, err
		}
	}
}

// maxLine is how much of a line is kept for the recorder: nearly its whole backlog, so that there
// is room for one such line.
const maxLine = 63 << 20

// A cutter splits what passes into lines, for a recorder. The zero value with emit set is ready.
type cutter struct {
	// emit is called with each line that is not blank, without its end. size is the length of the
	// line, which may exceed the part that is passed, since that has at most maxLine bytes. The
	// line is valid during the call.
	emit func(line []byte, size int64)

	buf  []byte // what has come of the line
	size int64
}

// write adds what has passed.
func (c *cutter) write(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			c.keep(b)
			return
		}
		line := b[:i]
		size := int64(len(line))
		if c.size > 0 {
			c.keep(line)
			line, size = c.buf, c.size
		}
		if len(bytes.TrimSpace(line)) > 0 || size > int64(len(line)) {
			c.emit(line, size)
		}
		c.reset()
		b = b[i+1:]
	}
}

// end says that nothing follows.
func (c *cutter) end() {
	if c.size > 0 {
		c.write([]byte{'\n'})
	}
}

func (c *cutter) keep(b []byte) {
	c.size += int64(len(b))
	c.buf = append(c.buf, b[:min(len(b), maxLine-len(c.buf))]...)
}

func (c *cutter) reset() {
	c.size = 0
	if c.buf = c.buf[:0]; cap(c.buf) > 1<<20 {
		c.buf = nil // a long line is no reason to keep its memory
	}
}
