package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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
	e     *Engine
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

// Lease takes a lease for a node. If another process uses the same name, its lease lapses; therefore
// the name must be one that only a successor of this process has.
func (e *Engine) Lease(ctx context.Context, node string) (*Lease, error) {
	if err := checkName("node", node, true); err != nil {
		return nil, err
	}
	l := &Lease{e: e, node: node, token: newToken()}
	before := time.Now()
	if err := e.db.TakeLease(ctx, node, l.token, e.o.LeaseTTL); err != nil {
		return nil, fmt.Errorf("lease of node %q: %w", node, err)
	}
	l.deadline = l.until(before)
	return l, nil
}

// until returns the deadline that follows from a request sent at a time. It is a fifth of the time to
// live earlier than the lease lapses, so that agents can be stopped before.
func (l *Lease) until(sent time.Time) time.Time { return sent.Add(l.e.o.LeaseTTL * 4 / 5) }

// Node returns the name of the node.
func (l *Lease) Node() string { return l.node }

// Token returns the random number by which the database knows the lease.
func (l *Lease) Token() int64 { return l.token }

// Deadline returns when this node must have stopped its agents unless the lease is renewed before. It
// is counted from before the last request that succeeded was sent.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// lapsed reports whether the deadline has passed. The monotonic clock stands still while a machine
// sleeps, the clock on the wall can be set: either of them is enough.
func (l *Lease) lapsed() bool {
	now, d := time.Now(), l.Deadline()
	return !now.Before(d) || !now.Round(0).Before(d.Round(0))
}

// Renew prolongs the lease. It fails with [ErrLapsed] if the deadline has passed, or passes before the
// answer comes; then the node has lost its lease for good. After other errors it may be called again.
func (l *Lease) Renew(ctx context.Context) error {
	if l.lapsed() {
		return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
	}
	ctx, cancel := context.WithDeadline(ctx, l.Deadline())
	defer cancel()
	before := time.Now()
	err := l.e.db.RenewLease(ctx, l.node, l.token, l.e.o.LeaseTTL)
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

// Keep renews the lease until ctx ends, and returns nil then. It returns [ErrLapsed] at the deadline at
// the latest if renewing does not succeed: the caller stops its agents at once. Call it on a
// goroutine of its own.
func (l *Lease) Keep(ctx context.Context) error {
	ttl := l.e.o.LeaseTTL
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
		case l.lapsed(), isLapsed(err):
			return fmt.Errorf("node %q: %w", l.node, ErrLapsed)
		default:
			next.Reset(min(ttl/20, time.Until(l.Deadline())))
		}
	}
}

// Release ends the lease at once, so that others may claim the sessions of this node. Agents must have
// been stopped before.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	l.deadline = time.Time{}
	l.mu.Unlock()
	if err := l.e.db.EndLease(ctx, l.node, l.token); err != nil {
		return fmt.Errorf("lease of node %q: %w", l.node, err)
	}
	return nil
}

// Claim makes the node of a lease the owner of a session, with a new epoch, which fences the owner
// before it, and returns the handle to append with. It fails with [ErrOwned] while the lease of another
// owner has not lapsed, with [ErrLapsed] if l has, with [ErrNotFound], or with a [*DamageError]. A
// session that this node owns already can be claimed again: the earlier handle is fenced.
func (e *Engine) Claim(ctx context.Context, session string, l *Lease) (*Owned, error) {
	if l.lapsed() {
		return nil, fmt.Errorf("claim session %q: node %q: %w", session, l.node, ErrLapsed)
	}
	seen, err := e.marks.seen(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("claim session %q: witness: %w", session, err)
	}
	st, err := e.db.Claim(ctx, session, l.node, l.token)
	if err != nil {
		return nil, fmt.Errorf("claim session %q: %w", session, err)
	}
	if err := e.checkEnd(ctx, st, seen); err != nil {
		return nil, fmt.Errorf("claim session %q: %w", session, err)
	}
	o := newOwned(e, st)
	e.mu.Lock()
	old := e.owned[session]
	closed := e.closed
	// Of two claims at the same time the later epoch is the owner, in whatever order they get here.
	late := old != nil && old.epoch > o.epoch
	if !closed && !late {
		e.owned[session] = o
	}
	e.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case late:
		return nil, fmt.Errorf("claim session %q: %w", session, ErrFenced)
	case old != nil:
		old.end(ErrFenced)
	}
	return o, nil
}

// checkEnd compares the end of a log with the head, and with what the witness has seen.
func (e *Engine) checkEnd(ctx context.Context, st State, seen Head) error {
	if st.Seq < seen.Seq {
		return e.damaged(ctx, st.Session, seen.Seq, ErrLost)
	}
	for i, want := range [...]Head{st.Head, seen} {
		if want.Seq == 0 || i == 1 && want == st.Head {
			continue
		}
		recs, err := e.fetch(ctx, st.Key, want.Seq, 2)
		switch {
		case isCorrupt(err):
			return e.damaged(ctx, st.Session, want.Seq, ErrCorrupt)
		case err != nil:
			return err
		case len(recs) > 0 && recs[0].isGap() && recs[0].Seq > want.Seq: // what the witness has seen was replaced
			if from, ok := recs[0].gapFrom(); !ok || from > want.Seq {
				return e.damaged(ctx, st.Session, want.Seq, ErrChain)
			}
		case len(recs) == 0 || recs[0].Seq != want.Seq || recs[0].Hash != want.Hash:
			return e.damaged(ctx, st.Session, want.Seq, ErrChain)
		case want == st.Head && len(recs) > 1: // the next append would collide with it
			return e.damaged(ctx, st.Session, want.Seq+1, ErrChain)
		}
	}
	return nil
}
