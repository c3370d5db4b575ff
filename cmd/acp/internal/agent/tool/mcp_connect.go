package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/process"
)

const maxMCPFrame = 32 << 20

// Servers keeps the connections to the MCP servers of a session: a server starts when it
// is first used, and ends with the session. One that has ended starts again when it is
// used the next time. Its methods may be called from any goroutine. The zero value has no
// connection.
type Servers struct {
	mu     sync.Mutex
	closed bool
	open   map[string]*connection // by what the server is, as JSON
}

// An mcpSession is a connection to a server.
type mcpSession interface {
	Tools(ctx context.Context, params *mcp.ListToolsParams) iter.Seq2[*mcp.Tool, error]
	CallTool(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error)
}

// A connection is one to a server, or the attempt at one.
type connection struct {
	made    chan struct{} // closed when it is made, or failed
	session mcpSession
	err     error
	gone    chan struct{} // closed when the server has ended
	cancel  func()        // ends an attempt
	stop    func()        // may be called more than once
}

// use calls f with the connection to a server. If that had ended before anything was
// sent, f is called once more, with a new one.
func (v *Servers) use(ctx context.Context, env Env, s acp.MCPServer, f func(mcpSession) error) error {
	if s, ok := s.(*acp.MCPServerACP); ok {
		return f(&overACP{env.Session(), s.ServerID})
	}
	key, err := json.Marshal(s)
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		c, err := v.get(ctx, env, s, string(key))
		if err != nil {
			return err
		}
		err = f(c.session)
		unsent := errors.Is(err, mcp.ErrConnectionClosed)
		if unsent || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			v.drop(string(key), c) // the next call could be too early to see that it has ended
		}
		if !unsent || again {
			return err
		}
	}
}

// drop forgets a connection that has ended.
func (v *Servers) drop(key string, c *connection) {
	v.mu.Lock()
	if v.open[key] == c {
		delete(v.open, key)
	}
	v.mu.Unlock()
	c.stop()
}

// get returns the connection to a server, and makes it if there is none.
func (v *Servers) get(ctx context.Context, env Env, s acp.MCPServer, key string) (*connection, error) {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil, acp.ErrSessionClosed
	}
	c := v.open[key]
	if c != nil && c.ended() {
		c.stop()
		c = nil
	}
	if c == nil {
		c = &connection{made: make(chan struct{}), gone: make(chan struct{}), stop: func() {}}
		if v.open == nil {
			v.open = map[string]*connection{}
		}
		v.open[key] = c
		// It belongs to the session: whoever asks for it first may give up.
		var own context.Context
		own, c.cancel = context.WithCancel(env.Session().Context())
		go c.connect(own, env, s)
	}
	v.mu.Unlock()
	select {
	case <-c.made:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.open[key] == c {
			delete(v.open, key)
		}
		return nil, c.err
	}
	return c, nil
}

// ended reports whether the server has ended since it was connected to.
func (c *connection) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Close ends all servers, and waits until they have.
func (v *Servers) Close() {
	v.mu.Lock()
	v.closed = true
	open := v.open
	v.open = nil
	v.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range open {
		wg.Go(func() {
			c.cancel()
			<-c.made
			c.stop()
		})
	}
	wg.Wait()
}

// connect makes the connection. ctx is the session's.
func (c *connection) connect(ctx context.Context, env Env, s acp.MCPServer) {
	defer close(c.made)
	transport, release, err := transportOf(ctx, env.Cwd(), env.Keys().Environ(), s)
	if err != nil {
		c.cancel()
		c.err = err
		return
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "acp", Version: "0"}, nil)
	connecting, cancel := context.WithTimeout(ctx, MCPPatience)
	defer cancel()
	session, err := client.Connect(connecting, transport, nil)
	if err != nil {
		release()
		c.cancel()
		c.err = err
		return
	}
	c.session = session
	c.stop = sync.OnceFunc(func() {
		_ = session.Close() // it may have ended already
		release()
		c.cancel()
	})
	go func() {
		_ = session.Wait() // how it ended does not matter
		close(c.gone)
	}()
}

// transportOf returns how a server is reached, and what releases that.
func transportOf(ctx context.Context, cwd string, environ []string, s acp.MCPServer) (t mcp.Transport, release func(), err error) {
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		if environ == nil {
			environ = os.Environ()
		}
		for _, v := range s.Env {
			environ = append(environ, v.Name+"="+v.Value)
		}
		p, err := process.Start(ctx, process.Config{Path: s.Command, Args: s.Args, Dir: cwd, Env: environ})
		if err != nil {
			return nil, nil, err
		}
		stop := context.AfterFunc(ctx, p.Kill)
		release = func() {
			stop()
			_ = p.Stop(context.WithoutCancel(ctx))
		}
		return &mcp.IOTransport{Reader: p.Stdout(), Writer: p.Stdin(), MaxLineLength: maxMCPFrame}, release, nil
	case *acp.MCPServerHTTP:
		at, err := url.Parse(s.URL)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, nil, errors.New("its address is not one of HTTP")
		}
		conns := http.DefaultTransport.(*http.Transport).Clone()
		return &mcp.StreamableClientTransport{
			Endpoint: s.URL, HTTPClient: &http.Client{Transport: &headers{at.Scheme, at.Host, s.Headers, conns}},
			MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMCPFrame,
		}, conns.CloseIdleConnections, nil
	}
	return nil, nil, errors.New("its transport is not known")
}

// overACP is a server that the client provides over its own connection. It needs no
// connection of its own.
type overACP struct {
	session *acp.AgentSession
	id      acp.MCPServerACPID
}

func (o *overACP) call(ctx context.Context, method string, params, into any) error {
	data, err := o.session.CallMCP(ctx, o.id, method, params, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// maxPages bounds the pages of a list of tools.
const maxPages = 100

// Tools lists the tools.
func (o *overACP) Tools(ctx context.Context, _ *mcp.ListToolsParams) iter.Seq2[*mcp.Tool, error] {
	return func(yield func(*mcp.Tool, error) bool) {
		params := map[string]any{}
		for range maxPages {
			var page mcp.ListToolsResult
			if err := o.call(ctx, "tools/list", params, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page.Tools {
				if t != nil && !yield(t, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			params["cursor"] = page.NextCursor
		}
	}
}

// CallTool calls a tool.
func (o *overACP) CallTool(ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	res := new(mcp.CallToolResult)
	if err := o.call(ctx, "tools/call", p, res); err != nil {
		return nil, err
	}
	return res, nil
}

// headers adds the headers of a server to requests to its host, and to no other, nor to that one in
// the clear where it was named with TLS.
type headers struct {
	scheme, host string
	add          []acp.HTTPHeader
	next         http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == h.scheme && r.URL.Host == h.host {
		r = r.Clone(r.Context())
		for _, v := range h.add {
			r.Header.Set(v.Name, v.Value)
		}
	}
	return h.next.RoundTrip(r)
}
