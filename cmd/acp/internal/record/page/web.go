// Package page serves a page, for a browser on this machine, that shows what an agent and a client
// write to each other while they do, or a recording of it.
//
// The page is served on a loopback address and needs nothing from elsewhere. Anybody who has the
// address with its token can read everything and change nothing. Viewers never slow down what is
// shown: see [Server.Record].
//
// # Security
//
// What is shown is confidential, and web pages of others can send requests to loopback addresses.
// Therefore every request must name the address of the server as its host (a name that is made to
// point here is refused), must not come from another site, and must have a cookie that only the
// address with the token sets. The page's policy lets it run no script, load no style and reach no
// address but its own, and the page inserts texts only, never markup.
package page

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/goacp/acp/trace"
)

// Bounds of a [Server], unless the Options say otherwise.
const (
	DefaultFrames  = 200_000   // records
	DefaultBytes   = 256 << 20 // of records, as they are sent to pages
	DefaultViewers = 8         // pages at once

	queueBytes = 64 << 20         // of records that are not digested yet
	maxConns   = 64               // connections, of all pages
	goodbye    = 2 * time.Second  // the time for pages to read the rest when the server closes
	patience   = 30 * time.Second // the time for a page to accept what it is sent
)

// Options say what a page shows, and how much of it. The zero value is ready for use.
type Options struct {
	// Title names what is shown, such as "claude-code".
	Title string
	// Header is that of the recording. Times of records count from its start.
	Header trace.Header
	// File is where everything is recorded, for the page to show, or "".
	File string
	// Recorded says that an existing recording is shown.
	Recorded bool
	// Addr is the address to listen on, a loopback address or localhost with a port. Empty means a
	// free port of 127.0.0.1.
	Addr string

	// MaxFrames and MaxBytes bound what is kept in memory to be shown. Beyond them the oldest
	// records are dropped, and the page says so. 0 means DefaultFrames and DefaultBytes.
	MaxFrames int
	MaxBytes  int64
	// MaxViewers bounds the pages that are open at once. Further ones show that there are too many.
	// 0 means DefaultViewers.
	MaxViewers int
}

// A Server serves the page. Its methods may be called from any goroutine. It must be closed.
type Server struct {
	opts   Options
	host   string // "127.0.0.1:4711"
	token  string
	cookie http.Cookie
	run    string // distinguishes the server from a later one with the same address

	queue queue
	log   *history
	fold  *folder

	http    *http.Server
	viewers chan struct{} // holds a token for each page
	closing chan struct{} // closed when pages must end
	once    sync.Once

	mu      sync.Mutex
	closed  bool           // no more work begins
	running sync.WaitGroup // added to under mu
}

// New returns a server that serves already. It fails if it cannot listen on the address.
func New(opts Options) (*Server, error) {
	if opts.MaxFrames <= 0 {
		opts.MaxFrames = DefaultFrames
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = DefaultBytes
	}
	if opts.MaxViewers <= 0 {
		opts.MaxViewers = DefaultViewers
	}
	addr, err := loopback(opts.Addr)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the page cannot be served at %s: %w", addr, cause(err))
	}
	s := &Server{
		opts:    opts,
		host:    ln.Addr().String(),
		token:   rand.Text(),
		run:     rand.Text(),
		log:     newHistory(opts.MaxFrames, opts.MaxBytes),
		viewers: make(chan struct{}, opts.MaxViewers),
		closing: make(chan struct{}),
	}
	s.fold = newFolder(s.log)
	s.queue.wake = sync.NewCond(&s.queue.mu)
	s.cookie = http.Cookie{
		// Cookies do not belong to ports, so the name has to.
		Name: fmt.Sprintf("acp-web-%d", ln.Addr().(*net.TCPAddr).Port), Value: rand.Text(), Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second, // requests have no bodies
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          silent(),
	}
	s.running.Go(func() { s.http.Serve(netutil.LimitListener(ln, maxConns)) })
	s.running.Go(s.digest)
	return s, nil
}

// loopback checks that an address cannot be reached from other machines.
func loopback(addr string) (string, error) {
	if addr == "" {
		return "127.0.0.1:0", nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is no address: write it as 127.0.0.1:8080", addr)
	}
	if host == "localhost" || host == "" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return "", fmt.Errorf("the page would be open to others at %s: use 127.0.0.1:%s", addr, port)
	}
	return net.JoinHostPort(host, port), nil
}

// cause returns what the system said.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// URL returns the address to open, with the token that opens it.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", Host: s.host, Path: "/", RawQuery: url.Values{"token": {s.token}}.Encode()}
	return u.String()
}

// Record shows a record, of which it keeps a copy. It never waits for a page: when records come
// faster than they can be digested, 64 MiB of them are kept, and further ones are not shown, which
// the page says. After [Server.End] it does nothing.
func (s *Server) Record(rec *trace.Record) { s.queue.put(rec, false) }

// Feed is Record for a recording: it waits until there is room. It returns false after
// [Server.End].
func (s *Server) Feed(rec *trace.Record) bool { return s.queue.put(rec, true) }

// End says that no more records come. The page stays until Close.
func (s *Server) End() { s.queue.end() }

// Close ends the server. Pages that are open get two seconds to read what they have not read yet,
// and keep showing it. Close may be called again.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.End()
		close(s.closing)
		s.farewell()
		s.http.Close()
		s.queue.abandon()
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.running.Wait()
	})
	return nil
}

// farewell waits, for a short time, until no page is open.
func (s *Server) farewell() {
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	for range cap(s.viewers) {
		select {
		case s.viewers <- struct{}{}:
		case <-timer.C:
			return
		}
	}
}

// begin counts a request that is served, unless the server is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// digest moves records from the queue to the history.
func (s *Server) digest() {
	var lost int64
	for {
		recs, n, ok := s.queue.take()
		if n != lost {
			lost = n
			s.log.missed(lost)
			s.fold.check.Gap()
		}
		for _, rec := range recs {
			s.fold.add(rec)
		}
		if !ok {
			s.fold.end()
			s.log.end()
			return
		}
	}
}
