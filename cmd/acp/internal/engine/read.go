package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Read calls yield with the records of a session that follow a position, in order, up to those that are kept when it is
// called: see [journal.Container.Read]. Damaged ones are left out; then it returns a [*DamageError] in the end. It fails with
// [ErrStale] if a server of the database has answered that is behind.
func (e *Engine) Read(ctx context.Context, session string, after uint64, yield func(Record) error) error {
	var foreign error
	err := e.journals.Read(ctx, session, after, func(r *Record) error {
		foreign = yield(*r)
		return foreign
	})
	if foreign != nil {
		return foreign
	}
	return e.damaged(ctx, session, err)
}

// Fold is Read for a caller that makes the best of what can be read: damage is no error.
func (e *Engine) Fold(ctx context.Context, session string, after uint64, yield func(Record) error) error {
	err := e.Read(ctx, session, after, yield)
	if errors.As(err, new(*DamageError)) {
		return nil
	}
	return err
}

// damaged raises the alarm for damage that it was not raised for, unless records are only missing where it was looked.
func (e *Engine) damaged(ctx context.Context, session string, err error) error {
	damage := (*DamageError)(nil)
	if !errors.As(err, &damage) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil && e.closed && ctx.Err() == nil && !errors.Is(err, ErrClosed) {
			return fmt.Errorf("%w: %w", ErrClosed, err) // the database was closed in the middle
		}
		return known(err)
	}
	if damage.Missing > 0 && e.files == nil {
		// It may have been read from a server that was the primary before another one. A write tells.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.CommitTimeout)
		defer cancel()
		seen, err := e.marks.seen(ctx, session)
		if err == nil {
			var st State
			if st, err = e.db.Confirm(ctx, session); err == nil && st.Seq >= seen.Seq {
				return fmt.Errorf("session %q: %w", session, ErrStale)
			}
		}
		if err != nil {
			return fmt.Errorf("session %q may have lost records: %w", session, err)
		}
	}
	e.mu.Lock()
	said := damage.Summary()
	news := e.told[session] != said
	if len(e.told) >= maxTold {
		clear(e.told)
	}
	e.told[session] = said
	e.mu.Unlock()
	if news {
		e.o.Alarm(session, damage)
	}
	return damage
}

// maxTold bounds the sessions of which it is known what alarm was raised last: then all may be raised once more.
const maxTold = 10_000

// Follow returns the records of a session that follow a position, and then each as soon as it is kept: see
// [journal.Container.Follow]. A [*DamageError] comes once, and what follows comes after it; every other error is the last
// thing that is returned. What another node keeps comes when it was published, or a moment later.
func (e *Engine) Follow(ctx context.Context, session string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range e.journals.Follow(ctx, session, after) {
			if err != nil {
				r = &Record{}
				err = e.damaged(ctx, session, err)
			}
			if !yield(*r, err) || err != nil && !errors.As(err, new(*DamageError)) {
				return
			}
		}
	}
}

// Head returns the end of the log of a session, which it does not verify. It fails with [ErrNotFound].
func (e *Engine) Head(ctx context.Context, session string) (Head, error) {
	if e.files == nil && e.owner(session) == nil {
		st, err := e.db.State(ctx, session)
		return st.Head, err
	}
	h, err := e.journals.Head(ctx, session)
	return h, known(err)
}

// Anchor returns the last position up to at from which a session can be read: see [journal.Container.Anchor].
func (e *Engine) Anchor(ctx context.Context, session string, at uint64) (uint64, error) {
	return e.journals.Anchor(ctx, session, at)
}

// Publish gives records that another node has committed to those who follow the session here. Records
// that are not the next ones make them read the log.
func (e *Engine) Publish(session string, records []Record) {
	all := make([]*Record, len(records))
	for i := range records {
		all[i] = &records[i]
	}
	e.journals.Publish(session, all)
}

// Missed makes those who follow a session read the log, because records may have been committed by another node
// that were not published.
func (e *Engine) Missed(session string) { e.journals.Missed(session) }

// Verify reads the whole log of a session, and fails with a [*DamageError] if it is not whole.
func (e *Engine) Verify(ctx context.Context, session string) error {
	return e.Read(ctx, session, 0, func(Record) error { return nil })
}

// VerifyAll verifies every session, as [Engine.Verify] does, and calls report with each and what Verify has returned. A session
// that is deleted meanwhile is left out. An error of report ends it and is returned as it is.
func (e *Engine) VerifyAll(ctx context.Context, report func(session string, err error) error) error {
	return e.journals.Verify(ctx, func(id string, err error) error { return report(id, e.damaged(ctx, id, err)) })
}

// Owner returns who owns a session: the name of a node, or what the owner on this machine says of itself. It is empty if
// nobody does, and may be that of a node whose lease has lapsed.
func (e *Engine) Owner(ctx context.Context, session string) (node string, err error) {
	if e.files == nil {
		st, err := e.db.State(ctx, session)
		if err != nil {
			return "", fmt.Errorf("owner of session %q: %w", session, err)
		}
		return st.Node, nil
	}
	who, _, err := e.journals.Owner(ctx, session)
	return who, err
}

// Size returns how many bytes everything takes. It fails with [errors.ErrUnsupported] if that is not known.
func (e *Engine) Size(ctx context.Context) (n int64, err error) {
	if e.files != nil {
		err = e.journals.List(ctx, func(_ string, size int64) bool { n += size; return true })
		return n, err
	}
	s, ok := e.db.(Sizer)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return s.Size(ctx)
}

// A Sizer is a [Database] that knows its size.
type Sizer interface {
	// Size returns how many bytes everything takes, on the disk.
	Size(ctx context.Context) (int64, error)
}
