package acphttp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard refuses what a web page of somebody else may have sent: requests to a name
// that is not the server's, and those of other origins. It runs before anything else
// looks at a request.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) error {
	if !s.knowsHost(r) {
		return status(http.StatusMisdirectedRequest, "unknown host")
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return status(http.StatusForbidden, "foreign origin")
	}
	if len(origins) == 0 {
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			return nil
		}
		return status(http.StatusForbidden, "foreign origin")
	}
	origin := origins[0]
	if slices.Contains(s.Origins, origin) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", HeaderConnectionID+", "+HeaderMessage+", "+headerCursor+", Retry-After")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-ID, "+
				HeaderConnectionID+", "+HeaderSessionID+", "+HeaderMessage)
			return status(http.StatusNoContent, "")
		}
		return nil
	}
	if !sameOrigin(origin, r) {
		return status(http.StatusForbidden, "foreign origin")
	}
	return nil
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
	if u.Scheme != want {
		return false
	}
	return strings.EqualFold(withPort(u.Host, u.Scheme), withPort(r.Host, want))
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

// knowsHost reports whether a request names a host that the server is known by.
func (s *Server) knowsHost(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if s.Hosts != nil {
		return slices.ContainsFunc(s.Hosts, func(h string) bool {
			return strings.EqualFold(strings.Trim(h, "[]"), name)
		})
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return true
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
