// Package webguard decides which requests a web page of somebody else may have sent: those to a name that is
// not the server's, and those of other origins.
package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// KnowsHost reports whether a request names a host that the server is known by. Hosts are names without ports.
// If they are nil, a server on an address of this machine alone is known by the names of that, and any other
// by every name.
func KnowsHost(r *http.Request, hosts []string) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if hosts != nil {
		return slices.ContainsFunc(hosts, func(h string) bool {
			return strings.EqualFold(strings.Trim(h, "[]"), name)
		})
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() || strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// IsForeign reports whether a request comes from a web page of another origin than its own URL's and those that
// are allowed. A request that names no origin does not, unless the browser says so in another way.
func IsForeign(r *http.Request, allowed []string) bool {
	switch origins := r.Header.Values("Origin"); len(origins) {
	case 0:
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			return false
		}
		return true
	case 1:
		return !slices.Contains(allowed, origins[0]) && !sameOrigin(origins[0], r)
	}
	return true
}

// Protect sets the headers that keep a page from others: what it may do is for its policy to say, no other site can
// embed it or read it, it names itself to nobody, and nobody keeps it.
func Protect(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// sameOrigin reports whether an origin is that of the request's own URL.
func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return false
	}
	want := "http"
	if r.TLS != nil {
		want = "https"
	}
	return u.Scheme == want && strings.EqualFold(withPort(u.Host, want), withPort(r.Host, want))
}

// withPort completes a host by the port of its scheme.
func withPort(host, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if scheme == "https" {
		return host + ":443"
	}
	return host + ":80"
}
