package acphttp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/remotetest"
)

// A halfCloser passes connections on to a server. Once it is armed, it closes what goes to the server, and only that,
// after some bytes: what a server has to say of it arrives.
type halfCloser struct {
	target string
	after  int

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	left  int // how many connections are still to be closed
	torn  int
}

func newHalfCloser(t *testing.T, target string, after int) (h *halfCloser, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h = &halfCloser{target: target, after: after}
	h.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.wg.Go(func() { h.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.conns = nil
		h.mu.Unlock()
		h.wg.Wait()
	})
	return h, l.Addr().String()
}

func (h *halfCloser) arm(connections int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = connections
}

func (h *halfCloser) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", h.target)
	if err != nil {
		return
	}
	defer s.Close()
	h.mu.Lock()
	h.conns = append(h.conns, c, s)
	h.mu.Unlock()
	h.wg.Go(func() {
		defer s.(*net.TCPConn).CloseWrite()
		buf, passed, closed := make([]byte, 4<<10), 0, false
		for {
			n, err := c.Read(buf)
			if closed { // of what the client says then, nothing arrives
				n = 0
			}
			h.mu.Lock()
			if h.left > 0 && n > 0 {
				if passed += n; passed > h.after {
					n -= passed - h.after
					h.left--
					h.torn++
					closed = true
				}
			}
			h.mu.Unlock()
			if _, wrong := s.Write(buf[:n]); wrong != nil || err != nil {
				return
			}
			if closed {
				_ = s.(*net.TCPConn).CloseWrite()
			}
		}
	})
	_, _ = io.Copy(c, s)
}

// TestTorn: requests that end before they are whole, and are answered with 400 for that, are made again, wherever they
// were cut off. (S93)
func TestTorn(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 20}}
	at, err := url.Parse(serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	step := 9
	if !long.All() {
		step = 51
	}
	for after := 0; after < 900; after += step {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			h, address := newHalfCloser(t, at.Host, after)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // only against hanging
			defer cancel()
			conn, err := new(acp.Client).Connect(ctx, acphttp.NewTransport("http://"+address+at.Path))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			h.arm(6)
			session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := session.Prompt(ctx, acp.Text("40")).Text()
			if err != nil || text != remotetest.Numbers(40) {
				t.Fatalf("%q, %v", text, err)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.torn == 0 && after < 300 {
				t.Error("nothing was closed")
			}
		})
	}
}
