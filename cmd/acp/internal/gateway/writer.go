package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// maxUnwritten bounds what waits to be written, in bytes. At the bound the agent waits.
	maxUnwritten = 1 << 20
	// writeAgain is how long a writer waits before it tries again what failed for a reason that passes.
	writeAgain = time.Second
)

// A writer appends the records of a session in order, as many at a time as have come while the last ones
// were committed.
type writer struct {
	own  *engine.Owned
	ctx  context.Context
	fail func(error) // called once, with why nothing more can be written
	note func(error) // called with a reason that may pass, the first time
	// stated is called with the state that the session has from now on, before those who wait for the commit; nil for nobody.
	stated func(state string)
	// observe is called before records are appended; what it returns is called with the outcome. It may be nil.
	observe func([]engine.Record) func(error)
	// ending is closed when what fails is not tried again any more, or nil.
	ending <-chan struct{}

	mu      sync.Mutex
	queue   []entry
	bytes   int
	err     error
	wake    chan struct{} // has room for one
	room    notice        // that something was written
	written uint64        // the last record
	done    chan struct{} // closed when run has returned
}

// entry is a record that waits.
type entry struct {
	record engine.Record
	state  string                      // of the session from then on; "" leaves it
	done   func(seq uint64, err error) // nil if nobody waits
}

// entryCost is what an entry counts beyond its data.
const entryCost = 128

func newWriter(ctx context.Context, own *engine.Owned, fail, note func(error)) *writer {
	return &writer{
		own: own, ctx: ctx, fail: fail, note: note, written: own.Head().Seq,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// put adds a record. It waits while too much waits to be written. done, unless it is nil, is called once
// the record is committed, or will not be.
func (w *writer) put(ctx context.Context, kind string, data []byte, done func(seq uint64, err error)) error {
	return w.add(ctx, entry{record: engine.Record{Kind: kind, Data: data}, done: done})
}

// add is put for records that follow one another. If nothing else waits, and they are few, they are committed all at once.
func (w *writer) add(ctx context.Context, entries ...entry) error {
	size := 0
	for _, e := range entries {
		size += len(e.record.Data) + entryCost
	}
	w.mu.Lock()
	for w.err == nil && w.bytes > 0 && w.bytes+size > maxUnwritten {
		room := w.room.wait()
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.queue = append(w.queue, entries...)
	w.bytes += size
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// commit adds a record and waits until it is committed.
func (w *writer) commit(ctx context.Context, kind string, data []byte) (uint64, error) {
	return w.commitAll(ctx, engine.Record{Kind: kind, Data: data})
}

// commitAll is commit for records that follow one another, and returns the number of the last one: see add.
func (w *writer) commitAll(ctx context.Context, records ...engine.Record) (uint64, error) {
	return w.commitState(ctx, "", records...)
}

// commitState is commitAll, and sets the state of the session with the first record.
func (w *writer) commitState(ctx context.Context, state string, records ...engine.Record) (uint64, error) {
	type outcome struct {
		seq uint64
		err error
	}
	done := make(chan outcome, 1)
	entries := make([]entry, len(records))
	for i, r := range records {
		entries[i].record = r
	}
	entries[0].state = state
	entries[len(entries)-1].done = func(seq uint64, err error) { done <- outcome{seq, err} }
	if err := w.add(ctx, entries...); err != nil {
		return 0, err
	}
	select {
	case o := <-done:
		return o.seq, o.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// last returns the number of the last record that is committed.
func (w *writer) last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// take returns what to write next.
func (w *writer) take() []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.queue) && n < engine.MaxRecords {
		if size += len(w.queue[n].record.Data); size > maxUnwritten && n > 0 {
			break
		}
		n++
	}
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
	return batch
}

// run writes until the session is given up.
func (w *writer) run() {
	defer close(w.done)
	for {
		batch := w.take()
		if len(batch) == 0 {
			select {
			case <-w.wake:
				continue
			case <-w.ctx.Done():
				w.end(context.Cause(w.ctx))
				return
			}
		}
		records := make([]engine.Record, len(batch))
		size, state := 0, ""
		for i, e := range batch {
			records[i], state = e.record, cmp.Or(e.state, state)
			size += len(e.record.Data) + entryCost
		}
		kept, err := w.write(state, records)
		if err != nil {
			w.mu.Lock()
			w.queue = append(batch, w.queue...)
			w.mu.Unlock()
			w.end(err)
			return
		}
		w.mu.Lock()
		w.bytes -= size
		w.written = kept[len(kept)-1].Seq
		w.room.give()
		w.mu.Unlock()
		if state != "" && w.stated != nil {
			w.stated(state)
		}
		for i, e := range batch {
			if e.done != nil {
				e.done(kept[i].Seq, nil)
			}
		}
	}
}

// write appends records, and tries again what may pass: a disk that is full may have room again.
func (w *writer) write(state string, records []engine.Record) (_ []engine.Record, err error) {
	if w.observe != nil {
		end := w.observe(records)
		defer func() { end(err) }()
	}
	for told := false; ; told = true {
		kept, err := w.own.AppendState(w.ctx, state, records...)
		if err == nil || isFinal(err) || w.ctx.Err() != nil {
			return kept, err
		}
		if !told {
			w.note(err)
		}
		if !triesAgain(w.ctx, w.ending) {
			return nil, err
		}
	}
}

// triesAgain waits before what could not be kept is tried again. It reports false if there is no time for that, because ctx
// or the time of a gateway that closes has ended.
func triesAgain(ctx context.Context, ending <-chan struct{}) bool {
	timer := time.NewTimer(writeAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ending:
	case <-ctx.Done():
	}
	return false
}

// isFinal reports whether what could not be written need not be tried again.
func isFinal(err error) bool {
	damage := (*engine.DamageError)(nil)
	return errors.Is(err, engine.ErrFenced) || errors.Is(err, engine.ErrReleased) || errors.Is(err, engine.ErrDeleted) || errors.Is(err, engine.ErrClosed) ||
		errors.Is(err, engine.ErrInvalid) || errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrTooMany) || errors.Is(err, engine.ErrNotFound) || errors.As(err, &damage)
}

// unkept returns why a prompt is refused, or has no end in the log, as clients see it.
func unkept(err error) error {
	switch {
	case errors.Is(err, engine.ErrFull):
		return &jsonrpc.Failure{Message: "there is no room to keep the prompt: the disk is full", Reason: "full", RetryAfter: 10 * time.Second}
	case errors.Is(err, engine.ErrNotFound):
		return errDeleted
	case errors.As(err, new(*engine.DamageError)):
		return errDamaged
	}
	return err
}

// end makes everything fail that waits, and that comes later.
func (w *writer) end(err error) {
	w.mu.Lock()
	w.err = err
	queue := w.queue
	w.queue, w.bytes = nil, 0
	w.room.give()
	w.mu.Unlock()
	for _, e := range queue {
		if e.done != nil {
			e.done(0, err)
		}
	}
	w.fail(err)
}
