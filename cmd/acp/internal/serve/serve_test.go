package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func none(string) (string, bool) { return "", false }

// open serves an echo until the test ends.
func open(t *testing.T, cfg Config) *Server {
	t.Helper()
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return "", t.Say(t.Text()) }}
	cfg.Serve, cfg.Note = agent.Serve, func(string) {}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Token.Lookup == nil {
		cfg.Token.Lookup = none
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`

// ask makes a request and returns its status. head has names and values; Host is one of them.
func ask(t *testing.T, method, url, body string, head ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(head); i += 2 {
		if req.Header.Set(head[i], head[i+1]); head[i] == "Host" {
			req.Host = head[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestRequests: which requests are served, without and with settings.
func TestRequests(t *testing.T) {
	state := t.TempDir()
	closed := open(t, Config{State: state})
	text, err := os.ReadFile(closed.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	token := "Bearer " + strings.TrimSpace(string(text))
	loose := open(t, Config{NoAuth: true, Hosts: []string{"agents.example"}, Origins: []string{"https://app.example"}})
	if closed.Open() || !loose.Open() || loose.TokenFile() != "" {
		t.Error("who is served")
	}
	for _, tt := range []struct {
		name   string
		s      *Server
		method string
		path   string
		head   []string
		want   int
	}{
		{"token", closed, "POST", "", []string{"Authorization", token}, 200},
		{"token in other letters", closed, "POST", "", []string{"Authorization", "bearer  " + token[7:]}, 200},
		{"no token", closed, "POST", "", nil, 401},
		{"wrong token", closed, "POST", "", []string{"Authorization", token + "x"}, 401},
		{"another scheme", closed, "POST", "", []string{"Authorization", "Basic " + token[7:]}, 401},
		{"token in the URL", closed, "POST", "?token=" + token[7:], nil, 401},
		{"no token, GET", closed, "GET", "", nil, 401},
		{"no token, DELETE", closed, "DELETE", "", nil, 401},
		{"no token, upgrade", closed, "GET", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 401},
		{"another host", closed, "POST", "", []string{"Authorization", token, "Host", "evil.example"}, 421},
		{"another origin", closed, "POST", "", []string{"Authorization", token, "Origin", "https://evil.example"}, 403},
		{"another site", closed, "POST", "", []string{"Authorization", token, "Sec-Fetch-Site", "cross-site"}, 403},
		{"health", closed, "GET", "/../healthz", nil, 200},
		{"ready", closed, "GET", "/../readyz", nil, 200},
		{"below", closed, "POST", "/x", []string{"Authorization", token}, 404},
		{"root", closed, "GET", "/..", nil, 404},
		{"open", loose, "POST", "", nil, 200},
		{"a host of the settings", loose, "POST", "", []string{"Host", "agents.example"}, 200},
		{"its own host", loose, "POST", "", []string{"Host", "localhost:1"}, 200},
		{"a host that is not in the settings", loose, "POST", "", []string{"Host", "evil.example"}, 421},
		{"an origin of the settings", loose, "POST", "", []string{"Origin", "https://app.example"}, 200},
		{"an origin that is not in the settings", loose, "POST", "", []string{"Origin", "https://evil.example"}, 403},
	} {
		url := tt.s.URL() + tt.path
		if up, ok := strings.CutPrefix(tt.path, "/.."); ok {
			url = strings.TrimSuffix(tt.s.URL(), remote.DefaultPath) + up
		}
		if got := ask(t, tt.method, url, initialize, tt.head...); got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestOpen: what is refused, and that nothing is left of it.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := open(t, Config{State: dir})
	address := strings.TrimSuffix(strings.TrimPrefix(taken.URL(), "http://"), remote.DefaultPath)
	for _, tt := range []struct {
		name string
		cfg  Config
		code exitcode.Code
		want string
	}{
		{"everybody", Config{Listen: ":0"}, exitcode.Usage, "a token and TLS are needed"},
		{"everybody, with a token", Config{Listen: "0.0.0.0:0", Token: remote.Source{File: file}}, exitcode.Usage, "TLS is needed"},
		{"everybody, with TLS", Config{Listen: "[::]:0", Cert: file, Key: file}, exitcode.Usage, "a token is needed"},
		{"everybody, open", Config{Listen: "0.0.0.0:0", NoAuth: true}, exitcode.Usage, "--no-auth is for addresses of this machine"},
		{"open with a token", Config{NoAuth: true, Token: remote.Source{File: file}}, exitcode.Usage, "cannot be combined"},
		{"half of TLS", Config{Cert: file}, exitcode.Usage, "belong together"},
		{"no certificate", Config{Cert: file, Key: file, State: dir}, exitcode.Usage, "the certificate: "},
		{"no address", Config{Listen: "7842"}, exitcode.Usage, "write HOST:PORT or unix:PATH"},
		{"no path", Config{Listen: "unix:"}, exitcode.Usage, "the path is missing"},
		{"no token", Config{Token: remote.Source{File: filepath.Join(dir, "none")}}, exitcode.Usage, "the token: "},
		{"no home", Config{}, exitcode.Failed, "set ACP_TOKEN or --no-auth"},
		{"taken", Config{Listen: address, State: dir}, exitcode.Failed, address + " is in use"},
		{"a file", Config{Listen: "unix:" + file}, exitcode.Failed, "there is a file of that name"},
	} {
		if tt.cfg.Listen == "" {
			tt.cfg.Listen = "127.0.0.1:0"
		}
		tt.cfg.Token.Lookup = none
		s, err := Open(tt.cfg)
		if err == nil {
			t.Errorf("%s: it is served at %s", tt.name, s.URL())
			_ = s.Close()
			continue
		}
		if exitcode.Of(err) != tt.code || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v (status %d), want %s", tt.name, err, exitcode.Of(err), tt.want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "serve", "*"))
	if err != nil || len(left) != 1 || left[0] != taken.TokenFile() {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSocket: a socket that nobody listens on any more is replaced; one that is used is not.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := open(t, Config{Listen: "unix:" + path})
	if first.URL() != "unix:"+path || !first.Open() {
		t.Error(first.URL())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := listenSocket(path, false); err == nil {
		t.Error("a socket that is used was replaced")
	}
	way, err := remote.Transport(first.URL(), remote.Options{Token: remote.Source{Lookup: none}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(acp.Client).Connect(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &lines{to: func(line string) { got = append(got, line) }}
	for _, s := range []string{"a\nb", "c\n\n \n", strings.Repeat("x", 2*maxKept), "y\nend"} {
		if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
			t.Error(n, err)
		}
	}
	l.end()
	l.end()
	if len(got) != 4 || got[0] != "a" || got[1] != "bc" || len(got[2]) != maxKept || got[3] != "end" {
		t.Errorf("%q", got)
	}
}

// TestClose: a server that was never run is closed, and closing it again is harmless.
func TestClose(t *testing.T) {
	s, err := Open(Config{Listen: "127.0.0.1:0", State: t.TempDir(), Token: remote.Source{Lookup: none}, Note: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(s.TokenFile()); !errors.Is(err, os.ErrNotExist) {
		t.Error("the token is left")
	}
}
