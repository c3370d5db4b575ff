package acpws

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	// corkMost bounds what a corked connection holds back.
	corkMost = 64 << 10
	// writerSize is the size of the library's writer of a server's connection. What
	// does not fit, with the header of a frame, is held back by the cork.
	writerSize = 1 << 10
)

// buffers has those of connections that hold nothing back at the moment.
var buffers = sync.Pool{New: func() any {
	buf := make([]byte, 0, corkMost)
	return &buf
}}

// corked is a connection that can hold back what is written for a moment, so that
// several messages become one write: the library below writes each on its own.
type corked struct {
	net.Conn
	failed atomic.Bool // reading has failed

	mu     sync.Mutex
	on     bool
	buf    []byte
	pooled *[]byte // buf belongs there
}

func (c *corked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// begin holds back what is written from now on.
func (c *corked) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
	if c.buf == nil {
		c.pooled = buffers.Get().(*[]byte)
		c.buf = (*c.pooled)[:0]
	}
}

// end writes what was held back.
func (c *corked) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = false
	err := c.flush()
	if c.buf != nil {
		*c.pooled = c.buf
		buffers.Put(c.pooled)
		c.buf, c.pooled = nil, nil
	}
	return err
}

// flush writes what was held back. The caller holds c.mu.
func (c *corked) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}

func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on && len(c.buf)+len(p) <= corkMost {
		c.buf = append(c.buf, p...)
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// corkingWriter is a response whose connection is corked once it is taken over.
type corkingWriter struct {
	http.ResponseWriter
	conn *corked
}

func (w *corkingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.conn = &corked{Conn: conn}
	return w.conn, bufio.NewReadWriter(buffered.Reader, bufio.NewWriterSize(w.conn, writerSize)), nil
}

// corkDial has a client cork the connection that it makes, if it is known how it makes
// one. The function it returns gives that connection, or nil.
func corkDial(client *http.Client) func() *corked {
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	t, ok := base.(*http.Transport)
	if !ok || t.DialTLSContext != nil {
		return func() *corked { return nil }
	}
	t = t.Clone()
	t.DisableKeepAlives = true // it serves this WebSocket and nothing else
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	var mu sync.Mutex
	var last *corked
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		last = &corked{Conn: conn}
		return last, nil
	}
	client.Transport = t
	return func() *corked {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}
