package serve

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/notify"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/jsonrpc"
)

// vapid is the setting that has the key by which push services know this server.
const vapid = "vapid"

// openPush opens what tells browsers that sessions wait, unless the page is off or that is.
func (d *durable) openPush(ctx context.Context, w *Web) error {
	if w.Off || w.NoPush {
		return nil
	}
	text, err := d.devices.Setting(ctx, vapid, func() (string, error) {
		key, err := push.NewKey()
		if err != nil {
			return "", err
		}
		return key.Text()
	})
	if err != nil {
		return err
	}
	key, err := push.ParseKey(text)
	if err != nil {
		return err
	}
	sender, err := push.NewSender(key, w.PushServices, nil)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "--push-service: %w", err)
	}
	d.notifier = notify.New(notify.Config{Store: d.devices, Audit: d.gate.Audit, Sender: sender, Logger: d.logger, Who: principal})
	return nil
}

// extend registers the methods that are about devices.
func (d *durable) extend() func(mux *jsonrpc.Mux) {
	manage := d.manage()
	return func(mux *jsonrpc.Mux) {
		manage.Register(mux)
		if d.notifier != nil {
			d.notifier.Register(mux)
		}
	}
}

// waits returns what tells devices that a session waits; nil if none are notified.
func (d *durable) waits() func(w *gateway.Waiting) {
	if d.notifier == nil {
		return nil
	}
	return func(w *gateway.Waiting) {
		d.notifier.Notify(notify.Message{Session: w.Session, Title: w.Title, Question: w.Question, For: func(p identity.Principal) bool { return w.For(whoIs(p)) }})
	}
}

// principal returns who a client is. Who has the token of the server is its user.
func principal(ctx context.Context) identity.Principal {
	if p, ok := identity.FromContext(ctx); ok {
		return p
	}
	if isOwner(ctx) {
		return identity.Principal{Kind: identity.KindLocal, User: identity.CurrentUser(), Role: identity.Owner}
	}
	return identity.Principal{}
}
