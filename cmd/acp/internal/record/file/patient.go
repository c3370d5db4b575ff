package file

import (
	"context"
	"io"
	"sync"
)

// A patient reader waits for another one, which may have nothing for a long time, until the context
// ends. The read that is under way then cannot be cancelled: its goroutine ends with it, at the
// latest with the process. Close ends the goroutine otherwise.
type patient struct {
	ctx   context.Context
	asked chan struct{}
	got   chan piece
	buf   []byte // read, and not yet returned
	err   error
	close func()
}

// A piece is the outcome of a read.
type piece struct {
	data []byte // valid until the next read
	err  error
}

const patientBuffer = 64 << 10

func newPatient(ctx context.Context, r io.Reader) *patient {
	p := &patient{ctx: ctx, asked: make(chan struct{}, 1), got: make(chan piece, 1)}
	p.close = sync.OnceFunc(func() { close(p.asked) })
	go func() {
		buf := make([]byte, patientBuffer)
		for range p.asked {
			n, err := r.Read(buf)
			p.got <- piece{buf[:n], err}
		}
	}()
	return p
}

// Read implements [io.Reader].
func (p *patient) Read(b []byte) (int, error) {
	for len(p.buf) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.asked <- struct{}{}
		select {
		case <-p.ctx.Done():
			p.err = context.Cause(p.ctx)
		case got := <-p.got:
			p.buf, p.err = got.data, got.err
		}
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

// Close implements [io.Closer]. It must not be called while Read runs.
func (p *patient) Close() error {
	p.close()
	return nil
}
