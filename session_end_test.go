package acp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// ending is an agent that takes its time for everything, and what it has been asked.
type ending struct {
	agent                     *Agent
	conn                      atomic.Pointer[AgentConn]
	closed, deleted, archived atomic.Int32
	over                      atomic.Int32 // sessions whose contexts have ended
}

func newEnding() *ending {
	e := new(ending)
	opened := func(s *AgentSession) {
		e.conn.Store(s.Conn())
		context.AfterFunc(s.Context(), func() { e.over.Add(1) })
	}
	e.agent = &Agent{
		NewSession: func(_ context.Context, s *AgentSession) error {
			opened(s)
			time.Sleep(20 * time.Millisecond)
			return nil
		},
		ForkSession: func(_ context.Context, s *AgentSession, _ SessionID) error {
			opened(s)
			time.Sleep(20 * time.Millisecond)
			return nil
		},
		ResumeSession: func(_ context.Context, s *AgentSession, _ bool) error {
			opened(s)
			time.Sleep(20 * time.Millisecond)
			return nil
		},
		Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return "", ctx.Err()
		},
		ListSessions: func(context.Context, *AgentConn, *SessionQuery) (*SessionPage, error) { return nil, nil },
		CloseSession: func(ctx context.Context, _ *AgentSession) error {
			e.closed.Add(1)
			return ctx.Err()
		},
		DeleteSession: func(ctx context.Context, _ *AgentConn, _ SessionID) error {
			e.deleted.Add(1)
			return ctx.Err()
		},
		ArchiveSession: func(ctx context.Context, _ *AgentConn, _ SessionID, _ bool) error {
			e.archived.Add(1)
			return ctx.Err()
		},
	}
	return e
}

// settle waits until everything that was given up has ended, and checks that neither side has a session open then.
func (e *ending) settle(t *testing.T, conn *ClientConn) {
	t.Helper()
	time.Sleep(time.Second)
	if n := len(e.conn.Load().OpenSessions()); n != 0 {
		t.Errorf("the agent has %d sessions open", n)
	}
	if n := len(conn.OpenSessions()); n != 0 {
		t.Errorf("the client has %d sessions open", n)
	}
}

// givesUp calls a function that takes longer than its caller waits.
func givesUp(t *testing.T, after time.Duration, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was given up: %v", err)
	}
}

// endingLinks are the ways from a client to an agent.
var endingLinks = []struct {
	name    string
	connect func(t *testing.T, a *Agent) *ClientConn
}{
	{"version 1", func(t *testing.T, a *Agent) *ClientConn { s, _ := linkedOnly(t, a, 1); return s }},
	{"version 2", func(t *testing.T, a *Agent) *ClientConn { s, _ := linkedOnly(t, a, 2); return s }},
	{"bridge 1-1", func(t *testing.T, a *Agent) *ClientConn { return bridged(t, a, 1, &Client{}, 1) }},
	{"bridge 1-2", func(t *testing.T, a *Agent) *ClientConn { return bridged(t, a, 2, &Client{}, 1) }},
	{"bridge 2-1", func(t *testing.T, a *Agent) *ClientConn { return bridged(t, a, 1, &Client{}, 2) }},
	{"bridge 2-2", func(t *testing.T, a *Agent) *ClientConn { return bridged(t, a, 2, &Client{}, 2) }},
}

// eachLink runs a test on every way to an agent, in a bubble.
func eachLink(t *testing.T, f func(t *testing.T, e *ending, conn *ClientConn)) {
	for _, link := range endingLinks {
		t.Run(link.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnding()
				f(t, e, link.connect(t, e.agent))
			})
		})
	}
}

// TestEndGivenUp: a request that ends a session ends it, although its caller does not
// wait for that: the prompt in flight ends, each hook is called once, and both sides
// agree. Asking again is no harm.
func TestEndGivenUp(t *testing.T) {
	for _, way := range []struct {
		name string
		end  func(ctx context.Context, s *ClientSession) error
		want [3]int32 // calls of CloseSession, DeleteSession and ArchiveSession
	}{
		{"close", func(ctx context.Context, s *ClientSession) error { return s.Close(ctx) }, [3]int32{1, 0, 0}},
		{"delete", func(ctx context.Context, s *ClientSession) error { return s.Delete(ctx) }, [3]int32{1, 1, 0}},
		{"archive", func(ctx context.Context, s *ClientSession) error { return s.Conn().Archive(ctx, s.ID()) }, [3]int32{1, 0, 1}},
	} {
		t.Run(way.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, e *ending, conn *ClientConn) {
				s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
				if err != nil {
					t.Fatal(err)
				}
				r := s.Prompt(t.Context(), Text("x"))
				time.Sleep(2 * bridgeRefusal) // a version 1 agent behind a bridge has accepted it
				for range 2 {                 // the second joins the first
					givesUp(t, 100*time.Millisecond, func(ctx context.Context) error { return way.end(ctx, s) })
				}
				res, err := r.Wait()
				if (res == nil || res.StopReason != StopCancelled) && !errors.Is(err, ErrSessionClosed) {
					t.Errorf("the prompt: %v, %v", res, err)
				}
				e.settle(t, conn)
				if err := s.Close(t.Context()); err != nil {
					t.Errorf("closing it again: %v", err)
				}
				if got := [3]int32{e.closed.Load(), e.deleted.Load(), e.archived.Load()}; got != way.want {
					t.Errorf("hooks were called %v times instead of %v", got, way.want)
				}
				if e.over.Load() != 1 {
					t.Error("the session's context has not ended")
				}
			})
		})
	}
}

// TestOpeningGivenUp: a session that was opened for a request that was given up is
// closed, on both sides.
func TestOpeningGivenUp(t *testing.T) {
	for _, way := range []struct {
		name string
		open func(ctx context.Context, conn *ClientConn, id SessionID) error
	}{
		{"new", func(ctx context.Context, conn *ClientConn, _ SessionID) error {
			_, err := conn.NewSession(ctx, SessionConfig{Cwd: "/"})
			return err
		}},
		{"fork", func(ctx context.Context, conn *ClientConn, _ SessionID) error {
			_, err := conn.Fork(ctx, "source", SessionConfig{Cwd: "/"})
			return err
		}},
		{"resume", func(ctx context.Context, conn *ClientConn, id SessionID) error {
			_, err := conn.Resume(ctx, id, SessionConfig{Cwd: "/"})
			return err
		}},
		{"load", func(ctx context.Context, conn *ClientConn, id SessionID) error {
			_, err := conn.Load(ctx, id, SessionConfig{Cwd: "/"})
			return err
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, e *ending, conn *ClientConn) {
				for i := range 20 {
					givesUp(t, 5*time.Millisecond, func(ctx context.Context) error { return way.open(ctx, conn, SessionID(fmt.Sprint(i))) })
				}
				e.settle(t, conn)
				if n := e.closed.Load(); n != 20 {
					t.Errorf("CloseSession was called %d times", n)
				}
				if n := e.over.Load(); n != 20 {
					t.Errorf("the contexts of %d sessions have ended", n)
				}
			})
		})
	}
}

// TestLateOpening: an agent that does not notice that a request was given up opens a
// session, which is closed when its answer arrives.
func TestLateOpening(t *testing.T) {
	deaf := func(next jsonrpc.Handler) jsonrpc.Handler {
		return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
			return next(context.WithoutCancel(ctx), req)
		}
	}
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("version %d", v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnding()
				e.agent.Engine.Incoming = []jsonrpc.Middleware{deaf}
				conn, _ := linkedOnly(t, e.agent, v)
				if s, err := conn.NewSession(context.Background(), SessionConfig{Cwd: "/"}); err != nil {
					t.Error(err)
				} else if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				for range maxLateOpenings + 10 {
					givesUp(t, 5*time.Millisecond, func(ctx context.Context) error {
						_, err := conn.NewSession(ctx, SessionConfig{Cwd: "/"})
						return err
					})
				}
				e.settle(t, conn)
				if n := conn.lateOpenings.Load(); n != 0 {
					t.Errorf("%d openings are waited for", n)
				}
			})
		})
	}
}

// TestResumeWaitsForEnd: a session that is ending is not opened again before it has
// ended.
func TestResumeWaitsForEnd(t *testing.T) {
	eachLink(t, func(t *testing.T, e *ending, conn *ClientConn) {
		s, err := conn.Resume(t.Context(), "saved", SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		s.Prompt(t.Context(), Text("x"))
		time.Sleep(2 * bridgeRefusal)
		e.agent.CloseSession = nil // a copy is in use
		givesUp(t, 100*time.Millisecond, s.Close)
		again, err := conn.Resume(t.Context(), "saved", SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if e.closed.Load() != 1 || e.over.Load() != 1 {
			t.Errorf("it was opened again when %d hooks had been called and %d had ended", e.closed.Load(), e.over.Load())
		}
		time.Sleep(time.Second)
		if err := again.Close(t.Context()); err != nil || e.closed.Load() != 2 {
			t.Errorf("closed %d times, %v", e.closed.Load(), err)
		}
	})
}
