package identity

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/goacp/acp/acphttp"
)

// guard refuses what a web page of somebody else may have sent. Its rules are those of
// [acphttp.Server], which has them for its own requests only; a test holds the two together. It sends
// no CORS headers: only the gateway's own pages pair devices.
func (g *Gate) guard(r *http.Request) error {
	if !g.knowsHost(r) {
		return &acphttp.StatusError{Status: http.StatusMisdirectedRequest, Text: "unknown host"}
	}
	foreign := &acphttp.StatusError{Status: http.StatusForbidden, Text: "foreign origin"}
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return foreign
	case len(origins) == 0:
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			return nil
		}
		return foreign
	case slices.Contains(g.Origins, origins[0]), sameOrigin(origins[0], r):
		return nil
	}
	return foreign
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

// knowsHost reports whether a request names a host that the gateway is known by.
func (g *Gate) knowsHost(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if g.Hosts != nil {
		return slices.ContainsFunc(g.Hosts, func(h string) bool {
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

// source returns the address that a request comes from: that of the connection or, if it is one of
// Proxies, the last address in X-Forwarded-For that is not. Behind it everything may be a lie.
func (g *Gate) source(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a Unix socket
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	if !g.isProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return addr
		}
		if addr = next.Unmap(); !g.isProxy(addr) {
			return addr
		}
	}
	return addr
}

func (g *Gate) isProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(g.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
