package webguard

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestKnowsHost(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080}
	for _, test := range []struct {
		name  string
		local net.Addr
		host  string
		hosts []string
		want  bool
	}{
		{"localhost", loopback, "localhost:8080", nil, true},
		{"localhost in capitals", loopback, "LOCALHOST", nil, true},
		{"loopback address", loopback, "127.0.0.1:8080", nil, true},
		{"loopback address of version 6", loopback, "[::1]:8080", nil, true},
		{"loopback address without a port", loopback, "[::1]", nil, true},
		{"rebound name", loopback, "evil.example:8080", nil, false},
		{"name that begins like localhost", loopback, "localhost.evil.example", nil, false},
		{"other address", loopback, "192.0.2.1", nil, false},
		{"no name", loopback, "", nil, false},
		{"public server", public, "anything.example", nil, true},
		{"unknown address of the server", nil, "anything.example", nil, true},
		{"listed", loopback, "acp.example:443", []string{"acp.example"}, true},
		{"listed in other letters", public, "ACP.example", []string{"acp.example"}, true},
		{"listed address of version 6", public, "[2001:db8::1]:443", []string{"[2001:db8::1]"}, true},
		{"not listed", public, "other.example", []string{"acp.example"}, false},
		{"nothing is listed", loopback, "localhost", []string{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = test.host
			if test.local != nil {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, test.local))
			}
			if got := KnowsHost(r, test.hosts); got != test.want {
				t.Errorf("KnowsHost(%q, %q) = %v, want %v", test.host, test.hosts, got, test.want)
			}
		})
	}
}

func TestIsForeign(t *testing.T) {
	for _, test := range []struct {
		name    string
		host    string
		tls     bool
		origins []string
		site    string
		want    bool
	}{
		{"no origin", "acp.example", false, nil, "", false},
		{"typed address", "acp.example", false, nil, "none", false},
		{"own page by its site", "acp.example", false, nil, "same-origin", false},
		{"sister site", "acp.example", false, nil, "same-site", true},
		{"other site", "acp.example", false, nil, "cross-site", true},
		{"own origin", "acp.example:8080", false, []string{"http://acp.example:8080"}, "", false},
		{"own origin in other letters", "ACP.example", false, []string{"http://acp.EXAMPLE"}, "", false},
		{"default port left out", "acp.example:80", false, []string{"http://acp.example"}, "", false},
		{"default port of TLS left out", "acp.example", true, []string{"https://acp.example:443"}, "", false},
		{"address of version 6", "[::1]", false, []string{"http://[::1]:80"}, "", false},
		{"other port", "acp.example:8080", false, []string{"http://acp.example:8081"}, "", true},
		{"other scheme", "acp.example", true, []string{"http://acp.example"}, "", true},
		{"other name", "acp.example", false, []string{"http://evil.example"}, "", true},
		{"null", "acp.example", false, []string{"null"}, "", true},
		{"empty", "acp.example", false, []string{""}, "", true},
		{"no URL", "acp.example", false, []string{"http://[acp.example"}, "", true},
		{"path", "acp.example", false, []string{"http://acp.example/"}, "", true},
		{"user", "acp.example", false, []string{"http://u@acp.example"}, "", true},
		{"query", "acp.example", false, []string{"http://acp.example?q"}, "", true},
		{"fragment", "acp.example", false, []string{"http://acp.example#f"}, "", true},
		{"allowed", "acp.example", false, []string{"https://editor.example"}, "", false},
		{"two origins", "acp.example", false, []string{"http://acp.example", "http://acp.example"}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Host = test.host
			if test.tls {
				r.TLS = &tls.ConnectionState{}
			}
			for _, o := range test.origins {
				r.Header.Add("Origin", o)
			}
			if test.site != "" {
				r.Header.Set("Sec-Fetch-Site", test.site)
			}
			if got := IsForeign(r, []string{"https://editor.example"}); got != test.want {
				t.Errorf("IsForeign = %v, want %v", got, test.want)
			}
		})
	}
}

func TestProtect(t *testing.T) {
	h := http.Header{}
	h.Set("Cache-Control", "public")
	Protect(h, "default-src 'none'")
	for name, want := range map[string]string{
		"Content-Security-Policy":      "default-src 'none'",
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cache-Control":                "no-store",
	} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
