package acphttp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/goacp/acp"
)

// Headers of the transport.
const (
	// HeaderConnectionID names a connection, in the answer to initialize and in
	// the requests of a client from then on. A [Server] also sets it where it
	// answers such a request: an error without it, such as 400 of the HTTP server
	// for a request that ended early, is not about the message.
	HeaderConnectionID = "Acp-Connection-Id"
	HeaderSessionID    = "Acp-Session-Id"
	// HeaderMessage numbers what a client posts, from 1, so that a server that
	// has answered initialize with this header recognizes a message that is
	// posted again. It is an extension of this package.
	HeaderMessage = "Acp-Message"
)

// ErrServerClosed is the cause of the end of connections that [Server.Close] ended.
var ErrServerClosed = errors.New("acphttp: server closed")

// A Server serves an agent over Streamable HTTP and, with Upgrade, over WebSocket on
// the same URL. It is an [http.Handler] for one path, by convention /acp.
//
// Each initialize request makes a connection, for which Serve is called once. Fields
// must not be changed once the server is in use. Callers must call [Server.Close] when
// they are done with it; closing the http.Server does not end connections.
type Server struct {
	// Serve serves one connection, which is t, until it ends; it is required.
	// The method value agent.Serve of an [acp.Agent] is one. ctx has the
	// [Principal] of the connection; it is done when the connection is given
	// up, and 10 s after its client has left. An error is logged, other than
	// io.EOF, which is the end of a connection that its client left.
	Serve func(ctx context.Context, t acp.Transport) error

	// Upgrade makes WebSockets of requests that ask for it. Nil answers them
	// with 426. Package acpws has one.
	Upgrade Upgrader

	// Authenticate decides whose request it is. It is called with every request,
	// whatever its method, apart from those by which browsers ask whether a
	// page of Origins may make one. The name it returns owns the connection: for anybody
	// else the connection does not exist. An error refuses the request: with
	// 401, or with the status of a [*StatusError]. Nil accepts everybody under
	// the name "".
	Authenticate func(r *http.Request) (principal string, err error)
	// Hosts are the names, without ports, that a request may give as its Host.
	// Nil means any on other addresses than those of this machine alone; on
	// these, localhost, 127.0.0.1 and [::1] and the address itself, so that no
	// web page reaches the server by a name of its own that leads here.
	Hosts []string
	// Origins are those of web pages, such as https://app.example, that may use
	// the server in addition to its own. They get CORS headers.
	Origins []string

	// Limits bound what clients can make the server hold.
	Limits Limits
	// Keep makes streams resumable, and WebSockets: a client whose network failed
	// gets what it missed. The zero value means that they are not.
	Keep Retention
	// NewLog makes the log of a stream of a connection, "" being the stream of the
	// connection itself. Nil means [NewLog] with Keep. A connection waits while
	// one of its logs is made or used. The stream of a session that was closed is
	// forgotten after a while; if the session is opened again, NewLog is called
	// again for the same names.
	NewLog func(connection, session string) (Log, error)

	// Logger gets what goes wrong, without payload; nil means [slog.Default].
	Logger *slog.Logger

	once   sync.Once
	limits Limits

	held    held
	mu      sync.Mutex
	conns   map[string]*conn
	pending map[*conn]bool // over WebSockets whose first message has not come
	owned   map[string]int // connections by principal
	closed  bool
	idle    sync.WaitGroup // connections
}

type principalKey struct{}

// Principal returns the name that [Server.Authenticate] gave the client of a
// connection. ctx is that of the connection, or one derived from it, as hooks of an
// agent have it.
func Principal(ctx context.Context) string {
	p, _ := ctx.Value(principalKey{}).(string)
	return p
}

func (s *Server) init() {
	s.once.Do(func() {
		s.limits = s.Limits.withDefaults()
		s.conns, s.pending, s.owned = make(map[string]*conn), make(map[*conn]bool), make(map[string]int)
	})
}

// resumable reports whether streams can be resumed.
func (s *Server) resumable() bool { return s.NewLog != nil || s.Keep.Bytes > 0 }

func (s *Server) log() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}

// Close ends all connections and waits until Serve has returned for each, as long as
// ctx allows. Requests that come later are refused with 503. It may be called
// repeatedly.
func (s *Server) Close(ctx context.Context) error {
	s.init()
	s.mu.Lock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		conns = append(conns, c)
	}
	for c := range s.pending {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.shut(ErrServerClosed)
	}
	done := make(chan struct{})
	go func() {
		s.idle.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ServeHTTP implements [http.Handler]. The path is not looked at.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.init()
	if err := s.guard(w, r); err != nil {
		refuse(w, err)
		return
	}
	principal := ""
	if s.Authenticate != nil {
		var err error
		if principal, err = s.Authenticate(r); err != nil {
			if said := (*StatusError)(nil); !errors.As(err, &said) {
				err = status(http.StatusUnauthorized, "authentication required")
			}
			refuse(w, err)
			return
		}
	}
	var err error
	switch r.Method {
	case http.MethodPost:
		err = s.post(w, r, principal)
	case http.MethodGet:
		if isUpgrade(r) {
			err = s.upgrade(w, r, principal)
		} else {
			err = s.get(w, r, principal)
		}
	case http.MethodDelete:
		err = s.delete(w, r, principal)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		err = status(http.StatusMethodNotAllowed, "method not allowed")
	}
	if err != nil {
		refuse(w, err)
	}
}

// A StatusError is an HTTP status that refuses a request.
type StatusError struct {
	Status     int           // such as 404
	Text       string        // for people; at most 8 kB of what a server said
	RetryAfter time.Duration // when it may work again; 0 is unknown
}

// Error returns the status and the first line of the text, up to 200 characters,
// without control characters.
func (e *StatusError) Error() string {
	code := fmt.Sprintf("HTTP status %d %s", e.Status, http.StatusText(e.Status))
	text, _, more := strings.Cut(strings.TrimSpace(e.Text), "\n")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) { // these turn text around
			return -1
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 200 {
		text, more = string(r[:200]), true
	}
	switch {
	case text == "":
		return code
	case more:
		text += " …"
	}
	return code + ": " + text
}

func status(code int, text string) *StatusError { return &StatusError{Status: code, Text: text} }

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, err error) {
	said := (*StatusError)(nil)
	if !errors.As(err, &said) {
		said = status(http.StatusInternalServerError, "internal error")
	}
	h := w.Header()
	switch {
	case said.RetryAfter > 0:
		h.Set("Retry-After", fmt.Sprint(int64((said.RetryAfter+time.Second-1)/time.Second)))
	case said.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "":
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(said.Status)
	if said.Status != http.StatusNoContent {
		_, _ = w.Write([]byte(said.Text + "\n"))
	}
}

// newConn makes a connection. overHTTP says whether it has streams; otherwise it has a
// WebSocket.
func (s *Server) newConn(principal string, overHTTP bool) *conn {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	c := newConn(s, hex.EncodeToString(id[:]), principal)
	c.overHTTP, c.flat = overHTTP, !overHTTP && s.resumable()
	return c
}

// room returns why there can be no further connection. The caller holds s.mu.
func (s *Server) room(principal string) error {
	switch {
	case s.Serve == nil:
		s.log().Error("acphttp: Server.Serve is not set")
		return status(http.StatusInternalServerError, "there is no agent")
	case s.closed:
		return closing()
	case len(s.conns) >= s.limits.MaxConnections, s.owned[principal] >= s.limits.MaxPerPrincipal:
		return &StatusError{Status: http.StatusServiceUnavailable, Text: "too many connections", RetryAfter: time.Second}
	}
	return nil
}

// closing is why a server that is closing takes nothing more. The time says that it has
// not handled the request.
func closing() error {
	return &StatusError{Status: http.StatusServiceUnavailable, Text: "the server is closing", RetryAfter: time.Second}
}

// register makes a connection one of the server's. What begins it counts as a request that is open, so that it is not
// given up before it has been answered: closed must be called once it has been, unless the connection has a WebSocket
// that it cannot outlive.
func (s *Server) register(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, c)
	if err := s.room(c.principal); err != nil {
		return err
	}
	s.conns[c.id] = c
	s.held.conns.Add(1)
	s.owned[c.principal]++
	s.idle.Add(1)
	if c.overHTTP || c.flat {
		c.attends.active = 1 // nobody else has the connection yet
		c.reap = time.AfterFunc(s.limits.IdleTimeout, c.reapIdle)
	}
	return nil
}

// await notes a WebSocket whose first message has not come. Only that tells whether it
// begins a connection or resumes one, which takes no room.
func (s *Server) await(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return closing()
	case len(s.pending) >= s.limits.MaxConnections:
		return &StatusError{Status: http.StatusServiceUnavailable, Text: "too many connections", RetryAfter: time.Second}
	}
	s.pending[c] = true
	return nil
}

// serve serves a connection whose stream is given, and returns when it has ended.
func (s *Server) serve(c *conn, t acp.Transport) {
	defer func() {
		if p := recover(); p != nil { // it must not end the others
			s.log().Error("acphttp: Serve panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx := context.WithValue(c.ctx, principalKey{}, c.principal)
	ctx = context.WithValue(ctx, presenceKey{}, &Presence{c})
	err := s.Serve(ctx, t)
	if err != nil && c.ctx.Err() == nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		s.log().Info("acphttp: a connection failed", "error", err)
	}
}

// remove forgets a connection.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, c)
	c.mu.Lock()
	if c.late != nil {
		c.late.Stop()
	}
	c.mu.Unlock()
	if s.conns[c.id] != c {
		return
	}
	delete(s.conns, c.id)
	s.held.conns.Add(-1)
	s.held.rouse() // the shares are larger
	if s.owned[c.principal]--; s.owned[c.principal] == 0 {
		delete(s.owned, c.principal)
	}
	s.idle.Done()
}

// find returns the connection that a request names.
func (s *Server) find(r *http.Request, principal string) (*conn, error) {
	id := r.Header.Get(HeaderConnectionID)
	if id == "" {
		return nil, status(http.StatusBadRequest, "missing "+HeaderConnectionID)
	}
	s.mu.Lock()
	c := s.conns[id]
	s.mu.Unlock()
	if c == nil || c.principal != principal || !c.overHTTP || c.isShut() {
		return nil, status(http.StatusNotFound, "unknown "+HeaderConnectionID)
	}
	return c, nil
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, principal string) error {
	c, err := s.find(r, principal)
	if err != nil {
		return err
	}
	c.leave()
	w.WriteHeader(http.StatusAccepted)
	return nil
}
