package web

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/identity"
)

// TestCookie: the attributes of the cookie that a browser gets, with TLS and without.
func TestCookie(t *testing.T) {
	d := newDesk(t)
	body := `{"token":"` + serverToken + `"}`
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   string // but for its value and Max-Age
	}{
		{"plain", func(*http.Request) {}, "acp-7842 HttpOnly Path=/ SameSite=Strict"},
		{"with TLS", func(r *http.Request) {
			r.TLS = new(tls.ConnectionState)
			r.Header.Set("Origin", "https://127.0.0.1:7842")
		}, "__Host-acp-7842 HttpOnly Path=/ SameSite=Strict Secure"},
		{"behind a proxy with TLS that is believed", func(r *http.Request) {
			r.RemoteAddr = "10.0.0.1:9"
			r.Host = "agents.example"
			r.Header.Del("Origin")
			r.Header.Set("X-Forwarded-Proto", "https")
		}, "__Host-acp-443 HttpOnly Path=/ SameSite=Strict Secure"},
		{"behind another proxy with TLS", func(r *http.Request) {
			r.Host = "agents.example"
			r.Header.Set("Origin", "https://agents.example")
		}, "__Host-acp-443 HttpOnly Path=/ SameSite=Strict Secure"},
	} {
		r := local("POST", "/login", body, own...)
		tt.change(r)
		d.page.cfg.Hosts = []string{"127.0.0.1", "agents.example"}
		res := do(d.h, r)
		line := strings.Join(res.Header.Values("Set-Cookie"), "\n")
		name, rest, _ := strings.Cut(line, "=")
		value, rest, _ := strings.Cut(rest, "; ")
		parts := strings.Split(rest, "; ")
		slices.Sort(parts)
		parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, "Max-Age=2") })
		if got := name + " " + strings.Join(parts, " "); got != tt.want || !identity.IsCredential(value) || res.StatusCode != 200 {
			t.Errorf("%s: %d %s", tt.name, res.StatusCode, line)
		}
	}
}

// TestClients: whose requests have a credential, and what it is.
func TestClients(t *testing.T) {
	d := newDesk(t)
	_, credential := d.add("phone", identity.Viewer, 0)
	_, other := d.add("laptop", identity.Viewer, 0)
	got := "nothing"
	h := d.page.Clients(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(teapot)
	}))
	right := "Bearer " + credential
	for _, tt := range []struct {
		name   string
		tls    bool
		cookie string
		head   []string
		status int
		want   string
	}{
		{"the page", false, "acp-7842=" + credential, own, teapot, right},
		{"the page in an older browser", false, "acp-7842=" + credential, []string{"Origin", "http://127.0.0.1:7842"}, teapot, right},
		{"the page, asking without Origin", false, "acp-7842=" + credential, []string{"Sec-Fetch-Site", "same-origin"}, teapot, right},
		{"the page with TLS", true, "__Host-acp-7842=" + credential, []string{"Origin", "https://127.0.0.1:7842"}, teapot, right},
		{"a cookie of who has no TLS", true, "acp-7842=" + credential, []string{"Origin", "https://127.0.0.1:7842"}, teapot, ""},
		{"a page without TLS", true, "__Host-acp-7842=" + credential, []string{"Origin", "http://127.0.0.1:7842"}, 403, ""},
		{"both", false, "acp-7842=" + other + "; __Host-acp-7842=" + credential, own, teapot, right},
		{"two of a name", false, "acp-7842=" + credential + "; acp-7842=" + other, own, teapot, ""},
		{"no cookie", false, "", own, teapot, ""},
		{"a program", false, "", nil, teapot, ""},
		{"a page elsewhere, without a cookie", false, "", []string{"Origin", "https://evil.example"}, teapot, ""}, // which is refused behind this
		{"a page elsewhere", false, "acp-7842=" + credential, []string{"Origin", "https://evil.example"}, 403, ""},
		{"a page elsewhere that claims to be the page", false, "acp-7842=" + credential, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"}, 403, ""},
		{"a page that is allowed", false, "acp-7842=" + credential, []string{"Origin", "https://friend.example"}, 403, ""},
		{"a page of another server here", false, "acp-7842=" + credential, []string{"Origin", "http://127.0.0.1:1"}, 403, ""},
		{"under another name", false, "acp-7842=" + credential, []string{"Origin", "http://localhost:7842"}, 403, ""},
		{"nowhere", false, "acp-7842=" + credential, []string{"Origin", "null"}, 403, ""},
		{"two origins", false, "acp-7842=" + credential, []string{"Origin", "http://127.0.0.1:7842", "Origin", "http://127.0.0.1:7842"}, 403, ""},
		{"two answers", false, "acp-7842=" + credential, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"nobody says", false, "acp-7842=" + credential, nil, 403, ""},
		{"typed", false, "acp-7842=" + credential, []string{"Sec-Fetch-Site", "none"}, 403, ""},
		{"the same site", false, "acp-7842=" + credential, []string{"Sec-Fetch-Site", "same-site"}, 403, ""},
		{"a token of its own", false, "acp-7842=" + credential, []string{"Authorization", "Bearer x", "Origin", "https://friend.example"}, teapot, "Bearer x"},
		{"the token of the server as a cookie", false, "acp-7842=" + serverToken, own, teapot, ""},
		{"a cookie of another server", false, "acp-1=" + credential, own, teapot, ""},
		{"behind a proxy", false, "__Host-acp-443=" + credential, []string{"Host", "agents.example", "Origin", "https://agents.example"}, teapot, right},
		{"behind a proxy that has another name", false, "__Host-acp-7842=" + credential, []string{"Origin", "https://agents.example", "Sec-Fetch-Site", "same-origin"}, teapot, right},
		{"another page there", false, "__Host-acp-443=" + credential, []string{"Host", "agents.example", "Origin", "https://friend.example"}, 403, ""},
		{"another port there", false, "__Host-acp-8443=" + credential, []string{"Host", "agents.example:8443", "Origin", "https://agents.example"}, 403, ""},
	} {
		r := local("GET", "/acp", "", append([]string{"Cookie", tt.cookie}, tt.head...)...)
		if tt.tls {
			r.TLS = new(tls.ConnectionState)
		}
		got = ""
		if res := do(h, r); res.StatusCode != tt.status || got != tt.want {
			t.Errorf("%s: %d %q", tt.name, res.StatusCode, got)
		}
	}
}
