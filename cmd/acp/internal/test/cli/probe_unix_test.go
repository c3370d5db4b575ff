//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/jsonrpc"
)

// A team is a server of several users, as a process of its own, and the credentials of two of them.
type team struct {
	url, state string
	ann, bob   string // credentials
	store      *identity.Store
	log        *shared
}

// shared is a buffer that a process writes.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// programs makes links to this program under the names by which it behaves as others.
func programs(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acp", "fake-agent"} {
		file := filepath.Join(dir, name)
		if os.Link(self, file) == nil {
			continue
		}
		if err := os.WriteFile(file, data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newTeam starts a server for ann and bob, each with a directory of their own, with further settings and flags.
func newTeam(t *testing.T, settings string, flags ...string) *team {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir, bin := t.TempDir(), programs(t)
	s := &team{state: filepath.Join(dir, "state", "acp"), log: new(shared)}
	config := filepath.Join(dir, "config.toml")
	text := `[serve.isolation]
mode = "container"
container = ["env", "WORKSPACE={workspace}", "{command}"]
`
	for _, user := range []string{"ann", "bob"} {
		work := filepath.Join(dir, user)
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("[serve.users.%s]\ndirectories = [%q]\nenv = { KEY = \"key-of-%s\" }\n", user, work, user)
	}
	text += strings.ReplaceAll(settings, "@WORK@", dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--verbose", "--config", config, "--listen", "127.0.0.1:0"}, flags...)
	cmd := exec.Command(filepath.Join(bin, "acp"), append(args, "--", "fake-agent", "env")...)
	cmd.Dir, cmd.Stderr = dir, s.log
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "ACP_MODEL_USE=none", "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR"), "SERVER_SECRET=of-the-server"}
	for _, name := range []string{"STATE", "DATA", "CONFIG", "CACHE"} {
		cmd.Env = append(cmd.Env, "XDG_"+name+"_HOME="+filepath.Join(dir, strings.ToLower(name)))
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v: %s", err, s.log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, s.log)
	}
	s.url = strings.TrimSuffix(line, "\n")
	if s.store, err = identity.Open(t.Context(), identity.Dir(s.state), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	for user, credential := range map[string]*string{"ann": &s.ann, "bob": &s.bob} {
		if _, *credential, err = s.store.Add(t.Context(), user+"-phone", identity.Grant{User: user, Role: identity.Owner}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// work returns the directory of a user.
func (s *team) work(user string) string { return filepath.Join(s.state, "../..", user) }

// client connects with a credential. Texts that the client is sent go to said.
func (s *team) client(t *testing.T, url, credential string, said func(string)) *acp.ClientConn {
	t.Helper()
	way, err := remote.Transport(url, remote.Options{Token: remote.Source{Env: "T", Lookup: func(string) (string, bool) { return credential, true }}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		if chunk, ok := u.Update.(*acp.AgentMessageChunk); ok && said != nil {
			if text, ok := chunk.Content.(*acp.TextContent); ok {
				said(text.Text)
			}
		}
	}}).Connect(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestProbes: what attacks a server is refused, and nothing secret is in its log.
func TestProbes(t *testing.T) {
	long.Test(t)
	s := newTeam(t, "")
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
	send := func(method, body string, header map[string]string, path string) (int, http.Header) {
		t.Helper()
		url := s.url + path
		if strings.HasPrefix(path, "/") {
			url = strings.TrimSuffix(s.url, remote.DefaultPath) + path
		}
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Authorization": "Bearer " + s.ann, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
			r.Header.Set(k, v)
		}
		for k, v := range header {
			if k == "Host" {
				r.Host = v
			}
			if r.Header.Set(k, v); v == "" {
				r.Header.Del(k)
			}
		}
		res, err := web.Do(r)
		if err != nil {
			t.Fatalf("%s %v: %v", method, header, err)
		}
		_ = res.Body.Close()
		return res.StatusCode, res.Header
	}
	status, header := send("POST", hello, nil, "")
	id := header.Get("Acp-Connection-Id")
	if status != http.StatusOK || id == "" {
		t.Fatal(status, header, s.log)
	}
	upgrade := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
	with := func(base map[string]string, kv ...string) map[string]string {
		all := map[string]string{}
		for k, v := range base {
			all[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			all[kv[i]] = kv[i+1]
		}
		return all
	}
	mine := map[string]string{"Acp-Connection-Id": id}
	for _, tt := range []struct {
		name, method, body string
		header             map[string]string
		path               string
		want               int
	}{
		{"another host", "POST", hello, with(nil, "Host", "evil.example"), "", 421},
		{"another host, GET", "GET", "", with(mine, "Host", "evil.example:7842"), "", 421},
		{"another host, upgrade", "GET", "", with(upgrade, "Host", "evil.example"), "", 421},
		{"another host, pairing", "POST", "{}", with(nil, "Host", "evil.example"), identity.PairPath, 421},
		{"a foreign origin, POST", "POST", hello, with(nil, "Origin", "https://evil.example"), "", 403},
		{"a foreign origin, GET", "GET", "", with(mine, "Origin", "https://evil.example"), "", 403},
		{"a foreign origin, DELETE", "DELETE", "", with(mine, "Origin", "https://evil.example"), "", 403},
		{"a foreign origin, upgrade", "GET", "", with(upgrade, "Origin", "https://evil.example"), "", 403},
		{"no origin", "POST", hello, with(nil, "Origin", "null"), "", 403},
		{"another site", "POST", hello, with(nil, "Sec-Fetch-Site", "cross-site"), "", 403},
		{"a form", "POST", "x=1", with(nil, "Content-Type", "application/x-www-form-urlencoded"), "", 415},
		{"a form of text", "POST", hello, with(nil, "Content-Type", "text/plain"), "", 415},
		{"no token", "POST", hello, with(nil, "Authorization", ""), "", 401},
		{"a token in the URL", "POST", hello, with(nil, "Authorization", ""), "?token=" + s.ann, 401},
		{"a token in the URL, upgrade", "GET", "", with(upgrade, "Authorization", ""), "?access_token=" + s.ann, 401},
		{"a password", "POST", hello, with(nil, "Authorization", "Basic YTpi"), "", 401},
		{"bob's connection is ann's", "GET", "", with(mine, "Authorization", "Bearer "+s.bob), "", 404},
		{"bob posts to it", "POST", hello, with(mine, "Authorization", "Bearer "+s.bob), "", 404},
		{"bob ends it", "DELETE", "", with(mine, "Authorization", "Bearer "+s.bob), "", 404},
		{"17 MiB", "POST", `{"x":"` + strings.Repeat("x", 17<<20) + `"}`, with(mine, "Expect", "100-continue"), "", 413},
		{"large headers", "POST", hello, with(nil, "X", strings.Repeat("x", 80<<10)), "", 431},
	} {
		if got, _ := send(tt.method, tt.body, tt.header, tt.path); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	if got, _ := send("DELETE", "", mine, ""); got >= 300 {
		t.Errorf("ann's connection is gone: %d", got)
	}
	s.slow(t)
	s.flood(t)
	c := s.client(t, s.url, s.ann, nil)
	session, err := c.NewSession(t.Context(), acp.SessionConfig{Cwd: s.work("ann")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Prompt(t.Context(), acp.Text("prompt-that-nobody-logs")).Wait(); err != nil {
		t.Error(err)
	}
	token := ""
	for _, file := range []string{s.state} {
		_ = filepath.WalkDir(file, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".token") {
				data, _ := os.ReadFile(path)
				token = strings.TrimSpace(string(data))
			}
			return nil
		})
	}
	log := s.log.String()
	for name, secret := range map[string]string{"ann's credential": s.ann, "bob's credential": s.bob, "the server's token": token, "a prompt": "prompt-that-nobody-logs", "a variable": "key-of-ann"} {
		if secret == "" || strings.Contains(log, secret) {
			t.Errorf("%s is in the log, or is not known: %s", name, log)
		}
	}
}

// slow opens connections that send nothing more than the beginning of a request. Others are served meanwhile, and the
// server ends them.
func (s *team) slow(t *testing.T) {
	const n = 200
	at := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), remote.DefaultPath)
	var ends []net.Conn
	for range n {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "POST /acp HTTP/1.1\r\nHost: "+at+"\r\nX-Slow: ")
		ends = append(ends, c)
	}
	c := s.client(t, s.url, s.bob, nil)
	if _, err := c.NewSession(t.Context(), acp.SessionConfig{Cwd: s.work("bob")}); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	for _, c := range ends {
		_, _ = io.Copy(io.Discard, c) // until the server ends it
	}
	t.Logf("%d connections that sent half a header were ended after %v", n, time.Since(begin).Round(time.Second))
}

// flood asks for the streams of a great many sessions.
func (s *team) flood(t *testing.T) {
	const n = 10_000
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Transport{Protocols: protocols}
	defer web.CloseIdleConnections()
	request := func(ctx context.Context, method, body string, header map[string]string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.bob)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		res, err := web.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := request(t.Context(), "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`, nil)
	_ = res.Body.Close()
	id := res.Header.Get("Acp-Connection-Id")
	counts := map[int]int{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range n {
		res := request(ctx, "GET", "", map[string]string{"Acp-Connection-Id": id, "Acp-Session-Id": fmt.Sprint("s_", i)})
		counts[res.StatusCode]++
		if res.StatusCode != http.StatusOK {
			_ = res.Body.Close()
		} // else it is a stream, and stays open until the end
	}
	t.Logf("%d streams of sessions that do not exist: %v", n, counts)
	if counts[http.StatusOK] > 2049 || counts[http.StatusTooManyRequests] != n-counts[http.StatusOK] {
		t.Errorf("%v", counts)
	}
	cancel()
	_ = request(t.Context(), "DELETE", "", map[string]string{"Acp-Connection-Id": id}).Body.Close()
}

// TestUsers: there is no way from one user to what is another's: sessions, files, credentials, the audit log.
func TestUsers(t *testing.T) {
	s := newTeam(t, "")
	var said shared
	ann := s.client(t, s.url, s.ann, func(text string) { _, _ = said.Write([]byte(text)) })
	hers, err := ann.NewSession(t.Context(), acp.SessionConfig{Cwd: s.work("ann")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hers.Prompt(t.Context(), acp.Text("secret")).Wait(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KEY=key-of-ann", "WORKSPACE="} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing in ann's agent: %s", want, said.String())
		}
	}
	for _, other := range []string{"of-the-server", "key-of-bob", "ACP_TOKEN", s.state} {
		if strings.Contains(said.String(), other) {
			t.Errorf("%q is in ann's agent: %s", other, said.String())
		}
	}
	for _, url := range []string{s.url, "ws" + strings.TrimPrefix(s.url, "http")} {
		bob := s.client(t, url, s.bob, func(text string) { t.Errorf("bob is sent %q", text) })
		for info, err := range bob.ListSessions(t.Context(), acp.ListOptions{}) {
			t.Errorf("bob finds %v, %v", info, err)
		}
		for _, dir := range []string{s.work("ann"), filepath.Join(s.work("bob"), "../ann"), s.state, "/", "/etc"} {
			if _, err := bob.NewSession(t.Context(), acp.SessionConfig{Cwd: dir}); err == nil {
				t.Errorf("bob has a session in %s", dir)
			}
		}
		answer := func(method string, id acp.SessionID) string {
			var res any
			err := bob.Conn().Call(t.Context(), method, map[string]any{
				"sessionId": id, "cwd": s.work("bob"), "mcpServers": []any{}, "prompt": []any{map[string]any{"type": "text", "text": "x"}},
				"modeId": "m", "configId": "c", "value": "v", "title": "t", "user": "bob", "role": "owner",
			}, &res)
			if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
				return e.Message
			}
			return fmt.Sprint(res, err)
		}
		for _, method := range []string{
			"session/load", "session/resume", "session/fork", "session/delete", "session/close", "session/prompt", "session/cancel", "session/set_mode",
			"session/set_config_option", "session/set_title", "session/archive", "session/status", gateway.ShareMethod.Name, gateway.LendMethod.Name,
			"_github.com/goacp/acp/history", "_github.com/goacp/acp/files", "_github.com/goacp/acp/export",
		} {
			if theirs, none := answer(method, hers.ID()), answer(method, "s_000000000000000000000000"); theirs != none {
				t.Errorf("%s: %q, and %q without a session", method, theirs, none)
			}
		}
		for _, method := range []string{gateway.NodesMethod.Name, gateway.DrainMethod.Name, gateway.ForgetMethod.Name} {
			if got := answer(method, ""); !strings.Contains(got, "you cannot") {
				t.Errorf("%s: %s", method, got)
			}
		}
		// What a session of his own says is his.
		own := s.client(t, url, s.bob, func(text string) {
			if strings.Contains(text, "key-of-ann") || strings.Contains(text, "/ann") {
				t.Errorf("bob's agent has %q", text)
			}
		})
		session, err := own.NewSession(t.Context(), acp.SessionConfig{Cwd: s.work("bob")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); err != nil {
			t.Error(err)
		}
		if err := own.Delete(t.Context(), session.ID()); err != nil {
			t.Error(err)
		}
	}
	// The server has no path to what is only the administrator's.
	for _, path := range []string{"/metrics", "/audit", "/devices", "/debug/pprof/", "/state"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", strings.TrimSuffix(s.url, remote.DefaultPath)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.bob)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	// Shared with him, it is there.
	if _, err := gateway.ShareMethod.Call(t.Context(), ann.Conn(), &gateway.ShareRequest{SessionID: hers.ID(), User: "bob", Role: gateway.RoleViewer}); err != nil {
		t.Fatal(err)
	}
	bob := s.client(t, s.url, s.bob, nil)
	found := 0
	for info, err := range bob.ListSessions(t.Context(), acp.ListOptions{}) {
		if err != nil || info.SessionID != hers.ID() {
			t.Error(info, err)
		}
		found++
	}
	if found != 1 {
		t.Errorf("bob finds %d sessions", found)
	}
}

// TestRevoked: a device that is revoked loses its live stream, and what it is sent over WebSocket.
func TestRevoked(t *testing.T) {
	s := newTeam(t, "")
	for _, url := range []string{s.url, "ws" + strings.TrimPrefix(s.url, "http")} {
		name := "device-" + url[:2]
		_, credential, err := s.store.Add(t.Context(), name, identity.Grant{User: "ann", Role: identity.Owner})
		if err != nil {
			t.Fatal(err)
		}
		c := s.client(t, url, credential, nil)
		if _, err := c.NewSession(t.Context(), acp.SessionConfig{Cwd: s.work("ann")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.Revoke(t.Context(), name); err != nil { // by another process than the server
			t.Fatal(err)
		}
		begin := time.Now()
		select {
		case <-c.Done():
			t.Logf("%s: ended %v after the revocation", url[:2], time.Since(begin).Round(time.Millisecond))
		case <-t.Context().Done():
			t.Fatal("the connection of a device that was revoked lives")
		}
	}
}

// TestIssuer: a member of a team comes with a token of the issuer, may do what the groups may, and loses the connection
// when the token ends.
func TestIssuer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{Algorithms: []string{"ES256"}, PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: "ES256"}}}
	web := httptest.NewServer(issuer)
	defer web.Close()
	issuer.SetIssuer(web.URL)
	s := newTeam(t, "[serve.groups.dev]\nrole = \"prompter\"\ndirectories = [\"@WORK@/ann\"]\n[serve.groups.guests]\nrole = \"viewer\"\n", "--oidc-issuer", web.URL, "--oidc-client", "acp")
	token := func(audience, sub, groups string, lasts time.Duration) string {
		return oidctest.SignIDToken(key, "one", "ES256", fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"exp":%d,"iat":%d,"groups":[%s]}`,
			web.URL, audience, sub, time.Now().Add(lasts).Unix(), time.Now().Unix(), groups))
	}
	begin := func(token, dir string) string {
		t.Helper()
		way, err := remote.Transport(s.url, remote.Options{Token: remote.Source{Env: "T", Lookup: func(string) (string, bool) { return token, true }}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := new(acp.Client).Connect(t.Context(), way)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		if _, err = c.NewSession(t.Context(), acp.SessionConfig{Cwd: dir}); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, tt := range []struct{ name, token, dir, want string }{
		{"a member", token("acp", "cy", `"dev","other"`, time.Hour), s.work("ann"), ""},
		{"elsewhere", token("acp", "cy", `"dev"`, time.Hour), s.work("bob"), "oidc:cy may not work in the directory"},
		{"a guest", token("acp", "di", `"guests"`, time.Hour), s.work("ann"), "you cannot begin sessions"},
		{"in no group", token("acp", "ed", `"other"`, time.Hour), s.work("ann"), "no role"},
		{"for another program", token("wiki", "cy", `"dev"`, time.Hour), s.work("ann"), "wrong"},
		{"expired", token("acp", "cy", `"dev"`, -time.Hour), s.work("ann"), "wrong"},
		{"nonsense", "a.b.c", s.work("ann"), "wrong"},
	} {
		if got := begin(tt.token, tt.dir); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	c := s.client(t, s.url, token("acp", "fay", `"dev"`, 10*time.Second), nil)
	select {
	case <-c.Done():
	case <-t.Context().Done():
		t.Error("the connection outlives its token")
	}
}
