package conformance

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/pattern"
)

// A baseServer is a server that keeps all rules but one, which it breaks: the rule whose
// id is broken, without server/ in front. It is its own agent, of version 1.
type baseServer struct {
	broken string

	mu    sync.Mutex
	next  int
	conns map[string]*baseConn
}

const baseToken = "Bearer base-secret"

// due reports whether a refusal is due, which the rule of a name asks for.
func (s *baseServer) due(rule string, when bool) bool { return when && s.broken != rule }

// off reports whether something is done that the rule of a name forbids.
func (s *baseServer) off(rule string, when bool) bool { return when && s.broken == rule }

// A baseConn is a connection.
type baseConn struct {
	s       *baseServer
	id      string
	over    string // initialize over HTTP, or websocket
	done    chan struct{}
	end     func()
	mu      sync.Mutex
	streams map[string]*baseStream // that of the connection is ""
	next    int
	asked   map[string]string // requests of the agent, and the sessions they are about
	hanging map[string]string // ids of prompts that wait, by session
	socket  func(text string) // sends on the WebSocket, or nil
}

// A baseStream is what is sent for one GET.
type baseStream struct {
	queue  []string
	reader bool
	wake   chan struct{}
}

func (s *baseServer) open(over string) *baseConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	// Beginnings and ends differ from one to the next, as if they were random.
	id := fmt.Sprintf("%08x-0123456789abcdef-%08x", s.next*2654435761%(1<<32), s.next*40503%(1<<32))
	switch {
	case s.off("initialize/id-ascii", over == "initialize"):
		id = strings.Replace(id, "-", " ", 1)
	case s.off(over+"/id-length", true):
		id = id[:8] + id[len(id)-8:]
	case s.off("initialize/id-random", over == "initialize"):
		id = "00000000-0123456789abcdef-0000-" + strconv.Itoa(s.next) + "-00000000"
	case s.off(over+"/id-unique", true):
		id = "00000000-0123456789abcdef-00000000"
	}
	c := &baseConn{
		s: s, id: id, over: over, done: make(chan struct{}), streams: map[string]*baseStream{}, asked: map[string]string{}, hanging: map[string]string{},
	}
	c.end = sync.OnceFunc(func() { close(c.done) })
	if s.conns == nil {
		s.conns = map[string]*baseConn{}
	}
	s.conns[id] = c
	return c
}

func (s *baseServer) find(id string) *baseConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[id]
}

// stream returns a stream. c.mu is held.
func (c *baseConn) stream(session string) *baseStream {
	st := c.streams[session]
	if st == nil {
		st = &baseStream{wake: make(chan struct{}, 1)}
		c.streams[session] = st
	}
	return st
}

// send sends a message of the agent that is about a session, or about none.
func (c *baseConn) send(session, text string) {
	if c.socket != nil {
		c.socket(text)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.stream(session)
	if !st.reader && (c.s.off("routing/queued", session == "") || c.s.off("routing/queued-session", strings.Contains(text, "early"))) {
		return
	}
	st.queue = append(st.queue, text)
	signal(st.wake)
}

func (s *baseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 18<<20))
	if err != nil {
		return
	}
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	kind := strings.ToLower(r.Method)
	switch {
	case upgrade:
		kind = "upgrade"
	case kind == "post" && r.Header.Get(connectionHeader) == "":
		kind = "initialize"
	}
	if status := s.guard(r, kind); status != 0 {
		if s.off("security/no-cors-error", kind == "get" && r.Header.Get("Origin") != "") {
			w.Header().Set("Access-Control-Allow-Origin", "*")
		}
		if s.off("security/no-cors", kind == "options") {
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		}
		w.WriteHeader(status)
		return
	}
	switch {
	case upgrade:
		s.upgrade(w, r)
	case r.Method == http.MethodPost:
		s.post(w, r, string(body))
	case r.Method == http.MethodGet:
		s.get(w, r)
	case r.Method == http.MethodDelete:
		s.remove(w, r)
	case s.off("method/other", true):
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusNotFound)
	default:
		if s.broken != "method/allow" {
			w.Header().Set("Allow", "GET, POST, DELETE")
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// guard returns the status with which a request is refused because of where it comes from.
func (s *baseServer) guard(r *http.Request, kind string) int {
	token, origin := r.Header.Get("Authorization"), r.Header.Get("Origin")
	switch {
	case s.due("security/token-"+kind, token == ""), s.due("security/token-wrong", token != baseToken && token != ""):
		return http.StatusUnauthorized
	case s.due("security/origin-null", origin == "null"), s.due("security/origin-"+kind, origin != "" && origin != "null"):
		return http.StatusForbidden
	case s.due("security/host-"+kind, strings.HasPrefix(r.Host, "evil")):
		return http.StatusMisdirectedRequest
	}
	return 0
}

// post answers POST.
func (s *baseServer) post(w http.ResponseWriter, r *http.Request, body string) {
	sent := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(sent)
	switch {
	case s.due("post/no-media-type", sent == ""), s.due("post/media-type", media == "text/plain"),
		s.due("post/form", media == "application/x-www-form-urlencoded"), s.due("post/media-type-longer", media == "application/jsonp"),
		err != nil && sent != "", s.off("post/media-type-parameters", len(params) > 0), s.off("post/media-type-case", sent == "Application/JSON"):
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	case s.due("post/too-large", len(body) > 16<<20), s.off("post/large", len(body) > 1<<20):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if s.off("post/too-large", len(body) > 16<<20) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := r.Header.Get(connectionHeader)
	v, bad := pattern.Parse(body)
	first := id == ""
	switch {
	case bad != nil && body == "" && s.broken == "post/empty", bad != nil && first && s.broken == "post/malformed-first",
		bad != nil && !first && s.broken == "post/malformed" && body != "" && !strings.HasSuffix(body, "}"),
		bad != nil && s.broken == "post/two" && strings.HasSuffix(body, "}"):
		w.WriteHeader(http.StatusAccepted)
		return
	case bad != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case v.Kind == pattern.Array:
		s.batch(w, first)
		return
	case s.off("post/primitive", v.Kind != pattern.Object):
		w.WriteHeader(http.StatusAccepted)
		return
	case v.Kind != pattern.Object:
		w.WriteHeader(http.StatusBadRequest)
		return
	case first:
		s.first(w, v)
		return
	}
	s.message(w, r, v)
}

// batch refuses a batch.
func (s *baseServer) batch(w http.ResponseWriter, first bool) {
	switch {
	case s.off("post/batch", !first), s.off("post/batch-first", first):
		w.WriteHeader(http.StatusAccepted)
	case s.off("post/batch-status", true):
		w.WriteHeader(http.StatusBadRequest)
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

// first answers a message without a connection.
func (s *baseServer) first(w http.ResponseWriter, v *pattern.Value) {
	id := v.Get("id")
	switch {
	case s.off("post/no-connection", v.StringAt("method") != "initialize"):
		w.WriteHeader(http.StatusAccepted)
		return
	case v.StringAt("method") != "initialize", s.due("initialize/notification", id == nil),
		s.due("initialize/null-id", id != nil && id.Text == "null"):
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c := s.open("initialize")
	text, ok := c.initialize(v)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if s.off("initialize/status", true) {
		text = strings.Replace(text, `"first"`, `1`, 1)
	}
	if !ok {
		if s.broken != "initialize/error-dead" {
			s.forget(c)
		}
		if strings.HasPrefix(s.broken, "initialize/error-") {
			h.Set(connectionHeader, c.id)
		}
		if s.off("initialize/error", true) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	} else {
		if s.broken != "initialize/connection-id" || id.Text != "1" || s.explored() {
			h.Set(connectionHeader, c.id)
		}
	}
	_, _ = io.WriteString(w, text)
}

// explored reports whether this is the first connection, without which no rule is tried.
func (s *baseServer) explored() bool { return s.next == 1 }

func (s *baseServer) forget(c *baseConn) {
	s.mu.Lock()
	delete(s.conns, c.id)
	s.mu.Unlock()
	c.end()
}

// initialize answers initialize.
func (c *baseConn) initialize(v *pattern.Value) (text string, ok bool) {
	id := "null"
	if i := v.Get("id"); i != nil {
		id = i.Text
	}
	if v.Get("params").Get("protocolVersion").Text == `"x"` {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"Invalid params"}}`, false
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"base","version":"1"}}}`, true
}

// scoped are methods that are about a session.
var scoped = []string{"session/prompt", "session/cancel", "session/load"}

// message answers a message on a connection.
func (s *baseServer) message(w http.ResponseWriter, r *http.Request, v *pattern.Value) {
	cid, session := r.Header.Get(connectionHeader), r.Header.Get("Acp-Session-Id")
	method, mine := v.StringAt("method"), v.Get("params").StringAt("sessionId")
	c := s.find(cid)
	id := v.Get("id")
	long := len(cid) > 1024
	refuse := func(rule string, when bool) bool { return s.due("post/"+rule, when) }
	switch {
	case s.off("post/unknown-connection", c == nil && strings.HasSuffix(cid, "-8000-000000000000")), s.off("post/long-connection", long),
		s.off("delete/post", c == nil && method == "_check/nothing" && len(cid) > 20):
		w.WriteHeader(http.StatusAccepted)
		return
	case c == nil, s.off("initialize/id-works", method == "_check/exists"):
		w.WriteHeader(http.StatusNotFound)
		return
	case s.due("initialize/again", method == "initialize"),
		refuse("long-id", id != nil && len(id.Text) > 1024), refuse("long-session", len(session) > 1024),
		refuse("session-extension", strings.HasPrefix(method, "_") && mine != "" && session == ""),
		refuse("no-session", id == nil && !strings.HasPrefix(method, "_") && mine != "" && session == ""),
		refuse("no-session-request", id != nil && !strings.HasPrefix(method, "_") && mine != "" && session == ""),
		refuse("session-method", slices.Contains(scoped, method) && mine == "" && session == ""),
		refuse("other-session", mine != "" && session != "" && mine != session),
		s.off("post/with-session", method == "_check/with"),
		s.off("post/response", method == "" && id != nil && id.Text == "99"),
		s.off("post/extension", method == "$/ping"):
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if method == "" && id != nil {
		about, ok := c.answered(id.Text, session)
		if s.due("post/answer-session", ok && about != session) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if ok && s.broken != "post/answer" {
			c.finish(about)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if s.off("post/not-held", method == "session/prompt" && strings.Contains(v.Text, "hang")) {
		c.handle(v)
		select {
		case <-r.Context().Done():
		case <-c.done:
		}
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if s.off("post/request", id != nil) || s.off("post/notification", id == nil) {
		_, _ = io.WriteString(w, "{}")
	}
	c.handle(v)
}

// answered takes an answer to a request of the agent, if it names its session.
func (c *baseConn) answered(id, session string) (about string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about, ok = c.asked[id]
	if ok && (about == session || c.s.broken == "post/answer-session") {
		delete(c.asked, id)
	}
	return about, ok
}

// get answers GET.
func (s *baseServer) get(w http.ResponseWriter, r *http.Request) {
	cid, session, accept := r.Header.Get(connectionHeader), r.Header.Get("Acp-Session-Id"), r.Header.Get("Accept")
	c := s.find(cid)
	status := 0
	switch {
	case s.due("stream/accept", accept == "application/json"), s.due("stream/no-accept", accept == ""),
		s.off("stream/accept-list", strings.Contains(accept, ",")):
		status = http.StatusNotAcceptable
	case s.due("stream/no-connection", cid == ""), s.due("stream/long-session", len(session) > 1024):
		status = http.StatusBadRequest
	case s.off("stream/unknown-session", session == "later"):
		status = http.StatusConflict
	case s.off("stream/early-session", session == "later"):
		status = http.StatusNotFound
	case s.off("stream/unknown-connection", strings.HasSuffix(cid, "-8000-000000000000")), s.off("stream/no-connection", cid == ""):
		c = s.open("initialize")
	case s.off("delete/get", c == nil && !strings.HasSuffix(cid, "-8000-000000000000")):
		status = http.StatusGone
	case c == nil:
		status = http.StatusNotFound
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	c.serveStream(w, r, session)
}

// remove answers DELETE.
func (s *baseServer) remove(w http.ResponseWriter, r *http.Request) {
	cid := r.Header.Get(connectionHeader)
	c := s.find(cid)
	switch {
	case s.due("delete/no-connection", cid == ""):
		w.WriteHeader(http.StatusBadRequest)
	case s.off("delete/unknown-connection", strings.HasSuffix(cid, "-8000-000000000000")), s.off("delete/again", c == nil && len(cid) < 36):
		w.WriteHeader(http.StatusAccepted)
	case c == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		s.mu.Lock()
		delete(s.conns, cid)
		if s.off("delete/others", true) {
			clear(s.conns)
		}
		s.mu.Unlock()
		c.end()
		if s.off("delete/status", true) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// serveBase serves a base server on connections in memory.
func serveBase(t *testing.T, broken string) *Endpoint {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &baseServer{broken: broken}
	web := &http.Server{Handler: s}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() {
		_ = web.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			c.end()
		}
	})
	return &Endpoint{URL: "http://127.0.0.1/acp", Header: http.Header{"Authorization": {baseToken}}, Dial: l.dial}
}

// A pipeListener is a listener whose connections are pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
