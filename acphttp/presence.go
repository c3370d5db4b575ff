package acphttp

import (
	"context"
	"sync"
	"time"
)

// A Presence says whether the client of a connection of a [Server] reads: whether it has a request or a WebSocket
// open. A client that was killed has none, but its connection lives on until [Limits.IdleTimeout], so that a client
// whose network failed can come back to it. It is safe for concurrent use. A nil Presence is that of a client that
// is always there.
type Presence struct{ c *conn }

type presenceKey struct{}

// PresenceOf returns the presence of the client to which a context in [Server.Serve] belongs; nil if a Server did
// not give it the context.
func PresenceOf(ctx context.Context) *Presence {
	a, _ := ctx.Value(presenceKey{}).(*Presence)
	return a
}

// awayGrace is how long a client may have nothing open and still be there: it may be between two requests.
const awayGrace = 5 * time.Second

// Present reports whether the client is there: whether it has something open, or had until a few seconds ago.
func (a *Presence) Present() bool {
	if a == nil {
		return true
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return !a.c.attends.away
}

// Notify calls changed, in goroutines of the connection, whenever Present may have changed, until stop is called or
// the connection ends. A call may come after stop has returned. Neither waits for changed.
func (a *Presence) Notify(changed func()) (stop func()) {
	if a == nil {
		return func() {}
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	if a.c.attends.tell == nil {
		a.c.attends.tell = make(map[*func()]bool)
	}
	key := &changed
	a.c.attends.tell[key] = true
	return sync.OnceFunc(func() {
		a.c.mu.Lock()
		defer a.c.mu.Unlock()
		delete(a.c.attends.tell, key)
	})
}

// attends is whether a connection is attended. The lock of the connection guards it.
type attends struct {
	active int // requests that are open
	away   bool
	timer  *time.Timer // sets away; nil before
	tell   map[*func()]bool
}

// awaySoon is called when nothing is open any more. The caller holds the lock.
func (c *conn) awaySoon() {
	if c.attends.timer == nil {
		c.attends.timer = time.AfterFunc(awayGrace, c.attend)
		return
	}
	c.attends.timer.Reset(awayGrace)
}

// attend notes whether something is open, and calls the functions of Notify.
func (c *conn) attend() {
	c.mu.Lock()
	away := c.attends.active == 0 && !c.gone
	var tell []func()
	if away != c.attends.away {
		c.attends.away = away
		for f := range c.attends.tell {
			tell = append(tell, *f)
		}
	}
	c.mu.Unlock()
	for _, f := range tell {
		f()
	}
}
