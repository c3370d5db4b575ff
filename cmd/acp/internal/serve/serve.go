// Package serve serves agents over the network: it listens, decides whose requests are accepted, and
// ends in order. What is served is the caller's.
package serve

import (
	"cmp"
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
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/cert"
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
	// Cert and Key are files for TLS, which are read again when they change; "" means none. TLS is another way
	// to get a certificate, for Name; nil means none.
	Cert, Key string
	TLS       *tls.Config
	Name      string
	// Token is where the token is that clients have to send. On an address of this machine a server
	// without one makes a new token and leaves it in a file for clients of the same user, in State. On
	// a Unix socket it does without.
	Token remote.Source
	State string
	// Others decides about a request whose token is not the server's, where one is required. It reports
	// false about a token that it knows nothing of. Nil means that there are no others.
	Others func(r *http.Request) (principal string, known bool, err error)
	// Gate throttles those who guess the token of the server, and knows which addresses are proxies. Nil is one of the server's own.
	Gate *identity.Gate
	// Certain says that Others authenticates everybody who has no token of the server, so that it needs none.
	Certain bool
	// Peers decides about requests on a Unix socket that have no token; nil accepts all. ConnContext is for it.
	// With Everybody all users of the machine can connect.
	Peers       func(r *http.Request) (principal string, err error)
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	Everybody   bool
	// Paths are served in addition, with the headers and the limits of the others and without a token.
	Paths map[string]http.Handler
	// NoAuth accepts clients without a token, on addresses of this machine only.
	NoAuth bool
	// Hosts and Origins are those of [acphttp.Server]. On an address of this machine its own names
	// are accepted as well as Hosts.
	Hosts, Origins []string
	// Limits bound what clients can make the server hold.
	Limits acphttp.Limits
	// Keep is how much of each stream can be sent again to a client whose network failed, in bytes; 0 means
	// 4 MiB.
	Keep int
	// Serve serves one connection: see [acphttp.Server].
	Serve func(ctx context.Context, t acp.Transport) error
	// Logger gets what goes wrong.
	Logger *slog.Logger
	// Note is called with what the user should see: that connections begin and end. It may be called
	// from any goroutine.
	Note func(text string)
	// Quiet logs that connections begin and end, unless with an error, at level debug only.
	Quiet bool
}

// A Server listens. Its owner calls [Server.Run], once, or [Server.Close].
type Server struct {
	cfg      Config
	listener net.Listener
	url      string
	file     string // with the token, removed at the end; or ""
	agents   *acphttp.Server
	clients  http.Handler // agents, or what is in front of them
	others   http.Handler // the other paths
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
	if cfg.Cert != "" && cfg.TLS != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "there can be one certificate only: --tls-cert, --tls-self or --acme-host")
	}
	if cfg.Gate == nil {
		cfg.Gate = new(identity.Gate)
	}
	s := &Server{cfg: cfg}
	token, err := cfg.Token.Token()
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	s.checkFile()
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
	if s.cfg.Cert != "" || s.cfg.TLS != nil {
		return exitcode.Errorf(exitcode.Usage, "TLS is for addresses, not for a Unix socket")
	}
	var err error
	if s.listener, err = listenSocket(path, s.cfg.Everybody); err != nil {
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
	local, hasTLS := address.IP.IsLoopback(), c.Cert != "" || c.TLS != nil
	hasAuth := token != "" || c.Certain
	switch {
	case local:
		if token != "" && len(token) < minToken {
			s.warn(fmt.Sprintf("the token has %d characters: choose one of at least %d, such as openssl rand -hex 16 makes", len(token), minToken))
		}
	case c.NoAuth:
		return "", exitcode.Errorf(exitcode.Usage, "--no-auth is for addresses of this machine, and %s can be reached by others", c.Listen)
	case !hasAuth && !hasTLS:
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so a token and TLS are needed: set %s or --token-file, and --tls-cert with --tls-key; or listen on 127.0.0.1 behind a proxy that has TLS", c.Listen, remote.EnvToken)
	case !hasAuth:
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so a token is needed: set %s or --token-file", c.Listen, remote.EnvToken)
	case !hasTLS:
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, so TLS is needed: set --tls-cert and --tls-key, --acme-host or --tls-self; or listen on 127.0.0.1 behind a proxy that has TLS", c.Listen)
	case token != "" && len(token) < minToken:
		return "", exitcode.Errorf(exitcode.Usage, "%s can be reached by other machines, and the token has %d characters: choose one of at least %d, such as openssl rand -hex 16 makes", c.Listen, len(token), minToken)
	}
	if s.listener, err = listenBounded(address, c.Gate); err != nil {
		if isInUse(err) {
			return "", exitcode.Errorf(exitcode.Failed, "%s is in use, by another acp serve perhaps; choose another address with --listen HOST:PORT", address)
		}
		return "", fmt.Errorf("listening at %s: %w", address, err)
	}
	at := s.listener.Addr().String()
	scheme, shown := "http", at
	if hasTLS {
		scheme = "https"
	}
	if c.Name != "" {
		shown = c.Name
		if _, port, _ := net.SplitHostPort(at); port != "443" {
			shown = net.JoinHostPort(c.Name, port)
		}
	}
	s.url = scheme + "://" + shown + remote.DefaultPath
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

// minToken is how long the token of a server has to be that others reach, in bytes: shorter ones can be guessed.
const minToken = 16

// warn says something to the user.
func (s *Server) warn(text string) {
	if s.cfg.Note != nil {
		s.cfg.Note("warning: " + text)
	}
}

// checkFile warns about a file with the token that others can read.
func (s *Server) checkFile() {
	file := s.cfg.Token.File
	if file == "" || runtime.GOOS == "windows" {
		return
	}
	if is, err := os.Stat(file); err == nil && is.Mode().Perm()&0o077 != 0 {
		s.warn(fmt.Sprintf("%s can be read by other users of this machine (mode %04o), and it has the token: chmod 600", file, is.Mode().Perm()))
	}
}

// kept is the default of Config.Keep.
const kept = 4 << 20

// prepare makes the servers.
func (s *Server) prepare(token string) error {
	c := &s.cfg
	s.agents = &acphttp.Server{
		Serve: s.connection, Upgrade: acpws.Upgrader{}, Hosts: c.Hosts, Origins: c.Origins, Limits: c.Limits, Logger: c.Logger,
		Keep: acphttp.Retention{Bytes: cmp.Or(c.Keep, kept)},
	}
	s.agents.Authenticate = s.authenticate(token)
	s.clients, s.others = s.agents, http.HandlerFunc(s.path)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.web = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), ConnContext: c.ConnContext,
	}
	if c.Logger != nil {
		s.web.ErrorLog = slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug)
	}
	if s.web.TLSConfig = c.TLS; c.Cert == "" {
		return nil
	}
	files, err := cert.OpenFiles(c.Cert, c.Key, c.Logger)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	s.web.TLSConfig = files.TLSConfig()
	return nil
}

// authenticate returns what decides about requests; nil accepts all.
func (s *Server) authenticate(token string) func(*http.Request) (string, error) {
	c := &s.cfg
	var own func(*http.Request) (string, error)
	_, isSocket := s.listener.(*net.UnixListener)
	switch {
	case token != "":
		own = bearer(token)
	case isSocket && c.Peers != nil:
		own = c.Peers
	case !c.Certain || c.NoAuth || isSocket:
		return nil
	default:
		own = func(*http.Request) (string, error) {
			return "", &acphttp.StatusError{Status: http.StatusUnauthorized, Text: "the token is missing or wrong"}
		}
	}
	return func(r *http.Request) (string, error) {
		principal, refused := own(r)
		if refused == nil {
			return principal, nil
		}
		if c.Others != nil {
			if principal, known, err := c.Others(r); known {
				return principal, err
			}
		}
		return "", c.Gate.Guess(r, refused)
	}
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
		s.clients.ServeHTTP(w, r)
	case "/healthz", "/readyz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, "ok\n")
	default:
		s.others.ServeHTTP(w, r)
	}
}

// path serves the paths that were added.
func (s *Server) path(w http.ResponseWriter, r *http.Request) {
	if h := s.cfg.Paths[r.URL.Path]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	http.Error(w, "not found", http.StatusNotFound)
}

// Wrap puts something in front of what serves clients, and in front of all other paths: the page of a gateway. It must
// be called before [Server.Run].
func (s *Server) Wrap(clients, others func(next http.Handler) http.Handler) {
	s.clients, s.others = clients(s.clients), others(s.others)
}

// Authenticate says whose request it is: see [acphttp.Server.Authenticate].
func (s *Server) Authenticate(r *http.Request) (principal string, err error) {
	if s.agents.Authenticate == nil {
		return "", nil
	}
	return s.agents.Authenticate(r)
}

// Hosts returns the names that requests may have for this server, for [acphttp.Server.Hosts].
func (s *Server) Hosts() []string { return s.cfg.Hosts }

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
