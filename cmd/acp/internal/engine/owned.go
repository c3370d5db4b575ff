package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxWaiting bounds how many bytes of a session wait to be committed.
const maxWaiting = 1 << 20

// An Owned is a session that this process owns, made by [Engine.Claim]. Its methods are safe for
// concurrent use. It needs no closing: a handle that was fenced, released or whose session was
// deleted only returns errors.
type Owned struct {
	e     *Engine
	id    string
	key   int64
	epoch uint32
	claim int64
	door  chan struct{} // holds a value while nobody waits for room: callers are let in one by one

	mu      sync.Mutex
	head    Head // acknowledged
	queue   []*call
	waiting int           // bytes in queue
	room    chan struct{} // closed when queue got shorter; nil if nobody waits
	busy    bool          // in Engine.ready, or being committed
	latest  time.Time     // of the records that got their time from this process
	err     error         // why the handle has ended
}

// A call is one Append.
type call struct {
	recs  []Record
	now   []int  // those that get the time of now
	state string // of the session with them; "" leaves it
	size  int
	done  chan struct{} // closed when recs are committed, or err is set
	err   error
}

func newOwned(e *Engine, st State) *Owned {
	o := &Owned{e: e, id: st.Session, key: st.Key, epoch: st.Epoch, claim: st.Claim, head: st.Head, door: make(chan struct{}, 1)}
	o.door <- struct{}{}
	return o
}

// Session returns the id of the session.
func (o *Owned) Session() string { return o.id }

// Epoch returns the epoch of this claim.
func (o *Owned) Epoch() uint32 { return o.epoch }

// Head returns the last record that was acknowledged.
func (o *Owned) Head() Head {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.head
}

// Append adds records at the end of the log and returns them, with the fields that the engine sets,
// after they were committed: all of them, or none. Of each only Time, Kind and Data are used. Without a Time it gets that
// of now, and none that is before the time which a record before it has got so from this handle.
// Calls of one session are committed in the order in which they were let in, together with those of
// other sessions. While 1 MiB of a session waits, Append waits.
//
// If ctx ends before the commit has begun, nothing is written. If it ends later, the error wraps
// [ErrUnknown]. An append that failed for a reason that passes, such as [ErrFull], may be repeated.
// [ErrFenced], [ErrReleased], [ErrDeleted] and a [*DamageError] are final. At most 256 records of 16
// MiB together are accepted; more fail with [ErrInvalid].
func (o *Owned) Append(ctx context.Context, records ...Record) ([]Record, error) {
	return o.AppendState(ctx, "", records...)
}

// checkKinds refuses kinds that are the engine's own.
func checkKinds(records []Record) error {
	for i := range records {
		if strings.HasPrefix(records[i].Kind, gapPrefix) {
			return fmt.Errorf("%w: the kind %q is the engine's own", ErrInvalid, records[i].Kind)
		}
	}
	return nil
}

// AppendState is Append, and sets the state of the session with the same commit. Without records it does nothing.
func (o *Owned) AppendState(ctx context.Context, state string, records ...Record) ([]Record, error) {
	if err := checkText("state", state, MaxText); err != nil {
		return nil, err
	}
	if err := checkKinds(records); err != nil {
		return nil, err
	}
	return o.append(ctx, state, records)
}

// append is Append for all kinds.
func (o *Owned) append(ctx context.Context, state string, records []Record) ([]Record, error) {
	recs, size, err := prepareRecords(records)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || len(recs) == 0 {
		return nil, err
	}
	c := &call{recs: recs, state: state, size: size, done: make(chan struct{})}
	for i := range records {
		if records[i].Time.IsZero() {
			c.now = append(c.now, i)
		}
	}
	if err := o.enqueue(ctx, c); err != nil {
		return nil, fmt.Errorf("append to session %q: %w", o.id, err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if o.withdraw(c) {
			return nil, fmt.Errorf("append to session %q: %w", o.id, ctx.Err())
		}
		select {
		case <-c.done: // it has ended after all
		default:
			return nil, fmt.Errorf("append to session %q: %w: %w", o.id, ErrUnknown, ctx.Err())
		}
	}
	if c.err != nil {
		return nil, fmt.Errorf("append to session %q: %w", o.id, c.err)
	}
	return c.recs, nil
}

// enqueue waits for room and queues a call. A call that is larger than what may wait is let in when
// nothing else waits.
func (o *Owned) enqueue(ctx context.Context, c *call) error {
	select {
	case <-o.door:
		defer func() { o.door <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		o.mu.Lock()
		switch {
		case o.err != nil:
			defer o.mu.Unlock()
			return o.err
		case o.waiting > 0 && o.waiting+c.size > maxWaiting:
			room := make(chan struct{})
			o.room = room
			o.mu.Unlock()
			select {
			case <-room:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, i := range c.now { // others were let in meanwhile, whose time was taken later
			if r := &c.recs[i]; r.Time.Before(o.latest) {
				r.Time = o.latest
			} else {
				o.latest = r.Time
			}
		}
		o.queue = append(o.queue, c)
		o.waiting += c.size
		first := !o.busy
		o.busy = true
		o.mu.Unlock()
		if first {
			o.e.push(o)
		}
		return nil
	}
}

// roomLocked wakes the caller that waits for room.
func (o *Owned) roomLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// withdraw takes a call out of the queue, and reports whether it was there.
func (o *Owned) withdraw(c *call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, q := range o.queue {
		if q == c {
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			o.waiting -= c.size
			o.roomLocked()
			return true
		}
	}
	return false
}

// take removes calls from the queue that have up to n records and size bytes together: the first one
// at any size if first is set.
func (o *Owned) take(n, size int, first bool) (calls []*call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		c := o.queue[0]
		if len(c.recs) > n || c.size > size && !(first && len(calls) == 0) {
			break
		}
		n, size = n-len(c.recs), size-c.size
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.waiting -= c.size
		calls = append(calls, c)
	}
	o.roomLocked()
	return calls
}

// idle reports whether nothing is queued; then the session is not ready any more.
func (o *Owned) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = len(o.queue) > 0
	return !o.busy
}

// settled ends a commit: the session is ready again if something is queued.
func (o *Owned) settled() {
	if !o.idle() {
		o.e.push(o)
	}
}

// end makes the handle fail with err from now on. What is being committed is not touched.
func (o *Owned) end(err error) {
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	queue := o.queue
	o.queue, o.waiting = nil, 0
	o.roomLocked()
	err = o.err
	o.mu.Unlock()
	for _, c := range queue {
		c.err = err
		close(c.done)
	}
}

// Release gives the session up, so that any node may claim it. What waits to be appended fails with
// [ErrReleased]; a commit that is under way still ends. It is not an error if the session has another
// owner already.
func (o *Owned) Release(ctx context.Context) error {
	o.end(ErrReleased)
	o.e.mu.Lock()
	if o.e.owned[o.id] == o {
		delete(o.e.owned, o.id)
	}
	o.e.mu.Unlock()
	if err := o.e.db.Release(ctx, o.id, o.epoch); err != nil {
		return fmt.Errorf("release session %q: %w", o.id, err)
	}
	return nil
}
