package cluster

import (
	"net"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/relay"
)

// A link is the network on the way to one server: it can hold what is sent there and what comes back, as a network does
// that is cut, which delivers it when it is whole again.
type link struct {
	*relay.Relay
	out, back gate
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
	k := new(link)
	r, err := relay.Listen(func() (net.Conn, error) {
		k.out.pass()
		return dial()
	}, func(near, far net.Conn) {
		relay.Both(near, far, func(to, from net.Conn) {
			g := &k.out
			if from == far {
				g = &k.back
			}
			pump(to, from, g)
			_, _ = to.Close(), from.Close()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Relay = r
	t.Cleanup(func() {
		r.Set(true) // before what is held passes
		k.cut(false, false)
		r.Close()
	})
	return k
}

// cut holds what is sent, or what comes back, or lets it through again.
func (k *link) cut(out, back bool) {
	k.out.set(out)
	k.back.set(back)
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
