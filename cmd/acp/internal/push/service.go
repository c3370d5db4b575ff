package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/goacp/acp/cmd/acp/internal/publicip"
)

// known are the push services of browsers: of Chrome, Firefox, Safari and Edge. One that begins with a dot is those below
// it.
var known = []string{
	"fcm.googleapis.com", "jmt17.google.com",
	"updates.push.services.mozilla.com", ".push.services.mozilla.com",
	"web.push.apple.com", ".push.apple.com",
	".notify.windows.com",
}

// service returns a push service that the operator has named as HOST:PORT.
func service(name string) (string, error) {
	u, err := url.Parse("https://" + name)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(name, "/?#@*") || strings.ToLower(name) != name {
		return "", fmt.Errorf("the push service %q: write HOST or HOST:PORT, in lower case", name)
	}
	return address(u), nil
}

// address returns where a URL leads, with the port.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// endpoint returns the URL of a subscription, if it is one of a push service to which messages are sent.
func (s *Sender) endpoint(text string) (*url.URL, error) {
	if len(text) > maxEndpoint {
		return nil, fmt.Errorf("%w: its URL has more than %d bytes", ErrRefused, maxEndpoint)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: this is no URL", ErrRefused)
	case u.Scheme != "https" || u.Opaque != "":
		return nil, fmt.Errorf("%w: its URL must begin with https", ErrRefused)
	case u.User != nil || u.Fragment != "" || u.Hostname() == "":
		return nil, fmt.Errorf("%w: its URL must have a host, and neither a user nor a fragment", ErrRefused)
	case slices.Contains(s.also, address(u)):
		return u, nil
	case u.Host != u.Hostname() || !isKnown(u.Host): // with a port, even an empty one, it is none of them
		return nil, fmt.Errorf("%w: %.100q is none that this server knows; it can be named with --push-service", ErrRefused, u.Host)
	}
	return u, nil
}

func isKnown(host string) bool {
	return slices.ContainsFunc(known, func(name string) bool {
		return host == name && !strings.HasPrefix(name, ".") || strings.HasPrefix(name, ".") && strings.HasSuffix(host, name) && host[0] != '.'
	})
}

// dial connects to a push service. A known one that has an address in a private network is none: somebody has changed
// what its name stands for.
func (s *Sender) dial(ctx context.Context, network, at string) (net.Conn, error) {
	d := net.Dialer{Timeout: requestTime}
	if !slices.Contains(s.also, at) {
		d.ControlContext = func(_ context.Context, _, found string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(found)
			if err != nil || !publicip.Is(to.Addr()) {
				return fmt.Errorf("%w: its address is %s", ErrRefused, found)
			}
			return nil
		}
	}
	conn, err := d.DialContext(ctx, network, at)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return conn, err
}
