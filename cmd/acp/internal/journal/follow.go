package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// maxFollowers bounds the followers in a container.
const maxFollowers = 10_000

// Follow returns the records of a journal that follow a position: first those that are kept, then each as soon as it is
// kept by an owner in this process, and with a delay of [Backend.Poll] if another process owns it, without a gap and
// without a duplicate.
//
// A [*DamageError] comes once when damage is met, and what follows comes after it. Any other error is the last thing that
// is returned: that of ctx, [ErrClosed], [ErrDeleted], [ErrTooMany] followers, or one of [Container.Read]. At most 8,192
// records or 4 MiB wait for all followers of a journal together; one that is slower reads the journal again, and holds up
// nobody.
func (c *Container) Follow(ctx context.Context, id string, after uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		f := newFollower()
		// Before the first read, so that nothing falls between them.
		t, err := c.attach(id, f)
		if err != nil {
			yield(nil, err)
			return
		}
		defer c.detach(id, f)
		x := following{c: c, id: id, t: t, f: f, p: &place{check: newChecker(id)}, at: after, yield: yield}
		if err := x.run(ctx); err != nil {
			yield(nil, fmt.Errorf("follow journal %s: %w", id, err))
		}
	}
}

// A following is the state of one call of Follow.
type following struct {
	c     *Container
	id    string
	t     *topic
	f     *follower
	p     *place // how far the journal was read; behind at if records came otherwise
	at    uint64 // the last record that was yielded
	told  uint64 // how much damage was
	found bool   // the journal was there
	yield func(*Record, error) bool
}

// run returns an error, or nil if the caller has stopped.
func (x *following) run(ctx context.Context) error {
	for lagged := true; ; {
		before := x.at
		if lagged {
			if stopped, err := x.read(ctx); stopped || err != nil {
				return err
			}
		}
		recs, again, err := x.t.take(x.f, x.at)
		if err != nil {
			return err
		}
		for _, r := range recs {
			if x.at = r.Seq; !x.yield(r, nil) {
				return nil
			}
		}
		if len(recs) > 0 || again && (!lagged || x.at > before) {
			if lagged = again; ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		// Nothing has come, or what did is not in the journal yet.
		if lagged, err = x.wait(ctx, again); err != nil {
			return err
		}
	}
}

// wait waits until there may be something new, and reports whether the journal has to be read for it.
func (x *following) wait(ctx context.Context, again bool) (bool, error) {
	var poll <-chan time.Time
	if every := x.c.b.Poll(); every > 0 && x.c.owner(x.id) == nil {
		timer := time.NewTimer(every)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-x.f.wake:
		return again, nil
	case <-poll:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// read yields what is in the journal and not yet among what came.
func (x *following) read(ctx context.Context) (stopped bool, err error) {
	if x.p.moved && x.p.check.expected() <= x.at { // what came otherwise need not be read
		x.p = &place{check: newChecker(x.id)}
		x.told = 0
	}
	caught := false
	_, err = x.c.witnessed(ctx, x.id, x.p, x.at, x.c.limit(x.id), func(r *Record) bool {
		if r.Seq <= x.at {
			return true
		}
		x.at = r.Seq
		stopped = !x.yield(r, nil)
		caught = !stopped && x.t.has(x.f, r.Seq)
		return !stopped && !caught
	})
	if errors.Is(err, ErrNotFound) && x.found {
		err = ErrDeleted
	}
	x.found = x.found || err == nil
	if err != nil || stopped {
		return stopped, err
	}
	if d := x.p.check.damage; d.Records() > x.told || d.Altered && x.told == 0 {
		x.told = max(d.Records(), 1)
		return !x.yield(nil, &d), nil
	}
	return false, nil
}

func (c *Container) attach(id string, f *follower) (*topic, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, ErrClosed
	case c.count == maxFollowers:
		return nil, fmt.Errorf("%w followers: %d", ErrTooMany, maxFollowers)
	}
	t := c.topics[id]
	if t == nil {
		t = &topic{followers: map[*follower]struct{}{}}
		c.topics[id] = t
	}
	t.add(f)
	c.count++
	return t, nil
}

func (c *Container) detach(id string, f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics[id].remove(f) {
		delete(c.topics, id)
	}
	c.count--
}

// publish gives records that are kept to the followers of a journal.
func (c *Container) publish(id string, recs []*Record) {
	c.mu.Lock()
	t := c.topics[id]
	c.mu.Unlock()
	if t != nil {
		t.put(recs)
	}
}

// Publish gives records that an owner elsewhere has kept to those who follow the journal here. They must come from it as they
// stand in the journal. Those that are not the next ones make followers read the journal.
func (c *Container) Publish(id string, recs []*Record) { c.publish(id, recs) }

// Missed has those who follow a journal read it, since an owner elsewhere may have added to it.
func (c *Container) Missed(id string) {
	c.mu.Lock()
	t := c.topics[id]
	c.mu.Unlock()
	if t != nil {
		t.miss()
	}
}
