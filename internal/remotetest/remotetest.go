// Package remotetest is what the tests of the transports of the network share: an agent that counts, and a network that
// can be cut. For tests only.
package remotetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/logtest"
)

// Counting returns an agent that says the numbers up to the one it is asked for, and logs to the output of a test.
func Counting(t testing.TB) *acp.Agent {
	return &acp.Agent{
		Logger: logtest.New(t),
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			var n int
			_, _ = fmt.Sscan(t.Text(), &n)
			for i := range n {
				if err := t.Say(fmt.Sprintf("%d,", i)); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		},
	}
}

// Numbers returns what Counting says.
func Numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()
}

// A network is one that can be cut: then its connections break, and nobody is reached.
type network struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// dial is the DialContext of a client.
func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, kind, address)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case n.cut:
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Err: errors.New("the network is cut")}
	}
	n.conns = append(n.conns, c)
	return c, nil
}

// set cuts the network, or mends it.
func (n *network) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	for _, c := range n.conns {
		if cut {
			_ = c.Close()
		}
	}
}

// Interrupted holds a transport to this: its client hears that the network fails while that is tried again, and that it
// works again; what was sent meanwhile arrives. open makes a transport to Counting at a server that keeps what it sends.
func Interrupted(t *testing.T, open func(client *http.Client, retryFor time.Duration, interrupted func(error)) acp.Transport) {
	t.Helper()
	var n network
	transport := &http.Transport{DialContext: n.dial}
	defer transport.CloseIdleConnections()
	heard := make(chan error, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // only against hanging
	defer cancel()
	conn, err := new(acp.Client).Connect(ctx, open(&http.Client{Transport: transport}, time.Hour, func(err error) { heard <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n.set(true)
		if err := <-heard; err == nil {
			t.Fatal("the first that is heard is that the network works")
		}
		reply := session.Prompt(ctx, acp.Text("3"))
		n.set(false)
		if text, _, err := reply.Text(); err != nil || text != Numbers(3) {
			t.Fatalf("%q, %v", text, err)
		}
		for want := false; ; want = !want { // an attempt that failed before may be noticed late
			if err := <-heard; (err != nil) != want {
				t.Fatalf("heard twice in a row: %v", err)
			}
			if len(heard) == 0 && !want {
				break
			}
		}
		if _, _, err := session.Prompt(ctx, acp.Text("1")).Text(); err != nil {
			t.Fatal(err)
		}
	}
}
