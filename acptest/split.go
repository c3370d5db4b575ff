package acptest

import (
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// splitBuffer bounds what a [SplitReader] holds, in bytes.
const splitBuffer = 64 << 10

// splitLinger is how long a SplitReader waits for more to be returned together.
const splitLinger = time.Millisecond

// SplitReader returns a reader of the same bytes in other pieces: what was written at
// once is split, even within lines and characters, and what was written separately is
// joined. Pass it to [jsonrpc.NewLineStream] to test that nothing depends on how bytes
// arrive. About half of the reads return at most 16 bytes. The others wait for 1 ms,
// virtual in a testing/synctest bubble, and return everything that has arrived. The
// sizes are determined by seed.
//
// A goroutine reads r. It buffers up to 64 kB and ends when r ends or is closed. The
// reader must be closed, which closes r.
func SplitReader(r io.ReadCloser, seed uint64) io.ReadCloser {
	s := &splitReader{r: r, rng: rand.New(rand.NewPCG(seed, 3)), change: make(chan struct{}, 1), taken: make(chan struct{}, 1), closed: make(chan struct{})}
	go s.fill()
	return s
}

type splitReader struct {
	r      io.ReadCloser
	rng    *rand.Rand
	change chan struct{} // something came
	taken  chan struct{} // something was taken
	closed chan struct{}
	once   sync.Once

	mu  sync.Mutex
	buf []byte
	err error
}

func (s *splitReader) fill() {
	piece := make([]byte, 8<<10)
	for {
		n, err := s.r.Read(piece)
		s.mu.Lock()
		s.buf = append(s.buf, piece[:n]...)
		s.err = err
		full := len(s.buf) > splitBuffer-len(piece)
		s.mu.Unlock()
		poke(s.change)
		if err != nil {
			return
		}
		for full {
			select {
			case <-s.taken:
			case <-s.closed:
				return
			}
			s.mu.Lock()
			full = len(s.buf) > splitBuffer-len(piece)
			s.mu.Unlock()
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *splitReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for !s.some() {
		select {
		case <-s.change:
		case <-s.closed:
			return 0, io.ErrClosedPipe
		}
	}
	limit := len(p)
	if s.rng.IntN(2) == 0 {
		limit = min(limit, 1+s.rng.IntN(16))
	} else {
		timer := time.NewTimer(splitLinger)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.closed:
			return 0, io.ErrClosedPipe
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf) == 0 {
		return 0, s.err
	}
	n := copy(p[:limit], s.buf)
	s.buf = append(s.buf[:0], s.buf[n:]...)
	poke(s.taken)
	return n, nil
}

func (s *splitReader) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buf) > 0 || s.err != nil
}

func (s *splitReader) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.r.Close()
}

// SplitWriter returns a writer that passes what is written to w in several
// writes of 1 to 64 bytes, whose sizes follow from seed. Closing it closes w.
func SplitWriter(w io.WriteCloser, seed uint64) io.WriteCloser {
	return &splitWriter{w, rand.New(rand.NewPCG(seed, 4))}
}

type splitWriter struct {
	w   io.WriteCloser
	rng *rand.Rand
}

func (s *splitWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var k int
		k, err = s.w.Write(p[:min(len(p), 1+s.rng.IntN(64))])
		n += k
		p = p[k:]
	}
	return n, err
}

func (s *splitWriter) Close() error { return s.w.Close() }
