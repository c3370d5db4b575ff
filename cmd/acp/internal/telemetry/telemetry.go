// Package telemetry shows what a gateway does to those who operate it: metrics for Prometheus, with health and
// readiness, on a listener of their own on this machine, and traces for OpenTelemetry. It has no content, and metrics
// have no ids. It owns the names of all of them.
package telemetry

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/gateway"
)

// A Gateway is what is observed: a [gateway.Gateway].
type Gateway interface {
	Stats() gateway.Stats
	Ready(ctx context.Context) error
}

// A Telemetry is the observer of a gateway. Its methods may be called from any goroutine. It must be closed.
type Telemetry struct {
	metrics *metrics
	traces  *traces // nil if there are none
}

var _ gateway.Observer = (*Telemetry)(nil)

// A Config says what is observed, and where it goes.
type Config struct {
	// Agents are the names that metrics may have; those of other agents are "other".
	Agents []string
	// Version is that of the program, and Node the name of the node.
	Version, Node string
	// Traces is where traces go; its zero value is nowhere.
	Traces Traces
}

// New returns a telemetry.
func New(ctx context.Context, cfg Config) (*Telemetry, error) {
	t := &Telemetry{metrics: newMetrics(cfg.Agents, cfg.Version)}
	if cfg.Traces.Endpoint == "" {
		return t, nil
	}
	var err error
	t.traces, err = newTraces(ctx, cfg)
	return t, err
}

// Begin implements [gateway.Observer].
func (t *Telemetry) Begin(ctx context.Context, s gateway.Span) (context.Context, func(string)) {
	begun := time.Now()
	var end func(string)
	if t.traces != nil {
		ctx, end = t.traces.begin(ctx, &s)
	}
	return ctx, func(outcome string) {
		t.metrics.end(&s, time.Since(begun), outcome)
		if end != nil {
			end(outcome)
		}
	}
}

// Happened implements [gateway.Observer].
func (t *Telemetry) Happened(e gateway.Event) { t.metrics.happened(&e) }

// Close sends the traces that are left.
func (t *Telemetry) Close() error {
	if t.traces == nil {
		return nil
	}
	return t.traces.close()
}

// Bounds of the listener.
const (
	maxScrapes    = 4
	scrapeTime    = 10 * time.Second
	headerTimeout = 5 * time.Second
	maxHeader     = 16 << 10
)

// A Server serves metrics, health and readiness. It must be closed.
type Server struct {
	listener net.Listener
	web      *http.Server
	served   chan struct{}
}

// ErrNotLocal is why metrics are not served at an address that other machines can reach.
var ErrNotLocal = errors.New("metrics are served to this machine only, such as at 127.0.0.1:9842; others read them through a proxy that knows who may")

// Serve serves at an address of this machine: /metrics, /healthz and /readyz. size returns the size of the database.
func (t *Telemetry) Serve(ctx context.Context, address string, g Gateway, size func(context.Context) (int64, error)) (*Server, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if !at.IP.IsLoopback() {
		return nil, ErrNotLocal
	}
	s := &Server{served: make(chan struct{})}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", at.String()); err != nil {
		return nil, err
	}
	s.web = &http.Server{
		Handler: local(t.handler(g, size)), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: 2 * scrapeTime, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.served)
		_ = s.web.Serve(s.listener)
	}()
	return s, nil
}

// handler answers requests for metrics, health and readiness.
func (t *Telemetry) handler(g Gateway, size func(context.Context) (int64, error)) http.Handler {
	mux := http.NewServeMux()
	scrapes := make(chan struct{}, maxScrapes)
	// A scrape that is given up keeps its place until the gateway has answered it, so there are at most maxScrapes.
	mux.Handle("GET /metrics", http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(t.metrics.page(r.Context(), g, size))
	}), scrapeTime, "the gateway does not answer"))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), sizeTime)
		defer cancel()
		say(w, g.Ready(ctx))
	})
	return mux
}

// local refuses requests for other hosts: they are of web pages whose name was made to mean this machine.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is not the host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// say answers a probe.
func say(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok\n"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = "not ready: " + err.Error() + "\n"
	}
	_, _ = io.WriteString(w, text)
}

// URL returns where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Close ends the server.
func (s *Server) Close() error {
	err := s.web.Close()
	<-s.served
	return err
}
