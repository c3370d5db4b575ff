// Package serve serves agents over the network: it listens, decides whose requests are accepted, and
// ends in order. What is served is the caller's.
package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// DefaultAddress is where a server listens by default.
const DefaultAddress = "127.0.0.1:7842"

// Bounds of a server.
const (
	maxHeader     = 64 << 10         // of the headers of a request, in bytes
	headerTimeout = 10 * time.Second // for the headers of a request
	idleTimeout   = 2 * time.Minute  // between requests
	maxStreams    = 1024             // at once, on one connection of HTTP/2
	endTimeout    = 10 * time.Second // for connections and their agents to end
)

// A Config says what is served where, and for whom.
type Config struct {
	// Listen is HOST:PORT or unix:PATH; "" means [DefaultAddress].
	Listen string
	// Cert and Key are files for TLS; "" means none.
	Cert, Key string
	// Token is where the token is that clients have to send. On an address of this machine a server
	// without one makes a new token and leaves it in a file for clients of the same user, in State. On
	// a Unix socket it does without.
	Token remote.Source
	State string
	// Others decides about a request whose token is not the server's, where one is required. It reports
	// false about a token that it knows nothing of. Nil means that there are no others.
	Others func(r *http.Request) (principal string, known bool, err error)
	// Paths are served in addition, with the headers and the limits of the others and without a token.
	Paths map[string]http.Handler
	// NoAuth accepts clients without a token, on addresses of this machine only.
	NoAuth bool
	// Hosts and Origins are those of [acphttp.Server]. On an address of this machine its own names
	// are accepted as well as Hosts.
	Hosts, Origins []string
	// Limits bound what clients can make the server hold.
	Limits acphttp.Limits
	// Serve serves one connection: see [acphttp.Server].
	Serve func(ctx context.Context, t acp.Transport) error
	// Logger gets what goes wrong.
	Logger *slog.Logger
	// Note is called with what the user should see: that connections begin and end. It may be called
	// from any goroutine.
	Note func(text string)
}

// A Server listens. Its owner calls [Server.Run], once, or [Server.Close].
type Server struct {
	cfg      Config
	listener net.Listener
	url      string
	file     string // with the token, removed at the end; or ""
	agents   *acphttp.Server
	web      *http.Server

	connections atomic.Int64 // so far
}

// Open listens as cfg says. An error says in one line what to do.
func Open(cfg Config) (*Server, error) {
	if cfg.Listen == "" {
		cfg.Listen = DefaultAddress
	}
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, exitcode.Errorf(exitcode.Usage, "--tls-cert and --tls-key belong together")
	}
	s := &Server{cfg: cfg}
	token, err := cfg.Token.Token()
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	if cfg.NoAuth && cfg.Token.Named() {
		return nil, exitcode.Errorf(exitcode.Usage, "--no-auth and a token cannot be combined")
	}
	if path, ok := strings.CutPrefix(cfg.Listen, "unix:"); ok {
		err = s.listenUnix(strings.TrimPrefix(path, "//"))
	} else {
		token, err = s.listenTCP(token)
	}
	if err != nil {
		return nil, err
	}
	if cfg.NoAuth {
		token = ""
	}
	if err := s.prepare(token); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// listenUnix listens on a socket that only its owner can use.
func (s *Server) listenUnix(path string) error {
	if path == "" {
		return exitcode.Errorf(exitcode.Usage, "--listen unix:PATH: the path is missing")
	}
	if s.cfg.Cert != "" {
		return exitcode.Errorf(exitcode.Usage, "TLS is for addresses, not for a Unix socket")
	}
	var err error
	if s.listener, err = listenSocket(path); err != nil {
		return fmt.Errorf("listening at unix:%s: %w", path, err)
	}
	s.url = "unix:" + path
	return nil
}

// listenTCP listens at an address, and returns the token that clients have to send.
func (s *Server) listenTCP(token string) (string, error) {
	c := &s.cfg
	address, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return "", exitcode.Errorf(exitcode.Usage, "--listen %s: %w; write HOST:PORT or unix:PATH", c.Listen, err)
	}
	local := address.IP.IsLoopback()
	switch {
	case local:
	case c.NoAuth:
		return "", exitcode.Errorf(exitcode.Usage, "--no-auth is for addresses of this machine, and %s can be reached by others", c.Listen)
	case token == "" && c.Cert == "":
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so a token and TLS are needed: set %s or --token-file, and --tls-cert with --tls-key; or listen on 127.0.0.1 behind a proxy that has TLS", c.Listen, remote.EnvToken)
	case token == "":
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so a token is needed: set %s or --token-file", c.Listen, remote.EnvToken)
	case c.Cert == "":
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so TLS is needed: set --tls-cert and --tls-key; or listen on 127.0.0.1 behind a proxy that has TLS", c.Listen)
	}
	if s.listener, err = net.ListenTCP("tcp", address); err != nil {
		if isInUse(err) {
			return "", exitcode.Errorf(exitcode.Failed, "%s is in use, by another acp serve perhaps; choose another address with --listen HOST:PORT", address)
		}
		return "", fmt.Errorf("listening at %s: %w", address, err)
	}
	at := s.listener.Addr().String()
	scheme := "http"
	if c.Cert != "" {
		scheme = "https"
	}
	s.url = scheme + "://" + at + remote.DefaultPath
	if local && token == "" && !c.NoAuth {
		if token, s.file, err = remote.NewLocal(c.State, at); err != nil {
			return "", errors.Join(fmt.Errorf("leaving a token for clients of yours: %w; set %s or --no-auth", err, remote.EnvToken), s.listener.Close())
		}
	}
	if local && len(c.Hosts) > 0 {
		c.Hosts = append([]string{"localhost", "127.0.0.1", "::1"}, c.Hosts...)
	}
	return token, nil
}

// kept is how much of each stream can be sent again to a client whose network failed,
// in bytes.
const kept = 4 << 20

// prepare makes the servers.
func (s *Server) prepare(token string) error {
	c := &s.cfg
	s.agents = &acphttp.Server{
		Serve: s.connection, Upgrade: acpws.Upgrader{}, Hosts: c.Hosts, Origins: c.Origins, Limits: c.Limits, Logger: c.Logger,
		Keep: acphttp.Retention{Bytes: kept},
	}
	if token != "" {
		s.agents.Authenticate = bearer(token)
		if c.Others != nil {
			own := s.agents.Authenticate
			s.agents.Authenticate = func(r *http.Request) (string, error) {
				if principal, known, err := c.Others(r); known {
					return principal, err
				}
				return own(r)
			}
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.web = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	if c.Logger != nil {
		s.web.ErrorLog = slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug)
	}
	if c.Cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "the certificate: %w", err)
	}
	s.web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	return nil
}

// bearer accepts requests with a token.
func bearer(token string) func(*http.Request) (string, error) {
	want := sha256.Sum256([]byte(token)) // of equal length whatever is sent
	return func(r *http.Request) (string, error) {
		scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || sent == "" {
			return "", &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "the token is missing"}
		}
		got := sha256.Sum256([]byte(strings.TrimSpace(sent)))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return "", &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "the token is wrong"}
		}
		return Owner, nil
	}
}

// Owner is the principal of a client that has the token of the server.
const Owner = "token"

// handle serves the paths that there are.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case remote.DefaultPath:
		s.agents.ServeHTTP(w, r)
	case "/healthz", "/readyz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, "ok\n")
	default:
		if h := s.cfg.Paths[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not found", http.StatusNotFound)
	}
}

// URL returns where the server is reached: http://127.0.0.1:7842/acp, or unix:PATH.
func (s *Server) URL() string { return s.url }

// TokenFile returns the file in which the server has left a token, or "".
func (s *Server) TokenFile() string { return s.file }

// Open reports whether everybody who can reach the server is served.
func (s *Server) Open() bool { return s.agents.Authenticate == nil }

// Run serves until ctx is done. Then no further connection is accepted, and those that are open end;
// their agents have a few seconds. The error says that serving failed, or that something has not
// ended.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() {
		if s.web.TLSConfig != nil {
			failed <- s.web.ServeTLS(s.listener, "", "")
			return
		}
		failed <- s.web.Serve(s.listener)
	}()
	var err error
	select {
	case err = <-failed:
		failed <- err
	case <-ctx.Done():
	}
	if e := s.Close(); err == nil {
		err = e
	}
	<-failed
	return err
}

// Close ends the server and all connections.
func (s *Server) Close() error {
	if s.file != "" { // as long as the address is taken nobody else uses the name
		_ = os.Remove(s.file)
	}
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if s.web == nil {
		return err
	}
	bound, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if e := s.agents.Close(bound); e != nil {
		err = errors.New("not everything has ended: an agent still runs")
	}
	e := s.web.Close()
	if errors.Is(e, net.ErrClosed) { // the listener, which is closed already
		e = nil
	}
	return errors.Join(err, e)
}
