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
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

// A peer is a server that a test scripts: it opens a connection and a session, whose
// stream is there, and leaves the rest to hooks, which report whether they have
// answered.
type peer struct {
	t    *testing.T
	get  func(w http.ResponseWriter, r *http.Request, session string) bool
	post func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool

	mu      sync.Mutex
	streams map[string]chan string // what goes out on them; "" is the connection's
	gets    map[string]int
	done    chan struct{}
}

func newPeer(t *testing.T) (*peer, string) {
	p := &peer{t: t, streams: map[string]chan string{}, gets: map[string]int{}, done: make(chan struct{})}
	web := httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.done)
		web.CloseClientConnections()
		web.Close()
	})
	return p, web.URL
}

func (p *peer) stream(name string) chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams[name] == nil {
		p.streams[name] = make(chan string, 100)
	}
	return p.streams[name]
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(acphttp.HeaderSessionID)
	switch r.Method {
	case http.MethodGet:
		p.mu.Lock()
		p.gets[session]++
		p.mu.Unlock()
		if p.get != nil && p.get(w, r, session) {
			return
		}
		p.events(w, r, p.stream(session))
	case http.MethodPost:
		text, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(text, &m)
		if p.post != nil && p.post(w, r, m.Method, m.ID) {
			return
		}
		switch m.Method {
		case "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(acphttp.HeaderConnectionID, "c1")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`, m.ID)
			return
		case "session/new":
			p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`, m.ID)
		case "session/prompt":
			p.stream(session) <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// events sends what comes; "" ends the stream.
func (p *peer) events(w http.ResponseWriter, r *http.Request, from chan string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text := <-from:
			if text == "" {
				return
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		case <-p.done:
			return
		}
	}
}

func (p *peer) open(url string) *acp.ClientSession {
	p.t.Helper()
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(p.t.Context(), &acphttp.Transport{URL: url, RetryFor: time.Second})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(p.t.Context(), acp.SessionConfig{Cwd: "/"})
	if err != nil {
		p.t.Fatal(err)
	}
	return session
}

// TestNoConnection: a server that makes no connection says why, and the client passes
// it on.
func TestNoConnection(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, id json.RawMessage)
		want   string
		status int
	}{
		"unauthorized": {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "who are you?", http.StatusUnauthorized) }, "who are you?", 401},
		"elsewhere": {func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(307)
		}, "307", 307},
		"busy":     {func(w http.ResponseWriter, _ json.RawMessage) { http.Error(w, "later", http.StatusServiceUnavailable) }, "later", 503},
		"not JSON": {func(w http.ResponseWriter, _ json.RawMessage) { _, _ = io.WriteString(w, "<html>") }, "not a response", 0},
		"another id": {func(w http.ResponseWriter, _ json.RawMessage) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"other","result":{}}`)
		}, "not a response", 0},
		"no id of a connection": {func(w http.ResponseWriter, id json.RawMessage) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`, id)
		}, acphttp.HeaderConnectionID, 0},
		"an error": {func(w http.ResponseWriter, id json.RawMessage) {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"log in first"}}`, id)
		}, "log in first", 0},
		"an error with 500": {func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(500)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Initialize failed"}}`, id)
		}, "Initialize failed", 0},
		"too large": {func(w http.ResponseWriter, id json.RawMessage) { _, _ = io.WriteString(w, strings.Repeat(" ", 2000)) }, "too large", 0},
	} {
		p, url := newPeer(t)
		p.post = func(w http.ResponseWriter, _ *http.Request, _ string, id json.RawMessage) bool {
			test.answer(w, id)
			return true
		}
		_, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{URL: url, MaxMessage: 1000})
		said := (*acphttp.StatusError)(nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.As(err, &said) != (test.status > 0) || said != nil && said.Status != test.status {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"ws://x/acp", "http://", "https://user:secret@x/acp", ":"} {
		if _, err := acphttp.NewTransport(bad).Open(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), acphttp.NewTransport("http://127.0.0.1:1/acp")); err == nil {
		t.Error("nobody listens there")
	}
}

// TestRefusedRequest: a request that the server refuses fails alone, with what the
// server said, and not as an error of the agent.
func TestRefusedRequest(t *testing.T) {
	p, url := newPeer(t)
	n := 0
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method != "session/prompt" {
			return false
		}
		if n++; n == 1 {
			http.Error(w, "teapot", http.StatusTeapot)
			return true
		}
		return false
	}
	session := p.open(url)
	_, err := session.Prompt(t.Context(), acp.Text("x")).Wait()
	said, peers := (*acphttp.StatusError)(nil), (*jsonrpc.Error)(nil)
	if !errors.As(err, &said) || said.Status != 418 || said.Text != "teapot" || errors.As(err, &peers) || errors.Is(err, acp.ErrOutcomeUnknown) {
		t.Error(err)
	}
	if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil {
		t.Error(err)
	}
}

// TestRefusedNotification: a notification that the server finds fault with is logged,
// and the connection continues.
func TestRefusedNotification(t *testing.T) {
	p, url := newPeer(t)
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method == "_note" {
			http.Error(w, "malformed", http.StatusBadRequest)
		}
		return method == "_note"
	}
	var log strings.Builder
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Conn().Notify(t.Context(), "_note", json.RawMessage(`{"secret":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if got := log.String(); !strings.Contains(got, "malformed") || strings.Contains(got, "secret") {
		t.Error(got)
	}
}

// TestUnsure: what a server in between says leaves open whether the request arrived,
// and a server that does not know repetitions is not asked twice.
func TestUnsure(t *testing.T) {
	p, url := newPeer(t)
	n := 0
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method == "session/prompt" {
			n++
			w.WriteHeader(http.StatusBadGateway)
		}
		return method == "session/prompt"
	}
	session := p.open(url)
	_, err := session.Prompt(t.Context(), acp.Text("x")).Wait()
	if !errors.Is(err, acp.ErrOutcomeUnknown) || n != 1 {
		t.Error(n, err)
	}
}

// TestSessionStreamEnds: what the stream of a session would have brought does not come,
// so the connection ends, and what was under way is unknown. Nothing is silently
// missing, and nobody waits for ever.
func TestSessionStreamEnds(t *testing.T) {
	p, url := newPeer(t)
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method == "session/prompt" {
			w.WriteHeader(http.StatusAccepted)
			p.stream("s1") <- "" // ends without an answer
		}
		return method == "session/prompt"
	}
	session := p.open(url)
	if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); !errors.Is(err, acp.ErrOutcomeUnknown) {
		t.Error(err)
	}
	broken := (*acphttp.BrokenError)(nil)
	if err := session.Conn().Wait(); !errors.As(err, &broken) {
		t.Error(err)
	}
}

// TestFirstEvents: what is sent before the first answer to a GET arrives is not lost
// when that answer is.
func TestFirstEvents(t *testing.T) {
	target := serve(t, &acphttp.Server{Keep: acphttp.Retention{Bytes: 1 << 20}, Serve: func(ctx context.Context, t acp.Transport) error {
		stream, err := t.Open(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		if _, err := stream.ReadFrame(); err != nil {
			return err
		}
		for _, text := range []string{`{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","method":"_1"}`, `{"jsonrpc":"2.0","method":"_2"}`} {
			if err := stream.WriteFrame([]byte(text)); err != nil {
				return err
			}
		}
		_, err = stream.ReadFrame()
		return err
	}})
	gets := 0
	url := faulty(t, target, func(r *http.Request, _ int) acptest.NetFault {
		if r.Method == http.MethodGet {
			gets++
			switch gets {
			case 1:
				return acptest.NetFault{Replace: http.StatusBadGateway}
			case 2:
				return acptest.NetFault{Break: acptest.Cut}
			}
		}
		return acptest.NetFault{}
	})
	stream, err := acphttp.NewTransport(url).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if err := stream.WriteFrame([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":0`, `"_1"`, `"_2"`} {
		if f, err := stream.ReadFrame(); err != nil || !strings.Contains(string(f.Data), want) {
			t.Fatalf("got %s %v, want %s", f.Data, err, want)
		}
	}
}

// TestUnsureStays: once it is open whether a message arrived, later refusals do not
// make it certain that it did not.
func TestUnsureStays(t *testing.T) {
	p, url := newPeer(t)
	n := 0
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		switch {
		case method == "initialize":
			w.Header().Set(acphttp.HeaderMessage, "0")
			return false
		case method != "session/prompt":
			return false
		}
		if n++; n == 1 {
			w.WriteHeader(http.StatusBadGateway)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return true
	}
	session := p.open(url)
	if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); !errors.Is(err, acp.ErrOutcomeUnknown) || n < 2 {
		t.Error(n, err)
	}
}

// TestConnectionStreamEnds: without the stream of the connection there is none.
func TestConnectionStreamEnds(t *testing.T) {
	p, url := newPeer(t)
	session := p.open(url)
	p.stream("") <- ""
	err := session.Conn().Wait()
	broken := (*acphttp.BrokenError)(nil)
	if !errors.As(err, &broken) || !errors.Is(err, acp.ErrOutcomeUnknown) {
		t.Error(err)
	}
}

// TestLoadWithoutStream: servers such as that of the Python SDK know a session only
// once it is loaded, and send its history on the stream of the connection.
func TestLoadWithoutStream(t *testing.T) {
	p, url := newPeer(t)
	var loaded sync.Map
	p.get = func(w http.ResponseWriter, r *http.Request, session string) bool {
		if _, ok := loaded.Load(session); session == "" || session == "s1" || ok {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method == "session/load" {
			loaded.Store("old", true)
			p.stream("") <- `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"history"}}}}`
			p.stream("") <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		}
		return false
	}
	var mu sync.Mutex
	var got string
	client := &acp.Client{MaxVersion: 1, Update: func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
		mu.Lock()
		defer mu.Unlock()
		got += fmt.Sprint(s.ID(), " ", u.Text(), " ", u.Replayed, "\n")
	}}
	conn, err := client.Connect(t.Context(), acphttp.NewTransport(url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.Load(t.Context(), "old", acp.SessionConfig{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if got != "old history true\n" {
		t.Errorf("got %q", got)
	}
	mu.Unlock()
	if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil { // on its own stream now
		t.Error(err)
	}
}

// TestNoStream: a prompt fails whose session's stream the server does not have, and
// nothing else: nothing of what comes back could be received.
func TestNoStream(t *testing.T) {
	p, url := newPeer(t)
	gone := false
	p.get = func(w http.ResponseWriter, _ *http.Request, session string) bool {
		if session == "s1" {
			w.WriteHeader(http.StatusNotFound)
		}
		return session == "s1"
	}
	p.post = func(_ http.ResponseWriter, _ *http.Request, method string, _ json.RawMessage) bool {
		gone = gone || method == "session/prompt" // is not sent
		return false
	}
	session := p.open(url)
	_, err := session.Prompt(t.Context(), acp.Text("x")).Wait()
	said := (*acphttp.StatusError)(nil)
	if !errors.As(err, &said) || said.Status != http.StatusNotFound || gone || session.Conn().Conn().Err() != nil {
		t.Errorf("%v, sent: %v, connection: %v", err, gone, session.Conn().Conn().Err())
	}
}

// TestConflict: what conflicts about a session concerns that session alone.
func TestConflict(t *testing.T) {
	p, url := newPeer(t)
	p.post = func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool {
		if method == "session/cancel" || method == "session/prompt" {
			http.Error(w, "load it again", http.StatusConflict)
			return true
		}
		return false
	}
	session := p.open(url)
	_, err := session.Prompt(t.Context(), acp.Text("x")).Wait()
	said := (*acphttp.StatusError)(nil)
	if !errors.As(err, &said) || said.Status != 409 || session.Conn().Conn().Err() != nil {
		t.Error(err, session.Conn().Conn().Err())
	}
}

// TestCookies: a client keeps the cookies of a server, which balancers need, and sends
// its headers and its token with every request.
func TestCookies(t *testing.T) {
	p, url := newPeer(t)
	var mu sync.Mutex
	var missing []string
	look := func(w http.ResponseWriter, r *http.Request, first bool) {
		mu.Lock()
		defer mu.Unlock()
		if c, err := r.Cookie("node"); !first && (err != nil || c.Value != "7") || r.Header.Get("X-Team") != "red" || r.Header.Get("Authorization") != "Bearer t" {
			missing = append(missing, r.Method)
		}
		http.SetCookie(w, &http.Cookie{Name: "node", Value: "7", Path: "/"})
	}
	p.get = func(w http.ResponseWriter, r *http.Request, _ string) bool {
		look(w, r, false)
		return false
	}
	p.post = func(w http.ResponseWriter, r *http.Request, method string, _ json.RawMessage) bool {
		look(w, r, method == "initialize")
		return false
	}
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), &acphttp.Transport{
		URL: url, Header: http.Header{"x-team": {"red"}},
		Token: func(context.Context) (string, error) { return "t", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(missing) > 0 {
		t.Errorf("without cookie, header or token: %q", missing)
	}
	noToken := &acphttp.Transport{URL: url, Token: func(context.Context) (string, error) { return "", io.ErrNoProgress }}
	if _, err := (&acp.Client{MaxVersion: 1}).Connect(t.Context(), noToken); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

// TestTooLargeMessage: a message beyond the bound ends the connection, and says so.
func TestTooLargeMessage(t *testing.T) {
	p, url := newPeer(t)
	session := p.open(url)
	p.stream("s1") <- `{"x":"` + strings.Repeat("x", 33<<20) + `"}`
	if err := session.Conn().Wait(); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}
