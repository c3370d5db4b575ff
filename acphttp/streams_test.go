package acphttp_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/internal/remotetest"
)

// TestStreamsEnd: a client does not keep the streams of sessions that it has not opened,
// or has closed, whatever it asked about them, and a server does not refuse a client that
// uses many sessions one after the other.
func TestStreamsEnd(t *testing.T) {
	// The program's limits are at 1,024 of each; the same happens at 20.
	limits, count := acphttp.Limits{MaxWaitingSessions: 20}, 120
	if long.All() {
		limits, count = acphttp.Limits{}, 5000
	}
	cfg := acp.SessionConfig{Cwd: "/"}
	prompted := func(ctx context.Context, conn *acp.ClientConn, _ acp.SessionID) error {
		s, err := conn.NewSession(ctx, cfg)
		if err != nil {
			return err
		}
		if _, err := s.Prompt(ctx, acp.Text("x")).Wait(); err != nil {
			return err
		}
		return s.Close(ctx)
	}
	missing := func(err error) error {
		if !acp.IsSessionNotFound(err) {
			return fmt.Errorf("the session exists: %w", err)
		}
		return nil
	}
	for _, way := range []struct {
		name     string
		stubborn bool // the agent does not support closing
		most     int
		use      func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error
	}{
		{"one after the other", false, count, prompted},
		{"without session/close", true, min(count, acp.MaxSessions-1), prompted},
		{"load", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			_, err := conn.Load(ctx, id, cfg)
			return missing(err)
		}},
		{"resume", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			_, err := conn.Resume(ctx, id, cfg)
			return missing(err)
		}},
		{"status", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			_, err := conn.Status(ctx, id)
			return err
		}},
		{"title", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			_, err := conn.SetTitle(ctx, id, "title")
			return err
		}},
		{"close", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			return conn.CloseSession(ctx, id)
		}},
		{"delete", false, count, func(ctx context.Context, conn *acp.ClientConn, id acp.SessionID) error {
			return conn.Delete(ctx, id)
		}},
	} {
		for v := 1; v <= 2; v++ {
			if way.stubborn && v == 2 {
				continue // where every agent supports closing
			}
			t.Run(fmt.Sprintf("%s in version %d", way.name, v), func(t *testing.T) {
				conn, most := streamsOf(t, limits, v, way.stubborn)
				for i := range way.most {
					if err := way.use(t.Context(), conn, acp.SessionID(fmt.Sprint("missing", i))); err != nil {
						t.Fatalf("session %d: %v", i, err)
					}
				}
				if n := most(); n > 40 { // those that are ended may overlap
					t.Errorf("%d streams at once", n)
				}
				if n := len(conn.OpenSessions()); n != 0 {
					t.Errorf("%d sessions are open", n)
				}
			})
		}
	}
}

// streamsOf connects a client with an agent that knows no earlier session. most returns
// how many streams there were at once.
func streamsOf(t *testing.T, limits acphttp.Limits, version int, stubborn bool) (conn *acp.ClientConn, most func() int64) {
	agent := &acp.Agent{
		Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
			return acp.SessionNotFound(s.ID())
		},
		SessionStatus: func(context.Context, *acp.AgentConn, acp.SessionID) (acp.SessionStatus, error) {
			return acpv2.SessionStatusSaved, nil
		},
		SetTitle: func(_ context.Context, _ *acp.AgentConn, _ acp.SessionID, title string) (string, error) {
			return title, nil
		},
		DeleteSession: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID) error { return acp.SessionNotFound(id) },
		ListSessions:  func(context.Context, *acp.AgentConn, *acp.SessionQuery) (*acp.SessionPage, error) { return nil, nil },
		CloseSession:  func(context.Context, *acp.AgentSession) error { return nil },
	}
	if stubborn {
		agent.CloseSession = nil
	}
	s := &acphttp.Server{Serve: agent.Serve, Limits: limits, Keep: acphttp.Retention{Bytes: 1 << 16}}
	var open, peak atomic.Int64
	url := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			n := open.Add(1)
			defer open.Add(-1)
			for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
			}
		}
		s.ServeHTTP(w, r)
	})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	client := &acp.Client{MaxVersion: version}
	conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, peak.Load
}

// TestStreamAgain: the stream of a session that was left brings nothing twice when the
// session is opened again, whether or not the server has forgotten it.
func TestStreamAgain(t *testing.T) {
	for _, others := range []int{30, 60} { // the server keeps 41 streams
		var prompts atomic.Int64
		agent := remembering(t, &prompts)
		agent.CloseSession = nil
		s := &acphttp.Server{Serve: agent.Serve, Keep: acphttp.Retention{Bytes: 1 << 20}, Limits: acphttp.Limits{MaxWaitingSessions: 20}}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		said := ""
		client := &acp.Client{MaxVersion: 1, Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) { said += u.Text() }}
		conn, err := client.Connect(t.Context(), acphttp.NewTransport(serveHandler(t, s.ServeHTTP)))
		if err != nil {
			t.Fatal(err)
		}
		first := begin(t, conn)
		if _, err := first.Prompt(t.Context(), acp.Text("3")).Wait(); err != nil {
			t.Fatal(err)
		}
		for session := first; ; session = begin(t, conn) {
			if err := session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if others--; others < 0 {
				break
			}
		}
		said = ""
		again, err := conn.Load(t.Context(), first.ID(), acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if said != remotetest.Numbers(3) {
			t.Errorf("replayed %q", said)
		}
		if text, _, err := again.Prompt(t.Context(), acp.Text("4")).Text(); err != nil || text != remotetest.Numbers(4) {
			t.Error(text, err)
		}
		_ = conn.Close()
	}
}

// TestNoMessageLimit: the highest limits are as good as none.
func TestNoMessageLimit(t *testing.T) {
	limits := acphttp.Limits{MaxMessage: math.MaxInt, MaxUnread: math.MaxInt}
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve, Limits: limits}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	transport := acphttp.NewTransport(serveHandler(t, s.ServeHTTP))
	transport.MaxMessage = math.MaxInt
	conn, err := new(acp.Client).Connect(t.Context(), transport)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, _, err := begin(t, conn).Prompt(t.Context(), acp.Text("3")).Text(); err != nil || text != remotetest.Numbers(3) {
		t.Error(text, err)
	}
}

// TestTooManyStreams: a client that has too many streams open learns what it can do.
func TestTooManyStreams(t *testing.T) {
	c := newRaw(t, serve(t, &acphttp.Server{Serve: remotetest.Counting(t).Serve, Limits: acphttp.Limits{MaxWaitingSessions: 2}}))
	c.initialize()
	for i := range 10 {
		resp := c.do(http.MethodGet, "", sessionHeader(fmt.Sprint("s", i)))
		if resp.StatusCode == http.StatusOK {
			t.Cleanup(func() { _ = resp.Body.Close() })
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), "too many sessions are open on this connection; close some") {
			t.Errorf("%d: %d, %q, %v", i, resp.StatusCode, text, err)
		}
		return
	}
	t.Error("there is no bound")
}
