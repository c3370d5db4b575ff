package devices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// lookEvery is how often the ticket is looked at, which other processes change.
const lookEvery = 250 * time.Millisecond

// offer is what acp devices pair --json prints of a ticket. Members may be added.
type offer struct {
	URL     string    `json:"url"`
	Link    string    `json:"link"`
	Code    string    `json:"code"`
	Expires time.Time `json:"expires"`
}

// pair makes a ticket and waits until it has ended.
func (o *Options) pair(ctx context.Context, s *identity.Store, log *audit.Log) error {
	role, err := identity.ParseRole(o.Role)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	at, err := s.Endpoint(ctx)
	if err != nil {
		return err
	}
	if o.URL != "" {
		at.URL, at.Fingerprint = o.URL, o.Fingerprint
	}
	if at.URL == "" {
		return exitcode.Errorf(exitcode.Usage, "it is not known where the gateway is reached: start it first, or write --url URL%s", o.App.Elsewhere())
	}
	if _, err := identity.Link(at, ""); err != nil {
		return exitcode.Errorf(exitcode.Usage, "--url: %w", err)
	}
	grant := identity.Grant{User: o.User, Role: role, Scope: identity.Scope{Agents: o.Agents, Sessions: o.Sessions}, Lifetime: o.Lifetime}
	if grant.User == "" {
		grant.User = identity.CurrentUser()
	}
	t, err := s.NewTicket(ctx, o.Name, grant)
	switch {
	case errors.Is(err, identity.ErrName):
		return exitcode.Errorf(exitcode.Usage, "%w; to give it a new credential, revoke it first", err)
	case errors.Is(err, identity.ErrTooMany), errors.Is(err, identity.ErrStore):
		return err
	case err != nil:
		return exitcode.With(exitcode.Usage, err)
	}
	// Nobody sees the ticket end otherwise, so it does not outlive this command.
	defer func() { _ = s.Cancel(context.WithoutCancel(ctx), t.ID) }()
	if err := log.Append(audit.Entry{User: identity.CurrentUser(), Action: "device.invite", Outcome: "done", Detail: fmt.Sprintf("user %s, role %s", grant.User, role)}); err != nil {
		return err
	}
	if err := o.show(at, t); err != nil {
		return err
	}
	d, err := o.await(ctx, s, t, grant)
	if err != nil { // that a device was paired is an entry of the gateway
		e := audit.Entry{User: identity.CurrentUser(), Action: "device.invite", Outcome: "failed", Detail: err.Error()}
		return errors.Join(err, log.Append(e))
	}
	if o.JSON {
		return json.NewEncoder(o.App.Out).Encode(d)
	}
	fmt.Fprintf(o.App.Err, "acp devices pair: %s has joined (user %s, %s)\n", line(d.Name), line(d.User), d.Role)
	return nil
}

// show prints a ticket.
func (o *Options) show(at identity.Endpoint, t identity.Ticket) error {
	link, err := identity.Link(at, t.Ticket)
	if err != nil {
		return err
	}
	out := o.App.Out
	if o.JSON {
		return json.NewEncoder(out).Encode(offer{at.URL, link, t.Code, t.Expires})
	}
	gateway := at.URL
	if at.Fingerprint != "" { // no character of it means something to a shell
		gateway += "#f=" + at.Fingerprint
	}
	command := fmt.Sprintf("acp devices join %s %s", gateway, t.Code)
	if !o.App.OutTerminal {
		_, err := fmt.Fprintf(out, "%s\n%s\n", command, link)
		return err
	}
	page := at.PageURL()
	if onlyHere(at.URL) { // a phone cannot use it
		run := "Run here"
		if page != "" {
			run = "Open " + page + " in a browser here and type the code, or run here"
		}
		_, err := fmt.Fprintf(out, "Only this machine can reach %s. For other devices: acp serve --listen HOST:PORT --tls-self, or name the address with --url URL\n\n%s:\n\n  %s\n\nCode: %s %s\nValid until %s. Ctrl-C ends it.\n",
			at.URL, run, command, t.Code[:3], t.Code[3:], t.Expires.Local().Format("15:04:05"))
		return err
	}
	picture, err := drawQR(link)
	if err != nil {
		return err
	}
	run := "Scan this, or run on the other device"
	if page != "" {
		run = "Scan this, open " + page + " on the other device and type the code, or run there"
	}
	_, err = fmt.Fprintf(out, "%s\n%s:\n\n  %s\n\nCode: %s %s\nValid until %s. Ctrl-C ends it.\n",
		picture, run, command, t.Code[:3], t.Code[3:], t.Expires.Local().Format("15:04:05"))
	return err
}

// onlyHere reports whether the host of a URL is this machine, whatever machine asks.
func onlyHere(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
}

// await waits until a ticket was redeemed. It asks the user about a device that has no code.
func (o *Options) await(ctx context.Context, s *identity.Store, t identity.Ticket, g identity.Grant) (identity.Device, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	asked, void := false, false
	for {
		// What has happened before an interrupt counts.
		p, err := s.Progress(context.WithoutCancel(ctx), t.ID)
		if err == nil && p.Void && !void {
			void = true
			fmt.Fprintf(o.App.Err, "acp devices pair: there were %d wrong codes, so the code is void; the link still works\n", p.Tries)
		}
		switch {
		case errors.Is(err, identity.ErrNotFound):
			return identity.Device{}, exitcode.Errorf(exitcode.Timeout, "no device has joined within two minutes")
		case err != nil:
			return identity.Device{}, err
		case p.State == identity.TicketRedeemed:
			return s.Device(context.WithoutCancel(ctx), p.Device)
		case p.State == identity.TicketDead:
			return identity.Device{}, exitcode.Errorf(exitcode.Denied, "there were %d wrong codes, so the ticket has ended", p.Tries)
		case p.State == identity.TicketDenied:
			return identity.Device{}, exitcode.Errorf(exitcode.Denied, "the device was denied")
		case ctx.Err() != nil:
			return identity.Device{}, context.Cause(ctx)
		case p.State == identity.TicketClaimed && !asked:
			asked = true
			if err := o.approve(ctx, s, t, p, g); err != nil {
				return identity.Device{}, err
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// approve asks the user whether a device may join.
func (o *Options) approve(ctx context.Context, s *identity.Store, t identity.Ticket, p identity.Progress, g identity.Grant) error {
	a := o.App
	name := line(p.Name)
	if name == "" {
		name = "a device without a name"
	}
	fmt.Fprintf(a.Err, "acp devices pair: %s at %s wants to join (user %s, %s)\n", name, line(p.Address), line(g.User), g.Role)
	in, ok := a.In.(*os.File)
	if !a.InTerminal || !ok {
		fmt.Fprintln(a.Err, "acp devices pair: it needs the code, since nobody can be asked here")
		return nil
	}
	fmt.Fprint(a.Err, "Let it in? [y/N] ")
	ctx, cancel := context.WithDeadline(ctx, t.Expires)
	defer cancel()
	answer, err := app.ReadLine(ctx, in)
	if err != nil {
		return err
	}
	decide := s.Deny
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		decide = s.Approve
	}
	if err := decide(ctx, t.ID); err != nil && !errors.Is(err, identity.ErrNotFound) { // the code was faster
		return err
	}
	return nil
}
