package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
)

// Bounds of a loop: sessions at once, beyond which those that nobody uses are ended, and the size of a
// message.
const (
	maxLoopSessions = 32
	maxLoopMessage  = 16 << 20
)

// Loops are HTTP servers at the loopback address that stand for other MCP servers. Each has an
// address with a token in it, and wants another token as a header, so that no other user and no
// web page can use it. Each session of a client gets a connection, and of a stdio server a process,
// of its own. The zero value is ready for use, by any goroutine. Close ends everything.
type Loops struct {
	mu     sync.Mutex
	closed bool
	loops  []*loop
}

type loop struct {
	server Server
	dir    string
	token  string
	path   string
	host   string
	http   *http.Server
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	opening  int // sessions that are on their way into sessions
	sessions map[string]*loopSession
}

type loopSession struct {
	transport *mcp.StreamableServerTransport
	conn      mcp.Connection
	// Guarded by mu of the loop: requests that are being answered, and when the last one was.
	busy int
	last time.Time
}

// add serves a server.
func (l *Loops) add(s Server, dir string) (acp.MCPServer, error) {
	if s.Type == Stdio {
		if _, err := lookPath(s, dir); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	x := &loop{server: s, dir: dir, token: rand.Text(), path: "/" + rand.Text(), host: listener.Addr().String(), sessions: map[string]*loopSession{}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.http = &http.Server{Handler: x, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return x.ctx }}
	x.work.Go(func() { _ = x.http.Serve(listener) })
	l.loops = append(l.loops, x)
	return &acp.MCPServerHTTP{
		Name: s.Name, URL: "http://" + x.host + x.path,
		Headers: []acp.HTTPHeader{{Name: "Authorization", Value: "Bearer " + x.token}},
	}, nil
}

// Close ends the servers, what they stand for and all connections. It may be called more than once.
func (l *Loops) Close() error {
	l.mu.Lock()
	loops := l.loops
	l.loops, l.closed = nil, true
	l.mu.Unlock()
	var errs []error
	for _, x := range loops {
		x.mu.Lock()
		x.closed = true // nothing is added to work any more
		x.mu.Unlock()
		x.cancel()
		errs = append(errs, x.http.Close())
		x.work.Wait()
	}
	return errors.Join(errs...)
}

// ServeHTTP implements [http.Handler].
func (x *loop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	granted := subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+x.token)) == 1
	switch {
	case r.Host != x.host || r.Header.Get("Origin") != "" || r.URL.Path != x.path || !granted:
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		if r.Method != http.MethodPost {
			http.Error(w, "there is no session", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLoopMessage))
		if err != nil {
			http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
			return
		}
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(body, &msg) != nil || msg.Method != "initialize" {
			refuse(w, msg.ID)
			return
		}
		s, err := x.open()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer x.leave(s)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.transport.ServeHTTP(w, r)
		return
	}
	s := x.enter(id)
	if s == nil {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	defer x.leave(s)
	switch {
	case r.Method == http.MethodDelete:
		_ = s.conn.Close()
		w.WriteHeader(http.StatusNoContent)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxLoopMessage)
		s.transport.ServeHTTP(w, r)
	}
}

// refuse answers what belongs to no session: clients that try the stateless form of the protocol
// first then use the other.
func refuse(w http.ResponseWriter, id json.RawMessage) {
	if len(id) == 0 || !json.Valid(id) {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"Method not found: a session begins with initialize"}}`))
}

// enter returns a session that is then in use until leave, or nil.
func (x *loop) enter(id string) *loopSession {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sessions[id]
	if s != nil {
		s.busy++
	}
	return s
}

func (x *loop) leave(s *loopSession) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.busy--
	s.last = time.Now()
}

// idlest takes the session out that was not in use for the longest time; nil if all are in use. Clients
// often leave without a word; one that comes back is told that its session is gone, and opens
// another. It is called with mu held.
func (x *loop) idlest() *loopSession {
	var found *loopSession
	for _, s := range x.sessions {
		if s.busy == 0 && (found == nil || s.last.Before(found.last)) {
			found = s
		}
	}
	if found != nil {
		delete(x.sessions, found.transport.SessionID)
	}
	return found
}

// open starts a session, which is in use until leave.
func (x *loop) open() (*loopSession, error) {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil, net.ErrClosed
	}
	if len(x.sessions)+x.opening >= maxLoopSessions {
		idle := x.idlest()
		if idle == nil {
			x.mu.Unlock()
			return nil, errors.New("there are too many sessions")
		}
		defer func() { _ = idle.conn.Close() }()
	}
	x.opening++
	x.work.Add(1) // Close waits for what is started here
	x.mu.Unlock()
	s, server, err := x.dial()
	x.mu.Lock()
	x.opening--
	if err == nil {
		s.busy = 1
		x.sessions[s.transport.SessionID] = s
	}
	x.mu.Unlock()
	if err != nil {
		x.work.Done()
		return nil, err
	}
	go func() {
		defer x.work.Done()
		_ = pipe(x.ctx, s.conn, server, x.server) // the agent sees the end of the session
		x.mu.Lock()
		delete(x.sessions, s.transport.SessionID)
		x.mu.Unlock()
	}()
	return s, nil
}

// dial connects a new session with the server.
func (x *loop) dial() (*loopSession, mcp.Connection, error) {
	server, err := dial(x.ctx, x.server, x.dir)
	if err != nil {
		return nil, nil, serverError(x.server, nil, err)
	}
	s := &loopSession{transport: &mcp.StreamableServerTransport{SessionID: rand.Text()}}
	if s.conn, err = s.transport.Connect(x.ctx); err != nil {
		_ = server.Close()
		return nil, nil, err
	}
	return s, server, nil
}
