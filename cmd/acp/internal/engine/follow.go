package engine

import (
	"context"
	"fmt"
	"iter"
)

// Follow returns the records of a session that follow a sequence number: first those in the log, then
// each as soon as it is committed by this engine, without a gap and without a duplicate. Records that
// another node commits are not seen until Follow is called anew.
//
// The sequence ends when the caller stops, or with an error: that of ctx, [ErrClosed], [ErrDeleted], a
// [*DamageError], or any error of [Engine.Read]. At most 8,192 records or 4 MiB wait for all followers of a
// session together; one that is slower reads the log again, and holds up nobody. [ErrTooMany] reports that there
// are 10,000.
func (e *Engine) Follow(ctx context.Context, session string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f := newFollower()
		// Before the first read, so that nothing falls between them.
		t, err := e.attach(session, f)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer e.detach(session, f)
		if err := e.follow(ctx, session, t, f, after, yield); err != nil {
			yield(Record{}, fmt.Errorf("follow session %q: %w", session, err))
		}
	}
}

// follow returns an error, or nil if the caller has stopped.
func (e *Engine) follow(ctx context.Context, session string, t *topic, f *follower, at uint64, yield func(Record, error) bool) error {
	stopped := false
	read := func(r Record) bool {
		stopped = !yield(r, nil)
		return !stopped && !t.has(f, r.Seq)
	}
	for lagged := true; ; {
		before := at
		if lagged {
			var err error
			if at, err = e.readFrom(ctx, session, at, read); stopped || err != nil {
				return err
			}
		}
		recs, again, err := t.take(f, at)
		if err != nil {
			return err
		}
		for _, r := range recs {
			if at = r.Seq; !yield(r, nil) {
				return nil
			}
		}
		if len(recs) > 0 || again && (!lagged || at > before) {
			if lagged = again; ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		// Nothing has come, or what did is not in the log yet.
		select {
		case <-f.wake:
			lagged = again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (e *Engine) attach(session string, f *follower) (*topic, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, ErrClosed
	case e.count == maxFollowers:
		return nil, fmt.Errorf("%w followers: %d", ErrTooMany, maxFollowers)
	}
	t := e.topics[session]
	if t == nil {
		t = &topic{followers: map[*follower]struct{}{}}
		e.topics[session] = t
	}
	t.add(f)
	e.count++
	return t, nil
}

func (e *Engine) detach(session string, f *follower) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.topics[session].remove(f) {
		delete(e.topics, session)
	}
	e.count--
}

// topic returns what those who follow a session share, or nil if nobody does.
func (e *Engine) topic(session string) *topic {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.topics[session]
}

// publish gives committed records to the followers of a session.
func (e *Engine) publish(session string, recs []Record) {
	if t := e.topic(session); t != nil {
		t.put(recs)
	}
}
