package identity

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// pairing is a request to /pair as a device sends it.
func pairing(body string, head ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://gateway.example/pair", strings.NewReader(body))
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(head); i += 2 {
		if r.Header.Set(head[i], head[i+1]); head[i] == "Host" {
			r.Host = head[i+1]
		}
	}
	return r
}

// TestPairRequests: what is refused before a ticket is looked at, and how.
func TestPairRequests(t *testing.T) {
	s := open(t, t.TempDir())
	tk := ticket(t, s, "")
	h := (&Gate{Store: s, Hosts: []string{"gateway.example"}, Origins: []string{"https://app.example"}}).Handler()
	good := `{"code":"` + tk.Code[:3] + " " + tk.Code[3:] + `"}`
	method := func(m string) *http.Request { r := pairing(good); r.Method = m; return r }
	for _, tt := range []struct {
		name   string
		r      *http.Request
		status int
	}{
		{"GET", method("GET"), 405},
		{"OPTIONS", method("OPTIONS"), 405},
		{"a form", pairing(good, "Content-Type", "application/x-www-form-urlencoded"), 415},
		{"text", pairing(good, "Content-Type", "text/plain"), 415},
		{"no type", pairing(good, "Content-Type", ""), 415},
		{"no JSON", pairing("code=1"), 400},
		{"not an object", pairing(`["1"]`), 400},
		{"nothing", pairing(""), 400},
		{"large", pairing(`{"name":"` + strings.Repeat("x", maxPair) + `"}`), 413},
		{"another host", pairing(good, "Host", "evil.example"), 421},
		{"another origin", pairing(good, "Origin", "https://evil.example"), 403},
		{"another site", pairing(good, "Sec-Fetch-Site", "cross-site"), 403},
		{"a wrong code", pairing(`{"code":"` + wrong(tk) + `"}`), 403},
		{"no code", pairing(`{}`), 403},
		{"right", pairing(good, "Origin", "http://gateway.example", "Content-Type", "application/json; charset=utf-8"), 200},
		{"again", pairing(good), 403},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, tt.r)
		if w.Code != tt.status || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %s", tt.name, w.Code, w.Body)
		}
		if tt.status != 200 && strings.Contains(w.Body.String(), credentialPrefix) {
			t.Errorf("%s: %s", tt.name, w.Body)
		}
	}
	w := httptest.NewRecorder()
	new(Gate).Handler().ServeHTTP(w, pairing(good))
	if w.Code != 503 {
		t.Error(w.Code)
	}
}

// TestGuard: the rules about Host and Origin are those of acphttp.Server.
func TestGuard(t *testing.T) {
	hosts, origins := []string{"gateway.example", "[::1]"}, []string{"https://app.example"}
	g := &Gate{Hosts: hosts, Origins: origins}
	loopback := &Gate{}
	serve := func(context.Context, acp.Transport) error { return nil }
	agents, local := &acphttp.Server{Serve: serve, Hosts: hosts, Origins: origins}, &acphttp.Server{Serve: serve}
	compared := map[int]bool{}
	for _, tls := range []string{"http", "https"} {
		for _, host := range []string{"gateway.example", "GATEWAY.example:80", "gateway.example:443", "evil.example", "localhost", "localhost:7842", "127.0.0.1:1", "[::1]:1", "[::1]", "::1", "192.0.2.1", ""} {
			for _, head := range [][]string{
				nil, {"Origin", "http://gateway.example"}, {"Origin", "https://gateway.example"}, {"Origin", "https://gateway.example:443"}, {"Origin", "https://app.example"},
				{"Origin", "https://app.example/"}, {"Origin", "null"}, {"Origin", "https://evil.example"}, {"Origin", "http://localhost"}, {"Origin", "http://localhost:7842"}, {"Origin", "http://u@gateway.example"},
				{"Origin", "http://gateway.example", "Origin", "http://gateway.example"}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "none"},
			} {
				r := httptest.NewRequest("PUT", tls+"://gateway.example/", nil) // which is refused after the guard
				r.Host = host
				for i := 0; i < len(head); i += 2 {
					r.Header.Add(head[i], head[i+1])
				}
				at := context.WithValue(r.Context(), http.LocalAddrContextKey, loopbackAddr())
				for _, pair := range []struct {
					mine  *Gate
					their *acphttp.Server
					r     *http.Request
				}{{g, agents, r}, {loopback, local, r}, {loopback, local, r.WithContext(at)}} {
					w := httptest.NewRecorder()
					pair.their.ServeHTTP(w, pair.r)
					want := w.Code
					if want == http.StatusMethodNotAllowed {
						want = 200
					}
					compared[want] = true
					if got := statusOf(pair.mine.guard(pair.r)); got != want {
						t.Errorf("%s, host %q, %v: %d, acphttp has %d", tls, host, head, got, want)
					}
				}
			}
		}
	}
	if !compared[200] || !compared[403] || !compared[421] {
		t.Error(compared)
	}
}

func loopbackAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// TestPairThrottled: an address that guesses is throttled, whatever the tickets are.
func TestPairThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		g := &Gate{Store: s}
		status := func() int {
			w := httptest.NewRecorder()
			g.Handler().ServeHTTP(w, pairing(`{"code":"000000"}`))
			if w.Code == 429 && w.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return w.Code
		}
		for range throttleBurst {
			if got := status(); got != 403 {
				t.Error(got)
			}
		}
		if got := status(); got != 429 {
			t.Error(got)
		}
		if _, err := g.Authenticate(request("192.0.2.1:5", "x")); statusOf(err) != 429 {
			t.Error("tokens are not throttled together with codes", err)
		}
	})
}

// TestJoin: a device joins with a code, and with a link and an approval; it then uses its credential.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	s, there := open(t, dir), open(t, dir)
	log := audit.Open(dir)
	url := gateway(t, &Gate{Store: s, Audit: log})
	tk := ticket(t, there, "")
	got, err := Join(t.Context(), http.DefaultClient, url+"/acp", Claim{Code: tk.Code, Name: "laptop"}, nil)
	if diff := cmp.Diff(Joined{Token: got.Token, User: "me", Name: "laptop", Role: Prompter, Expires: got.Expires}, got); diff != "" || err != nil || got.Expires.IsZero() {
		t.Fatal(diff, err)
	}
	if _, said := say(t, &acphttp.Transport{URL: url + "/acp", Token: func(context.Context) (string, error) { return got.Token, nil }}); said != "me prompter" {
		t.Error(said)
	}
	// With the link, while somebody approves it.
	tk = ticket(t, there, "phone")
	link, err := Link(Endpoint{URL: url + "/acp", Fingerprint: "ff"}, tk.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	e, inLink, err := ParseLink(link)
	if err != nil || inLink != tk.Ticket || e.Fingerprint != "ff" || e.URL != url+PairPath {
		t.Error(e, inLink, err)
	}
	approve := func() {
		if err := there.Approve(t.Context(), tk.ID); err != nil {
			t.Error(err)
		}
	}
	if got, err = Join(t.Context(), http.DefaultClient, e.URL, Claim{Ticket: inLink}, approve); err != nil || got.Name != "phone" {
		t.Error(got, err)
	}
	// Denied, and a code that was used.
	tk = ticket(t, there, "tablet")
	deny := func() {
		if err := there.Deny(t.Context(), tk.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := Join(t.Context(), http.DefaultClient, e.URL, Claim{Ticket: tk.Ticket}, deny); statusOf(err) != 403 || !strings.Contains(err.Error(), "denied") {
		t.Error(err)
	}
	if _, err := Join(t.Context(), http.DefaultClient, e.URL, Claim{Code: tk.Code}, nil); statusOf(err) != 403 {
		t.Error(err)
	}
	// Nobody decides, and the device gives up.
	tk = ticket(t, there, "watch")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("on purpose")
	if _, err := Join(ctx, http.DefaultClient, e.URL, Claim{Ticket: tk.Ticket}, func() { cancel(stop) }); !errors.Is(err, ErrWaiting) || !errors.Is(err, stop) {
		t.Error(err)
	}
	var paired []string
	if err := audit.Read(dir, func(e audit.Entry) error {
		if e.Action == "device.pair" {
			paired = append(paired, e.Device)
		}
		return nil
	}); err != nil || cmp.Diff([]string{"laptop", "phone"}, paired) != "" {
		t.Error(paired, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "audit*.jsonl")); err != nil || len(files) != 1 {
		t.Error(files, err)
	}
}

// TestJoinServers: what is not a gateway.
func TestJoinServers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"not found":     http.NotFound,
		"a page":        func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"another token": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"token":"x"}`) },
		"an endless answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(" ", 10*maxPair))
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/pair", http.StatusTemporaryRedirect)
		},
	} {
		web := httptest.NewServer(h)
		got, err := Join(t.Context(), web.Client(), web.URL, Claim{Code: "123456"}, nil)
		if err == nil || got.Token != "" || !strings.Contains(err.Error(), "not a gateway") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		web.Close()
	}
	for _, bad := range []string{"", "gateway", "ftp://a/", "http://", "https://me:secret@a/", "%zz"} {
		if _, err := Join(t.Context(), http.DefaultClient, bad, Claim{}, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
		if _, _, err := ParseLink(bad + "#t=x"); err == nil {
			t.Errorf("%q is a link", bad)
		}
	}
	if _, _, err := ParseLink("https://a/#%zz"); err == nil {
		t.Error("a damaged link")
	}
	for raw, want := range map[string]string{"wss://a:1/acp?x#y": "https://a:1/pair", "WS://a": "http://a/pair", "https://a/pair": "https://a/pair"} {
		if e, _, err := ParseLink(raw); err != nil || e.URL != want {
			t.Error(raw, e, err)
		}
	}
}

// slow is a client that can be told how long it may take.
type slow struct {
	http.ResponseWriter
	until time.Time
}

func (s *slow) SetReadDeadline(t time.Time) error {
	s.until = t
	return nil
}

// TestPairDeadline: nobody holds a connection open by a request for pairing whose body never comes.
func TestPairDeadline(t *testing.T) {
	g := &Gate{Store: open(t, t.TempDir())}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/pair", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := &slow{ResponseWriter: httptest.NewRecorder()}
	g.Handler().ServeHTTP(w, r)
	if left := time.Until(w.until); left <= 0 || left > bodyTime {
		t.Errorf("the body may take %v", left)
	}
}
