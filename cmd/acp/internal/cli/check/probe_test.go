package check

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/conformance"
)

const initializeMCP = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`

// dial connects to an MCP server over stdio, as the program does that it names.
func dial(t *testing.T, m *conformance.MCPProbe) (net.Conn, error) {
	t.Helper()
	if len(m.Args) != 2 || m.Args[0] != ConnectCommand || m.Command == "" {
		t.Fatalf("%s %q", m.Command, m.Args)
	}
	network := "unix"
	if runtime.GOOS == "windows" {
		network = "tcp"
	}
	return net.Dial(network, m.Args[1])
}

func isConnected(m *conformance.MCPProbe) bool {
	select {
	case <-m.Connected:
		return true
	default:
		return false
	}
}

// TestProbeStdio: a server is connected to when it was initialized, which may happen more than once, and
// nobody reaches it when it is closed.
func TestProbeStdio(t *testing.T) {
	m, err := (&Options{App: &app.App{}}).openProbe(t.Context(), "stdio")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var open []net.Conn
	for i := range 3 {
		c, err := dial(t, m)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i == 0 && isConnected(m) {
			t.Error("it is connected to before it is initialized")
		}
		_, _ = fmt.Fprintln(c, initializeMCP)
		if reply, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(reply, `"acp-check"`) {
			t.Fatalf("%s, %v", reply, err)
		}
		open = append(open, c)
	}
	if !isConnected(m) {
		t.Error("it is not connected to after it was initialized")
	}
	m.Close()
	for _, c := range open {
		if data, err := io.ReadAll(c); len(data) > 0 || err != nil {
			t.Errorf("a connection goes on: %q, %v", data, err)
		}
	}
	if c, err := dial(t, m); err == nil {
		_ = c.Close()
		t.Error("it is still there")
	}
}

// TestProbeHTTP: only who knows the path reaches the server, and nobody when it is closed.
func TestProbeHTTP(t *testing.T) {
	m, err := (&Options{App: &app.App{}}).openProbe(t.Context(), "http")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func(url string) (int, error) {
		res, err := client.Post(url, "application/json", strings.NewReader(initializeMCP))
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(m.URL, "http://"), "/")
	if host, _, err := net.SplitHostPort(base); err != nil || host != "127.0.0.1" {
		t.Errorf("it listens at %s", base)
	}
	if code, err := post("http://" + base + "/mcp"); err != nil || code != http.StatusNotFound || isConnected(m) {
		t.Errorf("another path: %d, %v, connected %v", code, err, isConnected(m))
	}
	if code, err := post(m.URL); err != nil || code != http.StatusOK || !isConnected(m) {
		t.Errorf("%d, %v, connected %v", code, err, isConnected(m))
	}
	m.Close()
	if code, err := post(m.URL); err == nil {
		t.Errorf("it is still there: %d", code)
	}
}

// TestProbeEnds: servers end with the check that they are for.
func TestProbeEnds(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		ctx, cancel := context.WithCancel(t.Context())
		m, err := (&Options{App: &app.App{}}).openProbe(ctx, transport)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		m.Close()
	}
	if _, err := (&Options{App: &app.App{}}).openProbe(t.Context(), "sse"); err == nil {
		t.Error("there is a server over SSE")
	}
}

// TestLimited: a listener closes what is too much, and has room again when something is closed.
func TestLimited(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l := &limited{ln, make(chan struct{}, 1)}
	connect := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	connect()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := connect()
	got := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			got <- c
		}
		close(got)
	}()
	if data, err := io.ReadAll(second); len(data) > 0 || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	_, _ = first.Close(), first.Close()
	connect()
	if c := <-got; c == nil {
		t.Error("there is no room again")
	} else {
		_ = c.Close()
	}
}
