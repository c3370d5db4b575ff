// Package relay is the network between programs of a test. It accepts connections, dials where they lead, and leaves what
// passes, and what goes wrong, to the test.
package relay

import (
	"io"
	"net"
	"sync"
)

// A Relay is an address of 127.0.0.1 that leads elsewhere. Its methods may be called from any goroutine; it must be closed.
type Relay struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	pass     func(near, far net.Conn)
	work     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

// Listen begins. dial opens the far end of each connection, and pass is called with both ends, which end when it returns.
func Listen(dial func() (net.Conn, error), pass func(near, far net.Conn)) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, dial: dial, pass: pass, conns: make(map[net.Conn]struct{})}
	r.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			r.work.Go(func() { r.serve(near) })
		}
	})
	return r, nil
}

// Addr returns the address.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Set ends all connections, and those that come from now on; or lets them pass again.
func (r *Relay) Set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	for c := range r.conns {
		_ = c.Close()
	}
}

// Close ends all connections and returns when nothing passes any more. dial and pass must return then.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.Set(true)
	r.work.Wait()
}

// add notes a connection, unless it ends at once.
func (r *Relay) add(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		_ = c.Close()
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

// end ends a connection.
func (r *Relay) end(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

func (r *Relay) serve(near net.Conn) {
	if !r.add(near) {
		return
	}
	defer r.end(near)
	far, err := r.dial()
	if err != nil || !r.add(far) {
		return
	}
	defer r.end(far)
	r.pass(near, far)
}

// Both calls f for both directions, and returns when both calls have.
func Both(near, far net.Conn, f func(to, from net.Conn)) {
	var both sync.WaitGroup
	both.Go(func() { f(far, near) })
	both.Go(func() { f(near, far) })
	both.Wait()
}

// Copy lets everything pass until one end is closed.
func Copy(near, far net.Conn) {
	Both(near, far, func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	})
}
