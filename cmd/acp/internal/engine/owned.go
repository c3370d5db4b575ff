package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// An Owned is a session that this process owns, made by [Engine.Claim]. Its methods are safe for concurrent use. A handle that
// was fenced, released or whose session was deleted only returns errors.
type Owned struct {
	e  *Engine
	id string
	w  *journal.Writer
	// unsized stands in the index for the size of the journal while this owner has it: it is negative, and of no other owner.
	unsized int64

	order  sync.Mutex // held while something gets its place in the log
	latest time.Time  // of the records that got their time from this process
	row    Session    // as of what was appended last; only if rows are made of records

	mu     sync.Mutex
	fenced bool // by a claim in this process

	indexing sync.Mutex        // held while the index is written
	now      Session           // as of what is kept; only if rows are made of records
	shares   map[string]string // roles by users, as of the same
	stale    bool              // the index is behind that
	again    *time.Timer       // until it is tried again; nil if nothing is due
}

// Claim makes the node of a lease the owner of a session, with a new epoch, which fences the owner before it, and returns the
// handle to append with. It fails with [ErrOwned] while another owner is there, with [ErrLapsed] if the lease has lapsed, and
// with [ErrNotFound]. A session that this process owns already can be claimed again: the earlier handle is fenced. Damage
// prevents nobody from owning a session: the alarm is raised, and what can be read counts. Each of read is called with each
// record that there is, in order, before Claim returns; it must not keep the record's data.
func (e *Engine) Claim(ctx context.Context, session string, l *Lease, read ...func(*Record)) (*Owned, error) {
	if l.lapsed() {
		return nil, fmt.Errorf("claim session %q: node %q: %w", session, l.node, ErrLapsed)
	}
	unlock, err := e.lock(ctx, session)
	if err != nil {
		return nil, err
	}
	defer unlock()
	o := &Owned{e: e, id: session, unsized: -1 - newToken()}
	f := newFold(session, e.o.Says)
	apply := func(r *Record) error {
		for _, read := range read {
			read(r)
		}
		return f.apply(r)
	}
	for {
		old := e.owner(session)
		w, err := e.journals.Own(withLease(ctx, l), session, apply)
		if err == nil {
			o.w = w
			break
		}
		if owned := (*journal.OwnedError)(nil); old == nil || !errors.As(err, &owned) {
			return nil, fmt.Errorf("claim session %q: %w", session, e.damaged(ctx, session, err))
		}
		if err := old.fence(ctx); err != nil { // and nothing was read
			return nil, fmt.Errorf("claim session %q: %w", session, err)
		}
	}
	if d := o.w.Damage(); d != nil {
		if err := e.damaged(ctx, session, d); !errors.As(err, new(*DamageError)) {
			return nil, errors.Join(fmt.Errorf("claim session %q: %w", session, err), o.giveUp(ctx))
		}
	}
	if err := o.index(ctx, f); err != nil {
		return nil, errors.Join(fmt.Errorf("claim session %q: %w", session, err), o.giveUp(ctx))
	}
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.owned[session] = o
	}
	e.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, o.giveUp(ctx))
	}
	return o, nil
}

// index sees to it that the index has what the records say.
func (o *Owned) index(ctx context.Context, f *fold) error {
	x := o.e.files
	if x == nil {
		return nil
	}
	if d := o.w.Damage(); d != nil && len(d.Lost) > 0 {
		var err error
		if f, err = o.e.mended(ctx, d); err != nil {
			return err
		}
	}
	s, _, err := x.made(f)
	if err != nil {
		return err
	}
	s.Head = o.w.Head()
	o.indexing.Lock()
	defer o.indexing.Unlock()
	o.now, o.row, o.shares = s, s, f.shares
	if o.put(); !o.stale {
		if now, err := x.db.Session(ctx, o.id); err == nil {
			o.now, o.row = now, now
		}
	}
	if _, gone := x.size(o.id); errors.Is(gone, fs.ErrNotExist) || errors.Is(o.w.Err(), ErrDeleted) { // meanwhile, and then the row came back
		if err := x.unindex(ctx, o.id); err != nil {
			return err
		}
		return ErrDeleted
	}
	return nil
}

// fence ends a handle in whose place another one comes.
func (o *Owned) fence(ctx context.Context) error {
	o.mu.Lock()
	o.fenced = true
	o.mu.Unlock()
	return o.giveUp(ctx)
}

// giveUp is Release for a caller that is not done if ctx is.
func (o *Owned) giveUp(ctx context.Context) error {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.e.o.CommitTimeout)
	defer cancel()
	return o.Release(bound)
}

// Session returns the id of the session.
func (o *Owned) Session() string { return o.id }

// Epoch returns the epoch of this claim.
func (o *Owned) Epoch() uint32 { return o.w.Epoch() }

// Head returns the last record that is kept.
func (o *Owned) Head() Head { return o.w.Head() }

// Damage returns what of the log was damaged when it was claimed, or nil.
func (o *Owned) Damage() *DamageError { return o.w.Damage() }

// Add adds records at the end of the log, and returns before they are kept: all of them, or none. Of each only At, Kind and Data
// are used. Without a time it gets that of now, and none that is before the time which a record before it has got so from this
// handle. kept is called with the records as the journal has them, once they are kept, or with an error if they never will be,
// as [journal.Writer.Append] does. Calls of one session keep their order.
//
// What cannot be written is tried again until it is, or the session is released; the alarm is raised meanwhile. [ErrFenced],
// [ErrReleased] and [ErrDeleted] are final; [journal.ErrBehind] says that too much waits. At most 256 records of 16 MiB together
// are accepted; more fail with [ErrInvalid]. If Add fails kept is not called.
func (o *Owned) Add(records []Record, kept func(all []Record, err error)) error {
	if len(records) == 0 {
		kept(nil, nil)
		return nil
	}
	err := checkRecords(records)
	if err == nil {
		var said []Said
		var then Session
		err = o.add(func(row Session) (_ Session, drafts []journal.Draft, err error) {
			drafts = o.drafts(records)
			then, said = o.says(row, drafts)
			return then, drafts, nil
		}, func(all []*Record) {
			if len(said) > 0 {
				o.noted(then, said, all[len(all)-1])
			}
		}, func(all []Record, err error) { kept(all, o.appending(err)) })
	}
	return o.appending(err)
}

// appending says what has failed.
func (o *Owned) appending(err error) error {
	if err == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fenced && errors.Is(err, ErrReleased) {
		err = ErrFenced
	}
	return fmt.Errorf("append to session %q: %w", o.id, known(err))
}

// Append is [Owned.Add] for a caller that waits. While too much waits to be kept, so does Append. If ctx ends before the records
// are kept, the error wraps [ErrUnknown].
func (o *Owned) Append(ctx context.Context, records ...Record) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return o.wait(ctx, func(kept func([]Record, error)) error { return o.Add(records, kept) })
}

// checkRecords refuses more than one append may have.
func checkRecords(records []Record) error {
	if len(records) > MaxRecords {
		return fmt.Errorf("%w: %d records in one append, at most %d", ErrInvalid, len(records), MaxRecords)
	}
	size := 0
	for i := range records {
		if size += len(records[i].Data); size > MaxData {
			return fmt.Errorf("%w: more than %d bytes in one append", ErrInvalid, MaxData)
		}
	}
	return nil
}

// drafts returns what becomes records, in the order of the log.
func (o *Owned) drafts(records []Record) []journal.Draft {
	drafts := make([]journal.Draft, len(records))
	now := time.Now()
	if now.Before(o.latest) {
		now = o.latest
	}
	for i, r := range records {
		if drafts[i] = (journal.Draft{Kind: r.Kind, At: r.At, Data: r.Data}); r.At.IsZero() {
			drafts[i].At, o.latest = now, now
		}
	}
	return drafts
}

// says returns the row of a session after records, and what they say; nothing if they say nothing, or rows are not made of records.
func (o *Owned) says(row Session, drafts []journal.Draft) (Session, []Said) {
	if o.e.files == nil {
		return row, nil
	}
	var all []Said
	for _, d := range drafts {
		said := o.e.o.Says(&Record{Kind: d.Kind, At: d.At, Data: d.Data})
		if said.State != "" {
			row.State, row.Updated, row.Version = said.State, time.Unix(0, d.At.UnixNano()).UTC(), row.Version+1
		}
		if said != (Said{}) {
			all = append(all, said)
		}
	}
	return row, all
}

// keep appends what draw makes of the row, and waits until it is kept. draw is called again if it has to wait for room; if it
// makes no drafts, nothing is appended. then is called before those who wait learn of it.
func (o *Owned) keep(ctx context.Context, draw func(row Session) (Session, []journal.Draft, error), then func([]*Record)) ([]Record, error) {
	all, err := o.wait(ctx, func(kept func([]Record, error)) error { return o.add(draw, then, kept) })
	return all, known(err)
}

// wait calls add until there is room, and waits until it calls kept.
func (o *Owned) wait(ctx context.Context, add func(kept func([]Record, error)) error) ([]Record, error) {
	type outcome struct {
		kept []Record
		err  error
	}
	done := make(chan outcome, 1)
	for {
		err := add(func(kept []Record, err error) { done <- outcome{kept, err} })
		if err == nil {
			break
		}
		if errors.Is(err, journal.ErrBehind) {
			err = o.w.Room(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	select {
	case end := <-done:
		return end.kept, end.err
	case <-ctx.Done():
		return nil, fmt.Errorf("session %q: %w: %w", o.id, ErrUnknown, ctx.Err())
	}
}

// add appends what draw makes of the row.
func (o *Owned) add(draw func(row Session) (Session, []journal.Draft, error), then func([]*Record), done func([]Record, error)) error {
	kept := func(all []*Record, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		last := all[len(all)-1]
		o.e.marks.note(o.id, Head{Seq: last.Seq, Hash: last.Hash})
		then(all)
		recs := make([]Record, len(all))
		for i, r := range all {
			recs[i] = *r
		}
		done(recs, nil)
	}
	o.order.Lock()
	row, drafts, err := draw(o.row)
	if err == nil {
		err = o.w.Append(drafts, kept)
	}
	if err == nil {
		o.row = row
	}
	o.order.Unlock()
	if err == nil && len(drafts) == 0 {
		done(nil, nil)
	}
	return err
}

// Compact replaces at most 10,000 records by gaps. These must be in order, lie before the end of the log, and not overlap a gap
// that is there: see [journal.Writer.Compact]. Those that say something of the session must stay: of kind
// [journal.KindSession], and those of which Options.Says does.
func (o *Owned) Compact(ctx context.Context, gaps []Gap) error {
	if len(gaps) == 0 {
		return nil
	}
	if err := o.w.Compact(ctx, gaps...); err != nil {
		return fmt.Errorf("compact session %q: %w", o.id, known(err))
	}
	return nil
}

// Release gives the session up, so that any node may claim it. What waits to be appended is tried once more. It is not an error
// if the session has another owner already, or is deleted.
func (o *Owned) Release(ctx context.Context) error {
	o.putAgain()
	err := o.w.Release(ctx)
	o.e.mu.Lock()
	if o.e.owned[o.id] == o {
		delete(o.e.owned, o.id)
	}
	o.e.mu.Unlock()
	o.indexing.Lock()
	o.stopAgain()
	o.indexing.Unlock()
	if why := o.w.Err(); errors.Is(why, ErrFenced) || errors.Is(why, ErrDeleted) {
		return nil // who has appended what was given up knows
	}
	if err != nil {
		return fmt.Errorf("release session %q: %w", o.id, known(err))
	}
	o.noteSize(ctx)
	return nil
}

// noteSize notes how large the journal is that the index has.
func (o *Owned) noteSize(ctx context.Context) {
	x := o.e.files
	if x == nil {
		return
	}
	o.indexing.Lock()
	defer o.indexing.Unlock()
	o.stopAgain()
	size, err := x.size(o.id)
	if err == nil && !o.stale {
		_ = x.db.PutSize(ctx, o.id, o.unsized, size) // or it is read again
	}
}
