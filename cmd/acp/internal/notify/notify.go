// Package notify tells devices that a session waits for somebody, through the push services of their browsers, and has
// the methods by which clients ask for that. They are extensions of the protocol, described in docs/gateway.md.
package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/push"
	"github.com/goacp/acp/internal/sleep"
)

// A Config says who is notified, and how.
type Config struct {
	Store *identity.Store
	Audit *audit.Log // nil means none
	// Who says who a client is.
	Who    func(ctx context.Context) identity.Principal
	Sender *push.Sender
	// Logger gets what goes wrong, without endpoints and content; nil discards it.
	Logger *slog.Logger
}

// A Message says that a session waits.
type Message struct {
	Session  string
	Title    string                          // of the session; for devices that have asked for it
	Question bool                            // a question is open; otherwise a turn has ended
	For      func(p identity.Principal) bool // whether a device is notified
}

// Bounds.
const (
	maxQueue   = 256  // messages whose devices were not looked up
	maxSending = 16   // requests at once
	maxPaused  = 1024 // messages that are tried again later
	maxOfUser  = 64   // of these, for the devices of one user
	maxTries   = 4
	maxWait    = time.Minute // between two tries
	lasts      = 12 * time.Hour
	perMinute  = 30  // messages for a device
	maxTitle   = 100 // cells
	// maxTitleBytes is such that a title fits into a message, whatever JSON makes of it.
	maxTitleBytes = 300
)

// A Notifier tells devices. Its methods may be called from any goroutine. [Notifier.Close] it.
type Notifier struct {
	cfg    Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	queue  chan Message
	slots  chan struct{}                                   // one for each message that is being sent
	pauses func(ctx context.Context, d time.Duration) bool // false if ctx ended first
	push   func(ctx context.Context, to *push.Subscription, m push.Message) error

	mu         sync.Mutex
	minute     int64
	sent       map[string]int // by device, in that minute
	deliveries map[destination]*delivery
	paused     map[string]int // messages that are tried again later, by user
	pausing    int            // all of these
}

// New returns a notifier.
func New(cfg Config) *Notifier {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Notifier{cfg: cfg, queue: make(chan Message, maxQueue), slots: make(chan struct{}, maxSending), pauses: sleep.For, push: cfg.Sender.Send}
	n.sent, n.deliveries, n.paused = make(map[string]int), make(map[destination]*delivery), make(map[string]int)
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.work.Go(n.run)
	return n
}

// Close ends what is being sent, and waits for that.
func (n *Notifier) Close() {
	n.stop()
	n.work.Wait()
	n.cfg.Sender.Close()
}

// Notify tells devices, soon. It never waits: a message that finds no room is dropped.
func (n *Notifier) Notify(m Message) {
	select {
	case n.queue <- m:
	default:
		n.cfg.Logger.Warn("notify: a message is dropped: too many wait", "session", m.Session)
	}
}

func (n *Notifier) run() {
	for {
		select {
		case m := <-n.queue:
			n.tell(m)
		case <-n.ctx.Done():
			return
		}
	}
}

// tell begins to send a message to each device that it is for.
func (n *Notifier) tell(m Message) {
	devices, err := n.cfg.Store.Subscribers(n.ctx)
	if err != nil {
		if n.ctx.Err() == nil {
			n.cfg.Logger.Error("notify: devices cannot be notified", "error", err)
		}
		return
	}
	for _, d := range devices {
		if !m.For(d.Principal()) {
			continue
		}
		if !n.admit(d.ID, time.Now()) {
			n.cfg.Logger.Warn("notify: a message is dropped: the device gets too many", "device", d.Name)
			continue
		}
		v := n.delivery(d, m)
		if v == nil {
			continue
		}
		select {
		case n.slots <- struct{}{}:
		case <-n.ctx.Done():
			return
		}
		n.work.Go(func() {
			defer func() { <-n.slots }()
			n.deliver(v)
		})
	}
}

// admit reports whether a device may get another message.
func (n *Notifier) admit(device string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := now.Unix() / 60; m != n.minute {
		n.minute = m
		clear(n.sent)
	}
	if n.sent[device] >= perMinute {
		return false
	}
	n.sent[device]++
	return true
}
