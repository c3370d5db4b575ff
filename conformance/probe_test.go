package conformance

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// probes are the MCP servers that base agents can connect to, by what they are
// told of them.
var (
	probes   sync.Map
	probeNow atomic.Int64
)

// openProbe starts a server that exists in memory only.
func openProbe(_ context.Context, transport string) (*MCPProbe, error) {
	there := make(chan struct{})
	name := "/probe-" + strconv.FormatInt(probeNow.Add(1), 10)
	m := &MCPProbe{Command: name, Args: []string{"-v"}, Env: []string{"A=1"}, Connected: there}
	if transport == "http" {
		name = "http://127.0.0.1" + name
		m = &MCPProbe{URL: name, Connected: there}
	}
	probes.Store(name, sync.OnceFunc(func() { close(there) }))
	m.Close = func() { probes.Delete(name) }
	return m, nil
}

// connectProbe is what a base agent does with an MCP server.
func connectProbe(name string) {
	if f, ok := probes.Load(name); ok {
		f.(func())()
	}
}

// TestProbeConnected holds that an agent that has to connect to an MCP server has the whole limit for
// that, and that one that need not is waited for no longer than for the rest of a turn.
func TestProbeConnected(t *testing.T) {
	const steps = "probe $server stdio\nsession new {\"mcpServers\": [$server]}\nprompt $p mcp\nended $p\nconnected"
	for _, tt := range []struct {
		purpose string
		after   time.Duration // of the connection, from when the server was started
		want    Status
		most    time.Duration // that the check takes
	}{
		{"mcp", 0, Pass, 0},
		{"mcp", 2500 * time.Millisecond, Pass, 2500 * time.Millisecond},
		{"mcp", time.Hour, Fail, 6 * time.Second}, // it is tried twice
		{"text", time.Second, Pass, time.Second},
		{"text", time.Hour, Unseen, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			open := polite(func(m *flying) []string { return []string{respond(m, `"result":{"stopReason":"end_turn"}`)} })
			o := Options{Versions: []int{1}, Timeout: 3 * time.Second, Prompts: map[string]string{tt.purpose: "x"},
				catalog: rulesOf(t, Agent, oneRule("", steps))}
			o.MCPProbe = func(context.Context, string) (*MCPProbe, error) {
				there := make(chan struct{})
				timer := time.AfterFunc(tt.after, func() { close(there) })
				return &MCPProbe{Command: "/probe", Connected: there, Close: func() { timer.Stop() }}, nil
			}
			start := time.Now()
			report, err := CheckAgent(t.Context(), open, o)
			if err != nil {
				t.Fatal(err)
			}
			if r := report.Results[0]; r.Status != tt.want || time.Since(start) > tt.most {
				t.Errorf("%s, after %v: %s in %v: %s", tt.purpose, tt.after, r.Status, time.Since(start), r.Why)
			}
		})
	}
}

func TestMCPProbe(t *testing.T) {
	count := 0
	connected := func() { count++ }
	const asked = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
noise
{"jsonrpc":"2.0","id":"a","method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"resources/list"}
{"jsonrpc":"2.0","id":4,"method":"ping"}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}}
`
	var b strings.Builder
	if err := ServeMCPProbe(context.Background(), strings.NewReader(asked), &b, connected); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := []string{`"protocolVersion":"2025-03-26"`, `"id":"a"`, `-32601`, `"id":4,"result":{}`, `"id":5`}
	if len(got) != len(want) || count != 1 {
		t.Fatalf("%d answers, %d connections:\n%s", len(got), count, b.String())
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("answer %d is %s, expected one with %s", i, got[i], w)
		}
	}
	long := strings.NewReader(strings.Repeat("x", maxProbeMessage+1))
	if err := ServeMCPProbe(context.Background(), long, io.Discard, connected); err == nil {
		t.Error("an endless line was read")
	}
}

func TestMCPProbeHandler(t *testing.T) {
	count := 0
	h := MCPProbeHandler(func() { count++ })
	for _, c := range []struct {
		method, body string
		status       int
		in           string
	}{
		{http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, 200, "2025-06-18"},
		{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
		{http.MethodGet, "", 405, ""},
		{http.MethodPost, strings.Repeat(" ", maxProbeMessage+1), 400, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, "/mcp", strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.in) {
			t.Errorf("%s: %d %s", clip(c.body, 80), w.Code, w.Body.String())
		}
	}
	if count != 1 {
		t.Errorf("%d connections", count)
	}
}

// FuzzMCPProbe holds that no message of a client makes the probe panic or answer
// with what is no line of JSON.
func FuzzMCPProbe(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}`)
	f.Add(`{"id":{"a":[1]},"method":"ping"}`)
	f.Fuzz(func(t *testing.T, text string) {
		reply := probeReply([]byte(text), func() {})
		if reply != nil && decode(string(reply)) == nil {
			t.Errorf("%q was answered with %q", text, reply)
		}
	})
}
