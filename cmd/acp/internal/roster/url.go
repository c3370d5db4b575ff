package roster

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// IsURL reports whether a text is read as the URL of an agent: its scheme comes first, and there is no
// white space in it, which a command line with a URL among its arguments has. unix:PATH is one, too.
func IsURL(s string) bool {
	if remote.Is(s) {
		return !strings.ContainsFunc(s, unicode.IsSpace)
	}
	scheme, _, ok := strings.Cut(s, "://")
	return ok && scheme != "" && !strings.ContainsFunc(s, unicode.IsSpace) && strings.IndexFunc(scheme, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+'
	}) < 0
}

// Dial returns the network and the address of a URL that [CheckURL] has nothing against and for which
// [remote.Is] is false.
func Dial(raw string) (network, address string) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", raw
	}
	if u.Scheme == "unix" {
		return "unix", u.Path
	}
	return u.Scheme, u.Host
}

// CheckURL says why no agent can be reached at a URL, or nil. An agent is reached over HTTP or
// WebSocket at a URL for which [remote.Is] is true, and otherwise at tcp://HOST:PORT or unix:///FILE,
// where it speaks the protocol in lines, as on standard input and output.
func CheckURL(raw string) error {
	if remote.Is(raw) {
		return remote.Check(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err
		}
		return fmt.Errorf("%q is not a URL: %w", raw, err)
	}
	more := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	switch u.Scheme {
	case "tcp":
		if u.Hostname() == "" || u.Port() == "" || u.Path != "" || more {
			return fmt.Errorf("%s: write tcp://HOST:PORT", u.Redacted())
		}
	case "unix":
		if u.Host != "" || u.Path == "" || more {
			return fmt.Errorf("%s: write unix:///FILE, with an absolute path", u.Redacted())
		}
	default:
		return fmt.Errorf("%s: agents are reached at http(s)://, ws(s)://, unix:PATH, tcp://HOST:PORT or unix:///FILE", u.Redacted())
	}
	return nil
}
