package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A destination is what a message replaces earlier ones of: the notification of a session on a device.
type destination struct{ device, session string }

// A delivery sends messages to a destination, one at a time, so that none that is tried again comes after a newer one.
type delivery struct {
	to     identity.Device
	at     destination
	newest *Message           // what is sent next; nil if there is none. The notifier's mutex has it and wake
	wake   context.CancelFunc // ends the pause in which it is
}

// delivery returns a delivery of a message that is to be begun, or nil if there is one that takes it over.
func (n *Notifier) delivery(d identity.Device, m Message) *delivery {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := destination{d.ID, m.Session}
	v := n.deliveries[at]
	if v != nil {
		v.newest = &m
		if v.wake != nil {
			v.wake()
		}
		return nil
	}
	v = &delivery{to: d, at: at, newest: &m}
	n.deliveries[at] = v
	return v
}

// next returns the newest message of a delivery, which ends if there is none.
func (n *Notifier) next(v *delivery) *Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := v.newest
	v.newest = nil
	if m == nil || n.ctx.Err() != nil {
		delete(n.deliveries, v.at)
		return nil
	}
	return m
}

// deliver sends the message of a delivery, and those that come meanwhile. It has a slot.
func (n *Notifier) deliver(v *delivery) {
	for m := n.next(v); m != nil; m = n.next(v) {
		n.send(v, *m)
	}
}

// send sends a message, and tries again what may pass, for as long as the device wants it and there is no newer message.
func (n *Notifier) send(v *delivery, m Message) {
	log := n.cfg.Logger.With("device", v.to.Name, "session", m.Session)
	for try := 1; ; try++ {
		sub, err := n.cfg.Store.Subscription(n.ctx, v.to.ID) // it may have been revoked
		if err != nil {
			if !errors.Is(err, identity.ErrNotFound) && n.ctx.Err() == nil {
				log.Error("notify: a device is not notified", "error", err)
			}
			return
		}
		out, err := encode(m, sub.Title)
		if err == nil {
			err = n.push(n.ctx, &push.Subscription{Endpoint: sub.Endpoint, Public: sub.Public, Auth: sub.Auth}, out)
		}
		later, passes := errors.AsType[*push.LaterError](err)
		switch {
		case err == nil, n.ctx.Err() != nil:
			return
		case errors.Is(err, push.ErrGone):
			log.Info("notify: a browser is not subscribed any more")
			if err := n.cfg.Store.Unsubscribe(n.ctx, v.to.ID, sub.Endpoint); err != nil {
				log.Error("notify: a subscription cannot be removed", "error", err)
			}
			return
		case !passes || try >= maxTries:
			log.Warn("notify: a device is not notified", "error", err)
			return
		}
		wait := later.After
		if wait <= 0 {
			wait = time.Second << (2 * try)
		}
		if !n.pause(v, min(max(wait, time.Second), maxWait), log.With("error", err)) {
			return
		}
	}
}

// pause waits until a message is tried again, and reports whether it is: it is not if there is a newer one, or if too many
// wait. Others have its slot meanwhile; it has one again when pause returns.
func (n *Notifier) pause(v *delivery, d time.Duration, log *slog.Logger) (again bool) {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	user := v.to.User
	n.mu.Lock()
	newer, room := v.newest != nil, n.paused[user] < maxOfUser && n.pausing < maxPaused
	if !newer && room {
		n.paused[user]++
		n.pausing++
		v.wake = cancel
	}
	n.mu.Unlock()
	if newer {
		return false
	}
	if !room {
		log.Warn("notify: a device is not notified: too many messages wait for push services")
		return false
	}
	<-n.slots
	again = n.pauses(ctx, d)
	n.mu.Lock()
	if n.paused[user]--; n.paused[user] == 0 {
		delete(n.paused, user)
	}
	n.pausing--
	v.wake = nil
	again = again && v.newest == nil
	n.mu.Unlock()
	n.slots <- struct{}{}
	return again
}

// said is what a browser gets.
type said struct {
	Kind    string `json:"kind"` // "question" or "end"
	Session string `json:"session"`
	Title   string `json:"title,omitempty"`
}

// encode returns a message as a browser gets it.
func encode(m Message, title bool) (push.Message, error) {
	s := said{Kind: "end", Session: m.Session}
	if m.Question {
		s.Kind = "question"
	}
	if title {
		s.Title = safetext.Line(m.Title, maxTitle)
		if len(s.Title) > maxTitleBytes { // of a letter with thousands of accents
			s.Title = strings.ToValidUTF8(s.Title[:maxTitleBytes], "") + "…"
		}
	}
	body, err := json.Marshal(s)
	topic := sha256.Sum256([]byte("acp push " + m.Session))
	return push.Message{Body: body, Topic: base64.RawURLEncoding.EncodeToString(topic[:24]), Lasts: lasts, Urgent: m.Question}, err
}
