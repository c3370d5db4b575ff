package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Lease is what entitles a node to own sessions. There is one for each node, whatever the number
// of its sessions. Its methods are safe for concurrent use.
//
// When Deadline has passed, others may claim the sessions soon, by the clock of the database: the
// owner must have stopped its agents by then. A lease whose deadline has passed is never renewed;
// take a new one and claim the sessions again.
type Lease struct {
	db    Database      // nil if it does not lapse with time
	over  chan struct{} // then; closed when this process takes another one
	ttl   time.Duration
	node  string
	token int64

	mu       sync.Mutex
	deadline time.Time
}

// newToken returns a random positive number.
func newToken() int64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

// Lease takes a lease for a node. Where sessions are files of this machine, the locks of the files say who owns them: there a lease
// lapses only when this process takes another one. Otherwise, if another process uses the same name, its lease lapses; therefore
// the name must be one that only a successor of this process has.
func (e *Engine) Lease(ctx context.Context, node string) (*Lease, error) {
	if err := checkName("node", node, true); err != nil {
		return nil, err
	}
	if e.files != nil {
		return e.files.lease(node), nil
	}
	return newLease(ctx, e.db, node, e.o.LeaseTTL)
}

func newLease(ctx context.Context, db Database, node string, ttl time.Duration) (*Lease, error) {
	l := &Lease{db: db, ttl: ttl, node: node, token: newToken()}
	before := time.Now()
	if err := db.TakeLease(ctx, node, l.token, ttl); err != nil {
		return nil, fmt.Errorf("lease of node %q: %w", node, err)
	}
	l.deadline = l.until(before)
	return l, nil
}

// until returns the deadline that follows from a request sent at a time. It is a fifth of the time to
// live earlier than the lease lapses, so that agents can be stopped before.
func (l *Lease) until(sent time.Time) time.Time { return sent.Add(l.ttl * 4 / 5) }

// Node returns the name of the node.
func (l *Lease) Node() string { return l.node }

// Token returns the random number by which the database knows the lease.
func (l *Lease) Token() int64 { return l.token }

// Deadline returns when this node must have stopped its agents unless the lease is renewed before. It
// is counted from before the last request that succeeded was sent.
func (l *Lease) Deadline() time.Time {
	if l.db == nil && !l.lapsed() {
		return time.Now().Add(365 * 24 * time.Hour)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// lapsed reports whether the deadline has passed. The monotonic clock stands still while a machine
// sleeps, the clock on the wall can be set: either of them is enough.
func (l *Lease) lapsed() bool {
	if l.db == nil {
		select {
		case <-l.over:
			return true
		default:
			return false
		}
	}
	now, d := time.Now(), l.Deadline()
	return !now.Before(d) || !now.Round(0).Before(d.Round(0))
}

// Renew prolongs the lease. It fails with [ErrLapsed] if the deadline has passed, or passes before the
// answer comes; then the node has lost its lease for good. After other errors it may be called again.
func (l *Lease) Renew(ctx context.Context) error {
	if l.db == nil {
		return nil
	}
	if l.lapsed() {
		return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
	}
	ctx, cancel := context.WithDeadline(ctx, l.Deadline())
	defer cancel()
	before := time.Now()
	err := l.db.RenewLease(ctx, l.node, l.token, l.ttl)
	switch {
	case l.lapsed():
		return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
	case err != nil:
		return fmt.Errorf("lease of node %q: %w", l.node, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.until(before); d.After(l.deadline) {
		l.deadline = d
	}
	return nil
}

// end makes the lease lapse that does not lapse with time.
func (l *Lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.over:
	default:
		close(l.over)
	}
}

// Keep renews the lease until ctx ends, and returns nil then. It returns [ErrLapsed] at the deadline at
// the latest if renewing does not succeed: the caller stops its agents at once. Call it on a
// goroutine of its own.
func (l *Lease) Keep(ctx context.Context) error {
	if l.db == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-l.over:
			return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
		}
	}
	ttl := l.ttl
	next := time.NewTimer(ttl * 3 / 10)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		// A request that hangs is given up soon enough for another try.
		try, cancel := context.WithTimeout(ctx, ttl/5)
		err := l.Renew(try)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			next.Reset(ttl * 3 / 10)
		case l.lapsed(), errors.Is(err, ErrLapsed):
			return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
		default:
			next.Reset(min(ttl/20, time.Until(l.Deadline())))
		}
	}
}

// Release ends the lease at once, so that others may claim the sessions of this node. Agents must have
// been stopped before.
func (l *Lease) Release(ctx context.Context) error {
	if l.db == nil {
		l.end()
		return nil
	}
	l.mu.Lock()
	l.deadline = time.Time{}
	l.mu.Unlock()
	if err := l.db.EndLease(ctx, l.node, l.token); err != nil {
		return fmt.Errorf("lease of node %q: %w", l.node, err)
	}
	return nil
}

// leaseKey is the key of the lease with which a session is claimed.
type leaseKey struct{}

func withLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

func leaseOf(ctx context.Context) (*Lease, error) {
	if l, ok := ctx.Value(leaseKey{}).(*Lease); ok {
		return l, nil
	}
	return nil, fmt.Errorf("%w: without a lease", ErrInvalid)
}
