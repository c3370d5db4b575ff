package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

const (
	// poll is how long a follower waits before it looks for what other nodes have written.
	poll = 500 * time.Millisecond
	// What is read at once.
	chunkRecords, chunkBytes = 500, 4 << 20
	// readTries is how often something is read; there may be as many connections in a pool.
	readTries = 8
	// maxUnreadable bounds the records of a session that a database cannot read.
	maxUnreadable = 1000
	// maxGroup bounds the records of all journals in a transaction, and MaxData their bytes; a single write may have more.
	maxGroup = MaxRecords
)

// A backend keeps journals in a database. It implements [journal.Backend]. A journal is a session there, and a line is the data
// of a record. Who owns one must have a lease: see withLease.
type backend struct {
	db    Database
	o     Options
	queue chan *write
	ctx   context.Context // ends when the backend is closed
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

func newBackend(db Database, o Options) *backend {
	b := &backend{db: db, o: o, queue: make(chan *write, 1024)}
	b.ctx, b.stop = context.WithCancel(context.Background())
	for range max(db.Writers(), 1) {
		b.wg.Go(b.commit)
	}
	return b
}

// Create implements [journal.Backend].
func (b *backend) Create(ctx context.Context, id string) (journal.Chain, error) {
	parent, _, _ := strings.Cut(id, ".")
	s := Session{ID: id, Parent: parent, Created: time.Now(), Updated: time.Now()}
	if err := b.db.CreateSession(ctx, s); errors.Is(err, ErrDeleted) {
		return nil, fmt.Errorf("%w: %w", ErrExists, err) // its id is never used again
	} else if err != nil {
		return nil, err
	}
	return b.Own(ctx, id)
}

// Own implements [journal.Backend].
func (b *backend) Own(ctx context.Context, id string) (journal.Chain, error) {
	l, err := leaseOf(ctx)
	if err != nil {
		return nil, err
	}
	st, err := b.db.Claim(ctx, id, l.Node(), l.Token())
	if errors.Is(err, ErrOwned) {
		st, _ = b.db.State(ctx, id)
		return nil, &journal.OwnedError{ID: id, Who: st.Node}
	}
	if err != nil {
		return nil, err
	}
	return &chain{b: b, lease: l, st: st}, nil
}

// Scan implements [journal.Backend]. Places are numbers of records.
func (b *backend) Scan(ctx context.Context, id string, after uint64, at int64, yield func(line []byte, end int64) bool) error {
	st, err := again(ctx, func() (State, error) { return b.db.State(ctx, id) })
	if err != nil {
		return err
	}
	after = min(after, st.Seq)
	r := reading{ctx: ctx, db: b.db, st: st}
	if at == 0 && after > 1 { // the first record, and then those from the position on
		r.from, r.n = 1, 1
		first, err := r.next()
		if err == nil && len(first) == 0 {
			_, err = b.db.State(ctx, id) // it may have been deleted meanwhile
		}
		if err != nil {
			return err
		}
		if len(first) > 0 && !yield(first[0].Data, int64(first[0].Seq)) {
			return nil
		}
	}
	r.from, r.n = max(after, 1), chunkRecords
	switch {
	case at > 0:
		r.from = after + 1
	case at < 0:
		r.from = 1
	}
	if at == 0 && after > 1 {
		r.n = 2 // more than that may not be wanted
	}
	for r.from <= min(st.Seq, math.MaxInt64) {
		some, err := r.next()
		if err == nil && len(some) == 0 {
			_, err = b.db.State(ctx, id) // likewise
			return err
		}
		if err != nil {
			return err
		}
		for i := range some {
			if !yield(some[i].Data, int64(some[i].Seq)) {
				return nil
			}
		}
		r.from = some[len(some)-1].Seq + 1
	}
	return nil
}

// A reading is what is read of a session.
type reading struct {
	ctx  context.Context
	db   Database
	st   State
	from uint64
	n    int // how many at once
	lost int // that the database could not read
}

// next returns records from a number on. One that the database cannot read has no data.
func (r *reading) next() ([]Record, error) {
	for {
		some, err := again(r.ctx, func() ([]Record, error) { return r.db.Records(r.ctx, r.st.Key, r.from, r.n, chunkBytes) })
		switch {
		case !errors.Is(err, ErrCorrupt) || r.lost == maxUnreadable || r.from > r.st.Seq:
			r.n = min(2*r.n, chunkRecords)
			return some, err
		case r.n == 1:
			r.lost++
			return []Record{{Seq: r.from}}, nil
		}
		r.n /= 2
	}
}

// again calls f up to readTries times, and for a second, unless its error would stay: that the server has closed a connection is
// found when it is used.
func again[T any](ctx context.Context, f func() (T, error)) (v T, err error) {
	begun := time.Now()
	for range readTries {
		v, err = f()
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) || ctx.Err() != nil || time.Since(begun) > time.Second {
			break
		}
	}
	return v, err
}

// List implements [journal.Backend].
func (b *backend) List(ctx context.Context, yield func(id string, size int64) bool) error {
	var after Position
	for {
		some, err := b.db.ListSessions(ctx, Query{}, after, MaxRecords)
		if err != nil {
			return err
		}
		for _, s := range some {
			after = Position{Updated: s.Updated, ID: s.ID}
			st, err := b.db.State(ctx, s.ID)
			if errors.Is(err, ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			if !yield(s.ID, int64(st.Seq)) {
				return nil
			}
		}
		if len(some) < MaxRecords {
			return nil
		}
	}
}

// Owner implements [journal.Backend]. The owner of last counts while nothing is known of its node.
func (b *backend) Owner(ctx context.Context, id string) (who string, owned bool, err error) {
	st, err := b.db.State(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && st.Node == "" {
		return "", false, nil
	}
	var nodes []Node
	if err == nil {
		nodes, err = b.db.Nodes(ctx, maxNodes)
	}
	gone := slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == st.Node && !n.Live })
	if err != nil || gone {
		return "", false, err
	}
	return st.Node, true, nil
}

// Delete implements [journal.Backend].
func (b *backend) Delete(ctx context.Context, id string) error {
	_, err := b.db.State(ctx, id)
	if !errors.Is(err, ErrNotFound) && err != nil {
		return err
	}
	var after Position
	for {
		parts, err := b.db.ListSessions(ctx, Query{Parent: id}, after, MaxRecords)
		if err != nil {
			return err
		}
		for _, p := range parts {
			after = Position{Updated: p.Updated, ID: p.ID}
			if !strings.HasPrefix(p.ID, id+".") { // a session that was forked from it
				continue
			}
			if _, err := b.db.DeleteSession(ctx, p.ID); err != nil {
				return err
			}
		}
		if len(parts) < MaxRecords {
			break
		}
	}
	if _, del := b.db.DeleteSession(ctx, id); del != nil {
		return del
	}
	return err
}

// Poll implements [journal.Backend].
func (b *backend) Poll() time.Duration { return poll }

// Close implements [journal.Backend]. The database is the engine's.
func (b *backend) Close() error {
	b.stop()
	b.wg.Wait()
	return nil
}

// A write is what a journal appends.
type write struct {
	Batch
	done chan error
}

// size returns how many records it has, and of how many bytes.
func (w *write) size() (records, bytes int) {
	for i := range w.Records {
		bytes += len(w.Records[i].Data)
	}
	return len(w.Records), bytes
}

// commit commits what is queued, of all journals together, until the backend is closed.
func (b *backend) commit() {
	for {
		var group []*write
		select {
		case w := <-b.queue:
			group = append(group, w)
		case <-b.ctx.Done():
			return
		}
		n, size := group[0].size()
		for n < maxGroup && size < MaxData && len(b.queue) > 0 {
			select {
			case w := <-b.queue:
				records, bytes := w.size()
				group, n, size = append(group, w), n+records, size+bytes
			default:
				n = maxGroup // another one has taken it
			}
		}
		batches := make([]Batch, len(group))
		for i, w := range group {
			batches[i] = w.Batch
		}
		ctx, cancel := context.WithTimeout(context.Background(), b.o.CommitTimeout)
		ok, err := b.db.Append(ctx, batches)
		cancel()
		for i, w := range group {
			if err == nil && ok[i] {
				w.done <- nil
			} else {
				w.done <- b.outcome(w, err)
			}
		}
	}
}

// outcome finds out what became of a write that was not reported as committed. It returns nil if it was.
func (b *backend) outcome(w *write, cause error) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		ctx, cancel := context.WithTimeout(b.ctx, b.o.CommitTimeout)
		st, err := b.db.Confirm(ctx, w.Session)
		cancel()
		switch {
		case errors.Is(err, ErrNotFound):
			return ErrDeleted
		case errors.Is(err, ErrCorrupt): // others wait
			return err
		case err == nil && (st.Epoch != w.Epoch || st.Claim != w.Claim):
			return ErrFenced
		case err == nil && st.Head == w.New:
			return nil
		case err == nil && st.Head != w.Old:
			return fmt.Errorf("%w: it ends with record %d, and not %d", ErrFenced, st.Seq, w.Old.Seq)
		case err == nil && cause == nil:
			return errors.New("the database has refused it")
		case err == nil:
			return cause
		}
		select {
		case <-b.ctx.Done():
			return errors.Join(ErrClosed, cause, err)
		case <-time.After(pause):
		}
	}
}

// A chain is a journal that is owned. It implements [journal.Chain].
type chain struct {
	b     *backend
	lease *Lease
	st    State // with the head of what was written
}

// Epoch implements [journal.Chain].
func (c *chain) Epoch() uint32 { return c.st.Epoch }

// Begin implements [journal.Chain].
func (c *chain) Begin(int64) (int64, error) { return 0, nil }

// batch makes a batch of records.
func (c *chain) batch(records []Record) Batch {
	b := Batch{Session: c.st.Session, Key: c.st.Key, Epoch: c.st.Epoch, Claim: c.st.Claim, Old: c.st.Head}
	for i := range records {
		r := &records[i]
		line := bytes.TrimSuffix(journal.AppendLine(nil, r), []byte("\n"))
		b.Records = append(b.Records, Record{Seq: r.Seq, Epoch: r.Epoch, At: r.At, Kind: r.Kind, Data: line, Hash: r.Hash})
		if said := c.b.o.Says(r); said.State != "" {
			b.State = said.State
		}
		b.New = Head{Seq: r.Seq, Hash: r.Hash}
	}
	return b
}

// Write implements [journal.Chain].
func (c *chain) Write(records []Record) (bool, error) {
	if c.lease.lapsed() {
		return false, fmt.Errorf("%w: %w", ErrFenced, ErrLapsed)
	}
	w := &write{Batch: c.batch(records), done: make(chan error, 1)}
	var err error
	select {
	case c.b.queue <- w:
		select {
		case err = <-w.done:
		case <-c.b.ctx.Done():
			err = ErrClosed
		}
	case <-c.b.ctx.Done():
		err = ErrClosed
	}
	if err == nil {
		c.st.Head = w.New
	}
	return true, err
}

// Sync implements [journal.Chain].
func (c *chain) Sync() error { return nil }

// Replace implements [journal.Chain].
func (c *chain) Replace(with []Record) error {
	froms := make([]uint64, len(with))
	for i := range with {
		froms[i] = with[i].From
	}
	ctx, cancel := context.WithTimeout(c.b.ctx, c.b.o.CommitTimeout)
	defer cancel()
	ok, err := c.b.db.Compact(ctx, c.batch(with), froms)
	if err == nil && !ok {
		err = ErrFenced
	}
	return err
}

// Close implements [journal.Chain].
func (c *chain) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.b.o.CommitTimeout)
	defer cancel()
	return c.b.db.Release(ctx, c.st.Session, c.st.Epoch)
}
