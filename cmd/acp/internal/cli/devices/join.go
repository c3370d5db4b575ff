package devices

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// join redeems a code or a ticket for this machine, and keeps the credential.
func (o *Options) join(ctx context.Context, state string) error {
	at, ticket, err := identity.ParseLink(o.Args[0])
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	c := identity.Claim{Ticket: ticket, Name: o.Name}
	if len(o.Args) > 1 {
		c.Code = o.Args[1]
	}
	if c.Name == "" {
		c.Name, _ = os.Hostname() // or what the gateway calls it
	}
	pin := o.Fingerprint
	if pin == "" {
		pin = at.Fingerprint
	}
	u, err := url.Parse(at.URL)
	switch {
	case err != nil:
		return err
	case c.Code == "" && ticket == "":
		return exitcode.Errorf(exitcode.Usage, "the code is missing: run acp devices pair on the gateway, and write acp devices join URL CODE")
	case u.Scheme == "http" && !o.Insecure && !isLoopback(u.Hostname()):
		return exitcode.Errorf(exitcode.Usage, "%s: the credential would be sent unencrypted from another machine; use https://, or permit it with --insecure", at.URL)
	}
	client, err := remote.PinnedClient(pin)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	defer client.CloseIdleConnections()
	got, err := identity.Join(ctx, client, at.URL, c, func() {
		fmt.Fprintln(o.App.Err, "acp devices join: waiting until this machine is approved at the gateway")
	})
	if err != nil {
		return explain(u.Host, err)
	}
	if err := remote.Save(state, at.URL, remote.Saved{Token: got.Token, Fingerprint: pin, User: got.User, Device: got.Name}); err != nil {
		return fmt.Errorf("this machine has joined as %s, but the credential cannot be kept, so revoke it: %w", line(got.Name), err)
	}
	u.Path = remote.DefaultPath
	fmt.Fprintf(o.App.Out, "joined %s as %s (user %s, %s); to talk to it: acp chat --at %s\n", line(u.Host), line(got.Name), line(got.User), got.Role, u)
	return nil
}

// explain says why a gateway was not joined, with the exit status.
func explain(host string, err error) error {
	if said, ok := errors.AsType[*acphttp.StatusError](err); ok {
		code := exitcode.Protocol
		if said.Status == http.StatusForbidden || said.Status == http.StatusTooManyRequests {
			code = exitcode.Auth
		}
		return exitcode.Errorf(code, "%s refuses this machine: %s", line(host), line(said.Text))
	}
	if errors.Is(err, identity.ErrWaiting) && errors.Is(err, context.DeadlineExceeded) {
		return exitcode.Errorf(exitcode.Timeout, "%s: nobody has approved this machine within two minutes", line(host))
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return exitcode.Errorf(exitcode.Agent, "%s: no authority vouches for its certificate; if it has made that itself, use the link of acp devices pair, or --fingerprint", line(host))
	}
	if said := remote.Explain(host, err); said != nil {
		return said
	}
	return err
}

// leave removes the credential for a gateway.
func (o *Options) leave(state string) error {
	at, _, err := identity.ParseLink(o.Args[0])
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	there, err := remote.Forget(state, at.URL)
	switch {
	case err != nil:
		return err
	case !there:
		return exitcode.Errorf(exitcode.Usage, "this machine has no credential for %s", line(at.URL))
	}
	fmt.Fprintln(o.App.Out, "the credential was removed from this machine; to make it worthless: acp devices revoke, at the gateway")
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
