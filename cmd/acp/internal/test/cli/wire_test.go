package cli

import (
	"io"
	"net"
	"net/url"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// A wire is the network between the programs of a script and a server.
type wire struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

type wireKey struct{}

// wired is the command wire: it has what is said to the server NAME pass through a network that can break, and sets NAME
// and what follows from it to the address there. With -cut, connections end, and further ones do; with -mend no more.
func wired(ts *testscript.TestScript, neg bool, args []string) {
	all, _ := ts.Value(wireKey{}).(map[string]*wire)
	if neg || len(args) == 0 || all == nil {
		ts.Fatalf("usage: wire [-cut | -mend] NAME")
	}
	name := args[len(args)-1]
	switch w := all[name]; {
	case len(args) == 2 && w != nil && args[0] == "-cut":
		w.set(true)
	case len(args) == 2 && w != nil && args[0] == "-mend":
		w.set(false)
	case len(args) == 1 && w == nil:
		u, err := url.Parse(ts.Getenv(name))
		ts.Check(err)
		w, err := newWire(u.Host)
		ts.Check(err)
		ts.Defer(w.close)
		all[name] = w
		u.Host = w.listener.Addr().String()
		setAddress(ts, name, u.String())
	default:
		ts.Fatalf("usage: wire [-cut | -mend] NAME")
	}
}

func newWire(target string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	w.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			w.work.Go(func() { w.pass(near) })
		}
	})
	return w, nil
}

// add notes connections. It reports false if the network is down.
func (w *wire) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = struct{}{}
	}
	return !w.down
}

func (w *wire) pass(near net.Conn) {
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		_ = near.Close()
		return
	}
	drop := func() { _, _ = near.Close(), far.Close() }
	if !w.add(near, far) {
		drop()
	}
	var both sync.WaitGroup
	for _, dir := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(dir[0], dir[1])
			drop()
		})
	}
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, near)
	delete(w.conns, far)
}

// set breaks the network, or mends it.
func (w *wire) set(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for c := range w.conns {
		_ = c.Close()
	}
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.set(true)
	w.work.Wait()
}
