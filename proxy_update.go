package acp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// maxEarlyUpdates bounds what a Session hook may send before the client knows the session.
const maxEarlyUpdates = 256

// maxNestedUpdates bounds what hooks may send while they handle an update, and what they have sent then, all of which is sent
// behind it.
const maxNestedUpdates = 256

// proxyUpdates puts the updates of a session into the words of the hooks and back, and sends
// them in order.
type proxyUpdates struct {
	turn sync.Mutex // held while one is sent, in which the hooks of proxies nearer to the client run

	mu      sync.Mutex // a leaf
	from    translate.FromV1
	to      *translate.ToV1
	buf     []byte
	early   []proxied // of the proxy's own, until the client knows the session
	held    bool
	sending bool
	nested  []proxied // of hooks that handle what is sent, and so must not wait for it
	behind  int       // how many of these there were since the first of what is sent
	own     acpv2.MessageID
}

// nestedIn marks the context of what is sent: hooks that handle it may send more.
type nestedIn struct{ u *proxyUpdates }

// deliver sends updates in order: behind what is sent already and, if they are those of a hook
// that handles what is sent, behind that, without waiting for it. encode is called with mu held.
func (u *proxyUpdates) deliver(ctx context.Context, s *ProxySession, own bool, encode func() []proxied) (err error) {
	if ctx.Value(nestedIn{u}) != nil {
		u.mu.Lock()
		if u.sending {
			defer u.mu.Unlock()
			list := encode()
			if u.behind += len(list); u.behind > maxNestedUpdates {
				u.behind -= len(list)
				return tooMany(maxNestedUpdates)
			}
			u.nested = append(u.nested, list...)
			return nil
		}
		u.mu.Unlock()
	}
	u.turn.Lock()
	defer u.turn.Unlock()
	u.mu.Lock()
	list := encode()
	if own && u.held {
		defer u.mu.Unlock()
		u.early, err = appendBounded(u.early, list, maxEarlyUpdates)
		return err
	}
	u.mu.Unlock()
	return u.sendAll(ctx, s, list)
}

// appendBounded appends updates that have to wait.
func appendBounded(waiting, more []proxied, most int) ([]proxied, error) {
	if len(waiting)+len(more) > most {
		return waiting, tooMany(most)
	}
	return append(waiting, more...), nil
}

func tooMany(most int) error {
	return fmt.Errorf("acp: a hook of a proxy has sent more than %d updates that must wait for it", most)
}

// sendAll sends updates, and behind each what hooks have sent meanwhile. The caller holds turn.
func (u *proxyUpdates) sendAll(ctx context.Context, s *ProxySession, list []proxied) (err error) {
	inside := context.WithValue(ctx, nestedIn{u}, true)
	for {
		u.mu.Lock()
		if len(u.nested) > 0 {
			list = append(u.nested, list...)
			u.nested = nil
		}
		if u.sending = len(list) > 0 && err == nil; !u.sending {
			u.behind = 0
			u.mu.Unlock()
			return err
		}
		u.mu.Unlock()
		err = s.node.up.notify(inside, list[0])
		list = list[1:]
	}
}

// v1 returns the state of what is sent in version 1. The caller holds mu.
func (u *proxyUpdates) v1(s *ProxySession) *translate.ToV1 {
	if u.to == nil {
		u.to = &translate.ToV1{Caps: s.of.caps}
	}
	return u.to
}

// hold keeps the proxy's own updates until the answer that names a new session was passed
// on.
func (u *proxyUpdates) hold(req *jsonrpc.Request, s *ProxySession) {
	if req == nil {
		return
	}
	u.mu.Lock()
	u.held = true
	u.mu.Unlock()
	req.AfterAnswer(func() {
		u.turn.Lock()
		defer u.turn.Unlock()
		u.mu.Lock()
		early := u.early
		u.early, u.held = nil, false
		u.mu.Unlock()
		_ = u.sendAll(context.WithoutCancel(req.Context()), s, early) // the connection has ended
	})
}

// drop forgets what was kept for a session that was not opened.
func (u *proxyUpdates) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.early = nil
}

// send is ProxySession.Update.
func (u *proxyUpdates) send(ctx context.Context, s *ProxySession, v SessionUpdate) error {
	if s.ID() == "" {
		return errors.New("acp: an update for a session that has no id yet: call next first")
	}
	var failed error
	err := u.deliver(ctx, s, true, func() (all []proxied) {
		list, err := u.encode(s, v)
		for _, update := range list {
			var raw json.RawMessage
			if raw, err = s.node.ownUpdate(s.ID(), update); err != nil {
				break
			}
			all = append(all, proxied{method: acpv2.NotificationSessionUpdate.Name, params: &raw, session: string(s.ID())})
		}
		if failed = err; err != nil {
			return nil
		}
		return all
	})
	return errors.Join(failed, err)
}

// ownUpdate returns the params of an update of the proxy's own.
func (n *proxyNode) ownUpdate(id SessionID, update json.RawMessage) (json.RawMessage, error) {
	var meta struct {
		Meta json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(update, &meta); err != nil {
		return nil, err
	}
	if string(meta.Meta) == "null" {
		meta.Meta = nil
	}
	marked, err := withMember(update, "_meta", n.mark(meta.Meta))
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		SessionID SessionID       `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}{id, marked})
}

// encode returns the updates in the version of the chain. The caller holds mu.
func (u *proxyUpdates) encode(s *ProxySession, v SessionUpdate) (list []json.RawMessage, err error) {
	if v == nil {
		return nil, errors.New("acp: a nil update")
	}
	if s.Version() != 1 {
		b, err := v.AppendJSON(nil)
		return []json.RawMessage{b}, err
	}
	for _, v1 := range u.v1(s).Update(v) {
		b, err := v1.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// ownMessage returns an id for messages of the proxy's own, which are in no other message.
func (s *ProxySession) ownMessage() MessageID {
	s.updates.mu.Lock()
	defer s.updates.mu.Unlock()
	if s.updates.own == "" {
		s.updates.own = "proxy_" + MessageID(rand.Text())
	}
	return s.updates.own
}

// passUpdate sends an update of the agent as it came. Hooks nearer to the client that handle it may send others, which come
// behind it.
func (n *proxyNode) passUpdate(ctx context.Context, m proxied) error {
	if !n.p.hasSessions() {
		return n.up.notify(ctx, m)
	}
	if _, direct := updatesLink(n.up); direct {
		return n.up.notify(ctx, m)
	}
	s := n.session(m.session)
	if s == nil {
		return n.up.notify(ctx, m)
	}
	return s.updates.deliver(ctx, s, false, func() []proxied { return []proxied{m} })
}

// hasSessions reports whether the proxy has a hook that gets sessions, with which it, or a hook that knows it, sends updates.
func (p *Proxy) hasSessions() bool {
	return p.Session != nil || p.Prompt != nil || p.Update != nil || p.Permission != nil || p.Request != nil || p.Notify != nil
}

// notifyUpdate passes an update on that the Update hook does not see.
func (n *proxyNode) notifyUpdate(ctx context.Context, m proxied) error {
	if n.p.Notify == nil {
		return n.passUpdate(ctx, m)
	}
	return n.notifyHooked(ctx, m, ToClient, n.passUpdate)
}

// update runs the Update hook, and remembers what the Permission hook has to know. What goes
// wrong there costs the client the update: a hook may be there to remove something.
func (n *proxyNode) update(ctx context.Context, m proxied) error {
	s := n.session(m.session)
	if s == nil {
		return n.notifyUpdate(ctx, m)
	}
	u, meant, err := s.updates.read(n, m.raw())
	if n.p.Permission != nil && err == nil {
		s.see(&u)
	}
	if n.p.Update == nil {
		return n.notifyUpdate(ctx, m)
	}
	if err != nil {
		n.log.Warn("acp: a proxy left out an update that cannot be read", "proxy", n.p.name(), "error", err)
		return nil
	}
	if len(meant) == 0 { // it says nothing in the words of the hooks
		return n.notifyUpdate(ctx, m)
	}
	if len(meant) > 1 {
		return n.several(ctx, s, m, u, meant)
	}
	u.Update = meant[0]
	before := encoded(u.Update)
	list, err := n.asked(ctx, s, m, u)
	if err != nil {
		return nil
	}
	for _, v := range list {
		if err := s.updates.pass(ctx, s, m, &u, meant[0], before, v); err != nil {
			return err
		}
	}
	return nil
}

// asked runs the Update hook.
func (n *proxyNode) asked(ctx context.Context, s *ProxySession, m proxied, u Update) (list []Update, err error) {
	err = n.protected(ctx, m.method, func() (err error) {
		list, err = n.p.Update(ctx, s, u)
		return err
	})
	return list, err
}

// several runs the Update hook for each of what an update of version 1 means. It passes as it
// is if none of that was changed.
func (n *proxyNode) several(ctx context.Context, s *ProxySession, m proxied, u Update, meant []SessionUpdate) error {
	var all []Update
	same := true
	for _, said := range meant {
		u.Update = said
		before := encoded(said)
		list, err := n.asked(ctx, s, m, u)
		if err != nil {
			list = nil
		}
		all = append(all, list...)
		same = same && len(list) == 1 && list[0].Update == said && bytes.Equal(before, encoded(said))
	}
	if same {
		return n.passUpdate(ctx, m)
	}
	for _, v := range all {
		if err := s.updates.pass(ctx, s, m, &u, nil, nil, v); err != nil {
			return err
		}
	}
	return nil
}

// see remembers what an update says about a tool call.
func (s *ProxySession) see(u *Update) {
	if u.V1 != nil {
		s.calls.See(u.V1)
	} else if u.V2 != nil {
		s.calls.See(u.V2)
	}
}

// read decodes an update, and returns what it means in the words of the hooks.
func (u *proxyUpdates) read(n *proxyNode, raw json.RawMessage) (v Update, meant []SessionUpdate, err error) {
	if n.version.Load() != 1 {
		v.V2 = new(acpv2.UpdateSessionNotification)
		if err := v.V2.UnmarshalJSON(raw); err != nil {
			return v, nil, err
		}
		return v, []SessionUpdate{v.V2.Update}, nil
	}
	v.V1 = new(acpv1.SessionNotification)
	if err := v.V1.UnmarshalJSON(raw); err != nil {
		return v, nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.from.OutputAppends = n.state.Load().appends.Load()
	return v, u.from.Update(v.V1.Update), nil
}

// pass sends what the hook has returned. original is what it was called with, and before
// the encoding of said, which was in it.
func (u *proxyUpdates) pass(ctx context.Context, s *ProxySession, m proxied, original *Update, said SessionUpdate, before []byte, v Update) error {
	n := s.node
	if v.Update == nil {
		n.log.Warn("acp: the Update hook of a proxy returned an update without content", "proxy", n.p.name())
		return nil
	}
	var failed error
	var left bool
	err := u.deliver(ctx, s, false, func() []proxied {
		after, err := v.Update.AppendJSON(u.buf[:0])
		if err != nil {
			failed = err
			return nil
		}
		if u.buf = after; cap(u.buf) > 64<<10 {
			u.buf = nil
		}
		if v.Update == said && bytes.Equal(before, after) {
			if original.V1 != nil {
				_ = u.v1(s).Update(said) // what follows may depend on it
			}
			return []proxied{m}
		}
		var all []proxied
		all, failed = u.changed(s, m, original, v)
		left = len(all) == 0 && failed == nil
		return all
	})
	if failed != nil {
		_ = n.internal(m.method, failed, nil)
	}
	if left {
		update := Update{Update: v.Update}
		n.log.Warn("acp: a proxy left out an update that version 1 cannot say", "proxy", n.p.name(), "update", update.Kind())
	}
	return err
}

// changed returns the messages for an update that is not as it came. The caller holds mu.
func (u *proxyUpdates) changed(s *ProxySession, m proxied, original *Update, v Update) (all []proxied, failed error) {
	list, failed := u.encode(s, v.Update)
	for _, update := range list {
		if original.V1 != nil {
			update = withoutMadeID(update, original)
		}
		params, err := withMember(m.raw(), "update", update)
		if err != nil {
			failed = err
			continue
		}
		changed := m
		changed.params, changed.checked = &params, false
		all = append(all, changed)
	}
	return all, failed
}

// withoutMadeID removes the message id that a piece of a message got for the hook alone.
func withoutMadeID(update json.RawMessage, original *Update) json.RawMessage {
	var told acpv1.MessageID
	switch v := original.V1.Update.(type) {
	case *acpv1.AgentMessageChunk:
		told = v.MessageID
	case *acpv1.AgentThoughtChunk:
		told = v.MessageID
	case *acpv1.UserMessageChunk:
		told = v.MessageID
	default:
		return update
	}
	made := messageOf(original.Update)
	if told != "" || made == "" || string(memberOf(update, "messageId")) != string(made) {
		return update
	}
	if out, err := withMember(update, "messageId", nil); err == nil {
		return out
	}
	return update
}

// messageOf returns the id of the message that a piece of one belongs to.
func messageOf(u SessionUpdate) MessageID {
	switch v := u.(type) {
	case *AgentMessageChunk:
		return v.MessageID
	case *AgentThoughtChunk:
		return v.MessageID
	case *UserMessageChunk:
		return v.MessageID
	}
	return ""
}
