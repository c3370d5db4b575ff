package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/push"
)

// A line is a push service without a network.
type line struct {
	*Notifier
	mu   sync.Mutex
	got  []string // what it was sent: device, session and kind
	does func(device, session string) error
}

// newLine returns a notifier that sends to it. It is called in a bubble.
func newLine(t *testing.T) *line {
	t.Helper()
	store, err := identity.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	key, err := push.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sender, err := push.NewSender(key, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{Notifier: New(Config{Store: store, Sender: sender}), does: func(string, string) error { return nil }}
	t.Cleanup(l.Close)
	l.push = func(_ context.Context, to *push.Subscription, m push.Message) error {
		var s said
		if err := json.Unmarshal(m.Body, &s); err != nil {
			return err
		}
		l.mu.Lock()
		l.got = append(l.got, to.Endpoint+" "+s.Session+" "+s.Kind)
		l.mu.Unlock()
		return l.does(to.Endpoint, s.Session)
	}
	return l
}

// subscribed adds a device whose endpoint is its name.
func (l *line) subscribed(t *testing.T, name, user string) {
	t.Helper()
	d, _, err := l.cfg.Store.Add(t.Context(), name, identity.Grant{User: user, Role: identity.Approver})
	if err == nil {
		err = l.cfg.Store.Subscribe(t.Context(), d.ID, identity.Subscription{Endpoint: name, Public: []byte{4}, Auth: []byte{1}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sent returns what was sent since it was called last, once nothing happens any more.
func (l *line) sent() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := l.got
	l.got = nil
	return got
}

// TestNewerWins: a message that is tried again never comes after a newer one of the same session, which takes its place, at
// once: while it waits, and when it is just being sent. Messages of other sessions are left alone.
func TestNewerWins(t *testing.T) {
	later := &push.LaterError{Err: errors.New("later")}
	for _, tt := range []struct {
		name string
		held bool // the newer message comes while the first one is being sent
		err  error
		want []string
	}{
		{"while it waits", false, later, []string{"phone s_1 end"}},
		{"while it is sent, and is not taken", true, later, []string{"phone s_1 end"}},
		{"while it is sent, and is taken", true, nil, []string{"phone s_1 end"}},
		{"while it is sent, and is refused", true, push.ErrRefused, []string{"phone s_1 end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				l.subscribed(t, "phone", "ann")
				release := make(chan struct{})
				first := true
				l.does = func(_, session string) error {
					if session != "s_1" || !first {
						return nil
					}
					first = false
					if tt.held {
						<-release
					}
					return tt.err
				}
				l.Notify(Message{Session: "s_1", Question: true, For: all})
				if diff := cmp.Diff([]string{"phone s_1 question"}, l.sent()); diff != "" {
					t.Error(diff)
				}
				l.Notify(Message{Session: "s_2", For: all})
				if diff := cmp.Diff([]string{"phone s_2 end"}, l.sent()); diff != "" {
					t.Error(diff)
				}
				l.Notify(Message{Session: "s_1", For: all})
				if tt.held {
					if got := l.sent(); len(got) > 0 {
						t.Errorf("beside the first one: %q", got)
					}
					close(release)
				}
				if diff := cmp.Diff(tt.want, l.sent()); diff != "" {
					t.Error(diff)
				}
				time.Sleep(time.Hour)
				if got := l.sent(); len(got) > 0 {
					t.Errorf("afterwards: %q", got)
				}
				if len(l.deliveries)+len(l.paused)+l.pausing+len(l.slots) > 0 {
					t.Errorf("what is left: %v, %v, %d, %d", l.deliveries, l.paused, l.pausing, len(l.slots))
				}
			})
		})
	}
}

// TestUsersApart: however many messages of a user wait, those of another one have room.
func TestUsersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.subscribed(t, "of-bob", "bob")
		var fine atomic.Bool
		l.does = func(string, string) error {
			if !fine.Load() {
				return &push.LaterError{Err: errors.New("later")}
			}
			return nil
		}
		for i := range identity.MaxSubscriptions { // more than there is room for in all
			l.subscribed(t, fmt.Sprint("of-ann-", i), "ann")
		}
		for i := range perMinute {
			l.Notify(Message{Session: fmt.Sprint("s_", i), For: func(p identity.Principal) bool { return p.User == "ann" }})
			synctest.Wait()
		}
		if n := l.paused["ann"]; n != maxOfUser {
			t.Errorf("%d messages wait", n)
		}
		l.Notify(Message{Session: "s_bob", For: func(p identity.Principal) bool { return p.User == "bob" }})
		if got := l.sent(); !slices.Contains(got, "of-bob s_bob end") {
			t.Errorf("%d messages, and none to the other user", len(got))
		}
		fine.Store(true)
		time.Sleep(time.Minute)
		if got := l.sent(); len(got) != maxOfUser+1 || !slices.Contains(got, "of-bob s_bob end") {
			t.Errorf("%d messages are tried again: %q", len(got), got)
		}
	})
}

// TestPausedInAll: there is a bound for all users together.
func TestPausedInAll(t *testing.T) {
	n := &Notifier{ctx: t.Context(), paused: map[string]int{"ann": 1}, pausing: maxPaused, slots: make(chan struct{}, 1)}
	n.slots <- struct{}{}
	n.pauses = func(context.Context, time.Duration) bool {
		t.Error("there is no bound")
		return true
	}
	v := &delivery{to: identity.Device{User: "ann"}}
	if n.pause(v, time.Hour, slog.New(slog.DiscardHandler)) || n.pausing != maxPaused || n.paused["ann"] != 1 {
		t.Errorf("%d wait, %v", n.pausing, n.paused)
	}
}
