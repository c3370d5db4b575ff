package acphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/remotetest"
	"github.com/goacp/acp/jsonrpc"
)

func closeSession(id int, session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/close","params":{"sessionId":%q}}`, id, session)
}

// TestClosedSessions: the streams of sessions that were closed do not count for ever.
// The end of the newest can still be had after a broken connection.
func TestClosedSessions(t *testing.T) {
	for name, keep := range map[string]acphttp.Retention{"": {}, "resumable": {Bytes: 1 << 10}} {
		t.Run(name, func(t *testing.T) {
			agent := remotetest.Counting(t)
			agent.CloseSession = func(context.Context, *acp.AgentSession) error { return nil }
			s := &acphttp.Server{Serve: agent.Serve, Keep: keep, Limits: acphttp.Limits{MaxWaitingSessions: 20}}
			inBubble(t, s, func(t *testing.T, c *rawClient) {
				first, connection := c.session()
				session := first
				for i := range 200 {
					events := c.stream(sessionHeader(session))
					if got := c.status(http.MethodPost, closeSession(10+i, session), sessionHeader(session)); got != 202 {
						t.Fatal(got)
					}
					if _, data := events.next(); !strings.Contains(data, `"result"`) {
						t.Fatal(data)
					}
					events.close()
					synctest.Wait()
					if got := c.status(http.MethodPost, strings.Replace(newSession, `"id":2`, fmt.Sprintf(`"id":%d`, 1000+i), 1)); got != 202 {
						t.Fatal(got)
					}
					if name != "" { // the end again, and again from where it began
						for _, after := range []string{"-0", ""} {
							again := c.do(http.MethodGet, "", sessionHeader(session), "Last-Event-ID: "+c.connection[:8]+after)
							synctest.Wait()
							again.Body.Close()
							synctest.Wait()
							if again.StatusCode != 200 {
								t.Fatal(i, again.Status)
							}
						}
					}
					session = c.newSessionID(connection)
				}
				if name != "" { // of the oldest nothing is left
					if got := c.status(http.MethodGet, "", sessionHeader(first), "Last-Event-ID: "+c.connection[:8]+"-1"); got != 409 {
						t.Error(got)
					}
				}
			})
		})
	}
}

// TestManyClosed: a client does not read the streams of all sessions that it has ever
// closed, and may open one of them again.
func TestManyClosed(t *testing.T) {
	for _, keep := range []acphttp.Retention{{}, {Bytes: 1 << 20}} {
		var open, most, prompts atomic.Int64
		s := &acphttp.Server{Serve: remembering(t, &prompts).Serve, Keep: keep}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		url := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				if n := open.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer open.Add(-1)
			}
			s.ServeHTTP(w, r)
		})
		said := ""
		client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) { said += u.Text() }}
		conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
		if err != nil {
			t.Fatal(err)
		}
		var first *acp.ClientSession
		for i := range 60 {
			session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = session
				if _, err := session.Prompt(t.Context(), acp.Text("3")).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if err := session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if most.Load() > 30 {
			t.Errorf("%d streams at once", most.Load())
		}
		said = ""
		again, err := conn.Load(t.Context(), first.ID(), acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if said != remotetest.Numbers(3) {
			t.Errorf("replayed %q", said)
		}
		said = ""
		if text, _, err := again.Prompt(t.Context(), acp.Text("4")).Text(); err != nil || text != remotetest.Numbers(4) {
			t.Error(text, err)
		}
		_ = conn.Close()
	}
}

// serveHandler serves a handler.
func serveHandler(t *testing.T, h http.HandlerFunc) string {
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return web.URL
}

// TestSessionsApart: a session whose messages wait for their server holds up no other,
// and no more waits than is stated.
func TestSessionsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, streams: map[string]chan string{}, gets: map[string]int{}, done: make(chan struct{})}
		p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
			switch {
			case method == "session/new":
				p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s%s"}}`, id, id)
				w.WriteHeader(http.StatusAccepted)
				return true
			case r.ContentLength > 100<<10:
				<-p.done
				return true
			}
			return false
		}
		transport, stop := listen(p)
		conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{URL: "http://agent/acp", Client: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		stuck, well := begin(t, conn), begin(t, conn)
		var sent atomic.Int64
		var sending sync.WaitGroup
		sending.Go(func() {
			big := acp.Text(strings.Repeat("x", 300<<10))
			for range 20 {
				stuck.Prompt(t.Context(), big)
				sent.Add(1)
			}
		})
		synctest.Wait()
		// 1 MiB, and what the engine has in its buffer. All sessions have room for 218.
		if n := sent.Load(); n < 4 || n > 12 {
			t.Errorf("%d messages were sent", n)
		}
		for range 20 {
			if _, err := well.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close()
		sending.Wait()
		close(p.done)
		stop()
		synctest.Wait()
	})
}

// TestOddSessionID: a session whose id cannot be sent in a header cannot be used, and
// says so; others can.
func TestOddSessionID(t *testing.T) {
	p, url := newPeer(t)
	id := `"a\nb"`
	p.post = func(w http.ResponseWriter, r *http.Request, method string, call json.RawMessage) bool {
		if method == "session/new" {
			p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":%s}}`, call, id)
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		return false
	}
	odd := p.open(url)
	if _, err := odd.Prompt(t.Context(), acp.Text("x")).Wait(); err == nil || errors.Is(err, acp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "no value of a header") {
		t.Error(err)
	}
	id = `"s1"`
	well, err := odd.Conn().NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := well.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil {
		t.Error(err)
	}
}

// TestConflictQueued: of what belongs to a session in trouble, what was not sent
// certainly had no effect, and is not sent later.
func TestConflictQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, streams: map[string]chan string{}, gets: map[string]int{}, done: make(chan struct{})}
		queued := make(chan struct{})
		var posted atomic.Int64
		p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
			if !strings.HasPrefix(method, "_") {
				return false
			}
			if posted.Add(1) == 1 {
				<-queued
				http.Error(w, "load it again", http.StatusConflict)
			}
			return true
		}
		transport, stop := listen(p)
		conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{URL: "http://agent/acp", Client: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		params := map[string]any{"sessionId": begin(t, conn).ID()}
		var calls []*jsonrpc.Pending[json.RawMessage]
		for i := range 3 {
			method := jsonrpc.Method[map[string]any, json.RawMessage]{Name: fmt.Sprint("_", i)}
			pending, err := method.Start(t.Context(), conn.Conn(), &params)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, pending)
		}
		synctest.Wait() // the first is posted, the others wait behind it
		close(queued)
		for i, call := range calls {
			said := (*acphttp.StatusError)(nil)
			if _, err := call.Wait(); !errors.As(err, &said) || said.Status != 409 || errors.Is(err, acp.ErrOutcomeUnknown) {
				t.Error(i, err)
			}
		}
		if n := posted.Load(); n != 1 {
			t.Errorf("%d were sent", n)
		}
		close(p.done)
		_ = conn.Close()
		stop()
		synctest.Wait()
	})
}

// TestBusy: 503 without a time may come from a server in between that had passed the
// message on; with one it is from a server that did not want it.
func TestBusy(t *testing.T) {
	for after, want := range map[string]bool{"": true, "0": true, "1": false} {
		p, url := newPeer(t)
		n := 0
		p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
			if n++; method != "session/prompt" || n > 3 {
				return false
			}
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		session := p.open(url)
		if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); errors.Is(err, acp.ErrOutcomeUnknown) != want || !want && err != nil {
			t.Errorf("Retry-After %q: %v", after, err)
		}
	}
}

// TestLoadFence: where the answer to session/load overtakes the history, the client
// waits for that.
func TestLoadFence(t *testing.T) {
	history := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"history"}}}}`
	for name, answers := range map[string]bool{"answered": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			p, url := newPeer(t)
			p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
				switch {
				case method == "session/load":
					p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
				case strings.HasPrefix(method, "_"):
					p.stream("old") <- history
					if !answers {
						w.WriteHeader(http.StatusBadRequest)
						return true
					}
					p.stream("old") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
				}
				return false
			}
			got := make(chan string, 10)
			client := &acp.Client{MaxVersion: 1, Update: func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
				got <- fmt.Sprint(u.Text(), " ", u.Replayed)
			}}
			conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Load(t.Context(), "old", acp.SessionConfig{Cwd: "/"}); err != nil {
				t.Fatal(err)
			}
			if answers && len(got) != 1 {
				t.Error("the answer came before the history")
			}
			if text := <-got; answers && text != "history true" {
				t.Error(text)
			}
		})
	}
}

// TestFenceEnds: the answer to session/load waits for an agent that says nothing for 5 s,
// and not for a connection that has ended.
func TestFenceEnds(t *testing.T) {
	for name, want := range map[string]time.Duration{"silent": 5 * time.Second, "ended": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{t: t, streams: map[string]chan string{}, gets: map[string]int{}, done: make(chan struct{})}
				p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
					switch {
					case method == "session/load":
						p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
					case strings.HasPrefix(method, "_") && name == "ended":
						p.stream("") <- ""
					}
					return false
				}
				transport, stop := listen(p)
				conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{URL: "http://agent/acp", Client: &http.Client{Transport: transport}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = conn.Load(t.Context(), "old", acp.SessionConfig{Cwd: "/"})
				if d := time.Since(began); err != nil || d != want {
					t.Error(d, err)
				}
				close(p.done)
				_ = conn.Close()
				stop()
				synctest.Wait()
			})
		})
	}
}

// TestLeft: an agent that heeds nothing but its ctx ends after its client.
func TestLeft(t *testing.T) {
	var logged strings.Builder
	var left chan struct{}
	s := &acphttp.Server{Logger: slog.New(slog.NewTextHandler(&logged, nil)), Serve: func(ctx context.Context, t acp.Transport) error {
		stream, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, _ = stream.ReadFrame()
		_ = stream.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		<-ctx.Done()
		close(left)
		_, err = stream.ReadFrame()
		return err // io.EOF
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		left = make(chan struct{})
		c.initialize()
		if got := c.status(http.MethodDelete, ""); got != 202 {
			t.Fatal(got)
		}
		began := time.Now()
		<-left
		if d := time.Since(began); d != 10*time.Second {
			t.Error(d)
		}
		synctest.Wait()
		if logged.Len() > 0 {
			t.Error(logged.String())
		}
	})
}

// TestLastWords: what an agent said before it ended can be fetched again where streams
// can be resumed, until the client leaves.
func TestLastWords(t *testing.T) {
	s := &acphttp.Server{Keep: acphttp.Retention{Bytes: 1 << 10}, Serve: func(ctx context.Context, t acp.Transport) error {
		stream, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, _ = stream.ReadFrame()
		_ = stream.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
		return stream.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"_last"}`))
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		for _, leaves := range []bool{true, false} {
			c.connection = ""
			c.initialize()
			for range 2 { // the first answer may not have arrived
				events := c.stream("Last-Event-ID: " + c.connection[:8] + "-0")
				if _, data := events.next(); !strings.Contains(data, "_last") {
					t.Error(data)
				}
				if _, err := events.r.ReadByte(); !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}
			if leaves {
				c.status(http.MethodDelete, "")
			} else {
				time.Sleep(31 * time.Second)
			}
			synctest.Wait()
			if got := c.status(http.MethodGet, ""); got != 404 {
				t.Error(got)
			}
		}
	})
}

// notFlushing is a response of some middleware that forgets to flush.
type notFlushing struct{ w http.ResponseWriter }

func (n notFlushing) Header() http.Header         { return n.w.Header() }
func (n notFlushing) Write(p []byte) (int, error) { return n.w.Write(p) }
func (n notFlushing) WriteHeader(code int)        { n.w.WriteHeader(code) }

// TestNoFlush: a stream that could not be sent bit by bit is refused.
func TestNoFlush(t *testing.T) {
	s := &acphttp.Server{Serve: remotetest.Counting(t).Serve}
	c := newRaw(t, serve(t, s))
	c.initialize()
	c.url = serveHandler(t, func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(notFlushing{w}, r) })
	if got := c.status(http.MethodGet, ""); got != 500 {
		t.Error(got)
	}
}

// TestStatusError: what a server says cannot write over what is around it.
func TestStatusError(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "HTTP status 404 Not Found",
		" \x1b[31mred\u202e\x07 ": "HTTP status 404 Not Found: [31mred",
		"<html>\n<body>":          "HTTP status 404 Not Found: <html> …",
		strings.Repeat("ä", 201):  "HTTP status 404 Not Found: " + strings.Repeat("ä", 200) + " …",
	} {
		if got := (&acphttp.StatusError{Status: 404, Text: text}).Error(); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
