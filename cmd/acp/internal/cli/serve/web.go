package serve

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/identity/devices"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/serve"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/cmd/acp/internal/web"
)

// Web are the flags about the page for browsers.
type Web struct {
	Off, NoPush  bool
	PushServices []string // beside those of browsers, as HOST or HOST:PORT

	page string // its URL, or "" if there is none
}

func (w *Web) flags(f *pflag.FlagSet) {
	f.BoolVar(&w.Off, "no-web", false, "serve no page for browsers")
	f.BoolVar(&w.NoPush, "no-push", false, "send browsers no notifications")
	f.StringArrayVar(&w.PushServices, "push-service", nil, "send notifications by the push service at `HOST` as well, such as push.example:8443 (repeatable)")
}

// open has a server serve the page, unless it is one for programs only.
func (w *Web) open(o *Options, server *serve.Server, d *durable) {
	at, ok := strings.CutSuffix(server.URL(), remote.DefaultPath)
	if w.Off || !ok || !strings.HasPrefix(at, "http") { // programs alone use a socket
		return
	}
	w.page = at + "/"
	team, _ := d.gate.Team.(web.Team)
	page := web.New(web.Config{
		Gate: d.gate, Authenticate: server.Authenticate, Owner: serve.Owner, User: identity.CurrentUser(),
		Team: team, Hosts: server.Hosts(), Origins: o.Origins, Logger: d.logger,
	})
	server.Wrap(page.Clients, page.Others)
}

// linkTime is how long the link that opens the page can be used.
const linkTime = 10 * time.Minute

// greet says where the page is, and how to open it. A link that opens it is for the eyes of the user alone.
func (w *Web) greet(ctx context.Context, o *Options, server *serve.Server, d *durable) error {
	switch {
	case w.page == "":
	case server.Open():
		o.note("the page is at " + w.page)
	case server.TokenFile() == "" || !o.App.ErrTerminal || o.Own.Background || o.Operation.LogFormat == "json":
		o.note("the page is at " + w.page + "; to open it: acp devices pair --role owner")
	default:
		link, err := d.invite(ctx, w.page)
		if err != nil {
			return err
		}
		o.note("the page is at " + w.page)
		o.note(fmt.Sprintf("to open it, once within %.0f minutes: %s", linkTime.Minutes(), link))
	}
	return nil
}

// manage returns the methods by which clients manage devices. Who has the token of the server is its user.
func (d *durable) manage() *devices.Methods {
	return &devices.Methods{Store: d.devices, Audit: d.gate.Audit, User: identity.CurrentUser(), Logger: d.logger, Who: principal}
}

// A markdown writes a session as acp sessions export does.
type markdown struct{ *store.Reading }

func newMarkdown(id string) gateway.Rendering { return markdown{store.NewReading(id, store.Bounds())} }

func (m markdown) Write(w io.Writer) error {
	about, _ := m.Session()
	return export.Write(w, export.Markdown, about, m.Snapshot())
}

// invite makes a link that makes a browser a device of the user, until the server ends.
func (d *durable) invite(ctx context.Context, page string) (string, error) {
	me := identity.CurrentUser()
	t, err := d.devices.NewLink(ctx, identity.Grant{User: me, Role: identity.Owner, Lifetime: web.Lifetime}, linkTime)
	if err != nil {
		return "", err
	}
	d.link = t.ID
	if err := d.gate.Audit.Append(audit.Entry{User: me, Action: "device.invite", Outcome: "done", Detail: "user " + me + ", role owner, by a link on the terminal"}); err != nil {
		return "", err
	}
	return identity.Link(identity.Endpoint{URL: page}, t.Ticket)
}

// uninvite ends the link.
func (d *durable) uninvite() error {
	if d.link == "" {
		return nil
	}
	return d.devices.Cancel(context.Background(), d.link)
}
