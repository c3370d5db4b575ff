// Package journal keeps what happens in sessions: an append-only sequence of records for each, in a chain of hashes.
//
// A [Container] does everything that is the same wherever journals are kept: it numbers and hashes records, bounds what
// waits, decides when to sync, verifies what is read, and feeds followers. A [Backend] keeps the bytes:
// [NewMemory] and journal/file make one, and package engine one for PostgreSQL.
//
//	c := journal.New(backend, journal.Options{})
//	w, err := c.Create(ctx, id, journal.Draft{Kind: journal.KindSession, Data: about})
//	err = w.Append(drafts, func(kept []*journal.Record, err error) { … })
//	for r, err := range c.Follow(ctx, id, 0) { … }
//
// What holds:
//
//   - A journal has one owner. Each has an epoch, and what an earlier one writes is refused: [ErrFenced].
//   - A record counts as kept when it was written and, if its kind is one that somebody relies on, synced. So the death of
//     the process loses nothing that was kept, and a loss of power at most the last 100 ms of the other kinds.
//   - Followers in the process of the owner see what is kept only, without a gap and without a duplicate.
//   - A damaged record costs that record, and is reported: the chain continues with the hash that it has.
package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// Options of a Container. The zero value is ready to use.
type Options struct {
	// Trouble is called with an error when something of a journal cannot be written or synced, or not in time, and with
	// nil when everything is kept again. Calls for one journal come one at a time, on goroutines that wait for it. Nil
	// discards them.
	Trouble func(id string, err error)
	// GiveUp has a writer end with the first error of the disk, instead of trying again.
	GiveUp bool
	// Witness returns the furthest end of a journal that somebody has noted in another place, and false if nobody has.
	// What is read is compared with it. It may be behind, never ahead. Nil knows nothing.
	Witness func(ctx context.Context, id string) (Head, bool)
	// Lazy leaves to the system when what was written reaches the disk, until a journal is released: then records count as
	// kept when they are written, and only [Writer.Sync], [Writer.Release] and what begins a journal sync them.
	Lazy bool
}

// A Backend keeps the bytes of journals. Its methods are safe for concurrent use. One that has records in another form, too,
// also has the method Computed of a [Container].
type Backend interface {
	// Create makes an empty journal and owns it. It fails with [ErrExists].
	Create(ctx context.Context, id string) (Chain, error)
	// Own owns a journal. It fails with [ErrNotFound] or an [*OwnedError].
	Own(ctx context.Context, id string) (Chain, error)
	// Scan calls yield with lines, without their ends, until it returns false: the first line of the journal, and then
	// those from the last one on whose number is at most after, or some before that. end is the place behind the line.
	// If at is such a place, and the line there is the next one after after or there is none yet, it begins there
	// instead; if at is negative it begins at the beginning. An unfinished line at the end is left out. yield keeps the
	// line. It fails with [ErrNotFound].
	Scan(ctx context.Context, id string, after uint64, at int64, yield func(line []byte, end int64) bool) error
	// List calls yield with each journal, in no particular order, until it returns false. Size grows with a journal; that
	// of one that has not changed is the same.
	List(ctx context.Context, yield func(id string, size int64) bool) error
	// Owner reports whether somebody owns a journal, and what the owner says of itself, "" if that is not known. Nobody
	// owns one that does not exist. It disturbs nobody who owns it or is about to.
	Owner(ctx context.Context, id string) (who string, owned bool, err error)
	// Delete removes a journal and all whose ids continue its id behind a dot. It fails with [ErrNotFound].
	Delete(ctx context.Context, id string) error
	// Poll is how long a follower waits before it looks for what other processes have written; 0 if there are none.
	Poll() time.Duration
	// Close closes the backend. No journal of it is owned any more.
	Close() error
}

// A Chain is a journal that is owned. Write and Sync may run at the same time, each once; nothing else may.
type Chain interface {
	// Epoch is that of the owner, or 0 if it is the next one after the last record's.
	Epoch() uint32
	// Begin removes what follows a place, behind which writes continue, and returns how much it was.
	Begin(at int64) (cut int64, err error)
	// Write appends records, all of them or none. durable reports that they survive a loss of power already. An error
	// that is [ErrFenced] or [ErrNotFound] is final.
	Write(records []Record) (durable bool, err error)
	// Sync makes what was written survive a loss of power.
	Sync() error
	// Replace puts records in the place of those that they stand for, and syncs that; all of them or none.
	Replace(with []Record) error
	// Close gives the journal up.
	Close() error
}

const (
	// maxSyncs bounds the syncs under way in a container, and maxLazySyncs those among them that nobody waits for.
	maxSyncs, maxLazySyncs = 8, 6
	// closeAfter bounds Close.
	closeAfter = 5 * time.Second
)

// A Container keeps journals. Its methods are safe for concurrent use. Close it when done with it.
type Container struct {
	b     Backend
	o     Options
	syncs chan struct{} // semaphores
	lazy  chan struct{}

	mu     sync.Mutex
	owned  map[string]*Writer // nil while it is being opened
	topics map[string]*topic
	count  int // of followers
	closed bool
}

// New returns a container of journals that a backend keeps, which it closes when it is closed.
func New(b Backend, o Options) *Container {
	if o.Trouble == nil {
		o.Trouble = func(string, error) {}
	}
	if o.Witness == nil {
		o.Witness = func(context.Context, string) (Head, bool) { return Head{}, false }
	}
	return &Container{
		b: b, o: o, syncs: make(chan struct{}, maxSyncs), lazy: make(chan struct{}, maxLazySyncs),
		owned: map[string]*Writer{}, topics: map[string]*topic{},
	}
}

// CheckID refuses an id that is not one or more words with dots between, of 100 bytes at most. Words have letters,
// digits, _ and -.
func CheckID(id string) error {
	ok := len(id) <= 100
	for word := range strings.SplitSeq(id, ".") {
		ok = ok && word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	}
	if !ok {
		return fmt.Errorf("%w: journal id %.120q", ErrInvalid, id)
	}
	return nil
}

// Create makes a journal and owns it. The first draft must be a [KindSession] with a JSON object, to which the format is
// added; without drafts there is one all the same. They are synced when Create returns.
func (c *Container) Create(ctx context.Context, id string, first ...Draft) (*Writer, error) {
	made, err := firstCall(id, first)
	if err != nil {
		return nil, err
	}
	w, err := c.open(ctx, id, c.b.Create, func(w *Writer) error {
		err := w.first(made)
		if err != nil {
			err = errors.Join(err, c.b.Delete(context.WithoutCancel(ctx), id))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create journal %s: %w", id, err)
	}
	return w, nil
}

// Begin is Create for a caller that does not wait for the disk: it returns before there is anything on it. What fails is
// tried again as if it had been appended, with the same bounds; if the journal exists already, or somebody owns it, the
// writer ends with that error.
func (c *Container) Begin(id string, first ...Draft) (*Writer, error) {
	made, err := firstCall(id, first)
	if err == nil {
		err = CheckID(id)
	}
	if err != nil {
		return nil, err
	}
	if err := c.reserve(id); err != nil {
		return nil, err
	}
	w := newWriter(c, id)
	w.queue, w.waiting = []*call{made}, made.size
	c.mu.Lock()
	c.owned[id] = w
	c.mu.Unlock()
	go w.begin()
	return w, nil
}

// firstCall makes the first records of a journal.
func firstCall(id string, first []Draft) (*call, error) {
	drafts := append([]Draft{{Kind: KindSession, Data: []byte("{}")}}, first...)
	if len(first) > 0 {
		drafts = drafts[1:]
	}
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(drafts[0].Data), []byte("{"))
	if drafts[0].Kind != KindSession || !ok {
		return nil, fmt.Errorf("%w: journal %s does not begin with an object of kind %q", ErrInvalid, id, KindSession)
	}
	comma := ","
	if bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
		comma = ""
	}
	drafts[0].Data = fmt.Appendf(nil, `{"format":%d%s%s`, Format, comma, rest)
	return newCall(drafts)
}

// Own owns a journal. It removes an unfinished record at its end, reads the whole journal as [Container.Read] does, and
// calls fold, unless it is nil, with each record; an error of fold ends it and is returned as it is. It fails with
// [ErrNotFound], an [*OwnedError], or a [*FormatError] if another version has written it. Damage prevents nobody from
// owning it: see [Writer.Damage].
func (c *Container) Own(ctx context.Context, id string, fold func(*Record) error) (*Writer, error) {
	var foreign error
	w, err := c.open(ctx, id, c.b.Own, func(w *Writer) error {
		p := &place{check: newChecker(id)}
		_, err := c.witnessed(ctx, id, p, 0, all, func(r *Record) bool {
			if !r.Kind.Known() {
				foreign = &FormatError{ID: id, Kind: r.Kind}
			} else if fold != nil {
				foreign = fold(r)
			}
			return foreign == nil
		})
		if err = errors.Join(err, foreign); err == nil && p.check.head.Seq == 0 && p.check.bad > 0 {
			err = &FormatError{ID: id} // perhaps of an earlier version, which nothing may be added to
		}
		if err != nil {
			return err
		}
		damage := &p.check.damage
		if damage.Cut, err = w.chain.Begin(p.at); err != nil {
			return err
		}
		w.epoch = max(w.epoch, min(p.check.epoch, math.MaxUint32-1)+1) // a damaged one may be the last there is
		w.at = p.check.end()
		w.head = w.at
		if !damage.whole() {
			w.damage = damage
		}
		if w.at.Seq > 0 {
			return nil
		}
		made, err := newCall([]Draft{{Kind: KindSession, Data: fmt.Appendf(nil, `{"format":%d}`, Format)}})
		if err != nil {
			return err
		}
		return w.first(made) // the process that made it was killed before its first record
	})
	switch {
	case foreign != nil:
		return nil, foreign
	case err != nil:
		return nil, fmt.Errorf("open journal %s: %w", id, err)
	}
	return w, nil
}

// open makes a writer; begin sets where it begins.
func (c *Container) open(ctx context.Context, id string, open func(context.Context, string) (Chain, error), begin func(*Writer) error) (*Writer, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	if err := c.reserve(id); err != nil {
		return nil, err
	}
	w, err := c.start(ctx, id, open, begin)
	c.mu.Lock()
	closed := c.closed
	if err != nil || closed {
		delete(c.owned, id)
	} else {
		c.owned[id] = w
	}
	c.mu.Unlock()
	if err == nil && closed {
		return nil, errors.Join(ErrClosed, w.Release(ctx))
	}
	return w, err
}

// reserve keeps others in this process from opening a journal.
func (c *Container) reserve(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if _, owned := c.owned[id]; owned {
		return &OwnedError{ID: id, Who: thisProgram}
	}
	c.owned[id] = nil
	return nil
}

func (c *Container) start(ctx context.Context, id string, open func(context.Context, string) (Chain, error), begin func(*Writer) error) (*Writer, error) {
	chain, err := open(ctx, id)
	if err != nil {
		return nil, err
	}
	w := newWriter(c, id)
	w.use(chain)
	if err := begin(w); err != nil {
		return nil, errors.Join(err, chain.Close())
	}
	w.wrote.Store(w.at.Seq)
	w.dirty = time.Now() // a predecessor that was killed may have written something that is not synced
	go w.run()
	return w, nil
}

// gone removes a writer that has ended.
func (c *Container) gone(w *Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned[w.id] == w {
		delete(c.owned, w.id)
	}
	if t := c.topics[w.id]; t != nil {
		t.miss() // others may write it from now on
	}
}

// owner returns the writer of a journal in this process, or nil.
func (c *Container) owner(id string) *Writer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owned[id]
}

// Copy makes a journal with the bytes of one in another container, numbers, epochs, hashes and gaps included, and syncs
// them. It fails if that one is damaged, and with [ErrExists].
func (c *Container) Copy(ctx context.Context, from *Container, id string) error {
	w, err := c.open(ctx, id, c.b.Create, func(w *Writer) error {
		var some []Record
		size := 0
		flush := func() error {
			_, err := w.chain.Write(some)
			some, size = nil, 0
			return err
		}
		err := from.Read(ctx, id, 0, func(r *Record) error {
			some, size = append(some, *r), size+r.size()
			w.at = Head{r.Seq, r.Hash}
			if size < maxWrite {
				return nil
			}
			return flush()
		})
		if err == nil && len(some) > 0 {
			err = flush()
		}
		if err == nil {
			err = w.chain.Sync()
		}
		if err != nil {
			return errors.Join(err, c.b.Delete(context.WithoutCancel(ctx), id))
		}
		w.head, w.safe = w.at, w.at.Seq
		return nil
	})
	if err == nil {
		err = w.Release(ctx)
	}
	if err != nil {
		return fmt.Errorf("copy journal %s: %w", id, err)
	}
	return nil
}

// List calls yield with each journal, in no particular order, until it returns false. Size grows with a journal; that of one
// that has not changed is the same.
func (c *Container) List(ctx context.Context, yield func(id string, size int64) bool) error {
	if err := c.b.List(ctx, yield); err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	return nil
}

// Owner reports whether somebody owns a journal, in this process or another, and what the owner says of itself, "" if that
// is not known. Nobody owns one that does not exist.
func (c *Container) Owner(ctx context.Context, id string) (who string, owned bool, err error) {
	if err := CheckID(id); err != nil {
		return "", false, err
	}
	c.mu.Lock()
	_, owned = c.owned[id]
	c.mu.Unlock()
	if owned {
		return thisProgram, true, nil
	}
	who, owned, err = c.b.Owner(ctx, id)
	if err != nil {
		return "", false, fmt.Errorf("look at journal %s: %w", id, err)
	}
	return who, owned, nil
}

// thisProgram is the owner of a journal that another part of this process owns.
const thisProgram = "this program"

// Delete removes a journal, even if it is owned, and those whose ids continue its id behind a dot. Their writers fail with
// [ErrDeleted] from now on, those of other processes when they next write, and followers end with it. It fails with
// [ErrNotFound].
func (c *Container) Delete(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	return c.deleted(ctx, id, func() error {
		if err := c.b.Delete(ctx, id); err != nil {
			return fmt.Errorf("delete journal %s: %w", id, err)
		}
		return nil
	})
}

// Deleted is [Container.Delete] for a journal that was deleted by somebody else: it ends those who have it here.
func (c *Container) Deleted(ctx context.Context, id string) error {
	return c.deleted(ctx, id, func() error { return nil })
}

func (c *Container) deleted(ctx context.Context, id string, remove func() error) error {
	c.mu.Lock()
	var writers []*Writer
	var topics []*topic
	for name, w := range c.owned {
		if w != nil && (name == id || strings.HasPrefix(name, id+".")) {
			writers = append(writers, w)
		}
	}
	for name, t := range c.topics {
		if name == id || strings.HasPrefix(name, id+".") {
			topics = append(topics, t)
		}
	}
	c.mu.Unlock()
	for _, w := range writers {
		w.end(ErrDeleted)
		select {
		case <-w.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := remove()
	for _, t := range topics {
		t.fail(ErrDeleted)
	}
	return err
}

// Close releases all journals, for which it waits five seconds at most, and ends followers with [ErrClosed]. Later calls
// do nothing.
func (c *Container) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	var writers []*Writer
	for _, w := range c.owned {
		if w != nil {
			writers = append(writers, w)
		}
	}
	for _, t := range c.topics {
		t.fail(ErrClosed)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeAfter)
	defer cancel()
	errs := make([]error, len(writers))
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() {
			err := w.Release(ctx)
			if why := w.Err(); !errors.Is(why, ErrFenced) && !errors.Is(why, ErrDeleted) { // its caller knows
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), c.b.Close())
}

var _ io.Closer = (*Container)(nil)
