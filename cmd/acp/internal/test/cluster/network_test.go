package cluster

import (
	"net"
	"sync"
	"testing"
)

// A link is the network on the way to one server: it can hold what is sent there and what comes back, as a network does
// that is cut, which delivers it when it is whole again.
type link struct {
	net.Listener
	dial      func() (net.Conn, error)
	out, back gate
	work      sync.WaitGroup
	mu        sync.Mutex
	conns     map[net.Conn]struct{}
	over      bool
}

// A gate lets things through unless it is closed.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil if it is open; closed when it opens
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open.
func (g *gate) pass() {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return
		}
		<-shut
	}
}

// newLink makes an address of 127.0.0.1 lead to where dial does.
func newLink(t *testing.T, dial func() (net.Conn, error)) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{Listener: l, dial: dial, conns: map[net.Conn]struct{}{}}
	k.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.work.Go(func() { k.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.mu.Lock()
		k.over = true
		for c := range k.conns {
			_ = c.Close()
		}
		k.mu.Unlock()
		k.cut(false, false)
		k.work.Wait()
	})
	return k
}

func (k *link) address() string { return k.Addr().String() }

// cut holds what is sent, or what comes back, or lets it through again.
func (k *link) cut(out, back bool) {
	k.out.set(out)
	k.back.set(back)
}

func (k *link) add(c net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		_ = c.Close()
		return false
	}
	k.conns[c] = struct{}{}
	return true
}

func (k *link) serve(near net.Conn) {
	if !k.add(near) {
		return
	}
	k.out.pass()
	far, err := k.dial()
	if err != nil || !k.add(far) {
		_ = near.Close()
		return
	}
	end := func() {
		_ = near.Close()
		_ = far.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.conns, near)
		delete(k.conns, far)
	}
	var both sync.WaitGroup
	both.Go(func() { pump(far, near, &k.out); end() })
	both.Go(func() { pump(near, far, &k.back); end() })
	both.Wait()
}

// pump copies from one connection to another while the gate is open.
func pump(to, from net.Conn, g *gate) {
	var buf [32 << 10]byte
	for {
		n, err := from.Read(buf[:])
		g.pass()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
