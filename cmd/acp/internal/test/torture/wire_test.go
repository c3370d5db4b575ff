//go:build unix

package torture

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A wire is the network on the way to a server, on which things happen to connections whatever they carry.
type wire struct {
	net.Listener
	target string
	next   func() breakage // what happens to the next connection

	calm  atomic.Bool  // nothing happens any more
	count atomic.Int64 // of what has happened
	work  sync.WaitGroup
	mu    sync.Mutex
	conns map[*net.TCPConn]struct{}
	over  bool
	ended chan struct{} // closed when over is set
}

// A breakage is what happens to a connection once so many bytes have passed in one direction. The zero value is
// nothing.
type breakage struct {
	how   breaking
	back  bool          // what the server sends; otherwise what the client sends
	after int64         // bytes that pass before
	hold  time.Duration // how long nothing passes in that direction
}

// A breaking is a way in which a connection breaks.
type breaking uint8

const (
	intact  breaking = iota
	reset            // both ends learn that it was reset; what was on the way is lost
	half             // one direction ends in an orderly way, and the other one goes on; what comes later is lost
	silent           // nothing passes in one direction for a while, then it is reset
	delayed          // nothing passes in one direction for a while, then everything does
)

// newWire makes an address of 127.0.0.1 lead to the target.
func newWire(t *testing.T, target string, next func() breakage) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, target: target, next: next, conns: make(map[*net.TCPConn]struct{}), ended: make(chan struct{})}
	w.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := w.next()
			w.work.Go(func() { w.serve(c.(*net.TCPConn), b) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		w.over = true
		close(w.ended)
		for c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.work.Wait()
	})
	return w
}

// add notes connections that end with the wire. It reports whether that has not ended.
func (w *wire) add(conns ...*net.TCPConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.over {
			_ = c.Close()
			continue
		}
		w.conns[c] = struct{}{}
	}
	return !w.over
}

func (w *wire) serve(near *net.TCPConn, b breakage) {
	conn, err := net.Dial("tcp", w.target)
	if err != nil {
		_ = near.Close()
		return
	}
	far := conn.(*net.TCPConn)
	if !w.add(near, far) {
		return
	}
	var there, back breakage
	if b.back {
		back = b
	} else {
		there = b
	}
	var both sync.WaitGroup
	both.Go(func() { w.pump(far, near, there) })
	both.Go(func() { w.pump(near, far, back) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, near)
	delete(w.conns, far)
}

// pump copies what one end sends to the other one, until the connection ends or breaks. An end that was closed in an
// orderly way is passed on.
func (w *wire) pump(to, from *net.TCPConn, b breakage) {
	drop := func() {
		_, _ = to.SetLinger(0), from.SetLinger(0)
		_, _ = to.Close(), from.Close()
	}
	lost := false
	var buf [4 << 10]byte
	for {
		part := buf[:]
		if b.how != intact && b.after < int64(len(part)) {
			part = part[:max(1, b.after)]
		}
		n, err := from.Read(part)
		if n > 0 && !lost {
			if b.how != intact && b.after <= 0 && !w.calm.Load() {
				w.count.Add(1)
				switch b.how {
				case reset:
					drop()
					return
				case half:
					_ = to.CloseWrite()
					lost = true
					continue
				default:
					w.wait(b.hold)
					if b.how == silent {
						drop()
						return
					}
				}
				b = breakage{}
			}
			b.after -= int64(n)
			if _, err := to.Write(buf[:n]); err != nil {
				drop()
				return
			}
		}
		if err != nil {
			_ = to.CloseWrite()
			if lost || n > 0 {
				drop()
			}
			return
		}
	}
}

// wait waits, unless the wire ends.
func (w *wire) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ended:
	}
}
