package notify

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/jsonrpc"
)

// The methods. They are about the device that asks.
var (
	// StateMethod says whether the device is sent messages, and with which key its browser subscribes.
	StateMethod = jsonrpc.Method[StateRequest, State]{Name: ownmeta.Method + "push"}
	// SubscribeMethod has the device be sent messages.
	SubscribeMethod = jsonrpc.Method[SubscribeRequest, State]{Name: ownmeta.Method + "push/subscribe"}
	// UnsubscribeMethod ends that.
	UnsubscribeMethod = jsonrpc.Method[StateRequest, State]{Name: ownmeta.Method + "push/unsubscribe"}
)

// A StateRequest has no parameters.
type StateRequest struct{}

// A State says whether a device is sent messages.
type State struct {
	Key   string `json:"key"` // of the server, base64url: applicationServerKey
	On    bool   `json:"on"`
	Title bool   `json:"title"` // messages say what a session is called
}

// A SubscribeRequest says where the device is sent messages.
type SubscribeRequest struct {
	// Subscription is what PushSubscription.toJSON returns in a browser.
	Subscription struct {
		Endpoint string `json:"endpoint"`
		Keys     struct {
			Public string `json:"p256dh"` // base64url
			Auth   string `json:"auth"`
		} `json:"keys"`
	} `json:"subscription"`
	Title bool `json:"title"`
}

// Register registers the methods of one connection.
func (n *Notifier) Register(mux *jsonrpc.Mux) {
	StateMethod.Handle(mux, func(ctx context.Context, _ *StateRequest) (*State, error) {
		p, err := n.device(ctx)
		if err != nil {
			return nil, err
		}
		return n.state(ctx, p)
	})
	SubscribeMethod.Handle(mux, n.subscribe)
	UnsubscribeMethod.Handle(mux, func(ctx context.Context, _ *StateRequest) (*State, error) {
		p, err := n.device(ctx)
		if err != nil {
			return nil, err
		}
		if err := n.cfg.Store.Unsubscribe(ctx, p.Device, ""); err != nil {
			return nil, n.failed(err)
		}
		n.cfg.Audit.Note(n.cfg.Logger, audit.Entry{User: p.User, Device: p.Name, Action: "push.end", Outcome: "done"})
		return n.state(ctx, p)
	})
}

// device returns the device that asks. Others would get messages that nobody can end.
func (n *Notifier) device(ctx context.Context) (identity.Principal, error) {
	p := n.cfg.Who(ctx)
	if p.Kind != identity.KindDevice || p.Device == "" {
		return p, &jsonrpc.Failure{Message: "only devices that were paired are sent notifications", Reason: "device"}
	}
	return p, nil
}

func (n *Notifier) state(ctx context.Context, p identity.Principal) (*State, error) {
	s := &State{Key: base64.RawURLEncoding.EncodeToString(n.cfg.Sender.Key())}
	sub, err := n.cfg.Store.Subscription(ctx, p.Device)
	switch {
	case err == nil:
		s.On, s.Title = true, sub.Title
	case !errors.Is(err, identity.ErrNotFound):
		return nil, n.failed(err)
	}
	return s, nil
}

func (n *Notifier) subscribe(ctx context.Context, req *SubscribeRequest) (*State, error) {
	p, err := n.device(ctx)
	if err != nil {
		return nil, err
	}
	sub := push.Subscription{Endpoint: req.Subscription.Endpoint}
	var first, second error
	sub.Public, first = unpack(req.Subscription.Keys.Public)
	sub.Auth, second = unpack(req.Subscription.Keys.Auth)
	if err := errors.Join(first, second); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the keys of a subscription are base64url")
	}
	if err := n.cfg.Sender.Check(&sub); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	before, err := n.cfg.Store.Subscription(ctx, p.Device)
	isNew := err != nil || before.Endpoint != sub.Endpoint
	err = n.cfg.Store.Subscribe(ctx, p.Device, identity.Subscription{Endpoint: sub.Endpoint, Public: sub.Public, Auth: sub.Auth, Title: req.Title})
	switch {
	case errors.Is(err, identity.ErrTooMany):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	case err != nil:
		return nil, n.failed(err)
	}
	if isNew { // and not a page that makes sure
		n.cfg.Audit.Note(n.cfg.Logger, audit.Entry{User: p.User, Device: p.Name, Action: "push.begin", Outcome: "done"})
	}
	return n.state(ctx, p)
}

// maxKey bounds a key, in characters.
const maxKey = 128

// unpack returns what a key says, padded or not.
func unpack(text string) ([]byte, error) {
	if len(text) > maxKey {
		return nil, errors.New("too long")
	}
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// failed returns the error that a client gets.
func (n *Notifier) failed(err error) error {
	if errors.Is(err, identity.ErrNotFound) {
		return &jsonrpc.Failure{Message: "there is no such device any more", Reason: "device"}
	}
	n.cfg.Logger.Error("notify: subscriptions cannot be read or written", "error", err)
	return &jsonrpc.Failure{Message: "notifications cannot be changed now", Reason: "unavailable"}
}
