package process

import (
	"io"
	"os"
	"sync"
	"time"
)

// maxPending is how many bytes wait for a slow Config.Stderr.
const maxPending = 64 << 10

// stderr reads the standard error of a child to its end, whatever becomes of
// the copy.
type stderr struct {
	r       *os.File
	drained chan struct{} // everything was read
	copied  chan struct{} // and passed on; nil without a writer

	mu      sync.Mutex
	tail    *Tail
	pending []byte
	lost    int64
	failed  bool
	wake    chan struct{} // has room for one
}

func drain(r *os.File, limit int, w io.Writer) *stderr {
	s := &stderr{r: r, drained: make(chan struct{}), tail: NewTail(limit)}
	if w != nil {
		s.wake = make(chan struct{}, 1)
		s.copied = make(chan struct{})
		go s.copy(w)
	}
	go s.read()
	return s
}

func (s *stderr) read() {
	defer close(s.drained)
	buf := make([]byte, 8<<10)
	for {
		n, err := s.r.Read(buf)
		if n > 0 {
			s.keep(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (s *stderr) keep(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail.Write(b)
	if s.wake == nil {
		return
	}
	fits := min(len(b), maxPending-len(s.pending))
	if s.failed {
		fits = 0
	}
	s.lost += int64(len(b) - fits)
	s.pending = append(s.pending, b[:fits]...)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// copy passes on what was read, until everything was or the writer fails.
func (s *stderr) copy(w io.Writer) {
	defer close(s.copied)
	for over := false; !over; {
		select {
		case <-s.wake:
		case <-s.drained:
			over = true
		}
		s.mu.Lock()
		b := s.pending
		s.pending = nil
		s.mu.Unlock()
		if len(b) == 0 {
			continue
		}
		if n := write(w, b); n < len(b) {
			s.mu.Lock()
			s.lost += int64(len(b) - n + len(s.pending))
			s.pending, s.failed = nil, true
			s.mu.Unlock()
			return
		}
	}
}

// write returns how many bytes w took; the writer is the application's, and
// must not take the process down from a goroutine it does not know of.
func write(w io.Writer, b []byte) (n int) {
	defer func() {
		if recover() != nil {
			n = 0
		}
	}()
	n, err := w.Write(b)
	if n == len(b) && err != nil {
		n-- // so that it counts as failed
	}
	return min(max(n, 0), len(b))
}

// close ends the reading, after waiting for the rest for at most d, and gives
// the writer as long.
func (s *stderr) close(d time.Duration) {
	after(s.drained, d)
	_ = s.r.Close()
	if s.copied != nil {
		after(s.copied, d)
	}
}

func (s *stderr) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := s.tail.Text()
	return text
}

func (s *stderr) dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}
