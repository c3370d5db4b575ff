//go:build unix

package torture

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/test/relay"
)

// A wire is the network on the way to a server, on which things happen to connections whatever they carry.
type wire struct {
	*relay.Relay
	calm  atomic.Bool   // nothing happens any more
	count atomic.Int64  // of what has happened
	ended chan struct{} // closed at the end
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

// newWire makes an address of 127.0.0.1 lead to the target. next says what happens to the next
// connection, and is called by one after the other.
func newWire(t *testing.T, target string, next func() breakage) *wire {
	t.Helper()
	w := &wire{ended: make(chan struct{})}
	var turn sync.Mutex
	r, err := relay.Listen(func() (net.Conn, error) { return net.Dial("tcp", target) }, func(near, far net.Conn) {
		turn.Lock()
		b := next()
		turn.Unlock()
		relay.Both(near, far, func(to, from net.Conn) {
			mine := b
			if b.back != (from == far) {
				mine = breakage{}
			}
			w.pump(to.(*net.TCPConn), from.(*net.TCPConn), mine)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Relay = r
	t.Cleanup(func() {
		close(w.ended)
		r.Close()
	})
	return w
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
