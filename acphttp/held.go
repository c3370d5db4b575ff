package acphttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// held is what a server holds for all clients.
type held struct {
	bytes atomic.Int64
	conns atomic.Int64 // that share the bound

	mu   sync.Mutex
	less chan struct{} // closed when there is room again, or for fewer; nil unless somebody waits
}

// add counts bytes. Those who wait are woken when there are fewer than all again.
func (h *held) add(bytes, all int64) {
	if n := h.bytes.Add(bytes); n < all && n-bytes >= all {
		h.rouse()
	}
}

// room returns a channel that is closed when there may be room.
func (h *held) room() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.less == nil {
		h.less = make(chan struct{})
	}
	return h.less
}

func (h *held) rouse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.less != nil {
		close(h.less)
		h.less = nil
	}
}

// readRoom waits as awaitRoom does, once everything is written that the reader lets wait for company.
func (c *conn) readRoom() error {
	c.mu.Lock()
	full := c.isFull()
	c.mu.Unlock()
	if !full {
		return nil
	}
	if f := c.in.before; f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	return c.awaitRoom()
}

// isFull reports whether the client has to read before anything else happens. At the
// bound of all connections only those wait that have used up their share of it: one whose
// client reads does not suffer from those whose clients do not. The caller holds c.mu.
func (c *conn) isFull() bool {
	if c.gone || c.ended || c.unsent == 0 {
		return false
	}
	all := int64(c.s.limits.MaxUnsentAll)
	return c.unsent >= c.s.limits.MaxUnsent ||
		c.s.held.bytes.Load() >= all && int64(c.unsent) >= all/max(1, c.s.held.conns.Load())
}

// holds counts what is held for the client, or not any more. The caller holds c.mu.
func (c *conn) holds(bytes int) {
	c.unsent += bytes
	c.s.held.add(int64(bytes), int64(c.s.limits.MaxUnsentAll))
}

// awaitRoom waits until the client, or others at the bound of all, have read enough for the agent to continue.
func (c *conn) awaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.isFull() {
		if c.progress == nil {
			c.progress = make(chan struct{})
		}
		if err := c.wait(context.Background(), c.progress, c.isFull); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for ch to be closed, at most for the stall timeout. With full, it also returns
// when that does not hold any more because of other connections. The caller holds c.mu,
// which is released meanwhile.
func (c *conn) wait(ctx context.Context, ch chan struct{}, full func() bool) error {
	timer := time.NewTimer(c.s.limits.StallTimeout)
	defer timer.Stop()
	for {
		var room <-chan struct{}
		if full != nil {
			room = c.s.held.room() // before the look, so that nothing is missed
			if !full() {
				return nil
			}
		}
		again, err := c.await(ctx, ch, room, timer.C)
		if !again {
			return err
		}
	}
}

// await is one step of wait. again reports that only room was closed.
func (c *conn) await(ctx context.Context, ch, room <-chan struct{}, late <-chan time.Time) (again bool, err error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-ch:
		return false, nil
	case <-room:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-late:
		return false, ErrStalled
	}
}
