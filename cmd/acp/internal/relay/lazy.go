package relay

import (
	"context"
	"os"
	"sync"

	"github.com/goacp/acp/jsonrpc"
)

// Lazy returns a stream that open opens when the first message is written, so that a peer that cannot
// be reached fails a request rather than everything before there is one. Writing and reading then
// fail with the error of open. Closing the stream cancels the ctx of open, and closes what it has
// opened. Its method ExitErr is that of what was opened, if that has one.
func Lazy(open func(ctx context.Context) (jsonrpc.Stream, error)) jsonrpc.Stream {
	l := &lazy{open: open, opened: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

type lazy struct {
	open   func(ctx context.Context) (jsonrpc.Stream, error)
	ctx    context.Context // of open; done when the stream is closed
	cancel context.CancelCauseFunc
	once   sync.Once
	opened chan struct{} // closed when stream and err are set

	stream jsonrpc.Stream
	err    error
}

// ReadFrame implements [jsonrpc.Stream]. It waits until something is written.
func (l *lazy) ReadFrame() (jsonrpc.Frame, error) {
	select {
	case <-l.opened:
	case <-l.ctx.Done():
		return jsonrpc.Frame{}, os.ErrClosed
	}
	if l.err != nil {
		return jsonrpc.Frame{}, l.err
	}
	return l.stream.ReadFrame()
}

// WriteFrame implements [jsonrpc.Stream].
func (l *lazy) WriteFrame(data []byte) error {
	l.once.Do(func() {
		defer close(l.opened)
		if l.ctx.Err() != nil {
			l.err = os.ErrClosed
			return
		}
		l.stream, l.err = l.open(l.ctx)
	})
	if l.err != nil {
		return l.err
	}
	return l.stream.WriteFrame(data)
}

// Close implements [jsonrpc.Stream].
func (l *lazy) Close() error {
	l.cancel(os.ErrClosed)
	l.once.Do(func() { // it is not opened any more
		defer close(l.opened)
		l.err = os.ErrClosed
	})
	if l.stream == nil {
		return nil
	}
	return l.stream.Close()
}

// ExitErr returns how the peer has ended, or nil.
func (l *lazy) ExitErr() error {
	select {
	case <-l.opened:
	default:
		return nil
	}
	if x, ok := l.stream.(interface{ ExitErr() error }); ok {
		return x.ExitErr()
	}
	return nil
}
