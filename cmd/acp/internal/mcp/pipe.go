package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp/internal/process"
)

// maxCalls bounds the calls to an HTTP server that are under way at once; further calls wait.
const maxCalls = 64

// connectTimeout bounds opening a connection to a server.
const connectTimeout = 30 * time.Second

// dial connects with a server. dir is the working directory of a stdio server; stderr, if not nil,
// receives its standard error.
func dial(ctx context.Context, s Server, dir string, stderr io.Writer) (mcp.Connection, error) {
	switch s.Type {
	case Stdio:
		path, err := lookPath(s, dir)
		if err != nil {
			return nil, err
		}
		p, err := process.Start(ctx, process.Config{
			Path: path, Args: s.Args, Dir: dir, Env: environ(s.Env), Stderr: stderr,
		})
		if err != nil {
			return nil, err
		}
		conn, err := (&mcp.IOTransport{Reader: p.Stdout(), Writer: p.Stdin()}).Connect(ctx)
		if err != nil {
			return nil, errors.Join(err, p.Stop(context.Background()))
		}
		return &childConn{Connection: conn, p: p}, nil
	case SSE:
		bound, cancel := context.WithCancel(context.WithoutCancel(ctx))
		timer := time.AfterFunc(connectTimeout, cancel)
		stop := context.AfterFunc(ctx, cancel)
		conn, err := (&mcp.SSEClientTransport{Endpoint: s.URL, HTTPClient: httpClient(s, nil)}).Connect(bound)
		stop()
		if !timer.Stop() && err != nil {
			err = fmt.Errorf("no answer in %v: %w", connectTimeout, err)
		}
		if err != nil {
			cancel()
			return nil, err
		}
		return &endingConn{conn, cancel}, nil
	}
	version := new(atomic.Pointer[string])
	conn, err := (&mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: httpClient(s, version), DisableStandaloneSSE: true}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &httpConn{Connection: conn, version: version}, nil
}

// childConn ends the server's process with the connection.
type childConn struct {
	mcp.Connection
	p *process.Process
}

// Close implements [mcp.Connection].
func (c *childConn) Close() error {
	stopped := c.p.Stop(context.Background())
	_ = c.Connection.Close()
	return stopped
}

// exitWait bounds how long to wait for the exit status of a server that has closed its output: on a busy machine it takes some
// time to find everything that the server has started.
const exitWait = 1500 * time.Millisecond

// why returns how the process ended, if it has.
func (c *childConn) why() error {
	if !c.p.EndsWithin(exitWait) {
		return nil
	}
	if err := c.p.Wait(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// endingConn ends a context with the connection.
type endingConn struct {
	mcp.Connection
	end context.CancelFunc
}

// Close implements [mcp.Connection].
func (c *endingConn) Close() error {
	defer c.end()
	return c.Connection.Close()
}

// httpConn knows the version that was agreed on, which is sent with all requests.
type httpConn struct {
	mcp.Connection
	version *atomic.Pointer[string]
}

// Read implements [mcp.Connection].
func (c *httpConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if r, ok := msg.(*jsonrpc.Response); ok && c.version.Load() == nil && r.Error == nil {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(r.Result, &result) == nil && result.ProtocolVersion != "" {
			c.version.Store(&result.ProtocolVersion)
		}
	}
	return msg, err
}

// httpClient sends the headers of a server.
func httpClient(s Server, version *atomic.Pointer[string]) *http.Client {
	return &http.Client{
		Transport: &withHeaders{server: s, version: version, base: http.DefaultTransport.(*http.Transport).Clone()},
		// Headers with secrets go to the server that was named, and to no other.
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errors.New("it redirects to another address")
			}
			return nil
		},
	}
}

type withHeaders struct {
	server  Server
	version *atomic.Pointer[string]
	base    *http.Transport
}

// RoundTrip implements [http.RoundTripper].
func (t *withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if t.version != nil {
		if v := t.version.Load(); v != nil && req.Header.Get("Mcp-Protocol-Version") == "" {
			req.Header.Set("Mcp-Protocol-Version", *v)
		}
	}
	for k, v := range t.server.Headers {
		req.Header.Set(k, v)
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections ends connections that are not in use.
func (t *withHeaders) CloseIdleConnections() { t.base.CloseIdleConnections() }

// pipe passes messages between a client and a server until one of them ends, and closes both. It
// returns why the server ended, or nil if the client did. Calls of the stateless form of the
// protocol are answered as unknown methods, so that the client uses the form with sessions.
func pipe(ctx context.Context, client, server mcp.Connection, s Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, remote := server.(*httpConn)
	p := &passage{ctx: ctx, cancel: cancel, client: client, server: server, about: s, remote: remote, slots: make(chan struct{}, maxCalls)}
	stop := context.AfterFunc(ctx, p.shut)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.answers()
	}()
	p.requests()
	p.shut()
	<-ended
	p.running.Wait()
	p.failing.Do(func() {}) // fault is written
	return p.fault
}

// A passage is the state of one [pipe].
type passage struct {
	ctx            context.Context
	cancel         context.CancelFunc
	client, server mcp.Connection
	about          Server
	remote         bool // calls are requests of their own, which may fail alone

	open    calls
	slots   chan struct{} // held by calls that are on their way to a remote server
	running sync.WaitGroup
	closing sync.Once
	failing sync.Once
	fault   error // why the server has ended
}

// shut ends the passage.
func (p *passage) shut() {
	p.closing.Do(func() {
		p.cancel()
		_ = p.client.Close()
		_ = p.server.Close()
	})
}

// refuse answers a call of the client with an error.
func (p *passage) refuse(id jsonrpc.ID, err error) error {
	return p.client.Write(p.ctx, &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}})
}

// answers passes on what the server sends.
func (p *passage) answers() {
	for {
		msg, err := p.server.Read(p.ctx)
		if r, ok := msg.(*jsonrpc.Response); ok && err == nil {
			_ = p.open.take(r.ID, nil)
		}
		if err == nil {
			err = p.client.Write(p.ctx, msg)
		} else if p.ctx.Err() == nil {
			why := serverError(p.about, p.server, err) // once, since it may wait for the end of a process
			p.failing.Do(func() { p.fault = why })
			_ = p.open.each(func(id jsonrpc.ID) error { return p.refuse(id, why) })
		}
		if err != nil {
			p.shut()
			return
		}
	}
}

// forward passes on a message of the client. An error ends the passage.
func (p *passage) forward(msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	ok = ok && req.IsCall()
	if ok {
		p.open.add(req.ID)
	}
	err := p.server.Write(p.ctx, msg)
	if err == nil || p.ctx.Err() != nil {
		return err
	}
	err = serverError(p.about, p.server, err)
	if !ok {
		return err
	}
	answer := p.open.take(req.ID, func(id jsonrpc.ID) error { return p.refuse(id, err) })
	if p.remote { // another call may succeed
		return answer
	}
	return err
}

// requests passes on what the client sends.
func (p *passage) requests() {
	for {
		msg, err := p.client.Read(p.ctx)
		if err != nil {
			return
		}
		req, ok := msg.(*jsonrpc.Request)
		switch {
		case ok && req.IsCall() && req.Method == "server/discover":
			err = p.client.Write(p.ctx, &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}})
		case ok && p.remote && req.IsCall() && req.Method != "initialize":
			select {
			case p.slots <- struct{}{}:
			case <-p.ctx.Done():
			}
			if p.ctx.Err() != nil {
				return
			}
			p.running.Go(func() {
				defer func() { <-p.slots }()
				if p.forward(msg) != nil {
					p.shut()
				}
			})
		default:
			if err = p.forward(msg); err != nil && p.ctx.Err() == nil {
				p.failing.Do(func() { p.fault = err })
			}
		}
		if err != nil {
			return
		}
	}
}

// maxOpen bounds the calls that are known to have no answer yet. Further ones get none when the
// server ends.
const maxOpen = 4096

// calls are the ids of calls that have no answer yet.
type calls struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

func (c *calls) add(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[jsonrpc.ID]bool{}
	}
	if len(c.ids) < maxOpen {
		c.ids[id] = true
	}
}

// take removes a call and, if it was there and answer is not nil, answers it. It holds the lock
// while it does, so that after [calls.each] all answers have been written and the connection can be
// closed.
func (c *calls) take(id jsonrpc.ID, answer func(jsonrpc.ID) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.ids[id]
	delete(c.ids, id)
	if !was || answer == nil {
		return nil
	}
	return answer(id)
}

// each removes all calls.
func (c *calls) each(answer func(jsonrpc.ID) error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ids {
		err = errors.Join(err, answer(id))
	}
	clear(c.ids)
	return err
}

// serverError explains what is wrong with a server, without secrets.
func serverError(s Server, conn mcp.Connection, err error) error {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	if child, ok := conn.(*childConn); ok {
		if why := child.why(); why != nil {
			err = fmt.Errorf("it has ended: %w", why)
		}
	} else if errors.Is(err, io.EOF) {
		err = errors.New("it has closed the connection")
	}
	text := hide(err.Error(), append(s.secrets(), s.URL))
	return fmt.Errorf("MCP server %s (%s): %s", s.Name, s.Where(), text)
}

// Connect connects a client at in and out, as a stdio server, with the HTTP or SSE server that the
// variables [EnvURL], [EnvType] and [EnvHeaders] name; getenv returns their values. It returns when
// the server ends, or with nil when the client does. It closes in and out.
func Connect(ctx context.Context, in io.ReadCloser, out io.WriteCloser, getenv func(string) string) error {
	s := Server{Name: "mcp-connect", Source: "environment", URL: getenv(EnvURL), Type: getenv(EnvType)}
	if s.URL == "" {
		return fmt.Errorf("%s is not set: this command is started by agents", EnvURL)
	}
	if h := getenv(EnvHeaders); h != "" {
		if json.Unmarshal([]byte(h), &s.Headers) != nil {
			return fmt.Errorf("%s is no JSON object of texts", EnvHeaders)
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.Type == Stdio {
		return errors.New("only http and sse servers are connected to")
	}
	server, err := dial(ctx, s, "", nil)
	if err != nil {
		return serverError(s, nil, err)
	}
	client, err := (&mcp.IOTransport{Reader: in, Writer: out}).Connect(ctx)
	if err != nil {
		_ = server.Close()
		return err
	}
	return pipe(ctx, client, server, s)
}

// ConnectStdio is [Connect] with the standard streams of this process.
func ConnectStdio(ctx context.Context) error { return Connect(ctx, os.Stdin, os.Stdout, os.Getenv) }
