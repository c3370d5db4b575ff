package notify

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/cmd/acp/internal/push/pushtest"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A rig is a server with devices, and a push service.
type rig struct {
	*testing.T
	*Notifier
	dir     string
	service *pushtest.Service
	key     *push.Key
	as      identity.Principal // who asks
	waits   chan time.Duration // between tries
	log     *lockedBuffer
}

type lockedBuffer struct {
	wrote chan struct{} // has something after a Write
	mu    sync.Mutex
	b     bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// logged waits until the log has a text.
func (r *rig) logged(text string) {
	r.Helper()
	limit := time.After(30 * time.Second)
	for !strings.Contains(r.log.String(), text) {
		select {
		case <-r.log.wrote:
		case <-limit:
			r.Fatalf("the log has no %q: %s", text, r.log)
		}
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir(), service: pushtest.New(t), waits: make(chan time.Duration, 100), log: &lockedBuffer{wrote: make(chan struct{}, 1)}}
	store, err := identity.Open(t.Context(), r.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if r.key, err = push.NewKey(); err != nil {
		t.Fatal(err)
	}
	sender, err := push.NewSender(r.key, []string{r.service.Host}, r.service.Roots())
	if err != nil {
		t.Fatal(err)
	}
	r.Notifier = New(Config{
		Store: store, Audit: audit.Open(r.dir), Sender: sender, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
		Who: func(context.Context) identity.Principal { return r.as },
	})
	r.pauses = func(_ context.Context, d time.Duration) bool {
		r.waits <- d
		return true
	}
	t.Cleanup(r.Close)
	return r
}

// device adds a device whose browser has subscribed.
func (r *rig) device(name, user string, title bool) (identity.Device, *pushtest.Browser) {
	r.Helper()
	d, _, err := r.cfg.Store.Add(r.Context(), name, identity.Grant{User: user, Role: identity.Approver})
	if err != nil {
		r.Fatal(err)
	}
	b := r.service.Browser()
	r.as = d.Principal()
	if state, err := r.subscribe(r.Context(), request(b, title)); err != nil || !state.On || state.Title != title {
		r.Fatal(state, err)
	}
	return d, b
}

// request is that of a browser.
func request(b *pushtest.Browser, title bool) *SubscribeRequest {
	req := &SubscribeRequest{Title: title}
	req.Subscription.Endpoint = b.Endpoint
	req.Subscription.Keys.Public = base64.RawURLEncoding.EncodeToString(b.Public)
	req.Subscription.Keys.Auth = base64.RawURLEncoding.EncodeToString(b.Auth)
	return req
}

func all(identity.Principal) bool { return true }

// TestTold: devices that have asked for it get what a message says, and the title only if they have asked for that. The
// others, and those of whom the message is not, get nothing.
func TestTold(t *testing.T) {
	r := newRig(t)
	_, plain := r.device("phone", "ann", false)
	_, titled := r.device("tablet", "ann", true)
	_, other := r.device("laptop", "bob", true)
	if _, _, err := r.cfg.Store.Add(t.Context(), "quiet", identity.Grant{User: "ann", Role: identity.Owner}); err != nil {
		t.Fatal(err)
	}
	forAnn := func(p identity.Principal) bool { return p.User == "ann" }
	r.Notify(Message{Session: "s_1", Title: "the \x1b[31msecret\u202e plan", Question: true, For: forAnn})
	r.Notify(Message{Session: "s_2", Title: "the secret plan", For: forAnn})
	r.Notify(Message{Session: "s_3", Title: "the end", For: func(p identity.Principal) bool { return p.User == "bob" }})
	collect := func(b *pushtest.Browser) map[string]said {
		got := make(map[string]said)
		for range 2 {
			next := b.Next(t)
			var s said
			if err := json.Unmarshal(next.Body, &s); err != nil {
				t.Fatal(err)
			}
			urgency := map[string]string{"question": "high"}[s.Kind]
			if next.Header.Get("Urgency") != urgency || next.Header.Get("TTL") != "43200" || strings.Contains(next.Header.Get("Topic"), "s_") || len(next.Header.Get("Topic")) != 32 {
				t.Errorf("%+v: %v", s, next.Header)
			}
			got[s.Session] = s
		}
		return got
	}
	if diff := cmp.Diff(map[string]said{"s_1": {Kind: "question", Session: "s_1"}, "s_2": {Kind: "end", Session: "s_2"}}, collect(plain)); diff != "" {
		t.Error(diff)
	}
	got := collect(titled)
	if got["s_2"].Title != "the secret plan" || strings.ContainsAny(got["s_1"].Title, "\x1b\u202e") || !strings.Contains(got["s_1"].Title, "secret") {
		t.Errorf("%+v", got)
	}
	if next := other.Next(t); string(next.Body) != `{"kind":"end","session":"s_3","title":"the end"}` {
		t.Errorf("%s", next.Body)
	}
	r.Close()
	for name, b := range map[string]*pushtest.Browser{"phone": plain, "tablet": titled, "laptop": other} {
		if n := b.Count(); n > 0 {
			t.Errorf("%s has got %d more", name, n)
		}
	}
}

// TestLong: the longest title fits.
func TestLong(t *testing.T) {
	for _, title := range []string{strings.Repeat("x", 10000), strings.Repeat("\u0001", 5000), strings.Repeat("👨‍👩‍👧‍👦", 2000), strings.Repeat("e\u0301\u0301\u0301", 2000), strings.Repeat("<", 5000), "e" + strings.Repeat("\u0301", 5000)} {
		m, err := encode(Message{Session: "s_0123456789abcdef01234567", Title: title}, true)
		if err != nil || len(m.Body) > push.MaxBody {
			t.Errorf("%d bytes of %.20q: %v", len(m.Body), title, err)
		}
	}
}

// TestRevoked: a device that is revoked, has expired or has ended it gets nothing, even what was tried before.
func TestRevoked(t *testing.T) {
	r := newRig(t)
	d, b := r.device("phone", "ann", false)
	r.service.Answer(http.StatusServiceUnavailable, nil)
	r.pauses = func(ctx context.Context, _ time.Duration) bool {
		if _, err := r.cfg.Store.RevokeID(ctx, d.ID); err != nil {
			t.Error(err)
		}
		close(r.waits)
		return true
	}
	r.Notify(Message{Session: "s_1", For: all})
	b.Next(t)
	<-r.waits
	r.service.Answer(http.StatusCreated, nil)
	if _, err := r.cfg.Store.Subscription(t.Context(), d.ID); !errors.Is(err, identity.ErrNotFound) {
		t.Errorf("the subscription of a device that is revoked: %v", err)
	}
	next, c := r.device("tablet", "ann", false)
	r.Notify(Message{Session: "s_2", For: all})
	c.Next(t)
	if err := r.cfg.Store.Unsubscribe(t.Context(), next.ID, ""); err != nil {
		t.Error(err)
	}
	_, last := r.device("laptop", "ann", false)
	r.Notify(Message{Session: "s_3", For: all})
	last.Next(t)
	r.Close()
	if b.Count()+c.Count() > 0 {
		t.Error("a device that must not be sent a message is sent one")
	}
}

// TestGone: a subscription that the push service does not have any more is removed; one that was made meanwhile stays.
func TestGone(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		r := newRig(t)
		d, b := r.device("phone", "ann", false)
		r.service.Answer(status, nil)
		r.Notify(Message{Session: "s_1", For: all})
		b.Next(t)
		for { // it is removed once the answer is there
			if _, err := r.cfg.Store.Subscription(t.Context(), d.ID); errors.Is(err, identity.ErrNotFound) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(r.log.String(), b.Endpoint) {
			t.Errorf("the endpoint is in the log: %s", r.log.String())
		}
	}
	r := newRig(t)
	d, b := r.device("phone", "ann", false)
	if err := r.cfg.Store.Unsubscribe(t.Context(), d.ID, b.Endpoint+"x"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.cfg.Store.Subscription(t.Context(), d.ID); err != nil {
		t.Errorf("another endpoint has ended it: %v", err)
	}
}

// TestAgain: what may pass is tried again, a few times, after what the push service says, within bounds.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		after string
		want  []time.Duration
	}{
		{"", []time.Duration{4 * time.Second, 16 * time.Second, time.Minute}},
		{"7", []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}},
		{"86400", []time.Duration{time.Minute, time.Minute, time.Minute}},
		{"0", []time.Duration{4 * time.Second, 16 * time.Second, time.Minute}},
		{"soon", []time.Duration{4 * time.Second, 16 * time.Second, time.Minute}},
	} {
		r := newRig(t)
		d, b := r.device("phone", "ann", false)
		r.service.Answer(http.StatusTooManyRequests, http.Header{"Retry-After": {tt.after}})
		r.Notify(Message{Session: "s_1", For: all})
		var got []time.Duration
		for range maxTries - 1 {
			b.Next(t)
			got = append(got, <-r.waits)
		}
		b.Next(t)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.after, diff)
		}
		r.Close()
		if b.Count() > 0 {
			t.Error("there is no bound")
		}
		if _, err := r.cfg.Store.Subscription(t.Context(), d.ID); err != nil {
			t.Errorf("the subscription is gone: %v", err)
		}
	}
}

// TestPaused: messages that a push service does not take now keep none from being sent to others, and of those of a user that
// wait there are not too many.
func TestPaused(t *testing.T) {
	r := newRig(t)
	goOn := make(chan struct{})
	r.pauses = func(ctx context.Context, d time.Duration) bool {
		r.waits <- d
		select {
		case <-goOn:
			return true
		case <-ctx.Done():
			return false
		}
	}
	_, other := r.device("tablet", "bob", false)
	r.service.Answer(http.StatusServiceUnavailable, nil)
	var browsers []*pushtest.Browser
	for i := range maxOfUser {
		if i%perMinute == 0 {
			_, b := r.device(fmt.Sprint("phone-", i), "ann", false)
			browsers = append(browsers, b)
		}
		device := fmt.Sprint("phone-", i/perMinute*perMinute)
		r.Notify(Message{Session: fmt.Sprint("s_", i), For: func(p identity.Principal) bool { return p.Name == device }})
		browsers[len(browsers)-1].Next(t)
		<-r.waits
	}
	_, last := r.device("laptop", "ann", false)
	r.Notify(Message{Session: "s_more", For: func(p identity.Principal) bool { return p.Name == "laptop" }})
	last.Next(t)
	r.service.Answer(http.StatusCreated, nil)
	r.Notify(Message{Session: "s_other", For: func(p identity.Principal) bool { return p.User == "bob" }})
	if got := string(other.Next(t).Body); got != `{"kind":"end","session":"s_other"}` {
		t.Errorf("%s", got)
	}
	r.logged("too many messages wait") // or else it would find room among those that go on
	close(goOn)
	for i := range maxOfUser {
		browsers[i/perMinute].Next(t)
	}
	r.Close()
	if n := last.Count(); n > 0 {
		t.Errorf("there is no bound; the log: %s", r.log)
	}
}

// TestBounds: a device gets so many messages in a minute, and a notifier that nobody empties drops the rest.
func TestBounds(t *testing.T) {
	n := &Notifier{sent: make(map[string]int), queue: make(chan Message, 1), cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	now := time.Unix(1_800_000_000, 0)
	for range perMinute {
		if !n.admit("phone", now) {
			t.Fatal("it gets too few")
		}
	}
	if n.admit("phone", now) || !n.admit("tablet", now) || !n.admit("phone", now.Add(time.Minute)) {
		t.Error("the bound is another one")
	}
	for range 3 {
		n.Notify(Message{})
	}
	if len(n.queue) != 1 {
		t.Error("it waits")
	}
}

// TestMethods: what devices may say, and that others may not.
func TestMethods(t *testing.T) {
	r := newRig(t)
	d, b := r.device("phone", "ann", true)
	for name, change := range map[string]func(*SubscribeRequest){
		"an address": func(q *SubscribeRequest) { q.Subscription.Endpoint = "https://169.254.169.254/latest" },
		"no TLS":     func(q *SubscribeRequest) { q.Subscription.Endpoint = "http://fcm.googleapis.com/x" },
		"somebody":   func(q *SubscribeRequest) { q.Subscription.Endpoint = "https://evil.example/x" },
		"nothing":    func(q *SubscribeRequest) { q.Subscription.Endpoint = "" },
		"no key":     func(q *SubscribeRequest) { q.Subscription.Keys.Public = "" },
		"no base64":  func(q *SubscribeRequest) { q.Subscription.Keys.Auth = "?" },
		"a long key": func(q *SubscribeRequest) { q.Subscription.Keys.Auth = strings.Repeat("A", 1<<20) },
		"no point": func(q *SubscribeRequest) {
			q.Subscription.Keys.Public = base64.RawURLEncoding.EncodeToString(make([]byte, 65))
		},
		"a private secret": func(q *SubscribeRequest) { q.Subscription.Keys.Auth = "AAAA" },
	} {
		req := request(b, false)
		change(req)
		_, err := r.subscribe(t.Context(), req)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", name, err)
		}
	}
	padded := request(b, false)
	padded.Subscription.Keys.Auth += "=="
	if state, err := r.subscribe(t.Context(), padded); err != nil || state.Title {
		t.Error(state, err)
	}
	if state, err := r.state(t.Context(), d.Principal()); err != nil || !state.On || state.Key != base64.RawURLEncoding.EncodeToString(r.cfg.Sender.Key()) {
		t.Error(state, err)
	}
	for _, p := range []identity.Principal{{}, {Kind: identity.KindLocal, User: "ann", Role: identity.Owner}, {Kind: identity.KindTeam, User: "oidc:ann", Device: d.ID}} {
		r.as = p
		if _, err := r.subscribe(t.Context(), request(b, false)); err == nil {
			t.Errorf("%+v may subscribe", p)
		}
	}
	// The browser was paired anew: it is sent each message once.
	again, _, err := r.cfg.Store.Add(t.Context(), "phone-2", identity.Grant{User: "ann", Role: identity.Approver})
	if err != nil {
		t.Fatal(err)
	}
	r.as = again.Principal()
	if _, err := r.subscribe(t.Context(), request(b, false)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.cfg.Store.Subscription(t.Context(), d.ID); !errors.Is(err, identity.ErrNotFound) {
		t.Errorf("the browser is sent each message twice: %v", err)
	}
	for i := range identity.MaxSubscriptions - 1 {
		r.device(fmt.Sprintf("d%d", i), "ann", false)
	}
	r.device("of-bob", "bob", false)
	more, _, err := r.cfg.Store.Add(t.Context(), "one-more", identity.Grant{User: "ann", Role: identity.Approver})
	if err != nil {
		t.Fatal(err)
	}
	r.as = more.Principal()
	if _, err := r.subscribe(t.Context(), request(r.service.Browser(), false)); err == nil {
		t.Error("there is no bound")
	}
	if err := r.cfg.Store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.subscribe(t.Context(), request(b, false)); err == nil {
		t.Error("a store that is closed has taken it")
	}
}
