package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Options of an Engine. The zero value has the defaults.
type Options struct {
	// LeaseTTL is how long a lease lasts by the clock of the database; 10 s if it is 0.
	LeaseTTL time.Duration
	// CommitTimeout is how long a commit may take until the engine asks for its outcome; 5 s if it
	// is 0.
	CommitTimeout time.Duration
	// Alarm is called when a session is found to be damaged, with a [*DamageError], and when the
	// witness cannot be written, with an empty session. It is called on a goroutine that waits for
	// it, concurrently, and without locks. Nil means that nobody is notified.
	Alarm func(session string, err error)
}

const (
	readers      = 4 // chunks that are read from the database at the same time
	maxFollowers = 10_000
)

// An Engine is a log of sessions in a database. Its methods are safe for concurrent use. It is made
// by [New], or by Open of the packages below, and must be closed.
type Engine struct {
	db    Database
	o     Options
	marks *marks
	read  chan struct{} // a semaphore of readers

	ctx  context.Context // ends when the engine is closed
	stop context.CancelFunc
	wg   sync.WaitGroup // of the writers

	mu     sync.Mutex
	wake   sync.Cond // for the writers: something is ready, or the engine is closed
	ready  []*Owned  // with something queued, in the order in which it was
	owned  map[string]*Owned
	topics map[string]*topic
	count  int // of followers
	closed bool
}

// New returns an engine on a database and a witness, which it closes when it is closed.
func New(db Database, w Witness, o Options) *Engine {
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 10 * time.Second
	}
	if o.CommitTimeout <= 0 {
		o.CommitTimeout = 5 * time.Second
	}
	if o.Alarm == nil {
		o.Alarm = func(string, error) {}
	}
	e := &Engine{
		db: db, o: o, read: make(chan struct{}, readers),
		owned: map[string]*Owned{}, topics: map[string]*topic{},
	}
	e.wake.L = &e.mu
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.marks = newMarks(w, o.Alarm)
	for range max(db.Writers(), 1) {
		e.wg.Go(e.write)
	}
	return e
}

// Close ends the engine: what waits to be appended fails with [ErrClosed], commits under way are
// waited for, up to their timeout, followers end with ErrClosed, and the database and the witness are
// closed. Sessions and leases are kept until the leases lapse. The second call does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	var owned []*Owned
	for _, o := range e.owned {
		owned = append(owned, o)
	}
	topics := slices.Collect(maps.Values(e.topics))
	e.wake.Broadcast()
	e.mu.Unlock()

	e.stop()
	for _, o := range owned {
		o.end(ErrClosed)
	}
	for _, t := range topics {
		t.fail(ErrClosed)
	}
	e.wg.Wait()
	return errors.Join(e.marks.close(), e.db.Close())
}

// drop ends the handle of a session and its followers.
func (e *Engine) drop(id string, why error) {
	e.mu.Lock()
	o := e.owned[id]
	delete(e.owned, id)
	t := e.topics[id]
	e.mu.Unlock()
	if o != nil {
		o.end(why)
	}
	if t != nil {
		t.fail(why)
	}
}

// damaged marks a session as damaged, ends its handle and its followers, raises the alarm and returns the error that
// says so. If the session was deleted meanwhile, nothing is damaged, and the error is ErrDeleted. Nor is it if records
// are only missing where it was looked, with the error ErrStale, or if that cannot be found out now.
func (e *Engine) damaged(ctx context.Context, id string, seq uint64, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.CommitTimeout)
	defer cancel()
	if errors.Is(why, ErrLost) {
		// It may have been read from a server that was the primary before another one. A write tells.
		switch st, err := e.db.Confirm(ctx, id); {
		case errors.Is(err, ErrNotFound):
			return ErrDeleted
		case err == nil && st.Seq >= seq:
			return fmt.Errorf("session %q: %w", id, ErrStale)
		case err != nil && !isCorrupt(err):
			return fmt.Errorf("session %q may have lost records: %w", id, err)
		}
	}
	bad := &DamageError{Session: id, Seq: seq, Err: why}
	// That the mark cannot be written, perhaps because of the same damage, must not hide it.
	if there, err := e.db.MarkDamaged(ctx, id, seq, why.Error()); err == nil && !there {
		return ErrDeleted
	}
	e.drop(id, bad)
	e.o.Alarm(id, bad)
	return bad
}

// MarkedError returns the error for a session that a database has marked as damaged.
func MarkedError(st State) error {
	why := errors.New(st.Damaged)
	for _, known := range []error{ErrLost, ErrChain, ErrCorrupt} {
		if st.Damaged == known.Error() {
			why = known // so that errors.Is finds it after a restart, too
		}
	}
	return &DamageError{Session: st.Session, Seq: st.DamagedAt, Err: why}
}
