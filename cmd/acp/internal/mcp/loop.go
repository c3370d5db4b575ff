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
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
)

// Bounds of a loop: how many sessions it has at once, beyond which idle ones are ended; the size of
// a message; and how many reasons for failures it reports.
const (
	maxLoopSessions = 32
	maxLoopMessage  = 16 << 20
	maxReasons      = 8
)

// Loops are HTTP servers at the loopback address that stand for other MCP servers. Each has an
// address with a token in it and requires another token as a header, so that no other user and no
// web page can use it. Each session of a client has its own connection and, for a stdio server, its
// own process. The zero value is ready for use by any goroutine. Close ends everything.
//
// Agents learn why a server failed, but seldom pass it on, and never see what it writes to its
// standard error. The program therefore gets both here. The fields are set before the first use;
// the functions are called from several goroutines.
type Loops struct {
	// Failed, if not nil, is called with the reason why a server could not be reached or has ended,
	// as one line without secrets. Each reason of a server is reported once, and at most maxReasons
	// of them.
	Failed func(error)
	// Stderr, if not nil, returns the writer for the standard error of a stdio server's process.
	// What is written may hold secrets: see [Server.Hide]. It is closed after the last write.
	Stderr func(Server) io.WriteCloser

	mu     sync.Mutex
	closed bool
	loops  []*loop
}

// A loop is the HTTP server that stands for one MCP server.
type loop struct {
	all    *Loops
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
	opening  int // sessions that are being opened
	sessions map[string]*loopSession
	reasons  []string // that were reported
}

// A loopSession is a client's session with a loop, and its connection with the MCP server.
type loopSession struct {
	transport *mcp.StreamableServerTransport
	conn      mcp.Connection
	// Guarded by mu of the loop: requests that are being answered, and the time of the last one.
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
	x := &loop{all: l, server: s, dir: dir, token: rand.Text(), path: "/" + rand.Text(), host: listener.Addr().String(), sessions: map[string]*loopSession{}}
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
		x.closed = true // from here on nothing is added to work
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

// refuse answers a request that belongs to no session. Clients that try the stateless form of the
// protocol first then use the other one.
func refuse(w http.ResponseWriter, id json.RawMessage) {
	if len(id) == 0 || !json.Valid(id) {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32601,"message":"Method not found: a session begins with initialize"}}`))
}

// enter returns a session that is in use until leave, or nil.
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

// idlest removes the session that has been idle for the longest time, or returns nil if all are in
// use. Clients often leave without saying so. A client that comes back is answered that its session
// does not exist, and opens another. The caller holds mu.
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
	var stderr io.WriteCloser
	if x.all.Stderr != nil && x.server.Type == Stdio {
		stderr = x.all.Stderr(x.server)
	}
	s, server, err := x.dial(stderr)
	x.mu.Lock()
	x.opening--
	if err == nil {
		s.busy = 1
		x.sessions[s.transport.SessionID] = s
	}
	x.mu.Unlock()
	end := func(why error) {
		if stderr != nil {
			_ = stderr.Close() // nothing can be done about a failure
		}
		x.failed(why)
		x.work.Done()
	}
	if err != nil {
		if x.ctx.Err() == nil { // otherwise Close made it fail
			end(err)
		} else {
			end(nil)
		}
		return nil, err
	}
	go func() {
		var why error
		defer func() { end(why) }()
		why = pipe(x.ctx, s.conn, server, x.server) // the agent sees the end of the session
		x.mu.Lock()
		delete(x.sessions, s.transport.SessionID)
		x.mu.Unlock()
	}()
	return s, nil
}

// failed reports why the server has failed, unless it did so before.
func (x *loop) failed(why error) {
	if why == nil || x.all.Failed == nil {
		return
	}
	x.mu.Lock()
	told := len(x.reasons) == maxReasons || slices.Contains(x.reasons, why.Error())
	if !told {
		x.reasons = append(x.reasons, why.Error())
	}
	x.mu.Unlock()
	if !told {
		x.all.Failed(why)
	}
}

// dial connects a new session with the server. stderr, if not nil, receives the standard error of a
// stdio server.
func (x *loop) dial(stderr io.Writer) (*loopSession, mcp.Connection, error) {
	server, err := dial(x.ctx, x.server, x.dir, stderr)
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
