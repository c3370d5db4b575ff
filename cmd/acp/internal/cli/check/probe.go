package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/goacp/acp/conformance"
)

const (
	// maxProbeClients bounds the simultaneous connections of an MCP server. More wait or are
	// closed.
	maxProbeClients = 8
	// probeRequest is how long an HTTP request to the MCP server may take.
	probeRequest = 10 * time.Second
)

// openProbe starts an MCP server for an agent under test, to see whether the agent connects to
// it. Over stdio, the server is this program, which connects its standard streams to the check
// as it does for clients. Over HTTP, it listens on the loopback interface, at a path that
// cannot be guessed. The server ends with ctx, or when it is closed.
func (o *Options) openProbe(ctx context.Context, transport string) (*conformance.MCPProbe, error) {
	there := make(chan struct{})
	m := &conformance.MCPProbe{Connected: there}
	connected := sync.OnceFunc(func() { close(there) })
	switch transport {
	case "stdio":
		return m, o.serveStdio(ctx, m, connected)
	case "http":
		return m, serveHTTP(ctx, m, connected)
	}
	return nil, fmt.Errorf("unknown MCP transport %q", transport)
}

// serveStdio makes m a server over stdio. The agent may start it any number of times.
func (o *Options) serveStdio(ctx context.Context, m *conformance.MCPProbe, connected func()) error {
	d, err := listen(ctx, o.App)
	if err != nil {
		return err
	}
	command := d.command()
	m.Command, m.Args = command[0], command[1:]
	ctx, cancel := context.WithCancel(ctx)
	slots := make(chan struct{}, maxProbeClients)
	var wait sync.WaitGroup
	serve := func(c net.Conn) {
		defer func() { _ = c.Close(); <-slots }()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		_ = conformance.ServeMCPProbe(ctx, c, c, connected)
	}
	wait.Go(func() {
		for {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			c, err := d.accept(ctx, nil)
			if err != nil {
				return
			}
			wait.Go(func() { serve(c) })
		}
	})
	m.Close = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
		d.close()
	})
	return nil
}

// serveHTTP makes m a server over streamable HTTP.
func serveHTTP(ctx context.Context, m *conformance.MCPProbe, connected func()) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for an MCP server: %w", err)
	}
	path := "/" + rand.Text() + "/mcp"
	m.URL = "http://" + ln.Addr().String() + path
	mux := http.NewServeMux()
	mux.Handle(path, conformance.MCPProbeHandler(connected))
	server := &http.Server{
		Handler: mux, ReadTimeout: probeRequest, WriteTimeout: probeRequest, IdleTimeout: probeRequest,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(&limited{ln, make(chan struct{}, maxProbeClients)}) })
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	m.Close = sync.OnceFunc(func() {
		stop()
		_ = server.Close()
		wait.Wait()
	})
	return nil
}

// A limited listener closes new connections while all of its slots are taken.
type limited struct {
	net.Listener
	slots chan struct{}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{c, sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			_ = c.Close()
		}
	}
}

// A limitedConn makes room for another connection when it is closed.
type limitedConn struct {
	net.Conn
	free func()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
