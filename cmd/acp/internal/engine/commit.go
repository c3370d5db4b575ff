package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxBatch bounds the bytes of a transaction, unless a single append has more.
const maxBatch = 16 << 20

// A part is what one session has in a transaction.
type part struct {
	o     *Owned
	calls []*call
	Batch
}

// push makes a session ready to be committed.
func (e *Engine) push(o *Owned) {
	e.mu.Lock()
	e.ready = append(e.ready, o)
	e.mu.Unlock()
	e.wake.Signal()
}

// pop takes the session that is ready for longest. If wait is set it waits for one; it returns nil
// when the engine is closed, or when there is none.
func (e *Engine) pop(wait bool) *Owned {
	e.mu.Lock()
	defer e.mu.Unlock()
	for wait && len(e.ready) == 0 && !e.closed {
		e.wake.Wait()
	}
	if e.closed || len(e.ready) == 0 {
		return nil
	}
	o := e.ready[0]
	e.ready[0] = nil
	e.ready = e.ready[1:]
	return o
}

// unpop undoes pop.
func (e *Engine) unpop(o *Owned) {
	e.mu.Lock()
	e.ready = slices.Insert(e.ready, 0, o)
	e.mu.Unlock()
	e.wake.Signal()
}

// write is a writer: it commits what is ready, of all sessions together, until the engine is closed.
func (e *Engine) write() {
	for {
		parts := e.gather()
		if parts == nil {
			return
		}
		e.commit(parts)
		for _, p := range parts {
			p.o.settled()
		}
	}
}

// gather waits for something to commit and returns it. It returns nil when the engine is closed.
func (e *Engine) gather() (parts []*part) {
	n, size := MaxRecords, maxBatch
	for n > 0 && size > 0 {
		o := e.pop(len(parts) == 0)
		if o == nil {
			return parts
		}
		calls := o.take(n, size, len(parts) == 0)
		if len(calls) == 0 {
			if o.idle() {
				continue // everything was withdrawn
			}
			e.unpop(o) // it is the first one of the next transaction
			return parts
		}
		p := &part{o: o, calls: calls, Batch: Batch{Session: o.id, Key: o.key, Epoch: o.epoch, Claim: o.claim, Old: o.Head()}}
		for _, c := range calls {
			p.Records = append(p.Records, c.recs...)
			if c.state != "" {
				p.State = c.state
			}
			n, size = n-len(c.recs), size-c.size
		}
		p.New = seal(p.Records, o.id, o.epoch, p.Old)
		parts = append(parts, p)
	}
	return parts
}

// send has the database append parts.
func (e *Engine) send(parts ...*part) ([]bool, error) {
	batches := make([]Batch, len(parts))
	for i, p := range parts {
		batches[i] = p.Batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.o.CommitTimeout)
	defer cancel()
	return e.db.Append(ctx, batches)
}

// commit appends parts and ends their calls.
func (e *Engine) commit(parts []*part) {
	ok, err := e.send(parts...)
	for i, p := range parts {
		if err == nil && ok[i] {
			e.acknowledge(p)
			continue
		}
		// One that fails must not fail the others: each is looked at, and tried again, alone.
		e.resolve(p, err, true)
	}
}

// acknowledge ends a part that was committed. Followers see its records before the next part of the
// session can be committed, so they see them in order.
func (e *Engine) acknowledge(p *part) {
	p.o.mu.Lock()
	p.o.head = p.New
	p.o.mu.Unlock()
	e.marks.note(p.Session, p.New)
	e.publish(p.Session, p.Records)
	at := 0
	for _, c := range p.calls {
		c.recs = p.Records[at : at+len(c.recs) : at+len(c.recs)]
		at += len(c.recs)
		close(c.done)
	}
}

// fail ends a part that was not committed. If final is set, its handle has ended with it.
func (e *Engine) fail(p *part, err error, final bool) {
	if final {
		e.mu.Lock()
		if e.owned[p.Session] == p.o {
			delete(e.owned, p.Session)
		}
		e.mu.Unlock()
		p.o.end(err)
	}
	for _, c := range p.calls {
		c.err = err
		close(c.done)
	}
}

// resolve finds out what became of a part that the database did not report as committed. If it was
// not, it is sent again once, if again is set.
func (e *Engine) resolve(p *part, cause error, again bool) {
	st, err := e.confirm(p.Session)
	switch {
	case errors.Is(err, ErrNotFound):
		e.fail(p, err, true)
	case isCorrupt(err):
		e.fail(p, e.damaged(e.ctx, p.Session, p.Old.Seq, ErrCorrupt), true)
	case err != nil: // closed meanwhile
		e.fail(p, fmt.Errorf("%w: %w", ErrUnknown, errors.Join(err, cause)), true)
	case st.Epoch != p.Epoch || st.Claim != p.Claim:
		e.fail(p, ErrFenced, true)
	case st.Damaged != "":
		e.fail(p, MarkedError(st), true)
	case st.Head == p.New:
		e.acknowledge(p)
	case st.Seq < p.Old.Seq:
		e.fail(p, e.damaged(e.ctx, p.Session, p.Old.Seq, ErrLost), true)
	case st.Head != p.Old:
		e.fail(p, e.damaged(e.ctx, p.Session, st.Seq, ErrChain), true)
	case !again:
		if cause == nil {
			cause = errors.New("the database has refused it without a reason")
		}
		e.fail(p, cause, false)
	default:
		ok, err := e.send(p)
		if err == nil && ok[0] {
			e.acknowledge(p)
			return
		}
		if err == nil {
			err = cause
		}
		e.resolve(p, err, false)
	}
}

// confirm asks for the state of a session until the database answers, or the engine is closed.
func (e *Engine) confirm(session string) (State, error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		ctx, cancel := context.WithTimeout(e.ctx, e.o.CommitTimeout)
		st, err := e.db.Confirm(ctx, session)
		cancel()
		if err == nil || errors.Is(err, ErrNotFound) || isCorrupt(err) {
			return st, err
		}
		select {
		case <-e.ctx.Done():
			return State{}, errors.Join(ErrClosed, err)
		case <-time.After(pause):
		}
	}
}

func isCorrupt(err error) bool { return errors.Is(err, ErrCorrupt) }
func isLapsed(err error) bool  { return errors.Is(err, ErrLapsed) }
