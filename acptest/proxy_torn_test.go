package acptest_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goacp/acp/acptest"
)

// TestProxyTorn: a request whose body ends early has no answer, least of all a good one.
func TestProxyTorn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has passed") }))
	defer server.Close()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	proxy := httptest.NewServer(&acptest.FaultProxy{Target: server.URL, Transport: transport})
	defer proxy.Close()
	conn, err := net.Dial("tcp", proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		t.Errorf("status %s", resp.Status)
		_ = resp.Body.Close()
	}
}
