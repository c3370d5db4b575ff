package acphttp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

// A memoryNet is a network in memory, on which time is virtual in a bubble.
type memoryNet struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (n *memoryNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *memoryNet) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

func (n *memoryNet) Addr() net.Addr { return new(net.UnixAddr) }

func (n *memoryNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case n.conns <- b:
		return a, nil
	case <-n.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listen serves a handler on a network in memory, and returns how to reach it.
func listen(h http.Handler) (transport *http.Transport, stop func()) {
	network := &memoryNet{conns: make(chan net.Conn), done: make(chan struct{})}
	web := &http.Server{Handler: h}
	go func() { _ = web.Serve(network) }()
	transport = &http.Transport{DialContext: network.dial}
	return transport, func() {
		transport.CloseIdleConnections()
		_ = web.Close()
	}
}

// inBubble runs a test with a server in a bubble.
func inBubble(t *testing.T, s *acphttp.Server, f func(t *testing.T, c *rawClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.Logger = cmp.Or(s.Logger, logtest.New(t))
		transport, stop := listen(s)
		c := &rawClient{t: t, url: "http://agent/acp", client: &http.Client{Transport: transport}}
		defer func() {
			_ = s.Close(context.Background())
			stop()
			synctest.Wait()
		}()
		f(t, c)
	})
}

// TestIdle: a connection without an open request ends after a while, and one with a
// reader does not.
func TestIdle(t *testing.T) {
	ended := make(chan error, 2)
	agent := remotetest.Counting(t)
	s := &acphttp.Server{Serve: func(ctx context.Context, t acp.Transport) error {
		err := agent.Serve(ctx, t)
		ended <- err
		return err
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		c.initialize()
		time.Sleep(9 * time.Minute)
		if got := c.status(http.MethodPost, `{"jsonrpc":"2.0","method":"_x"}`); got != 202 {
			t.Error(got)
		}
		stream := c.stream()
		go func() { _, _ = io.Copy(io.Discard, stream.r) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the connection ended although it has a reader:", <-ended)
		}
		stream.close()
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the connection ended too early:", <-ended)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatal("the connection lives on")
		}
		<-ended
		if got := c.status(http.MethodGet, ""); got != 404 {
			t.Error(got)
		}
	})
}

// TestIdleInitialize: a connection is not given up while its agent takes long to answer the initialize that begins it.
func TestIdleInitialize(t *testing.T) {
	ended := make(chan error, 1)
	agent := remotetest.Counting(t)
	s := &acphttp.Server{Limits: acphttp.Limits{IdleTimeout: time.Second}, Serve: func(ctx context.Context, t acp.Transport) error {
		time.Sleep(10 * time.Second)
		err := agent.Serve(ctx, t)
		ended <- err
		return err
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		c.initialize()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("the connection ended too early:", <-ended)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the connection lives on")
		}
	})
}

// TestKeepAlive: a silent stream is kept open.
func TestKeepAlive(t *testing.T) {
	inBubble(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve}, func(t *testing.T, c *rawClient) {
		c.initialize()
		s := c.stream()
		defer s.close()
		began := time.Now()
		for i := range 3 {
			line, err := s.r.ReadString('\n')
			if err != nil || line != ":\n" {
				t.Fatalf("%q %v", line, err)
			}
			_, _ = s.r.ReadString('\n')
			if want := time.Duration(i+1) * 15 * time.Second; time.Since(began) != want {
				t.Errorf("after %v, want %v", time.Since(began), want)
			}
		}
	})
}

// TestSilentAgent: initialize is answered within a bound.
func TestSilentAgent(t *testing.T) {
	s := &acphttp.Server{Serve: func(ctx context.Context, t acp.Transport) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		if got := c.status(http.MethodPost, initialize); got != 504 {
			t.Error(got)
		}
	})
}

// TestConnections: beyond the bound a connection is refused, and one that has ended
// makes room.
func TestConnections(t *testing.T) {
	s := &acphttp.Server{
		Serve: remotetest.Counting(t).Serve,
		Authenticate: func(r *http.Request) (string, error) {
			return r.Header.Get("Authorization"), nil
		},
		Limits: acphttp.Limits{MaxConnections: 3, MaxPerPrincipal: 2},
	}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		var second string
		for i, test := range []struct {
			name string
			want int
		}{{"a", 200}, {"a", 200}, {"a", 503}, {"b", 200}, {"b", 503}} {
			resp := c.do(http.MethodPost, initialize, "Authorization: "+test.name)
			_ = resp.Body.Close()
			if resp.StatusCode != test.want || (test.want == 503) != (resp.Header.Get("Retry-After") != "") {
				t.Errorf("%d: %s %v", i, resp.Status, resp.Header)
			}
			if i == 1 {
				second = resp.Header.Get(acphttp.HeaderConnectionID)
			}
		}
		c.connection = second
		if got := c.status(http.MethodDelete, "", "Authorization: a"); got != 202 {
			t.Fatal(got)
		}
		synctest.Wait()
		c.connection = ""
		if got := c.status(http.MethodPost, initialize, "Authorization: b"); got != 200 {
			t.Error(got)
		}
	})
}

// TestStalledSession: a session whose client does not read holds up itself: others
// continue, it can be cancelled, and in the end its sends fail.
func TestStalledSession(t *testing.T) {
	for name, cancels := range map[string]bool{"cancelled": true, "given up": false} {
		t.Run(name, func(t *testing.T) {
			var ends chan error
			agent := remotetest.Counting(t)
			agent.Logger = logtest.New(t)
			run := agent.Prompt
			agent.Prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				reason, err := run(ctx, turn)
				if turn.Text() != "3" {
					ends <- err
				}
				return reason, err
			}
			s := &acphttp.Server{Serve: agent.Serve, Limits: acphttp.Limits{MaxUnsentSession: 64 << 10}}
			inBubble(t, s, func(t *testing.T, c *rawClient) {
				ends = make(chan error, 1)
				slow, connection := c.session()
				if got := c.status(http.MethodPost, prompt(3, slow, "1000000"), sessionHeader(slow)); got != 202 {
					t.Fatal(got)
				}
				synctest.Wait()
				if got := c.status(http.MethodPost, strings.Replace(newSession, `"id":2`, `"id":4`, 1)); got != 202 {
					t.Fatal(got)
				}
				quick := c.newSessionID(connection)
				events := c.stream(sessionHeader(quick))
				if got := c.status(http.MethodPost, prompt(5, quick, "3"), sessionHeader(quick)); got != 202 {
					t.Fatal(got)
				}
				for range 4 {
					events.next()
				}
				if cancels {
					cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, slow)
					if got := c.status(http.MethodPost, cancel, sessionHeader(slow)); got != 202 {
						t.Fatal(got)
					}
				}
				began := time.Now()
				switch err := <-ends; {
				case cancels && time.Since(began) != 5*time.Second: // the grace: the hook still sends
					t.Error("the cancel did not arrive:", time.Since(began), err)
				case !cancels && !errors.Is(err, acphttp.ErrStalled):
					t.Error(err)
				}
				late := c.stream(sessionHeader(slow)) // what had been sent is there
				for i := range 100 {
					if _, data := late.next(); !strings.Contains(data, fmt.Sprintf(`"%d,"`, i)) {
						t.Fatal(i, data)
					}
				}
				late.close()
				events.close()
				connection.close()
			})
		})
	}
}

// initialized opens the connection of a client, and answers its first request. The caller closes it.
func initialized(ctx context.Context, t acp.Transport) (jsonrpc.Stream, error) {
	stream, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = stream.ReadFrame(); err == nil {
		err = stream.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	}
	if err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// TestStalledConnection: an agent whose client reads nothing at all is held up, and
// the connection ends after a while.
func TestStalledConnection(t *testing.T) {
	var ended error
	var done chan struct{}
	sent := 0
	s := &acphttp.Server{
		Serve: func(ctx context.Context, t acp.Transport) error {
			defer close(done)
			stream, err := initialized(ctx, t)
			if err != nil {
				return err
			}
			defer stream.Close()
			note := []byte(`{"jsonrpc":"2.0","method":"_x","params":"` + strings.Repeat("x", 1000) + `"}`)
			for {
				if ended = stream.WriteFrame(note); ended != nil {
					return ended
				}
				sent += len(note)
			}
		},
		Limits: acphttp.Limits{MaxUnsent: 1 << 20},
	}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		done = make(chan struct{})
		began := time.Now()
		c.initialize()
		<-done
		if !errors.Is(ended, acphttp.ErrStalled) || time.Since(began) != time.Minute || sent < 1<<20-2000 || sent > 1<<20+2000 {
			t.Errorf("after %v and %d bytes: %v", time.Since(began), sent, ended)
		}
		if got := c.status(http.MethodGet, ""); got != 404 {
			t.Error(got)
		}
	})
}

// TestUnreadAnswers: what a client sends is not read any more once too much is held for it, or for all clients together and
// for it as well. It is read again as it reads, and one that reads nothing is ended.
func TestUnreadAnswers(t *testing.T) {
	const one, all = 64 << 10, 200 << 10
	for _, tt := range []struct {
		name  string
		other int // bytes held for somebody else
		held  int // and for the client
		waits bool
	}{
		{"little", 0, one / 2, false},
		{"too much", 0, one + 1, true},
		{"too much for all", all, all / 2, true},
		{"less than the share", all, all/2 - 1000, false},
		{"too much for others", all, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sizes, read := make(chan int, 2), make(chan string, 10)
			s := &acphttp.Server{
				Serve: func(ctx context.Context, t acp.Transport) error {
					stream, err := initialized(ctx, t)
					if err != nil {
						return err
					}
					defer stream.Close()
					if n := <-sizes; n > 0 {
						go stream.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"_x","params":"` + strings.Repeat("x", n) + `"}`))
					}
					for {
						if _, err := stream.ReadFrame(); err != nil {
							return err
						}
						read <- "read"
					}
				},
				Limits: acphttp.Limits{MaxUnsent: one, MaxUnsentAll: all},
			}
			if tt.other > one {
				s.Limits.MaxUnsent = 2 * all
			}
			inBubble(t, s, func(t *testing.T, c *rawClient) {
				other := *c
				sizes <- tt.other
				other.initialize()
				synctest.Wait()
				sizes <- tt.held
				c.initialize()
				synctest.Wait()
				if got := c.status(http.MethodPost, `{"jsonrpc":"2.0","method":"_x"}`); got != 202 {
					t.Fatal(got)
				}
				synctest.Wait()
				if waits := len(read) == 0; waits != tt.waits {
					t.Fatalf("it waits: %t", waits)
				}
				if !tt.waits {
					return
				}
				c.stream().next()
				synctest.Wait()
				if len(read) != 1 {
					t.Error("it waits although the client has read")
				}
			})
		})
	}
}

// deaf is an agent that answers initialize and reads nothing more.
func deaf(ctx context.Context, t acp.Transport) error {
	stream, err := initialized(ctx, t)
	if err != nil {
		return err
	}
	defer stream.Close()
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestUnread: requests to an agent that does not read are soon refused;
// notifications are accepted up to a bound, at which the connection ends.
func TestUnread(t *testing.T) {
	s := &acphttp.Server{Serve: deaf, Limits: acphttp.Limits{MaxUnread: 100 << 10, MaxMessage: 20 << 10}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		c.initialize()
		body := func(id string) string {
			return `{"jsonrpc":"2.0",` + id + `"method":"_x","params":["` + strings.Repeat("x", 10<<10) + `"]}`
		}
		for i := range 9 {
			if got := c.status(http.MethodPost, body(fmt.Sprintf(`"id":%d,`, i+2))); got != 202 {
				t.Fatal(i, got)
			}
		}
		began := time.Now()
		if got := c.status(http.MethodPost, body(`"id":99,`)); got != 503 || time.Since(began) != time.Second {
			t.Errorf("%d after %v", got, time.Since(began))
		}
		got, notes := 202, 0
		for ; got == 202; notes++ {
			got = c.status(http.MethodPost, body(""))
		}
		if got != 404 || notes < 11 || notes > 14 { // as much again, and one
			t.Error(got, notes)
		}
	})
}

// TestWaitingSessions: an agent that sends to more sessions than a client may leave
// unread loses its connection.
func TestWaitingSessions(t *testing.T) {
	var ended error
	var done chan struct{}
	n := 0
	s := &acphttp.Server{Serve: func(ctx context.Context, t acp.Transport) error {
		defer close(done)
		stream, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, _ = stream.ReadFrame()
		_ = stream.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		for ; ended == nil; n++ {
			ended = stream.WriteFrame(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"_x","params":{"sessionId":"s%d"}}`, n))
		}
		return ended
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		done = make(chan struct{})
		c.initialize()
		<-done
		if n != 1025 || !strings.Contains(fmt.Sprint(ended), "MaxWaitingSessions") {
			t.Error(n, ended)
		}
	})
}

// TestStreams: reading streams that nothing is sent to leaves nothing behind.
func TestStreams(t *testing.T) {
	inBubble(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve}, func(t *testing.T, c *rawClient) {
		c.initialize()
		for i := range 5000 {
			c.stream(sessionHeader(fmt.Sprint("s", i))).close()
			synctest.Wait()
		}
	})
}

// TestServerCloses: closing a server ends its connections; their clients see it.
func TestServerCloses(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		c.initialize()
		stream := c.stream()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if got := c.status(http.MethodPost, initialize, acphttp.HeaderConnectionID+":"); got != 503 {
			t.Error(got)
		}
		if got := c.status(http.MethodGet, ""); got != 404 {
			t.Error(got)
		}
	})
}

// TestBadNetwork: with resumption, a turn survives connections that go silent, and
// links that are slow in either direction.
func TestBadNetwork(t *testing.T) {
	for name, fault := range map[string]acptest.NetFault{
		"half-open at once": {Break: acptest.HalfOpen},
		"half-open later":   {Break: acptest.HalfOpen, After: 900},
		"slow":              {Piece: 7, Pause: 10 * time.Millisecond},
		"delayed":           {Delay: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 20}}
			synctest.Test(t, func(t *testing.T) {
				toServer, stopServer := listen(s)
				n := 0
				toProxy, stopProxy := listen(&acptest.FaultProxy{Target: "http://agent", Transport: toServer, Fault: func(r *http.Request, _ int) acptest.NetFault {
					if r.Method != http.MethodGet {
						return acptest.NetFault{}
					}
					if n++; n > 3 && fault.Break != acptest.NoBreak {
						return acptest.NetFault{}
					}
					return fault
				}})
				text, err := turn(t, &acphttp.Transport{URL: "http://proxy/acp", Client: &http.Client{Transport: toProxy}}, 60)
				if err != nil || text != remotetest.Numbers(60) {
					t.Errorf("%q, %v", text, err)
				}
				_ = s.Close(context.Background())
				stopProxy()
				stopServer()
				synctest.Wait()
			})
		})
	}
}
