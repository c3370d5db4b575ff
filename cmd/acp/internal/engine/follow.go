package engine

import (
	"context"
	"fmt"
	"iter"
	"sync"
)

// Bounds of what waits for a follower. One that is further behind reads the log.
const (
	followRecords = 256
	followBytes   = 1 << 20
)

// A follower gets the records of a session as they are committed.
type follower struct {
	wake chan struct{} // holds a value if there is something to look at

	mu     sync.Mutex
	recs   []Record
	size   int
	lagged bool // records were dropped: read the log
	err    error
}

// Follow returns the records of a session that follow a sequence number: first those in the log, then
// each as soon as it is committed by this engine, without a gap and without a duplicate. Records that
// another node commits are not seen until Follow is called anew.
//
// The sequence ends when the caller stops, or with an error: that of ctx, [ErrClosed], [ErrDeleted], a
// [*DamageError], or any error of [Engine.Read]. At most 256 records or 1 MiB wait for a follower; one
// that is slower reads the log again, and holds up nobody. [ErrTooMany] reports that there are 10,000.
func (e *Engine) Follow(ctx context.Context, session string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f := &follower{wake: make(chan struct{}, 1)}
		// Before the first read, so that nothing falls between them.
		if err := e.attach(session, f); err != nil {
			yield(Record{}, err)
			return
		}
		defer e.detach(session, f)
		if err := e.follow(ctx, session, f, after, yield); err != nil {
			yield(Record{}, fmt.Errorf("follow session %q: %w", session, err))
		}
	}
}

// follow returns an error, or nil if the caller has stopped.
func (e *Engine) follow(ctx context.Context, session string, f *follower, at uint64, yield func(Record, error) bool) error {
	stopped := false
	catchUp := true
	for {
		if catchUp {
			var err error
			at, err = e.readFrom(ctx, session, at, func(r Record) bool {
				stopped = !yield(r, nil)
				return !stopped
			})
			if stopped || err != nil {
				return err
			}
			catchUp = false
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		recs, lagged, err := f.take()
		if err != nil {
			return err
		}
		for _, r := range recs {
			if r.Seq <= at {
				continue // was read from the log
			}
			if r.Seq > at+1 {
				lagged = true
				break
			}
			if at = r.Seq; !yield(r, nil) {
				return nil
			}
		}
		catchUp = lagged
	}
}

// put gives committed records to a follower.
func (f *follower) put(recs []Record) {
	f.mu.Lock()
	for i := range recs {
		if f.lagged {
			break
		}
		f.size += recs[i].size()
		// A single record that is larger than the bound may wait alone.
		if f.lagged = len(f.recs) == followRecords || f.size > followBytes && len(f.recs) > 0; f.lagged {
			f.recs, f.size = nil, 0
			break
		}
		f.recs = append(f.recs, recs[i])
	}
	f.mu.Unlock()
	f.signal()
}

// end has the follower end with err.
func (f *follower) end(err error) {
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	f.signal()
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, and whether records were dropped.
func (f *follower) take() (recs []Record, lagged bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	recs, lagged, err = f.recs, f.lagged, f.err
	f.recs, f.size, f.lagged = nil, 0, false
	return recs, lagged, err
}

func (e *Engine) attach(session string, f *follower) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return ErrClosed
	case e.count == maxFollowers:
		return fmt.Errorf("%w followers: %d", ErrTooMany, maxFollowers)
	}
	if e.topics[session] == nil {
		e.topics[session] = map[*follower]struct{}{}
	}
	e.topics[session][f] = struct{}{}
	e.count++
	return nil
}

func (e *Engine) detach(session string, f *follower) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.topics[session], f)
	if len(e.topics[session]) == 0 {
		delete(e.topics, session)
	}
	e.count--
}

// publish gives committed records to the followers of a session.
func (e *Engine) publish(session string, recs []Record) {
	e.mu.Lock()
	all := make([]*follower, 0, len(e.topics[session]))
	for f := range e.topics[session] {
		all = append(all, f)
	}
	e.mu.Unlock()
	for _, f := range all {
		f.put(recs)
	}
}
