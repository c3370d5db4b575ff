// Package postgres keeps journals in a database that several nodes share, PostgreSQL, until package engine, whose tables,
// leases and claims it uses, becomes a part of it. A journal is a session there, and a line is the data of a record.
package postgres

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

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

const (
	// poll is how long a follower waits before it looks for what other nodes have written.
	poll = 500 * time.Millisecond
	// timeout bounds a statement.
	timeout = 5 * time.Second
	// What is read at once.
	chunkRecords, chunkBytes = 500, 4 << 20
	// maxNodes bounds the nodes among which an owner is looked for.
	maxNodes = 1000
	// maxGroup bounds the records of all journals in a transaction; a single write may have more.
	maxGroup = engine.MaxRecords
)

// Open opens the journals in a database: see [postgres.OpenDatabase]. node is the name of this process, which no other one
// has; what it owns can be owned by others once its lease lapses, ttl after it was killed; 0 means 10 s.
func Open(ctx context.Context, dsn, node string, ttl time.Duration, o journal.Options) (*journal.Container, error) {
	db, err := postgres.OpenDatabase(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return journal.New(NewBackend(db, node, ttl), o), nil
}

// NewBackend returns what Open keeps journals with, in any database of package engine, which it closes.
func NewBackend(db engine.Database, node string, ttl time.Duration) journal.Backend {
	b := &backend{db: db, node: node, queue: make(chan *write, 1024)}
	b.e = engine.New(db, blind{}, engine.Options{LeaseTTL: ttl})
	b.ctx, b.stop = context.WithCancel(context.Background())
	for range max(db.Writers(), 1) {
		b.wg.Go(b.commit)
	}
	return b
}

// blind is a witness that sees nothing: package journal has its own.
type blind struct{}

func (blind) Seen(context.Context, string) (engine.Head, error)  { return engine.Head{}, nil }
func (blind) Note(context.Context, map[string]engine.Head) error { return nil }
func (blind) Forget(context.Context, string) error               { return nil }
func (blind) Close() error                                       { return nil }

// A backend implements [journal.Backend].
type backend struct {
	db    engine.Database
	e     *engine.Engine // for its leases
	node  string
	queue chan *write
	ctx   context.Context // ends when the backend is closed
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex
	lease *engine.Lease // nil before the first journal is owned, and after it has lapsed
}

// known makes errors of package engine those of package journal.
func known(err error) error {
	for from, to := range map[error]error{
		engine.ErrExists: journal.ErrExists, engine.ErrFenced: journal.ErrFenced, engine.ErrLapsed: journal.ErrFenced,
	} {
		if errors.Is(err, from) {
			return fmt.Errorf("%w: %w", to, err)
		}
	}
	if errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("%w: %w", journal.ErrNotFound, err)
	}
	return err
}

// leased returns the lease of this node, and takes one if there is none.
func (b *backend) leased(ctx context.Context) (*engine.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lease != nil {
		return b.lease, nil
	}
	l, err := b.e.Lease(ctx, b.node)
	if err != nil {
		return nil, err
	}
	b.lease = l
	b.wg.Go(func() {
		_ = l.Keep(b.ctx) // it has lapsed, or the backend is closed
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.ctx.Err() == nil {
			b.lease = nil
		}
	})
	return l, nil
}

// Create implements [journal.Backend].
func (b *backend) Create(ctx context.Context, id string) (journal.Chain, error) {
	parent, _, _ := strings.Cut(id, ".")
	s := engine.Session{ID: id, Parent: parent, Created: time.Now(), Updated: time.Now()}
	if err := b.db.CreateSession(ctx, s); errors.Is(err, engine.ErrDeleted) {
		return nil, fmt.Errorf("%w: %w", journal.ErrExists, err) // its id is never used again
	} else if err != nil {
		return nil, known(err)
	}
	return b.Own(ctx, id)
}

// Own implements [journal.Backend].
func (b *backend) Own(ctx context.Context, id string) (journal.Chain, error) {
	l, err := b.leased(ctx)
	if err != nil {
		return nil, err
	}
	st, err := b.db.Claim(ctx, id, b.node, l.Token())
	if errors.Is(err, engine.ErrOwned) {
		st, _ = b.db.State(ctx, id)
		return nil, &journal.OwnedError{ID: id, Who: st.Node}
	}
	if err != nil {
		return nil, known(err)
	}
	return &chain{b: b, lease: l, st: st}, nil
}

// Scan implements [journal.Backend]. Places are numbers of records.
func (b *backend) Scan(ctx context.Context, id string, after uint64, at int64, yield func(line []byte, end int64) bool) error {
	st, err := b.db.State(ctx, id)
	if err != nil {
		return known(err)
	}
	after = min(after, st.Seq)
	if at == 0 && after > 1 { // the first record, and then those from the position on
		first, err := b.db.Records(ctx, st.Key, 1, 1, chunkBytes)
		if err != nil {
			return known(err)
		}
		if len(first) > 0 && !yield(first[0].Data, int64(first[0].Seq)) {
			return nil
		}
	}
	from := after
	switch {
	case at > 0:
		from = after + 1
	case at < 0:
		from = 1
	}
	for from <= math.MaxInt64 {
		some, err := b.db.Records(ctx, st.Key, from, chunkRecords, chunkBytes)
		if err != nil || len(some) == 0 {
			return known(err)
		}
		for i := range some {
			if !yield(some[i].Data, int64(some[i].Seq)) {
				return nil
			}
		}
		from = some[len(some)-1].Seq + 1
	}
	return nil
}

// List implements [journal.Backend].
func (b *backend) List(ctx context.Context, yield func(id string, size int64) bool) error {
	var after engine.Position
	for {
		some, err := b.db.ListSessions(ctx, engine.Query{}, after, engine.MaxRecords)
		if err != nil {
			return known(err)
		}
		for _, s := range some {
			after = engine.Position{Updated: s.Updated, ID: s.ID}
			st, err := b.db.State(ctx, s.ID)
			if errors.Is(err, engine.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return known(err)
			}
			if !yield(s.ID, int64(st.Seq)) {
				return nil
			}
		}
		if len(some) < engine.MaxRecords {
			return nil
		}
	}
}

// Owner implements [journal.Backend]. The owner of last counts while nothing is known of its node.
func (b *backend) Owner(ctx context.Context, id string) (who string, owned bool, err error) {
	st, err := b.db.State(ctx, id)
	if errors.Is(err, engine.ErrNotFound) || err == nil && st.Node == "" {
		return "", false, nil
	}
	var nodes []engine.Node
	if err == nil {
		nodes, err = b.db.Nodes(ctx, maxNodes)
	}
	gone := slices.ContainsFunc(nodes, func(n engine.Node) bool { return n.Name == st.Node && !n.Live })
	if err != nil || gone {
		return "", false, known(err)
	}
	return st.Node, true, nil
}

// Delete implements [journal.Backend].
func (b *backend) Delete(ctx context.Context, id string) error {
	_, err := b.db.State(ctx, id)
	if !errors.Is(err, engine.ErrNotFound) && err != nil {
		return err
	}
	var after engine.Position
	for {
		parts, err := b.db.ListSessions(ctx, engine.Query{Parent: id}, after, engine.MaxRecords)
		if err != nil {
			return err
		}
		for _, p := range parts {
			after = engine.Position{Updated: p.Updated, ID: p.ID}
			if p.ID == id {
				continue
			}
			if _, err := b.db.DeleteSession(ctx, p.ID); err != nil {
				return known(err)
			}
		}
		if len(parts) < engine.MaxRecords {
			break
		}
	}
	if _, del := b.db.DeleteSession(ctx, id); del != nil {
		return known(del)
	}
	return known(err)
}

// Poll implements [journal.Backend].
func (b *backend) Poll() time.Duration { return poll }

// Close implements [journal.Backend].
func (b *backend) Close() error {
	b.stop()
	b.wg.Wait()
	b.mu.Lock()
	l := b.lease
	b.mu.Unlock()
	var err error
	if l != nil {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		err = l.Release(ctx)
	}
	return errors.Join(err, b.e.Close())
}

// A write is what a journal appends.
type write struct {
	engine.Batch
	done chan error
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
		for n := len(group[0].Records); n < maxGroup && len(b.queue) > 0; {
			select {
			case w := <-b.queue:
				group, n = append(group, w), n+len(w.Records)
			default:
				n = maxGroup // another one has taken it
			}
		}
		batches := make([]engine.Batch, len(group))
		for i, w := range group {
			batches[i] = w.Batch
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
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
		ctx, cancel := context.WithTimeout(b.ctx, timeout)
		st, err := b.db.Confirm(ctx, w.Session)
		cancel()
		switch {
		case errors.Is(err, engine.ErrNotFound):
			return journal.ErrDeleted
		case err == nil && (st.Epoch != w.Epoch || st.Claim != w.Claim):
			return journal.ErrFenced
		case err == nil && st.Head == w.New:
			return nil
		case err == nil && st.Head != w.Old:
			return fmt.Errorf("%w: it ends with record %d, and not %d", journal.ErrFenced, st.Seq, w.Old.Seq)
		case err == nil && cause == nil:
			return fmt.Errorf("the database has refused it: %s", st.Damaged)
		case err == nil:
			return known(cause)
		}
		select {
		case <-b.ctx.Done():
			return errors.Join(journal.ErrClosed, cause, err)
		case <-time.After(pause):
		}
	}
}

// A chain is a journal that is owned. It implements [journal.Chain].
type chain struct {
	b     *backend
	lease *engine.Lease
	st    engine.State // with the head of what was written
}

// Epoch implements [journal.Chain].
func (c *chain) Epoch() uint32 { return c.st.Epoch }

// Begin implements [journal.Chain].
func (c *chain) Begin(int64) (int64, error) { return 0, nil }

// batch makes a batch of records.
func (c *chain) batch(records []journal.Record) engine.Batch {
	b := engine.Batch{Session: c.st.Session, Key: c.st.Key, Epoch: c.st.Epoch, Claim: c.st.Claim, Old: c.st.Head}
	for i := range records {
		r := &records[i]
		line := bytes.TrimSuffix(journal.AppendLine(nil, r), []byte("\n"))
		b.Records = append(b.Records, engine.Record{Seq: r.Seq, Epoch: r.Epoch, Time: r.At, Kind: string(r.Kind), Data: line, Hash: r.Hash})
		b.New = engine.Head{Seq: r.Seq, Hash: r.Hash}
	}
	return b
}

// Write implements [journal.Chain].
func (c *chain) Write(records []journal.Record) (bool, error) {
	if time.Now().After(c.lease.Deadline()) {
		return false, fmt.Errorf("%w: the lease has lapsed", journal.ErrFenced)
	}
	w := &write{Batch: c.batch(records), done: make(chan error, 1)}
	var err error
	select {
	case c.b.queue <- w:
		select {
		case err = <-w.done:
		case <-c.b.ctx.Done():
			err = journal.ErrClosed
		}
	case <-c.b.ctx.Done():
		err = journal.ErrClosed
	}
	if err == nil {
		c.st.Head = w.New
	}
	return true, err
}

// Sync implements [journal.Chain].
func (c *chain) Sync() error { return nil }

// Replace implements [journal.Chain].
func (c *chain) Replace(with []journal.Record) error {
	froms := make([]uint64, len(with))
	for i := range with {
		froms[i] = with[i].From
	}
	ctx, cancel := context.WithTimeout(c.b.ctx, timeout)
	defer cancel()
	ok, err := c.b.db.Compact(ctx, c.batch(with), froms)
	if err == nil && !ok {
		err = engine.ErrFenced
	}
	return known(err)
}

// Close implements [journal.Chain].
func (c *chain) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return known(c.b.db.Release(ctx, c.st.Session, c.st.Epoch))
}
