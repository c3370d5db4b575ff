package tool

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goacp/acp"
)

// TestHeaders: what a server is told goes to no other, and not in the clear.
func TestHeaders(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.org/mcp":      "secret",
		"https://example.org/other":    "secret",
		"http://example.org/mcp":       "",
		"https://example.org:444/mcp":  "",
		"https://www.example.org/mcp":  "",
		"https://example.org.evil/mcp": "",
	} {
		got := ""
		h := &headers{"https", "example.org", []acp.HTTPHeader{{Name: "Authorization", Value: "secret"}}, sent(func(r *http.Request) {
			got = r.Header.Get("Authorization")
		})}
		if _, err := h.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)); err != nil || got != want {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

type sent func(*http.Request)

func (f sent) RoundTrip(r *http.Request) (*http.Response, error) { f(r); return nil, nil }
