package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/internal/logtest"
)

// live serves the page and an agent behind it, and returns the URL of the page.
func live(t *testing.T, d *desk) string {
	t.Helper()
	prompt := func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
		p, ok := identity.FromContext(ctx)
		if !ok {
			return "", errors.New("no principal")
		}
		return "", turn.Say(p.Name + " is " + p.Role.String())
	}
	gate := d.page.cfg.Gate
	agents := &acphttp.Server{Serve: gate.Serve((&acp.Agent{Prompt: prompt}).Serve), Authenticate: gate.Authenticate, Upgrade: acpws.Upgrader{}, Keep: acphttp.Retention{Bytes: 1 << 20}, Logger: logtest.New(t)}
	mux := http.NewServeMux()
	mux.Handle("/acp", d.page.Clients(agents))
	mux.Handle("/", d.page.Others(gate.Handler()))
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := agents.Close(context.Background()); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s.URL
}

// ask makes a request of the page at a URL with its cookie.
func ask(t *testing.T, method, url, path, text string, cookie *http.Cookie) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", url)
	req.Header.Set("Content-Type", "application/json")
	if cookie != nil {
		req.AddCookie(cookie)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = io.Copy(io.Discard, res.Body); _ = res.Body.Close() })
	return res
}

// TestWebSocket: with the cookie, the page has a connection, which ends when it logs out; a page elsewhere has none.
func TestWebSocket(t *testing.T) {
	d := newDesk(t)
	url := live(t, d)
	link, err := d.store.NewLink(t.Context(), identity.Grant{User: "me", Role: identity.Owner}, identity.MaxLinkLifetime)
	if err != nil {
		t.Fatal(err)
	}
	res := ask(t, "POST", url, "/login", `{"ticket":"`+link.Ticket+`","name":"Chrome"}`, nil)
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.StatusCode)
	}
	cookie := d.cookieOf(res)
	way := func(head ...string) acp.Transport {
		h := http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}
		for i := 0; i < len(head); i += 2 {
			h.Add(head[i], head[i+1])
		}
		return &acpws.Transport{URL: "ws" + strings.TrimPrefix(url, "http") + "/acp", Header: h}
	}
	connect := func(way acp.Transport) (*acp.ClientConn, error) { return new(acp.Client).Connect(t.Context(), way) }
	for name, head := range map[string][]string{
		"a page elsewhere": {"Origin", "https://evil.example"}, "a page of another server here": {"Origin", "http://127.0.0.1:1"}, "nobody says": nil,
		"the same site": {"Sec-Fetch-Site", "same-site"}, "the page in a lie": {"Origin", url, "Sec-Fetch-Site", "cross-site"},
	} {
		conn, err := connect(way(head...))
		if said, ok := errors.AsType[*acphttp.StatusError](err); !ok || said.Status != http.StatusForbidden {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	conn, err := connect(way("Origin", url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := session.Prompt(t.Context(), acp.Text("hi")).Text(); err != nil || text != "Chrome is owner" {
		t.Error(text, err)
	}
	if res := ask(t, "POST", url, "/logout", "", cookie); res.StatusCode != http.StatusNoContent {
		t.Error(res.StatusCode)
	}
	<-conn.Done() // or the test ends by its time limit
	if _, err := connect(way("Origin", url)); err == nil {
		t.Error("the cookie is worth something")
	}
	if res := ask(t, "GET", url, "/whoami", "", cookie); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.StatusCode)
	}
}
