package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxBacklog bounds, in bytes, what of a journal waits to be kept: see [Writer.Append].
	MaxBacklog = 64 << 20
	// maxWrite bounds what is written at once, in bytes; a single call may have more.
	maxWrite = 4 << 20
	// syncAfter is when a sync begins after the first write that nobody waits for. It is to end within 100 ms.
	syncAfter = 80 * time.Millisecond
	// stallAfter is how long a write or a sync may take before it is reported.
	stallAfter = 2 * time.Second
	// Pauses between attempts to write or sync what has failed.
	firstRetry, lastRetry = 100 * time.Millisecond, 5 * time.Second
)

// A Writer is the owner of a journal, made by [Container.Create] or [Container.Own]. Its methods are safe for concurrent
// use. Release it when done with it.
type Writer struct {
	c        *Container
	id       string
	chain    Chain
	epoch    uint32
	chaining sync.RWMutex // held for reading while the chain is written or synced, and for writing while it is replaced

	wake    chan struct{} // has room for one
	synced  chan syncEnd  // the end of the sync under way; has room for one
	lost    chan struct{} // closed when the writer is of no further use
	closing chan struct{} // closed when nothing more is accepted, and what fails is given up
	done    chan struct{} // closed when run has returned

	mu      sync.Mutex
	queue   []*call
	last    bool          // Finish was called
	waiting int           // bytes that are not kept yet
	room    chan struct{} // closed when something is kept; nil if nobody waits for that
	head    Head          // of what is kept
	err     error         // why it has ended
	told    bool          // trouble was reported, and has not ended
	given   int           // records that were given up

	telling sync.Mutex // held while trouble is reported

	damage *DamageError // that its owner has found

	// Only run uses the rest, and what makes the writer before that.
	at      Head        // of what is written
	written []*call     // and not kept yet
	retry   *time.Timer // until what has failed is tried again, or nil
	pause   time.Duration
	syncing

	wrote atomic.Uint64 // at.Seq
}

// syncing is what run knows of the syncs of a journal.
type syncing struct {
	safe     uint64        // the last record that is synced
	dirty    time.Time     // of the first write since the last sync began
	hurry    chan struct{} // closed when somebody waits for the sync under way; nil if there is none
	due      *time.Timer   // for the sync of what nobody waits for, or nil
	failed   bool          // the last one
	unsynced bool          // files cannot be synced here, which was reported
}

// A syncEnd is the end of a sync that has made everything safe up to a record, unless it failed.
type syncEnd struct {
	upTo uint64
	err  error
}

// A call is one Append, or one Sync if it has no records.
type call struct {
	records []Record
	size    int
	relied  bool
	last    uint64 // number of its last record, or of the one before it
	done    func([]*Record, error)
}

// kept returns what was kept.
func (c *call) kept() []*Record {
	all := make([]*Record, len(c.records))
	for i := range c.records {
		all[i] = &c.records[i]
	}
	return all
}

// newCall makes records of drafts.
func newCall(drafts []Draft) (*call, error) {
	c := &call{records: make([]Record, len(drafts)), done: func([]*Record, error) {}}
	now := time.Now()
	for i := range drafts {
		d, r := &drafts[i], &c.records[i]
		if !d.Kind.Known() || d.Kind == KindGap {
			return nil, fmt.Errorf("%w: kind %q", ErrInvalid, d.Kind)
		}
		c.relied = c.relied || d.Kind.Relied()
		var err error
		if r.Kind, r.Body, err = d.body(now); err == nil {
			err = r.parseBody()
		}
		if err != nil {
			return nil, err
		}
		c.size += r.size()
	}
	return c, nil
}

func newWriter(c *Container, id string) *Writer {
	return &Writer{
		c: c, id: id, pause: firstRetry,
		wake: make(chan struct{}, 1), synced: make(chan syncEnd, 1),
		lost: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
	}
}

// ID returns the id of the journal.
func (w *Writer) ID() string { return w.id }

// Epoch returns the epoch of this owner, or 0 before there is one: see [Container.Begin].
func (w *Writer) Epoch() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch
}

// use makes a chain the writer's.
func (w *Writer) use(chain Chain) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chain, w.epoch = chain, max(chain.Epoch(), 1)
}

// Damage returns what of the journal was damaged when [Container.Own] opened it, or nil.
func (w *Writer) Damage() *DamageError { return w.damage }

// Head returns the last record that is kept.
func (w *Writer) Head() Head {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

// Lost is closed when the writer is of no further use: it was fenced, released, or the journal was deleted.
func (w *Writer) Lost() <-chan struct{} { return w.lost }

// Err returns why the writer is of no further use, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Append adds records, whose data must not be modified any more, and returns before they are kept. kept, unless it is
// nil, is called with them when they are, or with an error if they never will be: [ErrFenced], [ErrDeleted],
// [ErrReleased], or [ErrUnsaved]. Records of one call are kept together, those of several in the order of the calls, and
// kept is called in that order, without locks, on a goroutine for which the journal waits.
//
// A disk that fails or does not answer delays that: everything is tried again, and Options.Trouble gets the error. While
// [MaxBacklog] bytes wait, or twice as much for records of a kind that is [Kind.Relied], Append fails with [ErrBehind]:
// see [Writer.Room]. Drafts that are not accepted fail with [ErrInvalid]. If Append fails kept is not called.
func (w *Writer) Append(drafts []Draft, kept func([]*Record, error)) error {
	c, err := newCall(drafts)
	if err != nil || len(drafts) == 0 {
		return err
	}
	if kept != nil {
		c.done = kept
	}
	return w.enqueue(c)
}

// Keep is Append for a caller that waits until the records are kept. It returns the error of ctx if that ends first.
func (w *Writer) Keep(ctx context.Context, drafts ...Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	done := make(chan error, 1)
	if err := w.Append(drafts, func(_ []*Record, err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Writer) enqueue(c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := MaxBacklog
	if c.relied || w.last {
		limit *= 2
	}
	switch {
	case w.err != nil:
		return w.err
	case isClosed(w.closing):
		return ErrReleased
	case w.waiting >= limit:
		return ErrBehind
	}
	w.queue = append(w.queue, c)
	w.waiting += c.size
	w.signal()
	return nil
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Room waits until Append accepts records of all kinds. It returns the error of ctx, or that of Append otherwise.
func (w *Writer) Room(ctx context.Context) error {
	for {
		w.mu.Lock()
		err, full := w.err, w.waiting >= MaxBacklog && !w.last
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		if err != nil || !full {
			return err
		}
		select {
		case <-room:
		case <-w.lost:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Finish announces that [Writer.Release] follows: from now on Append has twice the room for records of all kinds, and Room
// waits no longer, so that the caller can end while the disk does not answer.
func (w *Writer) Finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = true
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// Finished reports whether [Writer.Finish] was called.
func (w *Writer) Finished() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Sync waits until everything that was appended is kept and survives a loss of power. It returns the error of ctx, or
// why that will never be so. It waits for as long as the disk fails.
func (w *Writer) Sync(ctx context.Context) error {
	done := make(chan error, 1)
	if err := w.enqueue(&call{relied: true, done: func(_ []*Record, err error) { done <- err }}); err != nil && !errors.Is(err, ErrBehind) {
		return err
	} else if err != nil {
		if err := w.Room(ctx); err != nil {
			return err
		}
		return w.Sync(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release keeps what was appended, syncs it, and gives the journal up. What cannot be written is tried once more, then
// given up: the error is [ErrUnsaved]. If ctx ends first the error wraps that and, if something is not kept yet,
// ErrUnsaved; the journal is given up when the disk answers. Later calls wait for the first.
func (w *Writer) Release(ctx context.Context) error {
	w.mu.Lock()
	if !isClosed(w.closing) {
		close(w.closing)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.given > 0:
			return fmt.Errorf("%d records of journal %s: %w", w.given, w.id, ErrUnsaved)
		case errors.Is(w.err, ErrUnsaved):
			return fmt.Errorf("release journal %s: %w", w.id, w.err)
		}
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting > 0 {
		return fmt.Errorf("release journal %s: %w: %w", w.id, ErrUnsaved, ctx.Err())
	}
	return fmt.Errorf("release journal %s: %w", w.id, ctx.Err())
}

// end makes the writer fail from now on. run ends it.
func (w *Writer) end(why error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = why
		close(w.lost)
	}
	w.mu.Unlock()
	w.signal()
}
