package identity

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/webguard"
)

// guard refuses what a web page of somebody else may have sent, by the rules of [acphttp.Server]. It sends
// no CORS headers: only the gateway's own pages pair devices.
func (g *Gate) guard(r *http.Request) error {
	switch {
	case !webguard.KnowsHost(r, g.Hosts):
		return &acphttp.StatusError{Status: http.StatusMisdirectedRequest, Text: "unknown host"}
	case webguard.IsForeign(r, g.Origins):
		return &acphttp.StatusError{Status: http.StatusForbidden, Text: "foreign origin"}
	}
	return nil
}

// source returns the address that a request comes from: that of the connection or, if it is one of
// Proxies, the last address in X-Forwarded-For that is not. Behind it everything may be a lie.
func (g *Gate) source(r *http.Request) netip.Addr {
	addr, err := remoteAddr(r)
	if err != nil || !g.IsProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return addr
		}
		if addr = next.Unmap(); !g.IsProxy(addr) {
			return addr
		}
	}
	return addr
}

// IsProxy reports whether an address is of a proxy that is believed.
func (g *Gate) IsProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(g.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// remoteAddr returns the address at the other end of the connection; the error says that it is a Unix socket.
func remoteAddr(r *http.Request) (netip.Addr, error) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap(), err
}
