package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// secret is in everything that is said, and must be in nothing that is observed.
const secret = "hunter2"

// An observed is a gateway that has a telemetry, and a client of it.
type observed struct {
	*Telemetry
	g    *gateway.Gateway
	log  *engine.Engine
	text strings.Builder // of the log
	conn *acp.ClientConn
	s    *acp.ClientSession
	stop func()
}

func start(t *testing.T, cfg Config, agent *acp.Agent) *observed {
	t.Helper()
	o := new(observed)
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o.log, err = sqlite.Open(t.Context(), t.TempDir(), "test", engine.Options{Says: gateway.Says}) // nobody renews it
	must(err)
	lease, err := o.log.Lease(t.Context(), "a")
	must(err)
	o.Telemetry, err = New(t.Context(), cfg)
	must(err)
	var mu sync.Mutex
	logger := slog.New(slog.NewJSONHandler(locked{&mu, &o.text}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.g = gateway.New(gateway.Config{
		Log: o.log, Lease: lease, Agent: "test", Agents: []string{"test"}, Observer: o.Telemetry, Logger: logger,
		Start: func(context.Context, string, string) (acp.Transport, error) {
			a, b := jsonrpc.Pipe()
			_, err := agent.Connect(context.Background(), acp.Over(a))
			return acp.Over(b), err
		},
	})
	a, b := acp.Pipe()
	var served sync.WaitGroup
	served.Go(func() { _ = o.g.Serve(context.Background(), a) })
	client := &acp.Client{RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return acp.SelectPermission(r.Options[0].OptionID), nil
	}}
	o.conn, err = client.Connect(t.Context(), b)
	must(err)
	o.s, err = o.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/" + secret})
	must(err)
	o.stop = sync.OnceFunc(func() {
		_ = o.conn.Close()
		served.Wait()
		if err := errors.Join(o.g.Close(), lease.Release(context.Background()), o.log.Close(), o.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(o.stop)
	return o
}

// locked is a writer that several goroutines use.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// working is an agent that says something, uses a tool and asks.
func working(in func(ctx context.Context)) *acp.Agent {
	return &acp.Agent{Logger: slog.New(slog.DiscardHandler), Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		if in != nil {
			in(ctx)
		}
		_ = t.Say(secret)
		call := t.ToolCall(acp.ToolCall{Name: "Read", Title: secret, Kind: acp.ToolKindRead, Input: map[string]string{"path": secret}})
		if _, err := t.Ask(acp.Permission{Title: secret}); err != nil {
			return "", err
		}
		if err := call.Complete(); err != nil {
			return "", err
		}
		if strings.Contains(t.Text(), "fail") {
			return "", errors.New(secret)
		}
		return acp.StopEndTurn, nil
	}}
}

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestScrape: metrics count what has happened; neither they nor the log have content, and metrics have no ids.
func TestScrape(t *testing.T) {
	o := start(t, Config{Agents: []string{"test"}, Version: "1.2"}, working(nil))
	srv, err := o.Serve(t.Context(), "127.0.0.1:0", o.g, o.log.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	for _, text := range []string{secret, secret + " fail"} {
		_, _ = o.s.Prompt(t.Context(), acp.Text(text)).Wait()
	}
	for i := range 1000 { // labels stay bounded
		o.Happened(gateway.Event{Kind: gateway.EventRefused, Why: fmt.Sprint("reason-", i)})
	}
	status, body := get(t, srv.URL(), "")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	for _, want := range []string{
		`acp_turn_seconds_count{agent="test",outcome="end_turn"} 1`, `acp_turn_seconds_count{agent="test",outcome="error"} 1`,
		`acp_tool_seconds_count{agent="test",outcome="completed"} 2`, `acp_permission_seconds_count{outcome="allow_once"} 2`,
		`acp_first_update_seconds_count{agent="test"} 2`, `acp_agent_start_seconds_count{agent="test",outcome="ok"} 1`,
		`acp_sessions{state="open"} 1`, `acp_sessions{state="running"} 0`, `acp_agents 1`, `acp_watchers 1`, `acp_draining 0`,
		`acp_joins_total{how="new"} 1`, `acp_claims_total{outcome="ok"} 1`, `acp_build_info{version="1.2"} 1`,
		`acp_append_records_total `, `acp_log_bytes `, "process_resident_memory_bytes ", `acp_refusals_total{reason="other"} 948`,
		// What has not happened is there, too, so that rate() sees the first time.
		`acp_refusals_total{reason="agents"} 0`, `acp_agent_exits_total{agent="test",reason="exited"} 0`, `acp_lease_changes_total{how="lapsed"} 0`,
		`acp_append_seconds_count{outcome="error"} 0`, `acp_deleted_sessions_total{reason="retention"} 0`, `acp_claims_total{outcome="error"} 0`,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("no %s\n%s", want, lines(body, strings.FieldsFunc(want, func(r rune) bool { return r == '{' || r == ' ' })[0]))
		}
	}
	for _, m := range Metrics() {
		if !strings.Contains(body, "# TYPE "+m.Name+" "+m.Type) && len(m.Labels) == 0 {
			t.Errorf("no %s", m.Name)
		}
	}
	for what, text := range map[string]string{"metrics": body, "the log": o.text.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("%s have content:\n%s", what, text)
		}
	}
	if strings.Contains(body, string(o.s.ID())) || strings.Contains(body, "local") {
		t.Error("metrics have the id of a session or a user")
	}
}

// lines returns the lines that begin with a text.
func lines(text, begin string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// TestProbes: a server is healthy as long as it runs, and ready as long as it can take clients. It answers to its own
// names only, and on this machine only.
func TestProbes(t *testing.T) {
	o := start(t, Config{}, working(nil))
	srv, err := o.Serve(t.Context(), "127.0.0.1:0", o.g, o.log.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	base := strings.TrimSuffix(srv.URL(), "/metrics")
	for _, test := range []struct {
		path, host string
		want       int
	}{
		{"/healthz", "", 200}, {"/readyz", "", 200}, {"/readyz", "localhost:1", 200}, {"/metrics", "evil.example", 421}, {"/", "", 404},
	} {
		if got, body := get(t, base+test.path, test.host); got != test.want {
			t.Errorf("%s at %q: %d, %s", test.path, test.host, got, body)
		}
	}
	o.stop()
	if got, body := get(t, base+"/readyz", ""); got != http.StatusServiceUnavailable {
		t.Errorf("closed: %d, %s", got, body)
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		if _, err := o.Serve(t.Context(), address, o.g, o.log.Size); !errors.Is(err, ErrNotLocal) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A collector is a server that gets traces.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]otlpSpan // by name
	raw   strings.Builder
	fail  int // answer so many requests with 503
	auth  string
}

func collect(t *testing.T) *collector {
	c := &collector{spans: map[string]otlpSpan{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fail > 0 {
			c.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var req otlpRequest
		if err := json.Unmarshal(body, &req); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.auth = r.Header.Get("X-Key")
		c.raw.Write(body)
		for _, res := range req.ResourceSpans {
			for _, scope := range res.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans[s.Name] = s
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// TestTraces: the spans of a client, of the gateway and of an agent are one trace, and have no content.
func TestTraces(t *testing.T) {
	c := collect(t)
	c.fail = 1
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	to, err := TracesOf(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Version: "1.2", Node: "n1", Traces: to}
	sides := make([]*Telemetry, 2) // of the client and the agent, which have spans of the same kind
	for i := range sides {
		if sides[i], err = New(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	var parent acp.Trace
	o := start(t, cfg, working(func(ctx context.Context) {
		parent, _ = acp.TraceFrom(ctx)
		_, end := sides[1].Begin(ctx, gateway.Span{Kind: gateway.SpanTool, Tool: "inside"})
		end("completed")
	}))
	ctx, end := sides[0].Begin(t.Context(), gateway.Span{Kind: gateway.SpanTurn, Agent: "client"})
	if _, err := o.s.Prompt(ctx, acp.Text(secret)).Wait(); err != nil {
		t.Fatal(err)
	}
	end("end_turn")
	o.stop()
	for _, side := range sides {
		if err := side.Close(); err != nil {
			t.Fatal(err)
		}
	}
	root, gate, agent := c.spans["invoke_agent client"], c.spans["invoke_agent test"], c.spans["execute_tool inside"]
	if root.SpanID == "" || gate.ParentSpanID != root.SpanID || agent.ParentSpanID != gate.SpanID || gate.TraceID != root.TraceID || agent.TraceID != root.TraceID {
		t.Errorf("not linked:\n%+v\n%+v\n%+v", root, gate, agent)
	}
	if !strings.Contains(parent.Parent, gate.SpanID) {
		t.Errorf("the agent got %+v", parent)
	}
	for _, name := range []string{"execute_tool Read", "acp.permission.wait", "acp.append"} {
		if s := c.spans[name]; s.ParentSpanID != gate.SpanID {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if strings.Contains(c.raw.String(), secret) {
		t.Error("a span has content")
	}
	if c.auth != "a b" {
		t.Errorf("the header is %q", c.auth)
	}
}

// TestTracesOf holds where traces go.
func TestTracesOf(t *testing.T) {
	for _, test := range []struct{ flag, base, traces, want string }{
		{"", "", "", ""},
		{"http://a:4318", "http://b", "", "http://a:4318/v1/traces"},
		{"", "http://b/", "", "http://b/v1/traces"},
		{"", "http://b", "http://c/x", "http://c/x"},
		{"a:4318", "", "", "error"},
		{"", "grpc://b", "", "error"},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", test.base)
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", test.traces)
		got, err := TracesOf(test.flag)
		if err != nil {
			got.Endpoint = "error"
		}
		if got.Endpoint != test.want {
			t.Errorf("%+v: %q", test, got.Endpoint)
		}
	}
}

// TestNoCollector: that there is no collector costs the traces and nothing else.
func TestNoCollector(t *testing.T) {
	c := collect(t)
	url := c.URL
	c.Close()
	to, err := TracesOf(url)
	if err != nil {
		t.Fatal(err)
	}
	to.Logger = logtest.New(t)
	tm, err := New(t.Context(), Config{Traces: to})
	if err != nil {
		t.Fatal(err)
	}
	_, end := tm.Begin(t.Context(), gateway.Span{Kind: gateway.SpanTurn})
	end("end_turn")
	_ = tm.Close()
}
