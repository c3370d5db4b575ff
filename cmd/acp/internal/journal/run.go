package journal

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// seal numbers records that follow what is written, and computes their hashes. It returns the end then.
func (w *Writer) seal(records []Record) Head {
	at := w.at
	for i := range records {
		r := &records[i]
		r.Seq, r.From, r.Epoch = at.Seq+1, at.Seq+1, w.epoch
		r.Hash = sum(w.id, at.Hash, r.Seq, r.Epoch, r.Body)
		at = Head{r.Seq, r.Hash}
	}
	return at
}

// first writes the first records of a journal, before the writer runs.
func (w *Writer) first(c *call) error {
	at := w.seal(c.records)
	durable, err := w.chain.Write(c.records)
	if err == nil && !durable {
		err = w.chain.Sync()
	}
	if err == nil {
		w.at, w.head, w.safe = at, at, at.Seq
	}
	return err
}

// begin makes the journal, and runs.
func (w *Writer) begin() {
	for w.Err() == nil {
		var chain Chain
		err := w.guarded(func() (err error) {
			chain, err = w.c.b.Create(context.Background(), w.id)
			return err
		})
		switch {
		case err == nil:
			w.use(chain)
			w.pause = firstRetry
			w.run()
			return
		case errors.Is(err, ErrExists), errors.Is(err, ErrNoLocks), errors.As(err, new(*OwnedError)):
			w.end(err)
		default:
			w.hasFailed(err)
		}
		if w.retry == nil {
			continue
		}
		select {
		case <-w.retry.C:
		case <-w.closing: // once more
		case <-w.lost:
		}
		w.retry = stopped(w.retry)
	}
	w.finish()
}

// run writes and syncs until the writer has ended.
func (w *Writer) run() {
	defer w.finish()
	closing := w.closing
	for {
		if closing != nil && isClosed(closing) {
			closing = nil
			w.retry, w.failed = stopped(w.retry), false // once more
		}
		if w.retry == nil && w.write() {
			w.signal() // there may be more, but syncs come first
		}
		if w.Err() != nil {
			return
		}
		if closing != nil {
			w.recovered()
		} else if w.settled() {
			w.recovered()
			return
		}
		w.plan()
		var due, retry <-chan time.Time
		if w.due != nil {
			due = w.due.C
		}
		if w.retry != nil {
			retry = w.retry.C
		}
		select {
		case <-w.wake:
		case end := <-w.synced:
			w.afterSync(end)
		case <-due:
			w.due = nil
			w.sync(false)
		case <-retry:
			w.retry = nil
		case <-closing:
		}
	}
}

// stopped stops a timer and forgets it.
func stopped(t *time.Timer) *time.Timer {
	if t != nil {
		t.Stop()
	}
	return nil
}

// isClosed reports whether a channel on which nothing is sent is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settled reports whether nothing is left to do while the writer is closed.
func (w *Writer) settled() bool {
	w.mu.Lock()
	idle := len(w.queue) == 0
	w.mu.Unlock()
	if w.at.Seq > w.safe && !w.failed {
		w.sync(true)
	}
	return idle && w.hurry == nil
}

// plan sees to it that what is written will be synced.
func (w *Writer) plan() {
	switch {
	case w.at.Seq <= w.safe || w.retry != nil || w.c.o.Lazy && len(w.written) == 0:
	case len(w.written) > 0:
		w.sync(true)
	case w.due == nil && w.hurry == nil:
		w.due = time.NewTimer(syncAfter - time.Since(w.dirty))
	}
}

// take removes what is written next from the queue.
func (w *Writer) take() (calls []*call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.queue) && (n == 0 || size+w.queue[n].size <= maxWrite) {
		size += w.queue[n].size
		n++
	}
	calls = w.queue[:n:n]
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return calls
}

// write writes what waits, and reports whether it could and something did.
func (w *Writer) write() bool {
	calls := w.take()
	if len(calls) == 0 {
		return false
	}
	records := calls[0].records
	for _, c := range calls[1:] {
		records = append(records[:len(records):len(records)], c.records...)
	}
	at := w.seal(records)
	var durable bool
	err := w.guarded(func() (err error) {
		if len(records) > 0 {
			durable, err = w.chain.Write(records)
		}
		return err
	})
	if err != nil {
		w.mu.Lock()
		w.queue = append(calls, w.queue...)
		w.mu.Unlock()
		w.hasFailed(err)
		return false
	}
	w.pause = firstRetry
	last := w.at.Seq
	for _, c := range calls {
		copy(c.records, records)
		records = records[len(c.records):]
		last += uint64(len(c.records))
		c.last = last
	}
	if w.at = at; w.dirty.IsZero() {
		w.dirty = time.Now()
	}
	w.wrote.Store(at.Seq)
	w.written = append(w.written, calls...)
	if durable {
		w.safe = at.Seq
	}
	w.deliver()
	return true
}

// guarded calls f, and reports trouble if that takes long.
func (w *Writer) guarded(f func() error) error {
	w.chaining.RLock()
	defer w.chaining.RUnlock()
	told := make(chan struct{})
	stalled := time.AfterFunc(stallAfter, func() {
		defer close(told)
		w.trouble(ErrStalled)
	})
	defer func() {
		if !stalled.Stop() {
			<-told
		}
	}()
	return f()
}

// hasFailed decides what becomes of what has failed: it is tried again, unless the error is final or the writer is closed.
func (w *Writer) hasFailed(err error) {
	final := w.c.o.GiveUp || errors.Is(err, ErrFenced) || errors.Is(err, ErrNotFound)
	if final || isClosed(w.closing) {
		if !final {
			err = fmt.Errorf("%w: %w", ErrUnsaved, err)
		}
		w.end(err)
		return
	}
	w.trouble(err)
	w.retry = time.NewTimer(w.pause)
	w.pause = min(2*w.pause, lastRetry)
}

// trouble reports that something fails, once until everything is kept again.
func (w *Writer) trouble(err error) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	tell := !w.told && w.err == nil
	w.told = true
	w.mu.Unlock()
	if tell {
		w.c.o.Trouble(w.id, err)
	}
}

// deliver calls those whose records are kept.
func (w *Writer) deliver() {
	for len(w.written) > 0 {
		c := w.written[0]
		if c.last > w.safe && (c.relied && !w.c.o.Lazy || len(c.records) == 0) {
			return
		}
		w.written[0] = nil
		w.written = w.written[1:]
		kept := c.kept()
		w.mu.Lock()
		w.waiting -= c.size
		if w.room != nil {
			close(w.room)
			w.room = nil
		}
		if len(kept) > 0 {
			last := kept[len(kept)-1]
			w.head = Head{last.Seq, last.Hash}
		}
		w.mu.Unlock()
		c.done(kept, nil) // first, so that whoever follows finds what it has done
		w.c.publish(w.id, kept)
	}
	w.written = nil
}

// recovered reports the end of trouble.
func (w *Writer) recovered() {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	over := w.told && w.waiting == 0 && !w.failed
	w.told = w.told && !over
	w.mu.Unlock()
	if over {
		w.c.o.Trouble(w.id, nil)
	}
}

// sync begins a sync of what is written, unless one is under way. If somebody waits for it, it goes before others.
func (w *Writer) sync(hurry bool) {
	if w.hurry == nil {
		w.due, w.dirty = stopped(w.due), time.Time{}
		w.hurry = make(chan struct{})
		hurried := w.hurry
		go func() { w.synced <- w.syncNow(hurried) }()
	}
	if hurry && !isClosed(w.hurry) {
		close(w.hurry)
	}
}

// syncNow syncs when few others do.
func (w *Writer) syncNow(hurry <-chan struct{}) (end syncEnd) {
	select {
	case w.c.lazy <- struct{}{}:
		defer func() { <-w.c.lazy }()
	case <-hurry:
	}
	w.c.syncs <- struct{}{}
	defer func() { <-w.c.syncs }()
	end.upTo = w.wrote.Load()
	end.err = w.guarded(w.chain.Sync)
	return end
}

// afterSync takes the end of a sync.
func (w *Writer) afterSync(end syncEnd) {
	w.hurry = nil
	if errors.Is(end.err, errors.ErrUnsupported) || errors.Is(end.err, syscall.EINVAL) {
		if !w.unsynced {
			w.unsynced = true
			w.trouble(end.err)
		}
		end.err = nil // files cannot be synced here: they are as safe as they can be
	}
	if w.failed = end.err != nil; w.failed {
		w.hasFailed(end.err)
		return
	}
	w.pause = firstRetry
	w.safe = max(w.safe, end.upTo)
	w.deliver()
}

// finish ends what waits, and gives the journal up.
func (w *Writer) finish() {
	defer close(w.done)
	w.end(ErrReleased)
	w.due, w.retry = stopped(w.due), stopped(w.retry)
	if w.hurry != nil {
		w.sync(true)
		<-w.synced
	}
	w.mu.Lock()
	calls, why := append(w.written, w.queue...), w.err
	w.queue, w.waiting = nil, 0
	for _, c := range calls {
		w.given += len(c.records)
	}
	w.mu.Unlock()
	for _, c := range calls {
		c.done(nil, why)
	}
	if w.chain != nil {
		if err := w.chain.Close(); err != nil {
			w.c.o.Trouble(w.id, err)
		}
	}
	w.c.gone(w)
}
