//go:build unix

package holder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// A fakeAgent is an agent without a process. What it writes is written to says, what it gets is read
// from hears. It ends when it is asked to.
type fakeAgent struct {
	in, out     net.Conn
	hears, says net.Conn
	dead        chan struct{}
	once        sync.Once
	exit        error
	stubborn    bool // it cannot be ended
	forced      bool // the last attempt to end it was not to wait
}

func newFake() *fakeAgent {
	f := &fakeAgent{dead: make(chan struct{})}
	f.in, f.hears = net.Pipe()
	f.out, f.says = net.Pipe()
	return f
}

func (f *fakeAgent) input() io.WriteCloser { return f.in }
func (f *fakeAgent) output() output        { return f.out }
func (f *fakeAgent) pid() int              { return 1 }
func (f *fakeAgent) stderr() string        { return "said" }
func (f *fakeAgent) done() <-chan struct{} { return f.dead }
func (f *fakeAgent) wait() error           { return f.exit }

func (f *fakeAgent) end(ctx context.Context) error {
	f.forced = ctx.Err() != nil
	if f.stubborn {
		return errors.New("it does not end")
	}
	f.once.Do(func() {
		_, _, _ = f.hears.Close(), f.says.Close(), f.in.Close()
		close(f.dead)
	})
	return nil
}

// A pipeListener makes connections in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return nil }

// dial connects, or returns nil if the holder has ended.
func (l *pipeListener) dial() net.Conn {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours
	case <-l.closed:
		return nil
	}
}

const testToken = "0123456789abcdef"

// held runs a core with a fake agent. The channel is closed when everything has ended.
func held(ctx context.Context, cfg Config, f *fakeAgent) (*core, *pipeListener, <-chan error) {
	cfg.Token = testToken
	c, l := newCore(cfg.withDefaults(), f), newPipeListener()
	c.shut = func() { _ = l.Close() }
	c.work.Go(func() { c.serve(l) })
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	return c, l, done
}

// A raw is a gateway that does nothing by itself.
type raw struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// dialRaw attaches, and returns the welcome.
func dialRaw(t testing.TB, l *pipeListener, have uint64) (*raw, welcome) {
	t.Helper()
	g := &raw{t: t, conn: l.dial()}
	g.r = bufio.NewReader(g.conn)
	g.send(packet{kind: kindHello, data: encode(hello{Version: version, Token: testToken, Have: have})})
	p := g.read()
	var w welcome
	if err := json.Unmarshal(p.data, &w); err != nil || p.kind != kindWelcome {
		t.Fatalf("%q %s: %v", byte(p.kind), p.data, err)
	}
	return g, w
}

func (g *raw) send(p packet) {
	g.t.Helper()
	w := bufio.NewWriter(g.conn)
	if err := errors.Join(writePacket(w, p), w.Flush()); err != nil {
		g.t.Fatal(err)
	}
}

func (g *raw) read() packet {
	g.t.Helper()
	p, err := readPacket(g.r, MaxFrame)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

// ends holds that the connection ends without another packet.
func (g *raw) ends() {
	g.t.Helper()
	if p, err := readPacket(g.r, MaxFrame); err == nil {
		g.t.Fatalf("%q %s", byte(p.kind), p.data)
	}
}
