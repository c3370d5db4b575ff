package engine

import (
	"context"
	"errors"
	"fmt"
)

const (
	chunkRecords = 500
	chunkBytes   = 4 << 20
)

// Head returns the end of the log of a session, after comparing it with the witness. It fails with
// [ErrNotFound] or a [*DamageError].
func (e *Engine) Head(ctx context.Context, session string) (Head, error) {
	st, seen, err := e.state(ctx, session)
	if err == nil && st.Damaged != "" {
		err = MarkedError(st)
	}
	if err == nil && st.Seq < seen.Seq {
		err = e.damaged(ctx, session, seen.Seq, ErrLost)
	}
	if err != nil {
		return Head{}, fmt.Errorf("head of session %q: %w", session, err)
	}
	return st.Head, nil
}

// state returns the state of a session and what the witness had seen of it before.
func (e *Engine) state(ctx context.Context, session string) (State, Head, error) {
	// The witness first: what is acknowledged in between is then only ahead of it.
	seen, err := e.marks.seen(ctx, session)
	if err != nil {
		return State{}, Head{}, fmt.Errorf("witness: %w", err)
	}
	st, err := e.db.State(ctx, session)
	if isCorrupt(err) {
		err = e.damaged(ctx, session, 0, ErrCorrupt)
	}
	return st, seen, err
}

// Read calls yield with the records of a session that follow a sequence number, in order, up to those
// that were acknowledged when it was called. It verifies each: that it has the next number, and that its
// hash continues the chain. At the end it compares the last one with the head of the log and with the
// witness.
//
// Damage ends it with a [*DamageError], after the records before it. A session that is marked is read
// as far as it is whole, and then ends with a DamageError, too. An error of yield ends it and is
// returned as it is. It fails with [ErrBeyond] if after is behind the end, with [ErrCompacted] if it is
// inside of what was compacted, and with [ErrNotFound].
//
// Records are read in chunks of up to 500, a few chunks at a time in the whole process; no resource of
// the database is held while yield runs.
func (e *Engine) Read(ctx context.Context, session string, after uint64, yield func(Record) error) error {
	var foreign error
	_, err := e.readFrom(ctx, session, after, func(r Record) bool {
		foreign = yield(r)
		return foreign == nil
	})
	switch {
	case foreign != nil:
		return foreign
	case err != nil:
		return fmt.Errorf("read session %q: %w", session, err)
	}
	return nil
}

// A reading is a pass over a log.
type reading struct {
	e     *Engine
	st    State
	seen  Head
	limit uint64   // the last record that is read
	at    Head     // the last record that was read
	began uint64   // after which record
	raw   bool     // gaps are yielded as they are stored
	gaps  []sealed // that were met, and that no record has vouched for yet
	again bool     // it looks whether what was found by another pass is damage
}

// readFrom is Read, which also returns the last record that was read or skipped.
func (e *Engine) readFrom(ctx context.Context, session string, after uint64, yield func(Record) bool) (uint64, error) {
	st, seen, err := e.state(ctx, session)
	if err != nil {
		return after, err
	}
	r, err := e.reading(ctx, st, seen, after)
	if err != nil {
		return after, err
	}
	err = r.run(ctx, yield)
	return r.at.Seq, err
}

// reading begins a pass after a record.
func (e *Engine) reading(ctx context.Context, st State, seen Head, after uint64) (*reading, error) {
	r := &reading{e: e, st: st, seen: seen, limit: st.Seq, at: Head{Seq: after}, began: after}
	e.mu.Lock()
	o := e.owned[st.Session]
	e.mu.Unlock()
	if o != nil && o.epoch == st.Epoch && o.claim == st.Claim {
		// What the owner here has not acknowledged may be on no standby, and vanish.
		r.limit = min(r.limit, o.Head().Seq)
	}
	if after > r.limit {
		if seen.Seq > st.Seq {
			return nil, e.damaged(ctx, st.Session, seen.Seq, ErrLost)
		}
		return nil, fmt.Errorf("%w: record %d, the last one is %d", ErrBeyond, after, r.limit)
	}
	return r, nil
}

// Anchor returns the last position up to at from which a session can be read: at itself, or, where that is inside of
// what was compacted, what is before it. It verifies nothing, and reads one record. It fails with [ErrNotFound].
func (e *Engine) Anchor(ctx context.Context, session string, at uint64) (uint64, error) {
	if at == 0 {
		return 0, nil
	}
	st, _, err := e.state(ctx, session)
	var recs []Record
	if err == nil {
		recs, err = e.fetch(ctx, st.Key, at, 1)
	}
	switch {
	case isCorrupt(err): // for the one who reads
		return at, nil
	case err != nil:
		return 0, fmt.Errorf("session %q: %w", session, err)
	case len(recs) == 1 && recs[0].Seq > at && recs[0].isGap():
		if first, ok := recs[0].gapFrom(); ok && first <= at {
			return first - 1, nil
		}
	}
	return at, nil
}

// Verify reads the whole log of a session, as [Engine.Read] does, and fails as that does, but ignores that
// the session is marked as damaged: if the log is whole after all, because somebody has repaired the
// database, the mark is removed, and the session can be claimed again. Records that are lost stay lost: a
// log that ends before what the witness has seen is not whole.
func (e *Engine) Verify(ctx context.Context, session string) error {
	st, seen, err := e.state(ctx, session)
	if err == nil {
		was := st
		st.Damaged = ""
		var r *reading
		if r, err = e.reading(ctx, st, seen, 0); err == nil {
			err = r.run(ctx, func(Record) bool { return true })
		}
		if err == nil && was.Damaged != "" {
			err = e.db.Unmark(ctx, was)
		}
	}
	if err != nil {
		return fmt.Errorf("verify session %q: %w", session, err)
	}
	return nil
}

// run reads to the limit, then checks the end.
func (r *reading) run(ctx context.Context, yield func(Record) bool) error {
	n := chunkRecords
	anchored := r.at.Seq == 0
	for !anchored || r.at.Seq < r.limit {
		from := r.at.Seq + 1
		if !anchored {
			from-- // its hash is where the chain begins
		}
		recs, err := r.e.fetch(ctx, r.st.Key, from, int(min(uint64(n), r.limit-from+1)))
		switch {
		case isCorrupt(err):
			return r.bad(ctx, from, ErrCorrupt)
		case err != nil:
			return err
		case len(recs) == 0:
			return r.bad(ctx, from, ErrChain)
		}
		size := 0
		for i := range recs {
			size += recs[i].size()
			if !anchored {
				if recs[i].Seq != from {
					if first, ok := recs[i].gapFrom(); ok && recs[i].isGap() && first <= from {
						return ErrCompacted
					}
					return r.bad(ctx, from, ErrChain)
				}
				r.at, anchored = Head{recs[i].Seq, recs[i].Hash}, true
			} else if recs[i].isGap() {
				more, err := r.gap(ctx, &recs[i], yield)
				if err != nil || !more {
					return err
				}
			} else if err := r.verify(ctx, &recs[i]); err != nil {
				return err
			} else if !yield(recs[i]) {
				return nil
			}
			if r.at.Seq == r.seen.Seq && r.at.Hash != r.seen.Hash {
				return r.bad(ctx, r.at.Seq, ErrChain)
			}
			if r.at.Seq >= r.limit { // a gap counts as one record of a chunk
				break
			}
		}
		// So that a chunk of large records is not fetched for the sake of the first ones.
		n = max(1, min(chunkRecords, chunkBytes/max(1, size/len(recs))))
	}
	switch {
	case r.st.Damaged != "":
		return MarkedError(r.st)
	case r.st.Seq < r.seen.Seq:
		return r.e.damaged(ctx, r.st.Session, r.seen.Seq, ErrLost)
	case r.at.Seq == r.st.Seq && r.at != r.st.Head:
		return r.bad(ctx, r.at.Seq, ErrChain)
	case len(r.gaps) > 0:
		return r.unvouched(ctx)
	}
	return nil
}

// verify checks that a record is the next one.
func (r *reading) verify(ctx context.Context, rec *Record) error {
	next := r.at.Seq + 1
	if rec.Seq != next || rec.Hash != rec.sum(r.at.Hash, r.st.Session) {
		return r.bad(ctx, next, ErrChain)
	}
	r.at = Head{rec.Seq, rec.Hash}
	if rec.Kind == kindCompacted {
		return r.check(ctx, rec)
	}
	return nil
}

// bad returns the error for damage. One that was found earlier is not reported again.
func (r *reading) bad(ctx context.Context, seq uint64, why error) error {
	if r.st.Damaged != "" {
		return &DamageError{Session: r.st.Session, Seq: seq, Err: why}
	}
	return r.e.damaged(ctx, r.st.Session, seq, why)
}

// fetch reads a chunk when fewer than a few others are being read.
func (e *Engine) fetch(ctx context.Context, key int64, from uint64, n int) ([]Record, error) {
	select {
	case e.read <- struct{}{}:
		defer func() { <-e.read }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.ctx.Done():
		return nil, ErrClosed
	}
	recs, err := e.db.Records(ctx, key, from, n, chunkBytes)
	if err != nil && e.ctx.Err() != nil {
		err = errors.Join(ErrClosed, err)
	}
	return recs, err
}
