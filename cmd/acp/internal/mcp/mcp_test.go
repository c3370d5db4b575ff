package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/internal/leaktest"
)

// role makes the test binary something else.
const role = "ACP_MCP_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "server": // an MCP server at the standard streams
		if err := echoServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(3)
		}
		return
	case "broken":
		_, _ = os.Stderr.WriteString("cannot read the secret-token-1 file\n")
		os.Exit(9)
	case "connect":
		if err := ConnectStdio(context.Background()); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m, http.DefaultTransport.(*http.Transport).CloseIdleConnections)
}

type echoArgs struct {
	Text string `json:"text"`
}

// echoServer has a tool that works, one that fails and one that ends the process.
func echoServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "echo", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a echoArgs) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo " + a.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, echoArgs) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("it failed")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, echoArgs) (*sdk.CallToolResult, any, error) {
		os.Exit(4)
		return nil, nil, nil
	})
	return s
}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestParseFile(t *testing.T) {
	vars := lookup(map[string]string{"HOME": "/h", "EMPTY": "", "TOKEN": "t0"})
	tests := []struct {
		name, text string
		want       []Server
		err        string
	}{
		{"stdio", `{"mcpServers": {"a": {"command": "x", "args": ["${HOME}/y", "${NONE:-z}"], "env": {"E": "${EMPTY:-d}"}}}}`,
			[]Server{{Name: "a", Source: "f", Line: 1, Command: "x", Args: []string{"/h/y", "z"}, Env: map[string]string{"E": "d"}, Type: Stdio}}, ""},
		{"http", `{"mcpServers": {"b": {"type": "http", "url": "https://e.org/m", "headers": {"A": "Bearer ${TOKEN}"}}, "c": {"type": "sse", "url": "http://e.org"}}}`,
			[]Server{{Name: "b", Source: "f", Line: 1, Type: HTTP, URL: "https://e.org/m", Headers: map[string]string{"A": "Bearer t0"}}, {Name: "c", Source: "f", Line: 1, Type: SSE, URL: "http://e.org"}}, ""},
		{"told by the url", `{"mcpServers": {"b": {"url": "https://e.org"}}}`, []Server{{Name: "b", Source: "f", Line: 1, Type: HTTP, URL: "https://e.org"}}, ""},
		{"further down", "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"b\"\n:\n{\"command\": \"y\"}}}", []Server{{Name: "a", Source: "f", Line: 2, Command: "x", Type: Stdio}, {Name: "b", Source: "f", Line: 5, Command: "y", Type: Stdio}}, ""},
		{"other members", `{"x": [1, {"y": 2}], "mcpServers": {"a": {"command": "x", "cwd": "/", "disabled": true}}, "z": null}`, nil, ""},
		{"syntax", "{\"mcpServers\": {\n  \"a\": {\"command\": }}}", nil, "f:2:"},
		{"ends", `{"mcpServers": {`, nil, "f:1:17: the file ends too early"},
		{"empty", "", nil, "f:1:1: the file ends too early"},
		{"not an object", `[]`, nil, "f:1:2: an object is expected here"},
		{"no servers", `{}`, nil, "f:1:1: no mcpServers in it"},
		{"type", `{"mcpServers": {"a": {"args": "x"}}}`, nil, `f:1:`},
		{"no command", `{"mcpServers": {"a": {}}}`, nil, `f:1:22: server "a": a stdio server needs a command`},
		{"both", `{"mcpServers": {"a": {"type": "stdio", "command": "x", "url": "http://e"}}}`, nil, `f:1:22: server "a": it has a command and a url`},
		{"scheme", `{"mcpServers": {"a": {"url": "ftp://e"}}}`, nil, `its url is not an http or https address`},
		{"kind", `{"mcpServers": {"a": {"type": "ws", "url": "ws://e"}}}`, nil, `unknown type "ws"`},
		{"header", `{"mcpServers": {"a": {"url": "http://e", "headers": {"a b": "c"}}}}`, nil, `"a b" is no header that can be sent`},
		{"twice", `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, nil, `server "a" is there twice`},
		{"after", `{"mcpServers": {}} 1`, nil, "something after the end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := ParseFile("f", []byte(tt.text), vars)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestParseFileUnset: a server that needs a variable which is not set is left out by itself, in whichever of its texts that is.
// Written as it is in the file, it is there.
func TestParseFileUnset(t *testing.T) {
	for _, text := range []string{
		`"command": "${NONE}"`, `"command": "x", "args": ["a", "b${NONE}"]`, `"command": "x", "env": {"E": "${NONE}"}`,
		`"url": "https://${NONE}/m"`, `"url": "https://e.org", "headers": {"Authorization": "Bearer ${NONE}"}`,
	} {
		file := []byte("{\"mcpServers\": {\n\"one\": {\"command\": \"x\"},\n  \"a\": {" + text + "},\n\"two\": {\"command\": \"y\"}}}")
		got, left, err := ParseFile("f", file, lookup(map[string]string{"SET": "1"}))
		if err != nil || len(got) != 2 || got[0].Name != "one" || got[1].Name != "two" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		want := []Left{{"a", `f:3:8: the MCP server "a" is left out: variable NONE is not set (${NONE:-text} gives a default)`}}
		if d := cmp.Diff(want, left); d != "" {
			t.Errorf("%s: %s", text, d)
		}
		if got, left, err := ParseFile("f", file, nil); err != nil || len(got) != 3 || len(left) > 0 {
			t.Errorf("%s: as it is written: %+v, %+v, %v", text, got, left, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"]}}}`))
	f.Add([]byte(`{"mcpServers": {"a": {"url": "http://u:p@e/?k=v"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, err := ParseFile("f", data, lookup(nil))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		for _, s := range list {
			if err := s.check(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

func TestParseFlags(t *testing.T) {
	vars := lookup(map[string]string{"T": "t1"})
	tests := []struct {
		servers, headers []string
		want             []Server
		err              string
	}{
		{[]string{`a=x -y 'b c' "d\"e" f\ g`}, nil, []Server{{Name: "a", Source: "--mcp", Type: Stdio, Command: "x", Args: []string{"-y", "b c", `d"e`, "f g"}}}, ""},
		{[]string{"w=https://e.org/m"}, []string{"w:Authorization=Bearer ${T}", "w:X: y"},
			[]Server{{Name: "w", Source: "--mcp", Type: HTTP, URL: "https://e.org/m", Headers: map[string]string{"Authorization": "Bearer t1", "X": "y"}}}, ""},
		{[]string{"w=sse+http://e.org"}, nil, []Server{{Name: "w", Source: "--mcp", Type: SSE, URL: "http://e.org"}}, ""},
		{[]string{"x"}, nil, nil, "NAME=COMMAND"},
		{[]string{"=x"}, nil, nil, "NAME=COMMAND"},
		{[]string{"a=x 'y"}, nil, nil, "a ' is not closed"},
		{[]string{`a=''`}, nil, nil, "there is no command"},
		{[]string{`a=x\`}, nil, nil, "it ends with a backslash"},
		{[]string{"a=x", "a=y"}, nil, nil, "--mcp a is there twice"},
		{nil, []string{"a:B=c"}, nil, "there is no --mcp of that name"},
		{[]string{"a=http://e"}, []string{"a:secretvalue"}, nil, "NAME:HEADER=VALUE is expected"},
		{[]string{"a=x"}, []string{"a:B=c"}, nil, "headers are for http and sse servers"},
	}
	for _, tt := range tests {
		got, err := ParseFlags(tt.servers, tt.headers, vars)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secretvalue") {
				t.Errorf("%q %q: error %v, want %s", tt.servers, tt.headers, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.servers, err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Error(d)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	f.Add(`a 'b c' "d\"" \e`)
	f.Fuzz(func(t *testing.T, s string) {
		words, err := splitWords(s)
		if err == nil && (len(words) == 0 || words[0] == "") {
			t.Errorf("%q: %q", s, words)
		}
	})
}

// TestCollect: flags count more than settings, and those more than the project's file.
func TestCollect(t *testing.T) {
	got, left, err := Collect(Sources{
		File: "/project/.mcp.json",
		Data: []byte(`{"mcpServers": {"a": {"command": "file"}, "beside": {"command": "./bin/x"}, "root": {"command": "/bin/x"}, "b": {"command": "file"}, "c": {"command": "file"}, "off": {"command": "file"}, "needs": {"command": "${NONE}"}, "c2": {"command": "${NONE}"}, "off2": {"command": "${NONE}"}}}`),
		Settings: map[string]config.MCPServer{
			"b": {Command: "settings"}, "c": {Command: "settings"}, "off": {Off: true}, "c2": {Command: "settings"}, "off2": {Off: true},
		},
		Flags: []string{"c=flag", "d=flag"}, Lookup: lookup(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got {
		names = append(names, s.Name+" "+s.Command)
	}
	if d := cmp.Diff([]string{"a file", "beside /project/bin/x", "root /bin/x", "b settings", "c flag", "c2 settings", "d flag"}, names); d != "" {
		t.Error(d)
	}
	if len(left) != 1 || left[0].Name != "needs" {
		t.Errorf("left out: %+v", left)
	}
}

func TestRedact(t *testing.T) {
	s := Server{Name: "w", Type: HTTP, URL: "https://me:pass1234@e.org/m?key=k3y-value#f", Headers: map[string]string{"Authorization": "Bearer tok3n-abc"}}
	if got := s.Where(); got != "https://***@e.org/m?***" {
		t.Errorf("Where: %s", got)
	}
	err := serverError(s, nil, errors.New(`Get "https://me:pass1234@e.org": tok3n-abc, k3y-value`))
	for _, secret := range []string{"pass1234", "tok3n-abc", "k3y-value"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in %v", secret, err)
		}
	}
}

// use lists the tools of a server and calls them.
func use(t *testing.T, tr sdk.Transport) {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	cs, err := c.Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	defer cs.Close()
	tools, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 3 {
		t.Fatalf("ListTools: %+v, %v", tools, err)
	}
	res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: echoArgs{"hi"}})
	if err != nil || len(res.Content) != 1 || res.Content[0].(*sdk.TextContent).Text != "echo hi" {
		t.Errorf("CallTool: %+v, %v", res, err)
	}
	res, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "fail", Arguments: echoArgs{}})
	if err != nil || !res.IsError {
		t.Errorf("the tool that fails: %+v, %v", res, err)
	}
	if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// stdioOf is how an agent starts a server it was told of.
func stdioOf(t *testing.T, m acp.MCPServer) *sdk.CommandTransport {
	t.Helper()
	s, ok := m.(*acp.MCPServerStdio)
	if !ok {
		t.Fatalf("it is told of a %T", m)
	}
	cmd := command(s.Command, s.Args...)
	for _, e := range s.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	return &sdk.CommandTransport{Command: cmd}
}

// TestToStdio: HTTP and SSE servers for an agent that only takes stdio.
func TestToStdio(t *testing.T) {
	handlers := map[string]http.Handler{
		HTTP: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return echoServer() }, nil),
		SSE:  sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return echoServer() }, nil),
	}
	for kind, handler := range handlers {
		t.Run(kind, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer s3cret" {
					http.Error(w, "who are you", http.StatusUnauthorized)
					return
				}
				handler.ServeHTTP(w, r)
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			s := Server{Name: "web", Source: "test", Type: kind, URL: srv.URL, Headers: map[string]string{"Authorization": "Bearer s3cret"}}
			list, bridged, err := Plan([]Server{s}, Offers{Stdio: true}, Options{Agent: "fake", Dir: t.TempDir(), Connect: []string{os.Args[0]}})
			if err != nil || len(list) != 1 || len(bridged) != 1 || strings.Contains(bridged[0].String(), "s3cret") {
				t.Fatalf("Plan: %v, %v, %v", list, bridged, err)
			}
			m := list[0].(*acp.MCPServerStdio)
			if strings.Contains(strings.Join(m.Args, " "), srv.URL) {
				t.Error("the address is among the arguments")
			}
			m.Env = append(m.Env, acp.EnvVariable{Name: role, Value: "connect"})
			use(t, stdioOf(t, m))
		})
	}
}

// TestToHTTP: servers for an agent that only takes HTTP.
func TestToHTTP(t *testing.T) {
	srv := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return echoServer() }, nil))
	defer srv.Close()
	defer srv.CloseClientConnections()
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]Server{
		"stdio": {Name: "s", Source: "test", Type: Stdio, Command: exe, Env: map[string]string{role: "server"}},
		"sse":   {Name: "s", Source: "test", Type: SSE, URL: srv.URL},
	}
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			loops := new(Loops)
			defer loops.Close()
			list, bridged, err := Plan([]Server{s}, Offers{HTTP: true}, Options{Agent: "fake", Dir: t.TempDir(), Loops: loops})
			if err != nil || len(bridged) != 1 {
				t.Fatalf("Plan: %v, %v", bridged, err)
			}
			m := list[0].(*acp.MCPServerHTTP)
			client := func(token bool) *http.Client {
				tr := http.DefaultTransport.(*http.Transport).Clone()
				t.Cleanup(tr.CloseIdleConnections)
				return &http.Client{Transport: rt(func(r *http.Request) (*http.Response, error) {
					if token {
						r.Header.Set(m.Headers[0].Name, m.Headers[0].Value)
					}
					return tr.RoundTrip(r)
				})}
			}
			use(t, &sdk.StreamableClientTransport{Endpoint: m.URL, HTTPClient: client(true)})
			use(t, &sdk.StreamableClientTransport{Endpoint: m.URL, HTTPClient: client(true)})
			res, err := client(false).Post(m.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("without the token: %d", res.StatusCode)
			}
			if err := loops.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if res, err := client(true).Get(m.URL); err == nil {
				_ = res.Body.Close()
				t.Error("it serves after Close")
			}
		})
	}
}

type rt func(*http.Request) (*http.Response, error)

func (f rt) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lineLog keeps what is written to it.
type lineLog struct {
	mu     sync.Mutex
	text   strings.Builder
	closed int
}

func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lineLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return nil
}

// TestServerDies: whoever waits for an answer gets an error, and so does who has started the bridge,
// together with what the server has written.
func TestServerDies(t *testing.T) {
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{"server", "broken"} {
		var log lineLog
		failed := make(chan error, 10)
		loops := &Loops{Failed: func(err error) { failed <- err }, Stderr: func(Server) io.WriteCloser { return &log }}
		s := Server{Name: "s", Source: "test", Type: Stdio, Command: exe, Env: map[string]string{role: r, "KEY": "secret-token-1"}}
		list, _, err := Plan([]Server{s}, Offers{HTTP: true}, Options{Agent: "fake", Dir: t.TempDir(), Loops: loops})
		if err != nil {
			t.Fatal(err)
		}
		m := list[0].(*acp.MCPServerHTTP)
		tr := http.DefaultTransport.(*http.Transport).Clone()
		hc := &http.Client{Transport: rt(func(r *http.Request) (*http.Response, error) {
			r.Header.Set(m.Headers[0].Name, m.Headers[0].Value)
			return tr.RoundTrip(r)
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only against hanging
		cs, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx,
			&sdk.StreamableClientTransport{Endpoint: m.URL, HTTPClient: hc, MaxRetries: -1}, nil)
		if err == nil {
			_, err = cs.CallTool(ctx, &sdk.CallToolParams{Name: "die", Arguments: echoArgs{}})
			_ = cs.Close()
		}
		if err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v, %v", r, err, ctx.Err())
		}
		cancel()
		if err := loops.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		tr.CloseIdleConnections()
		close(failed)
		want := map[string]string{"server": "MCP server s (" + exe + "): it has ended: exit status 4", "broken": "MCP server s (" + exe + "): it has ended: exit status 9: cannot read the *** file"}[r]
		var told []string
		for err := range failed {
			told = append(told, err.Error())
		}
		if d := cmp.Diff([]string{want}, told); d != "" {
			t.Errorf("%s: what is told: %s", r, d)
		}
		if wrote := log.text.String(); (r == "broken") != strings.Contains(wrote, "cannot read") || log.closed == 0 {
			t.Errorf("%s: standard error %q, closed %d times", r, wrote, log.closed)
		}
		if got := s.Hide("the secret-token-1"); got != "the ***" {
			t.Error(got)
		}
	}
}

// TestConnectFails: a server that is not there, or refuses.
func TestConnectFails(t *testing.T) {
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer refuse.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, url := range map[string]string{"refuses": refuse.URL, "is gone": gone.URL} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{EnvURL: url + "/?key=s3cr3t-key", EnvType: HTTP}
			in, write := io.Pipe()
			read, out := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- Connect(t.Context(), in, out, func(k string) string { return env[k] }) }()
			go func() {
				_, _ = write.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n"))
			}()
			var answer struct {
				Error struct{ Message string }
			}
			if err := json.NewDecoder(read).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			if m := answer.Error.Message; !strings.Contains(m, "MCP server mcp-connect") || strings.Contains(m, "s3cr3t") {
				t.Errorf("answer %q", m)
			}
			_ = write.Close()
			if err := <-ended; err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("Connect: %v", err)
			}
		})
	}
	if err := Connect(t.Context(), nil, nil, func(string) string { return "" }); err == nil {
		t.Error("Connect without an address")
	}
}

func TestPlan(t *testing.T) {
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	stdio := Server{Name: "s", Source: "f", Type: Stdio, Command: exe}
	web := Server{Name: "w", Source: "f", Type: HTTP, URL: "https://e.org"}
	sse := Server{Name: "e", Source: "f", Type: SSE, URL: "https://e.org"}
	tests := []struct {
		name    string
		servers []Server
		can     Offers
		types   []string
		bridged int
		err     string
	}{
		{"as they are", []Server{stdio, web, sse}, Offers{true, true, true}, []string{"*acpv2.MCPServerStdio", "*acpv2.MCPServerHTTP", "*acpv2.UnknownMCPServer"}, 0, ""},
		{"to stdio", []Server{stdio, web, sse}, Offers{Stdio: true}, []string{"*acpv2.MCPServerStdio", "*acpv2.MCPServerStdio", "*acpv2.MCPServerStdio"}, 2, ""},
		{"to http", []Server{stdio, web, sse}, Offers{HTTP: true}, []string{"*acpv2.MCPServerHTTP", "*acpv2.MCPServerHTTP", "*acpv2.MCPServerHTTP"}, 2, ""},
		{"nothing", []Server{web}, Offers{}, nil, 0, "MCP server w (f): its transport is http, and fake takes none"},
		{"no program", []Server{{Name: "s", Source: "f", Type: Stdio, Command: "no-such-program-of-ours"}}, Offers{Stdio: true}, nil, 0, "MCP server s (f): its command cannot be run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			loops := new(Loops)
			defer loops.Close()
			o := Options{Agent: "fake", Dir: t.TempDir(), Loops: loops}
			list, bridged, err := Plan(tt.servers, tt.can, o)
			routes := Routes(tt.servers, tt.can, o) // says the same, and does nothing
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v", err)
				}
				if r := routes[0]; r.Via != "" || r.Bridged() || r.Err == nil || !strings.HasSuffix(err.Error(), ": "+r.Err.Error()) {
					t.Errorf("route %+v, plan %v", r, err)
				}
				return
			}
			var via []Bridged
			for _, r := range routes {
				if r.Err != nil || r.Via == "" {
					t.Errorf("no route to %s: %v", r.Server.Name, r.Err)
				}
				if r.Bridged() {
					via = append(via, Bridged{r.Server, r.Via})
				}
			}
			if d := cmp.Diff(bridged, via); d != "" {
				t.Errorf("what is planned and the routes: %s", d)
			}
			if err != nil {
				t.Fatal(err)
			}
			var types []string
			for _, m := range list {
				types = append(types, typeName(m))
			}
			if d := cmp.Diff(tt.types, types); d != "" || len(bridged) != tt.bridged {
				t.Errorf("%d bridged; %s", len(bridged), d)
			}
		})
	}
}
