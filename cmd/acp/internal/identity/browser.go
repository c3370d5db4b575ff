package identity

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// Redeem redeems a ticket or a code for the client of a request, by the rules of [Gate.Handler]: it throttles those who
// guess, and writes to the audit log. The address of the claim is that of the request. An error is an
// [*acphttp.StatusError]; that of a ticket that waits for approval has status 202.
func (g *Gate) Redeem(r *http.Request, c Claim) (Device, string, error) {
	source, err := g.attempt(r)
	if err != nil {
		return Device{}, "", err
	}
	c.Address, c.Code = source.String(), digits(c.Code)
	d, token, err := g.Store.Redeem(r.Context(), c)
	switch {
	case err == nil:
		g.Audit.Note(g.Logger, audit.Entry{User: d.User, Device: d.Name, Address: c.Address, Action: "device.pair", Outcome: "done", Detail: "role " + d.Role.String()})
		return d, token, nil
	case errors.Is(err, ErrWaiting):
		return Device{}, "", &acphttp.StatusError{Status: http.StatusAccepted, Text: ErrWaiting.Error(), RetryAfter: time.Second}
	case errors.Is(err, ErrTicket):
		g.throttle.failed(source, [32]byte{})
		return Device{}, "", refusal(http.StatusForbidden, ErrTicket.Error())
	case errors.Is(err, ErrDenied):
		return Device{}, "", refusal(http.StatusForbidden, "the request was denied")
	}
	return Device{}, "", g.unpaired(err)
}

// Enrol makes a device for the client of a request that has shown a secret other than a ticket, if isRight says so. It
// throttles those who guess and writes to the audit log, as Redeem does. The device has the name, or one that is like it
// and free. An error is an [*acphttp.StatusError].
func (g *Gate) Enrol(r *http.Request, secret string, isRight func(secret string) bool, name string, grant Grant) (Device, string, error) {
	source, err := g.attempt(r)
	if err != nil {
		return Device{}, "", err
	}
	if !isRight(secret) {
		g.throttle.failed(source, [32]byte(hashOf(secret)))
		return Device{}, "", refusal(http.StatusForbidden, "the token is wrong")
	}
	d, token, err := g.Store.AddLike(r.Context(), name, grant)
	if err != nil {
		return Device{}, "", g.unpaired(err)
	}
	g.Audit.Note(g.Logger, audit.Entry{User: d.User, Device: d.Name, Address: source.String(), Action: "device.pair", Outcome: "done", Detail: "role " + d.Role.String() + ", with the token of the server"})
	return d, token, nil
}

// Vouch lets the user of a request in by a token of the [Team], which exchange returns, with an error as
// [Team.Authenticate] does. It throttles those who guess and writes to the audit log, as Redeem does. An error is an
// [*acphttp.StatusError]; one of exchange is returned as it is.
func (g *Gate) Vouch(r *http.Request, exchange func(ctx context.Context) (token string, err error)) (p Principal, token string, err error) {
	source, err := g.attempt(r)
	if err != nil {
		return Principal{}, "", err
	}
	if token, err = exchange(r.Context()); err == nil {
		p, err = g.lookUp(r.Context(), token)
	}
	var sum [32]byte // of nothing: each attempt without a token counts
	if token != "" {
		sum = [32]byte(hashOf(token))
	}
	said := (*acphttp.StatusError)(nil)
	switch {
	case err == nil:
		g.accepted(sum, p)
		g.Audit.Note(g.Logger, audit.Entry{User: p.User, Address: source.String(), Action: "login", Outcome: "done", Detail: "role " + p.Role.String()})
		return p, token, nil
	case errors.As(err, &said):
		return Principal{}, "", said
	case errors.Is(err, ErrCredential):
		g.throttle.failed(source, sum)
		g.log().Info("identity: a login failed", "address", source, "error", err)
		return Principal{}, "", refusal(http.StatusForbidden, "the login failed: begin again")
	case errors.Is(err, ErrDenied):
		text := strings.TrimPrefix(err.Error(), ErrDenied.Error()+": ")
		if token == "" { // anybody can say so
			g.throttle.failed(source, sum)
		} else {
			g.Audit.Note(g.Logger, audit.Entry{Address: source.String(), Action: "login", Outcome: "denied", Detail: text})
		}
		return Principal{}, "", refusal(http.StatusForbidden, text)
	}
	g.log().Error("identity: a login cannot be checked", "error", err)
	return Principal{}, "", &acphttp.StatusError{Status: http.StatusServiceUnavailable, Text: "the issuer cannot be asked now: try again", RetryAfter: 5 * time.Second}
}

// Leave revokes the device of a principal, at its own request. It is no error if there is none. Why is for the audit log.
// A member of a team has no device: the token is valid until it expires.
func (g *Gate) Leave(ctx context.Context, p Principal, why string) error {
	if p.Kind == KindTeam {
		g.Audit.Note(g.Logger, audit.Entry{User: p.User, Action: "logout", Outcome: "done", Detail: why})
		return nil
	}
	if p.Kind != KindDevice || g.Store == nil {
		return nil
	}
	d, err := g.Store.RevokeID(ctx, p.Device)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	g.Audit.Note(g.Logger, audit.Entry{User: d.User, Device: d.Name, Action: "device.revoke", Outcome: "done", Detail: why})
	return nil
}

// Encrypted reports whether the client of a request has used TLS, as far as this server and its Proxies know.
func (g *Gate) Encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	at, err := remoteAddr(r)
	return err == nil && g.IsProxy(at) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
