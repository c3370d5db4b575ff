package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A place is how far a journal was read. Its zero value, with a checker, is the beginning.
type place struct {
	check *checker
	at    int64 // in the backend
	moved bool  // something was read
}

// A pass reads what follows a place.
type pass struct {
	ctx          context.Context
	id           string
	p            *place
	after, limit uint64
	begun        bool // what is read follows the position
	missed       bool // the position was not found
	stopped      bool // by yield
	n            int
	err          error
	yield        func(*Record) bool
}

// pass reads what follows a position, or a place that has moved, up to a record. It reports whether yield has ended it.
func (c *Container) pass(ctx context.Context, id string, p *place, after, limit uint64, yield func(*Record) bool) (stopped bool, err error) {
	if p.moved {
		after = p.check.expected() - 1
	}
	if after > limit {
		return false, fmt.Errorf("%w: record %d, the last one is %d", ErrBeyond, after, limit)
	}
	s := pass{ctx: ctx, id: id, p: p, after: after, limit: limit, begun: after == 0, yield: yield}
	err = c.b.Scan(ctx, id, after, p.at, s.line)
	if s.missed { // what was searched in is damaged: all is read, and what precedes the position is skipped
		*p = place{check: newChecker(id)}
		s.n, s.begun = 0, true
		err = c.b.Scan(ctx, id, after, -1, s.line)
	}
	if err = errors.Join(err, s.err); err == nil && (!s.begun && (s.n > 0 || !p.moved) || s.missed && p.check.end().Seq < after) {
		err = fmt.Errorf("%w: record %d", ErrBeyond, after)
	}
	p.moved = p.moved || err == nil
	return s.stopped, err
}

// line takes a line, and reports whether the pass continues.
func (s *pass) line(line []byte, end int64) bool {
	if s.n++; s.n%1024 == 0 && s.ctx.Err() != nil {
		s.err = s.ctx.Err()
		return false
	}
	if s.limit != all && SeqOf(line) > s.limit {
		return false
	}
	if !s.begun {
		if skip, more := s.before(line); skip || !more {
			if skip {
				s.p.at = end
			}
			return more
		}
	}
	more := s.p.check.line(line, s.record)
	s.p.at = end
	return more
}

// before takes a line while the position is being looked for. skip says that nothing of it is read.
func (s *pass) before(line []byte) (skip, more bool) {
	r, err := ParseLine(line)
	if err == nil && r.Seq == 1 && r.parseBody() == nil {
		s.err = checkFormat(s.id, &r)
	}
	known := s.p.moved && s.p.check.expected()-1 == s.after
	switch {
	case s.err != nil:
		return true, false
	case err != nil || r.Seq < s.after:
		return true, true
	case known && r.Seq == s.after+1:
		s.begun = true
		return false, true
	}
	found, err := s.p.check.anchor(&r, s.after)
	if s.err = err; err != nil || !found {
		s.missed = err == nil
		return false, false
	}
	s.begun = true
	return true, true
}

// record takes a sound record.
func (s *pass) record(r *Record) bool {
	if r.Seq == 1 {
		if s.err = checkFormat(s.id, r); s.err != nil {
			return false
		}
	}
	if s.missed && r.Seq <= s.after {
		return true
	}
	if r.From <= s.after {
		s.err = &CompactedError{Before: r.From - 1}
		return false
	}
	s.stopped = !s.yield(r)
	return !s.stopped
}

// witnessed is pass up to the end, which it compares with the witness.
func (c *Container) witnessed(ctx context.Context, id string, p *place, after, limit uint64, yield func(*Record) bool) (bool, error) {
	seen, known := c.o.Witness(ctx, id)
	stopped, err := c.pass(ctx, id, p, after, limit, func(r *Record) bool {
		if known && r.Seq == seen.Seq && r.Hash != seen.Hash {
			p.check.damage.Altered = true // it was cut off before this record, and continued
		}
		return yield(r)
	})
	if err == nil && !stopped {
		p.check.finish()
		if last := p.check.end().Seq; known && limit == all && last < seen.Seq {
			p.check.damage.Missing = seen.Seq - last
		}
	}
	return stopped, err
}

// limit returns the last record that may be shown: that of a writer here, if there is one, which may have written more.
func (c *Container) limit(id string) uint64 {
	if w := c.owner(id); w != nil {
		return w.Head().Seq
	}
	return all
}

// Read calls yield with the records of a journal that follow a position, in order, up to those that are kept when it is
// called. Each is verified. Damaged ones are left out: then Read returns a [*DamageError] in the end. An error of yield
// ends it and is returned as it is. It fails with [ErrNotFound], [ErrBeyond], a [*CompactedError] or a [*FormatError].
// Records of kinds that are not [Kind.Known] must be ignored.
func (c *Container) Read(ctx context.Context, id string, after uint64, yield func(*Record) error) error {
	if err := CheckID(id); err != nil {
		return err
	}
	var foreign error
	p := &place{check: newChecker(id)}
	_, err := c.witnessed(ctx, id, p, after, c.limit(id), func(r *Record) bool {
		foreign = yield(r)
		return foreign == nil
	})
	switch {
	case foreign != nil:
		return foreign
	case err != nil:
		return fmt.Errorf("read journal %s: %w", id, err)
	case !p.check.damage.whole():
		return &p.check.damage
	}
	return nil
}

// Verify reads every journal as [Container.Read] does, in the order of their ids, and calls report with each and what Read has
// returned. One that is deleted meanwhile is left out. An error of report ends it and is returned as it is.
func (c *Container) Verify(ctx context.Context, report func(id string, err error) error) error {
	var ids []string
	if err := c.List(ctx, func(id string, _ int64) bool { ids = append(ids, id); return true }); err != nil {
		return err
	}
	slices.Sort(ids)
	for _, id := range ids {
		err := c.Read(ctx, id, 0, func(*Record) error { return nil })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err := report(id, err); err != nil {
			return err
		}
	}
	return nil
}

// Computed reports whether the hashes of a journal are computed each time it is read, from records in another form that
// others may add to anywhere. Then no end of it may be noted as a witness. It stays so until somebody owns the journal. It
// fails with [ErrNotFound].
func (c *Container) Computed(ctx context.Context, id string) (bool, error) {
	b, ok := c.b.(interface {
		Computed(ctx context.Context, id string) (bool, error)
	})
	if err := CheckID(id); err != nil || !ok {
		return false, err
	}
	is, err := b.Computed(ctx, id)
	if err != nil {
		return false, fmt.Errorf("look at journal %s: %w", id, err)
	}
	return is, nil
}

// Head returns the end of a journal, which it does not verify. It fails with [ErrNotFound].
func (c *Container) Head(ctx context.Context, id string) (h Head, err error) {
	if err := CheckID(id); err != nil {
		return Head{}, err
	}
	if w := c.owner(id); w != nil {
		return w.Head(), nil
	}
	err = c.b.Scan(ctx, id, all, 0, func(line []byte, _ int64) bool {
		if r, err := ParseLine(line); err == nil {
			h = Head{r.Seq, r.Hash}
		}
		return true
	})
	if err != nil {
		return Head{}, fmt.Errorf("read journal %s: %w", id, err)
	}
	return h, nil
}

// Anchor returns the last position up to at from which a journal can be read: at itself or, if that is inside of what was
// compacted, the one before that. It verifies nothing, and reads little. It fails with [ErrNotFound].
func (c *Container) Anchor(ctx context.Context, id string, at uint64) (uint64, error) {
	if at == 0 {
		return 0, nil
	}
	enough := errors.New("enough")
	err := c.Read(ctx, id, at, func(*Record) error { return enough })
	switch compacted := (*CompactedError)(nil); {
	case errors.As(err, &compacted):
		return compacted.Before, nil
	case errors.Is(err, ErrBeyond), errors.Is(err, enough), errors.As(err, new(*DamageError)): // the one who reads learns of those
		return at, nil
	default:
		return at, err
	}
}
