package policy

import (
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/goacp/acp"
)

// MCPServer returns why a session of the user may not have an MCP server, or nil. An entry of the settings permits the
// program, or the URL, that it is. One that is a URL permits those below its path, too.
func (p *Policy) MCPServer(server acp.MCPServer) error {
	list := p.rights.MCP
	if len(list) == 0 {
		return nil
	}
	name, target := describe(server)
	_, isHTTP := server.(*acp.MCPServerHTTP)
	for _, allowed := range list {
		switch {
		case allowed == nothing:
		case allowed == target && target != "":
			return nil
		case isHTTP && below(allowed, target):
			return nil
		}
	}
	return p.refuse("policy.mcp", 0, "%s may not use the MCP server %s", p.user, name)
}

// below reports whether a URL is within a permitted one: the scheme, the host and the port are the same, and the path
// is the same or below. A permitted URL with a query is no such one.
func below(allowed, target string) bool {
	a, ok := plainURL(allowed)
	if !ok || a.RawQuery != "" {
		return false
	}
	t, ok := plainURL(target)
	if !ok || t.Scheme != a.Scheme || hostOf(t) != hostOf(a) {
		return false
	}
	rest, ok := strings.CutPrefix(t.Path, strings.TrimSuffix(a.Path, "/"))
	// https://mcp.example/a permits https://mcp.example/a and /a/b, but not /ab; https://mcp.example/a/ not /a.
	return ok && (strings.HasPrefix(rest, "/") || rest == "" && !strings.HasSuffix(a.Path, "/"))
}

// plainURL parses a URL which all programs read alike. It reports false for one in which a client or a server may see
// another host or path than this program does: user information, backslashes, control characters, and segments of the
// path that are dots or have separators, encoded once or more.
func plainURL(s string) (*url.URL, bool) {
	special := func(s string) bool {
		return strings.ContainsRune(s, '\\') || strings.ContainsFunc(s, unicode.IsControl)
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "" || u.User != nil || special(s) || special(u.Path) {
		return nil, false
	}
	if u.Path == "" {
		u.Path = "/"
	}
	if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return nil, false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		bare, _, _ := strings.Cut(segment, ";") // some servers take "..;x" for ".."
		encoded := strings.ToLower(segment)
		if bare == "." || bare == ".." || strings.Contains(encoded, "%2e") || strings.Contains(encoded, "%2f") || strings.Contains(encoded, "%5c") || strings.Contains(encoded, "%25") {
			return nil, false
		}
	}
	return u, true
}

// hostOf returns the host and the port of a URL, to compare.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
