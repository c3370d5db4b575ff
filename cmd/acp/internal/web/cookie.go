package web

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/internal/webguard"
)

// Names of the cookie, to which the port is added: cookies do not belong to ports. Browsers accept the first prefix from
// this host alone, and with TLS alone, so no other one can set it.
const (
	hostPrefix  = "__Host-acp-"
	plainPrefix = "acp-"
)

// longest is how long browsers keep a cookie at most.
const longest = 400 * 24 * time.Hour

// Clients returns what serves requests of clients, to be authenticated by next. A browser's has its credential as a
// cookie. It is made the token of the request if the browser says that the page itself has made it; otherwise the
// request is refused with 403.
func (p *Page) Clients(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known, _, err := p.withToken(r)
		if err != nil {
			protect(w.Header())
			http.Error(w, err.Text, err.Status)
			return
		}
		next.ServeHTTP(w, known)
	})
}

var errForeign = &acphttp.StatusError{Status: http.StatusForbidden, Text: "requests from other sites are refused"}

// withToken returns a request with the credential in its cookie as its token; c is nil if there is none.
func (p *Page) withToken(r *http.Request) (_ *http.Request, c *http.Cookie, err *acphttp.StatusError) {
	if len(r.Header.Values("Authorization")) > 0 {
		return r, nil, nil
	}
	if c = p.cookie(r); c == nil {
		return r, nil, nil
	}
	if !p.isOwn(r) {
		return nil, nil, errForeign
	}
	return asBearer(r, c.Value), c, nil
}

// asBearer returns a request that sends a token.
func asBearer(r *http.Request, token string) *http.Request {
	known := *r
	known.Header = r.Header.Clone()
	known.Header.Set("Authorization", "Bearer "+token)
	return &known
}

// cookie returns the cookie with a credential, or nil. With TLS none counts that was set without. Of two of the same name,
// which one site of a host can do to another, neither counts.
func (p *Page) cookie(r *http.Request) *http.Cookie {
	names := []string{hostPrefix + port(r, "443")}
	if !p.cfg.Gate.Encrypted(r) {
		names = append(names, plainPrefix+port(r, "80"))
	}
	for _, name := range names {
		if all := r.CookiesNamed(name); len(all) == 1 && p.isCredential(all[0].Value) {
			return all[0]
		}
	}
	return nil
}

// isCredential reports whether a text may be the credential of a device, or the token of a team.
func (p *Page) isCredential(text string) bool {
	return identity.IsCredential(text) || p.cfg.Team != nil && strings.Count(text, ".") == 2
}

// port returns the port by which a browser knows this server.
func port(r *http.Request, otherwise string) string {
	_, port, err := net.SplitHostPort(r.Host)
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 {
		return otherwise
	}
	return port
}

// isOwn reports whether a request was made by the page: a browser says so in Sec-Fetch-Site, or names the origin. One that
// says neither is not the page's.
func (p *Page) isOwn(r *http.Request) bool {
	site, origins := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	if len(site) > 1 || len(site) == 1 && site[0] != "same-origin" {
		return false
	}
	switch len(origins) {
	case 0:
		return len(site) == 1
	case 1:
		return !webguard.IsForeign(r, nil) || p.isOutside(r, origins[0], len(site) == 1)
	}
	return false
}

// isOutside reports whether an origin is what this server is called in front of a proxy, which has TLS or another name:
// it is one of those that are allowed, and a browser says that it is the page's, or it has the name of the request.
func (p *Page) isOutside(r *http.Request, origin string, said bool) bool {
	if !slices.Contains(p.cfg.Origins, origin) {
		return false
	}
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	otherwise := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	name, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		name = strings.Trim(r.Host, "[]")
	}
	named, at := u.Port(), port(r, otherwise)
	if named == "" {
		named = otherwise
	}
	return said || strings.EqualFold(u.Hostname(), name) && named == at
}

// keep has the browser keep a credential until it expires; zero is never.
func (p *Page) keep(w http.ResponseWriter, r *http.Request, credential string, expires time.Time) {
	lasts := longest
	if !expires.IsZero() {
		lasts = min(lasts, time.Until(expires))
	}
	name, secure := plainPrefix+port(r, "80"), p.isEncrypted(r)
	if secure {
		name = hostPrefix + port(r, "443")
	}
	setCookie(w, name, credential, max(1, int(lasts/time.Second)))
}

// isEncrypted reports whether a request has come with TLS, as far as anything says so.
func (p *Page) isEncrypted(r *http.Request) bool {
	if p.cfg.Gate.Encrypted(r) || strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		return true
	}
	c := p.cookie(r)
	return c != nil && strings.HasPrefix(c.Name, hostPrefix)
}

// setCookie sets a cookie for a time in seconds; -1 removes it.
func setCookie(w http.ResponseWriter, name, value string, lasts int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: lasts, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(name, hostPrefix),
	})
}
