package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/internal/logtest"
)

// request is one from an address, with a token unless that is "".
func request(from, token string, head ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://gateway.example/acp", nil)
	r.RemoteAddr = from
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Add(head[i], head[i+1])
	}
	return r
}

// statusOf returns the status that refuses a request, or 200.
func statusOf(err error) int {
	if said, ok := errors.AsType[*acphttp.StatusError](err); ok {
		return said.Status
	}
	if err != nil {
		return -1
	}
	return 200
}

// team is a Team with one member for each answer.
type team map[string]func() (Principal, error)

func (m team) Authenticate(_ context.Context, token string) (Principal, error) {
	if f := m[token]; f != nil {
		return f()
	}
	return Principal{}, fmt.Errorf("test: %w", ErrCredential)
}

func member(name string, role Role, lifetime time.Duration) func() (Principal, error) {
	return func() (Principal, error) {
		return Principal{Kind: KindTeam, User: name, Role: role, Expires: time.Now().Add(lifetime)}, nil
	}
}

// TestAuthenticate: who is let in, as whom, and with which status others are refused.
func TestAuthenticate(t *testing.T) {
	s := open(t, t.TempDir())
	d, credential := add(t, s, "phone", Grant{})
	broken := open(t, t.TempDir())
	_, lost := add(t, broken, "phone", Grant{})
	if _, err := broken.db.Exec(`DROP TABLE device`); err != nil {
		t.Fatal(err)
	}
	both := &Gate{Store: s, Team: team{
		"good": member("oidc:jo", Prompter, time.Hour), "none": member("oidc:jo", None, time.Hour),
		"eternal":  func() (Principal, error) { return Principal{Kind: KindTeam, Role: Owner}, nil },
		"posing":   func() (Principal, error) { return d.Principal(), nil },
		"denied":   func() (Principal, error) { return Principal{}, ErrDenied },
		"down":     func() (Principal, error) { return Principal{}, errors.New("the issuer is down") },
		credential: func() (Principal, error) { return Principal{}, errors.New("a credential was sent to the team") },
	}}
	for _, tt := range []struct {
		name   string
		gate   *Gate
		token  string
		status int
		user   string
	}{
		{"device", both, credential, 200, "me"},
		{"wrong", both, credential[:len(credential)-4] + "aaaa", 401, ""},
		{"missing", both, "", 401, ""},
		{"member", both, "good", 200, "oidc:jo"},
		{"not a member", both, "x", 401, ""},
		{"no role", both, "none", 403, ""},
		{"a token without an end", both, "eternal", 403, ""},
		{"a team that says it is a device", both, "posing", 403, ""},
		{"denied", both, "denied", 403, ""},
		{"the issuer is down", both, "down", 503, ""},
		{"the store is broken", &Gate{Store: broken}, lost, 503, ""},
		{"no team", &Gate{Store: s}, "good", 401, ""},
		{"no store", &Gate{}, credential, 401, ""},
	} {
		key, err := tt.gate.Authenticate(request("192.0.2.1:1", tt.token))
		if got := statusOf(err); got != tt.status {
			t.Errorf("%s: %d, %v", tt.name, got, err)
		}
		p, _ := ParseKey(key)
		if p.User != tt.user || strings.Contains(key, credential) {
			t.Errorf("%s: %s", tt.name, key)
		}
	}
	r := request("192.0.2.1:1", "")
	r.Header.Set("Authorization", "Basic "+credential)
	if _, err := both.Authenticate(r); statusOf(err) != 401 {
		t.Error(err)
	}
}

// TestThrottled: wrong tokens are throttled by their source; a token that was right is not.
func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		_, known := add(t, s, "known", Grant{})
		_, fresh := add(t, s, "fresh", Grant{})
		g := &Gate{Store: s, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		try := func(want int, r *http.Request) {
			t.Helper()
			_, err := g.Authenticate(r)
			if got := statusOf(err); got != want {
				t.Errorf("%d, want %d", got, want)
			}
			if said, _ := errors.AsType[*acphttp.StatusError](err); want == 429 && said.RetryAfter <= 0 {
				t.Error("no Retry-After")
			}
		}
		const flood = "192.0.2.1:1"
		try(200, request(flood, known))
		for i := range throttleBurst {
			try(401, request(flood, fmt.Sprint("wrong", i)))
		}
		try(429, request(flood, "wrong"))
		try(429, request(flood, fresh))
		try(200, request(flood, known))
		try(200, request("192.0.2.2:1", fresh))
		// Behind a proxy the address is the one that the proxy names, whatever a client claims.
		const proxy = "10.1.1.1:80"
		try(429, request(proxy, "wrong", "X-Forwarded-For", "198.51.100.7, 192.0.2.1"))
		try(429, request(proxy, "wrong", "X-Forwarded-For", "198.51.100.7", "X-Forwarded-For", "192.0.2.1, 10.2.2.2"))
		try(401, request(proxy, "wrong", "X-Forwarded-For", "192.0.2.1, 198.51.100.7"))
		try(401, request("192.0.2.3:1", "wrong", "X-Forwarded-For", "192.0.2.1")) // not a proxy
		try(401, request(proxy, "wrong", "X-Forwarded-For", "junk"))
		// A token that was right and is not any more is as any other.
		revoke(t, s, "known")
		try(401, request(flood, known))
		try(429, request(flood, known))
		time.Sleep(2 * throttleEvery)
		try(200, request(flood, fresh))
	})
}

// TestBounds: what a gate remembers is bounded.
func TestBounds(t *testing.T) {
	g := &Gate{}
	for i := range max(maxKnown, maxLeases) + 10 {
		g.accepted([32]byte(hashOf(fmt.Sprint(i))), Principal{Kind: KindTeam, User: fmt.Sprint(i), Role: Viewer, Expires: time.Now().Add(time.Hour)})
	}
	if len(g.known) != maxKnown || len(g.leases) != maxLeases {
		t.Errorf("%d, %d", len(g.known), len(g.leases))
	}
	for k := range g.leases {
		g.leases[k] = time.Now().Add(-time.Hour)
	}
	g.accepted([32]byte{1}, Principal{Kind: KindTeam, User: "new", Role: Viewer, Expires: time.Now().Add(time.Hour)})
	if len(g.leases) != 1 {
		t.Error(len(g.leases))
	}
}

// gateway serves an agent behind a gate, as a gateway does.
func gateway(t *testing.T, g *Gate) string {
	t.Helper()
	prompt := func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
		p, ok := FromContext(ctx)
		if !ok {
			return "", errors.New("no principal")
		}
		return "", turn.Say(p.User + " " + p.Role.String())
	}
	agents := &acphttp.Server{Serve: g.Serve((&acp.Agent{Prompt: prompt}).Serve), Authenticate: g.Authenticate, Upgrade: acpws.Upgrader{}, Keep: acphttp.Retention{Bytes: 1 << 20}, Logger: logtest.New(t)}
	mux := http.NewServeMux()
	mux.Handle("/acp", agents)
	mux.Handle(PairPath, g.Handler())
	web := httptest.NewUnstartedServer(mux)
	web.Config.ConnContext = ConnContext
	web.Start()
	t.Cleanup(func() {
		if err := agents.Close(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL
}

// say connects, sends a prompt and returns the connection and the answer.
func say(t *testing.T, way acp.Transport) (*acp.ClientConn, string) {
	t.Helper()
	conn, err := new(acp.Client).Connect(t.Context(), way)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := session.Prompt(t.Context(), acp.Text("hi")).Text()
	if err != nil {
		t.Fatal(err)
	}
	return conn, text
}

// TestLive: a live connection ends when its device is revoked by another process, over HTTP and over
// WebSocket; others stay. The audit log says so.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir), open(t, dir)
	log := audit.Open(dir)
	t.Run("connections", func(t *testing.T) { // which have ended, and said so, when it has
		url := gateway(t, &Gate{Store: here, Audit: log})
		for _, name := range []string{"http", "ws"} {
			_, credential := add(t, there, name, Grant{})
			_, kept := add(t, there, name+"-kept", Grant{Role: Owner})
			way := func(token string) acp.Transport {
				send := func(context.Context) (string, error) { return token, nil }
				if name == "ws" {
					return &acpws.Transport{URL: "ws" + strings.TrimPrefix(url, "http") + "/acp", Token: send}
				}
				return &acphttp.Transport{URL: url + "/acp", Token: send}
			}
			conn, said := say(t, way(credential))
			if said != "me approver" {
				t.Error(said)
			}
			other, said := say(t, way(kept))
			if said != "me owner" {
				t.Error(said)
			}
			revoke(t, there, name)
			<-conn.Done() // or the test ends by its time limit
			if _, err := other.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()}); err != nil {
				t.Errorf("%s: another connection: %v", name, err)
			}
			if _, err := new(acp.Client).Connect(t.Context(), way(credential)); statusOf(err) != 401 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	cut := 0
	if err := audit.Read(dir, func(e audit.Entry) error {
		if e.Action == "connection.cut" && e.Outcome == "revoked" && e.User == "me" {
			cut++
		}
		return nil
	}); err != nil || cut != 2 {
		t.Error(cut, err)
	}
}

// TestServe: the context of a connection ends within a second after the rights of its client, and not
// before.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		lifetime := time.Minute
		g := &Gate{Store: s, Team: team{"t": func() (Principal, error) { return member("oidc:jo", Viewer, lifetime)() }}}
		_, credential := add(t, s, "phone", Grant{Lifetime: 2 * time.Minute})
		run := func(token string, during func()) time.Duration {
			t.Helper()
			key, err := g.Authenticate(request("192.0.2.1:1", token))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			serve := g.Serve(func(ctx context.Context, _ acp.Transport) error {
				during()
				<-ctx.Done()
				return context.Cause(ctx)
			})
			if err := serve(withPrincipal(t, key), nil); !errors.Is(err, ErrRevoked) {
				t.Error(err)
			}
			return time.Since(begin)
		}
		if took := run(credential, func() {}); took < 2*time.Minute || took > 2*time.Minute+time.Second {
			t.Errorf("a credential that expires: %v", took)
		}
		if took := run("t", func() {}); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("a token that expires: %v", took)
		}
		renew := func() {
			time.Sleep(30 * time.Second)
			if _, err := g.Authenticate(request("192.0.2.1:1", "t")); err != nil {
				t.Error(err)
			}
		}
		if took := run("t", renew); took < 90*time.Second || took > 90*time.Second+time.Second {
			t.Errorf("a token that is renewed: %v", took)
		}
		// A connection that ends by itself, and one without a principal.
		key, err := g.Authenticate(request("192.0.2.1:1", "t"))
		if err != nil {
			t.Fatal(err)
		}
		done := errors.New("done")
		if err := g.Serve(func(context.Context, acp.Transport) error { return done })(withPrincipal(t, key), nil); !errors.Is(err, done) {
			t.Error(err)
		}
		if err := g.Serve(func(context.Context, acp.Transport) error { t.Error("it is served"); return nil })(t.Context(), nil); err == nil {
			t.Error("no error")
		}
	})
}

// withPrincipal returns a context as acphttp.Server makes it.
func withPrincipal(t *testing.T, key string) context.Context {
	t.Helper()
	got := make(chan context.Context, 1)
	s := &acphttp.Server{
		Authenticate: func(*http.Request) (string, error) { return key, nil },
		Serve:        func(ctx context.Context, _ acp.Transport) error { got <- context.WithoutCancel(ctx); return io.EOF },
	}
	r := httptest.NewRequest("POST", "http://localhost/acp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case ctx := <-got:
		return ctx
	default:
		t.Fatal("nothing was served")
		return nil
	}
}

// TestSocket: the user of this process needs no token on a Unix socket, if that is wanted.
func TestSocket(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("there are no peer credentials")
	}
	s := open(t, t.TempDir())
	_, credential := add(t, s, "phone", Grant{})
	for _, tt := range []struct {
		gate   *Gate
		token  string
		status int
		want   Principal
	}{
		{&Gate{Local: true, LocalUser: "jo"}, "", 200, Principal{Kind: KindLocal, User: "jo", Role: Owner}},
		{&Gate{Local: true}, "", 200, Principal{Kind: KindLocal, User: CurrentUser(), Role: Owner}},
		{&Gate{}, "", 401, Principal{}},
		{&Gate{Local: true, Store: s}, "wrong", 401, Principal{}}, // who sends a token is judged by it
		{&Gate{Local: true, Store: s}, credential, 200, Principal{Kind: KindDevice, User: "me", Name: "phone", Role: Approver}},
	} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		var got Principal
		var peer Peer
		status := 0
		web := &http.Server{ConnContext: ConnContext, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			peer, _ = PeerOf(r.Context())
			key, err := tt.gate.Authenticate(r)
			status = statusOf(err)
			got, _ = ParseKey(key)
		})}
		served := make(chan error, 1)
		go func() { served <- web.Serve(l) }()
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		req, _ := http.NewRequest("GET", "http://localhost/", nil)
		if tt.token != "" {
			req.Header.Set("Authorization", "Bearer "+tt.token)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_ = web.Close()
		<-served
		got.Device = ""
		if status != tt.status || got.Key() != tt.want.Key() {
			t.Errorf("%d, %+v, want %d, %+v", status, got, tt.status, tt.want)
		}
		if peer.UID != os.Getuid() || peer.PID == 0 {
			t.Errorf("%+v", peer)
		}
	}
	// Over TCP there is no peer.
	if _, ok := PeerOf(ConnContext(t.Context(), new(net.TCPConn))); ok {
		t.Error("a peer")
	}
	other := context.WithValue(t.Context(), peerKey{}, Peer{UID: os.Getuid() + 1})
	if _, err := (&Gate{Local: true}).Authenticate(request("@", "").WithContext(other)); statusOf(err) != 401 {
		t.Error(err)
	}
}
