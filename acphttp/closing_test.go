package acphttp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

// An outage breaks the streams that pass through it: hole loses what is sent and leaves
// them open, cut breaks them, and while it is down there are none.
type outage struct {
	down, hole atomic.Bool
	mu         sync.Mutex
	open       map[*http.Request]context.CancelFunc
}

type holed struct {
	http.ResponseWriter
	o *outage
}

func (h holed) Write(p []byte) (int, error) {
	if h.o.hole.Load() {
		return len(p), nil
	}
	return h.ResponseWriter.Write(p)
}

func (h holed) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (o *outage) around(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			h.ServeHTTP(w, r)
			return
		}
		if o.down.Load() {
			panic(http.ErrAbortHandler)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		o.mu.Lock()
		if o.open == nil {
			o.open = make(map[*http.Request]context.CancelFunc)
		}
		o.open[r] = cancel
		o.mu.Unlock()
		h.ServeHTTP(holed{w, o}, r)
		o.mu.Lock()
		delete(o.open, r)
		o.mu.Unlock()
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func (o *outage) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, cancel := range o.open {
		cancel()
	}
}

// closable is an agent whose sessions can be closed and opened again.
func closable(t *testing.T) *acp.Agent {
	var prompts atomic.Int64
	agent := remembering(t, &prompts)
	agent.CloseSession = func(context.Context, *acp.AgentSession) error { return nil }
	agent.DeleteSession = func(context.Context, *acp.AgentConn, acp.SessionID) error { return nil }
	return agent
}

// withClient runs a test in a bubble with a client of a server, through an outage.
func withClient(t *testing.T, s *acphttp.Server, client *acp.Client, f func(t *testing.T, o *outage, conn *acp.ClientConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := new(outage)
		s.Logger = cmp.Or(s.Logger, logtest.New(t))
		transport, stop := listen(o.around(s))
		conn, err := client.Connect(t.Context(), &acphttp.Transport{URL: "http://agent/acp", Client: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		f(t, o, conn)
		_ = conn.Close()
		_ = s.Close(context.Background())
		stop()
		synctest.Wait()
	})
}

func begin(t *testing.T, conn *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func beginAndClose(t *testing.T, conn *acp.ClientConn) {
	t.Helper()
	if err := begin(t, conn).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func counts(t *testing.T, session *acp.ClientSession) {
	t.Helper()
	if text, _, err := session.Prompt(t.Context(), acp.Text("3")).Text(); err != nil || text != remotetest.Numbers(3) {
		t.Error(text, err)
	}
}

// TestAgentEnds: a client notices the end of its agent at once, also where it could
// resume.
func TestAgentEnds(t *testing.T) {
	for _, keep := range []int{0, 1 << 20} {
		var stop context.CancelFunc
		agent := remotetest.Counting(t)
		s := &acphttp.Server{Keep: acphttp.Retention{Bytes: keep}, Serve: func(ctx context.Context, t acp.Transport) error {
			ctx, stop = context.WithCancel(ctx)
			return agent.Serve(ctx, t)
		}}
		withClient(t, s, new(acp.Client), func(t *testing.T, _ *outage, conn *acp.ClientConn) {
			counts(t, begin(t, conn))
			began := time.Now()
			stop()
			<-conn.Done()
			if d := time.Since(began); d > 0 {
				t.Errorf("keep %d: noticed after %v", keep, d)
			}
		})
	}
}

// TestOutages: what happens to the streams of closed and deleted sessions in an outage
// does not harm the others, and loses nothing.
func TestOutages(t *testing.T) {
	for name, f := range map[string]func(t *testing.T, o *outage, conn *acp.ClientConn){
		"after delete": func(t *testing.T, o *outage, conn *acp.ClientConn) {
			session := begin(t, conn)
			if err := begin(t, conn).Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.cut()
			time.Sleep(time.Second)
			counts(t, session)
		},
		"while many are closed": func(t *testing.T, o *outage, conn *acp.ClientConn) {
			session := begin(t, conn)
			var closing sync.WaitGroup
			var failed atomic.Int64
			var others []*acp.ClientSession
			for range 39 {
				others = append(others, begin(t, conn))
			}
			o.hole.Store(true)
			for _, other := range others {
				closing.Go(func() {
					if other.Close(t.Context()) != nil {
						failed.Add(1)
					}
				})
			}
			time.Sleep(time.Second)
			o.down.Store(true)
			o.cut()
			time.Sleep(time.Second)
			o.hole.Store(false)
			o.down.Store(false)
			closing.Wait()
			if n := failed.Load(); n > 0 {
				t.Errorf("%d have failed", n)
			}
			counts(t, session)
		},
		"after a session was opened again": func(t *testing.T, o *outage, conn *acp.ClientConn) {
			first := begin(t, conn)
			counts(t, first)
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 16 {
				beginAndClose(t, conn)
			}
			synctest.Wait() // the first is not read any more
			again, err := conn.Load(t.Context(), first.ID(), acp.SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			for range 60 {
				beginAndClose(t, conn)
			}
			counts(t, again)
			if err := again.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			session := begin(t, conn)
			o.down.Store(true)
			o.cut()
			time.Sleep(time.Second)
			o.down.Store(false)
			time.Sleep(3 * time.Second)
			counts(t, session)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &acphttp.Server{Keep: acphttp.Retention{Bytes: 1 << 20}, Serve: closable(t).Serve}
			withClient(t, s, new(acp.Client), f)
		})
	}
}

// TestEndUnread: the answer to session/close is not skipped by who asks for everything
// since the session was opened, and does not count as waiting for ever.
func TestEndUnread(t *testing.T) {
	s := &acphttp.Server{Serve: closable(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 10}, Limits: acphttp.Limits{MaxWaitingSessions: 20}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		session, connection := c.session()
		for i := range 50 {
			if got := c.status(http.MethodPost, closeSession(10+i, session), sessionHeader(session)); got != 202 {
				t.Fatal(i, got)
			}
			synctest.Wait()
			events := c.stream(sessionHeader(session), "Last-Event-ID: "+c.connection[:8])
			if _, data := events.next(); !strings.Contains(data, `"result"`) {
				t.Fatal(data)
			}
			events.close()
			synctest.Wait()
			if got := c.status(http.MethodPost, strings.Replace(newSession, `"id":2`, fmt.Sprintf(`"id":%d`, 1000+i), 1)); got != 202 {
				t.Fatal(i, got)
			}
			session = c.newSessionID(connection)
		}
	})
}

// TestForgotten: cursors of a stream that was forgotten are refused, also where there is
// another one for the same session.
func TestForgotten(t *testing.T) {
	s := &acphttp.Server{Serve: closable(t).Serve, Keep: acphttp.Retention{Bytes: 1 << 10}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		first, connection := c.session()
		session := first
		for i := range 70 {
			events := c.stream(sessionHeader(session))
			if got := c.status(http.MethodPost, closeSession(10+i, session), sessionHeader(session)); got != 202 {
				t.Fatal(got)
			}
			events.next()
			events.close()
			synctest.Wait()
			if got := c.status(http.MethodPost, strings.Replace(newSession, `"id":2`, fmt.Sprintf(`"id":%d`, 1000+i), 1)); got != 202 {
				t.Fatal(got)
			}
			session = c.newSessionID(connection)
		}
		again := c.stream(sessionHeader(first)) // a new one
		for _, number := range []string{"0", "1"} {
			if got := c.status(http.MethodGet, "", sessionHeader(first), "Last-Event-ID: "+c.connection[:8]+"-"+number); got != 409 {
				t.Error(number, got)
			}
		}
		cursor := again.resp.Header.Get("Last-Event-ID")
		if got := c.do(http.MethodGet, "", sessionHeader(first), "Last-Event-ID: "+cursor); got.StatusCode != 200 {
			t.Error(cursor, got.Status)
		} else {
			got.Body.Close()
		}
	})
}

// lasting is a log that outlives its stream.
type lasting struct {
	acphttp.Log
	t      *testing.T
	closed bool
}

func (l *lasting) Close() error {
	l.closed = true
	return nil
}

func (l *lasting) Last() uint64 {
	if l.closed {
		l.t.Error("Last after Close")
	}
	return l.Log.Last()
}

// TestLogAgain: a log that finds its events again does not make a session that is
// opened again begin with what was before.
func TestLogAgain(t *testing.T) {
	logs := make(map[string]*lasting)
	s := &acphttp.Server{Serve: closable(t).Serve}
	s.NewLog = func(connection, session string) (acphttp.Log, error) { // one at a time: there is one connection
		l := logs[session]
		if l == nil {
			l = &lasting{Log: acphttp.NewLog(acphttp.Retention{Bytes: 1 << 20}), t: t}
			logs[session] = l
		}
		l.closed = false
		return l, nil
	}
	var said strings.Builder
	client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) { said.WriteString(u.Text()) }}
	withClient(t, s, client, func(t *testing.T, _ *outage, conn *acp.ClientConn) {
		first := begin(t, conn)
		counts(t, first)
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 90 {
			beginAndClose(t, conn)
		}
		said.Reset()
		if _, err := conn.Load(t.Context(), first.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		if said.String() != remotetest.Numbers(3) {
			t.Errorf("replayed %q", said.String())
		}
	})
}

// TestClosedBusy: sessions that are closed while a prompt is in flight do not keep their
// streams.
func TestClosedBusy(t *testing.T) {
	p, url := newPeer(t)
	var n, open, most atomic.Int64
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		session := r.Header.Get(acphttp.HeaderSessionID)
		switch method {
		case "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(acphttp.HeaderConnectionID, "c1")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}}}}`, id)
			return true
		case "session/new":
			p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s%d"}}`, id, n.Add(1))
		case "session/close":
			p.stream(session) <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		}
		w.WriteHeader(http.StatusAccepted)
		return true
	}
	p.get = func(w http.ResponseWriter, r *http.Request, session string) bool {
		if now := open.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer open.Add(-1)
		p.events(w, r, p.stream(session))
		return true
	}
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), acphttp.NewTransport(url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 60 {
		session := begin(t, conn)
		reply := session.Prompt(t.Context(), acp.Text("x"))
		if err := session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := reply.Wait(); err == nil {
			t.Error("an answer")
		}
	}
	if n := most.Load(); n > 40 { // those that are ended may overlap
		t.Errorf("%d streams at once", n)
	}
}

// TestLeftCall: a call that has no answer when the stream of its closed session is left
// has an unknown outcome.
func TestLeftCall(t *testing.T) {
	hold, began := make(chan struct{}), make(chan struct{})
	slow := jsonrpc.Method[map[string]any, map[string]any]{Name: "_slow"}
	agent := closable(t)
	agent.Extensions = func(mux *jsonrpc.Mux) {
		slow.Handle(mux, func(context.Context, *map[string]any) (*map[string]any, error) {
			close(began)
			<-hold
			return new(map[string]any), nil
		})
	}
	conn, err := new(acp.Client).Connect(t.Context(), acphttp.NewTransport(serve(t, &acphttp.Server{Serve: agent.Serve})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer close(hold)
	first := begin(t, conn)
	failed := make(chan error, 1)
	go func() {
		_, err := slow.Call(t.Context(), conn.Conn(), &map[string]any{"sessionId": first.ID()})
		failed <- err
	}()
	<-began
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		beginAndClose(t, conn)
	}
	if err := <-failed; !errors.Is(err, acp.ErrOutcomeUnknown) {
		t.Error(err)
	}
}

// TestResendStalls: a WebSocket that stalls while what is missing is sent again is given
// up, and at once when the stream is closed.
func TestResendStalls(t *testing.T) {
	for name, wait := range map[string]time.Duration{"given up": time.Minute, "closed": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newPausing(), newPausing()
				second.in <- []byte(`{"jsonrpc":"2.0","method":"stream/resumed","params":{"received":0}}`)
				dials := 0
				stream := acphttp.NewMessageStream(first, acphttp.MessageOptions{
					Header: http.Header{"Last-Event-Id": {"abc-0"}, "Acp-Connection-Id": {"c"}},
					Redial: func(context.Context) (acphttp.Messages, error) {
						if dials++; dials > 1 {
							return nil, io.ErrClosedPipe
						}
						return second, nil
					},
				})
				go func() { first.let <- struct{}{} }()
				if err := stream.WriteFrame([]byte(`{}`)); err != nil {
					t.Fatal(err)
				}
				go func() { second.let <- struct{}{} }() // the question, and no more
				first.Close(1006, "")
				read := make(chan error, 1)
				go func() {
					_, err := stream.ReadFrame()
					read <- err
				}()
				began := time.Now()
				if name == "closed" {
					time.Sleep(wait)
					_ = stream.Close()
				}
				<-second.closed
				if d := time.Since(began); d != wait {
					t.Error("given up after", d)
				}
				<-read
				_ = stream.Close()
			})
		})
	}
}
