package serve

import (
	"net"
	"net/netip"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// maxFrom bounds the connections of one address at a time: one client must not take all that this process can have. An IPv6
// network of 64 bits counts as one address. Addresses of this machine, and proxies, are not bounded.
const maxFrom = 256

// A bounded listener closes connections of an address that has too many.
type bounded struct {
	*net.TCPListener
	gate *identity.Gate

	mu   sync.Mutex
	from map[netip.Prefix]int
}

func listenBounded(address *net.TCPAddr, gate *identity.Gate) (net.Listener, error) {
	l, err := net.ListenTCP("tcp", address)
	if err != nil {
		return nil, err
	}
	return &bounded{TCPListener: l, gate: gate, from: make(map[netip.Prefix]int)}, nil
}

// Accept implements [net.Listener].
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.AcceptTCP()
		if err != nil {
			return nil, err
		}
		at, _ := c.RemoteAddr().(*net.TCPAddr)
		if done, ok := b.admit(at.AddrPort().Addr().Unmap()); ok {
			return &counted{TCPConn: c, done: done}, nil
		}
		_ = c.Close()
	}
}

// admit counts a connection of an address, until done is called. It reports false if there are too many.
func (b *bounded) admit(addr netip.Addr) (done func(), ok bool) {
	if !addr.IsValid() || addr.IsLoopback() || b.gate.IsProxy(addr) {
		return func() {}, true
	}
	key := identity.Network(addr)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from[key] >= maxFrom {
		return nil, false
	}
	b.from[key]++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.from[key]--; b.from[key] == 0 {
			delete(b.from, key)
		}
	}), true
}

// A counted connection is one until it is closed, whoever has taken it over.
type counted struct {
	*net.TCPConn
	done func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	defer c.done()
	return c.TCPConn.Close()
}
