package acptest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/goacp/acp/internal/sleep"
)

// A NetFault is what a [FaultProxy] does to one request. The zero value passes it on.
// Several things can happen to one request, in the order of the fields here.
type NetFault struct {
	// Delay is how long the request waits before it is passed on.
	Delay time.Duration
	// Refuse is the status the request is answered with instead of being passed
	// on; 0 means that it is passed on. RetryAfter is sent in the header of that
	// name, in seconds.
	Refuse     int
	RetryAfter time.Duration
	// Twice passes the request on twice. The client gets the first answer.
	Twice bool
	// Replace is the status the client gets instead of the answer, after the
	// request was passed on; 0 means that it gets the answer.
	Replace int
	// Break is what happens to the answer's body after its first After bytes, or
	// to a WebSocket after the server has sent After bytes in it. If After is 0,
	// not even the header of an answer arrives, other than that of an upgrade or
	// of one that stops early.
	Break NetBreak
	After int64
	// Piece bounds how many bytes of the answer are passed on at once, with Pause
	// after each; 0 means no bound. The proxy reads no faster than that, so the
	// server meets a slow reader, and the client a slow writer.
	Piece int
	Pause time.Duration
}

// A NetBreak is a way in which a connection breaks.
type NetBreak uint8

// Ways in which a connection breaks.
const (
	NoBreak   NetBreak = iota // not at all
	Cut                       // the connection is closed without an end of the body
	HalfOpen                  // nothing more is passed on, and nothing is closed
	EarlyStop                 // the body ends in an orderly way
)

// A FaultProxy is an HTTP proxy in front of one server, on which things go wrong. It
// passes requests on, streams of events and WebSockets included. Fields must not be
// changed once it is in use. It is an [http.Handler]: serve it with net/http/httptest.
// When its server closes the connections of its clients, nothing is left of it.
type FaultProxy struct {
	// Target is the server that requests are passed on to, such as
	// http://127.0.0.1:7842. The path is that of the request.
	Target string
	// Fault decides what happens to a request. n is its number, from 1. It is
	// called by one goroutine at a time; nil means that nothing happens.
	Fault func(r *http.Request, n int) NetFault
	// Transport makes the requests to the server; nil means
	// [http.DefaultTransport].
	Transport http.RoundTripper

	mu sync.Mutex
	n  int
}

// ServeHTTP implements [http.Handler].
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.n++
	var f NetFault
	if p.Fault != nil {
		f = p.Fault(r, p.n)
	}
	p.mu.Unlock()
	if f.Delay > 0 && !sleep.For(r.Context(), f.Delay) {
		panic(http.ErrAbortHandler) // the client may have closed one direction only, and would read 200
	}
	if f.Refuse != 0 {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(int64(f.RetryAfter/time.Second), 10))
		}
		w.WriteHeader(f.Refuse)
		return
	}
	target, err := url.Parse(p.Target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.Header.Get("Upgrade") != "" {
		tunnel(w, r, target.Host, f)
		return
	}
	p.forward(w, r, target, f)
}

// forward passes a request on and its answer back.
func (p *FaultProxy) forward(w http.ResponseWriter, r *http.Request, target *url.URL, f NetFault) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // returning would say 200 of a request that has not arrived
	}
	resp, err := p.roundTrip(r, target, body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if f.Twice {
		if again, err := p.roundTrip(r, target, body); err == nil {
			_ = again.Body.Close()
		}
	}
	if f.Replace != 0 {
		w.WriteHeader(f.Replace)
		return
	}
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	if f.Break != NoBreak {
		w.Header().Del("Content-Length")
		if f.After == 0 {
			breakNow(r.Context(), f.Break, func() { panic(http.ErrAbortHandler) })
		}
	}
	w.WriteHeader(resp.StatusCode)
	control := http.NewResponseController(w)
	_ = control.Flush()
	copyFaulty(r.Context(), flushed{w, control}, resp.Body, f, func() { panic(http.ErrAbortHandler) })
}

func (p *FaultProxy) roundTrip(r *http.Request, target *url.URL, body []byte) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = target.Scheme, target.Host, ""
	out.Host = target.Host
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.ContentLength = int64(len(body))
	transport := p.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	return transport.RoundTrip(out)
}

// flushed is a response that is sent as it is written.
type flushed struct {
	io.Writer
	control *http.ResponseController
}

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// breakNow breaks a connection.
func breakNow(ctx context.Context, how NetBreak, cut func()) {
	switch how {
	case Cut:
		cut()
	case HalfOpen:
		<-ctx.Done()
	}
}

// copyFaulty copies an answer. cut is called to break the connection.
func copyFaulty(ctx context.Context, w io.Writer, r io.Reader, f NetFault, cut func()) {
	buf := make([]byte, 32<<10)
	if f.Piece > 0 {
		buf = buf[:min(f.Piece, len(buf))]
	}
	left := f.After
	for {
		part := buf
		if f.Break != NoBreak {
			if left == 0 {
				breakNow(ctx, f.Break, cut)
				return
			}
			part = buf[:min(int64(len(buf)), left)]
		}
		n, err := r.Read(part)
		left -= int64(n)
		if n > 0 {
			if _, err := w.Write(part[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				cut()
			}
			return
		}
		if f.Pause > 0 && !sleep.For(ctx, f.Pause) {
			return
		}
	}
}

// tunnel passes a request for a WebSocket on, and what is sent in it.
func tunnel(w http.ResponseWriter, r *http.Request, target string, f NetFault) {
	server, err := new(net.Dialer).DialContext(r.Context(), "tcp", target)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	out := r.Clone(r.Context())
	out.Host = target
	if err := out.Write(server); err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		defer cancel()
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	})
	from := bufio.NewReader(server)
	// The answer to the upgrade passes whole.
	for line := []byte(nil); len(bytes.TrimSpace(line)) > 0 || line == nil; {
		if line, err = from.ReadBytes('\n'); err != nil {
			break
		}
		if _, err = client.Write(line); err != nil {
			break
		}
	}
	if err == nil {
		copyFaulty(ctx, client, from, f, func() {})
	}
	_ = client.Close()
	_ = server.Close()
	both.Wait()
}
