package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"syscall"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Options of an Engine. The zero value has the defaults.
type Options struct {
	// LeaseTTL is how long a lease lasts by the clock of the database; 10 s if it is 0.
	LeaseTTL time.Duration
	// CommitTimeout is how long a statement of the database may take; 5 s if it is 0.
	CommitTimeout time.Duration
	// Alarm is called when a session is found to be damaged, with a [*DamageError], when a session cannot be written, and,
	// with an empty session, when what is only noted cannot be. It is called on a goroutine that waits for it, concurrently,
	// and must not call the engine, which may hold locks. Nil means that nobody is notified.
	Alarm func(session string, err error)
	// Notice is called with what a person should know, in one line: that sessions of an earlier version were taken over, or that
	// a session is written again that could not be. Nil means that nobody is notified.
	Notice func(text string)
	// Journals is the directory of the journals, where they are in files; "" means a directory of the engine's own.
	Journals string
	// Owner owns the sessions of [Files] that record no owner, such as those that a chat has begun.
	Owner string
	// Says returns what a record says about its session. Nil means that no record does.
	Says func(*Record) Said
}

// Said is what a record says about its session.
type Said struct {
	// State is that of the session from then on; "" leaves it.
	State string
	// Share is what somebody may do from then on, or nil.
	Share *Share
}

// An Engine is a log of sessions: their records are in journals, and what is known of them otherwise in rows. Its methods are
// safe for concurrent use. It is made by [New] or [Files], and must be closed.
type Engine struct {
	db       Database
	files    *files // nil if the rows are what counts, not the records
	journals *journal.Container
	o        Options
	marks    *marks

	turns [64]chan struct{} // each holds a value while no session of some is claimed, or its row changed

	mu     sync.Mutex
	owned  map[string]*Owned
	told   map[string]string // what damage the alarm was raised for last
	closed bool
}

// New returns an engine on a database that several nodes share, and a witness. It closes them when it is closed.
func New(db Database, w Witness, o Options) *Engine {
	e := newEngine(db, w, o)
	e.journals = journal.New(newBackend(db, e.o), e.options())
	return e
}

// withDefaults replaces options that are not set by their defaults. Notice may stay nil.
func (o Options) withDefaults() Options {
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 10 * time.Second
	}
	if o.CommitTimeout <= 0 {
		o.CommitTimeout = 5 * time.Second
	}
	if o.Alarm == nil {
		o.Alarm = func(string, error) {}
	}
	if o.Says == nil {
		o.Says = func(*Record) Said { return Said{} }
	}
	return o
}

func newEngine(db Database, w Witness, o Options) *Engine {
	o = o.withDefaults()
	e := &Engine{db: db, o: o, owned: map[string]*Owned{}, told: map[string]string{}}
	for i := range e.turns {
		e.turns[i] = make(chan struct{}, 1)
		e.turns[i] <- struct{}{}
	}
	e.marks = newMarks(w, o.Alarm)
	return e
}

// options are those of the journals.
func (e *Engine) options() journal.Options {
	return journal.Options{
		Trouble: func(session string, err error) {
			switch {
			case err != nil:
				e.o.Alarm(session, fmt.Errorf("it is not written at present, and tried again: %w", known(err)))
			case e.o.Notice != nil:
				e.o.Notice("session " + session + ": everything is written again")
			}
		},
		Witness: func(ctx context.Context, session string) (Head, bool) {
			h, err := e.marks.seen(ctx, session)
			return h, err == nil && h.Seq > 0
		},
	}
}

// Close ends the engine: what waits to be appended is tried once more, for five seconds at most, followers end with
// [ErrClosed], and the database and the witness are closed. Leases are kept until they lapse. The second call does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	owned := e.owned
	e.owned = map[string]*Owned{}
	e.mu.Unlock()
	err := e.journals.Close()
	for _, o := range owned {
		// It is done, unless the disk does not answer; then the index may lack something, as after any error.
		bound, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		if o.w.Release(bound) == nil && errors.Is(o.w.Err(), ErrReleased) {
			o.noteSize(context.Background())
		}
		cancel()
	}
	return errors.Join(err, e.marks.close(), e.db.Close())
}

// owner returns the handle of a session that this process owns, or nil.
func (e *Engine) owner(id string) *Owned {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owned[id]
}

// lock keeps others in this process from claiming a session, or changing its row, until unlock is called.
func (e *Engine) lock(ctx context.Context, id string) (unlock func(), err error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	turn := e.turns[h.Sum32()%uint32(len(e.turns))]
	select {
	case <-turn:
		return func() { turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known makes an error of the disk wrap a sentinel of this package where one applies.
func known(err error) error {
	switch {
	case errors.Is(err, ErrFull), errors.Is(err, ErrReadOnly):
	case errors.Is(err, syscall.ENOSPC), isDiskFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if owned := (*journal.OwnedError)(nil); errors.As(err, &owned) && !errors.Is(err, ErrOwned) {
		return fmt.Errorf("%w: %w", ErrOwned, err)
	}
	return err
}
