package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCompacted reports that a position is inside what was replaced by [Owned.Compact]: read from the beginning.
var ErrCompacted = errors.New("the log was compacted there")

const (
	// gapPrefix begins the kind of a record that stands for several. No other record has such a kind.
	gapPrefix = "gap:"
	// kindCompacted is the kind of the record that vouches for gaps, in the chain.
	kindCompacted = gapPrefix + "vouch"
	gapVersion    = "acp engine gap 1\n"
	gapHead       = 8 + sha256.Size // where it begins, and its seal
	// maxCompact bounds the records that one call of Compact replaces, so that other sessions do not wait for long.
	maxCompact = 10_000
)

// A Gap stands for records of a log, by their numbers, the first and the last included. It is read as one record
// with the number, the epoch, the time and the hash of the last of them and with its own Kind and Data; if Kind is "",
// it is not read at all.
type Gap struct {
	From, To uint64
	Kind     string
	Data     []byte
}

// seal returns a hash over a gap: over what it has and where it is, between the hash before it and its own.
func (r *Record) gapSeal(from uint64, prev [32]byte, session string) (sum [32]byte) {
	var head [192]byte
	b := append(head[:0], gapVersion...)
	b = binary.BigEndian.AppendUint64(b, from)
	b = append(b, r.Hash[:]...)
	h := sha256.New()
	h.Write(b)
	inner := *r
	sum = inner.sum(prev, session) // of all other fields
	h.Write(sum[:])
	h.Sum(sum[:0])
	return sum
}

// isGap reports whether a stored record is a gap.
func (r *Record) isGap() bool { return strings.HasPrefix(r.Kind, gapPrefix) && r.Kind != kindCompacted }

// gapFrom returns the number of the first record that a gap stands for.
func (r *Record) gapFrom() (uint64, bool) {
	if len(r.Data) < gapHead {
		return 0, false
	}
	from := binary.BigEndian.Uint64(r.Data)
	return from, from >= 1 && from <= r.Seq
}

// opened returns the record that a gap is read as, and its seal, which is not verified.
func (r *Record) opened() (inner Record, seal [32]byte) {
	inner = *r
	inner.Kind = strings.TrimPrefix(r.Kind, gapPrefix)
	copy(seal[:], r.Data[8:])
	inner.Data = r.Data[gapHead:]
	return inner, seal
}

// vouch is what the record in the chain says of gaps.
type vouch struct {
	From   uint64 `json:"from"` // the first record that was replaced
	To     uint64 `json:"to"`   // and the last one
	Gaps   int    `json:"gaps"`
	Digest []byte `json:"digest"` // over their seals
}

// A sealed is a gap that a pass over a log has met.
type sealed struct {
	to   uint64
	seal [32]byte
}

// vouched removes the gaps that a record vouches for, if they are those. If they are not, they have not replaced the
// records, but others have later, for which another record vouches.
func (v *vouch) vouched(all []sealed) []sealed {
	of := func(s sealed) bool { return s.to >= v.From && s.to <= v.To }
	h := sha256.New()
	n := 0
	for _, s := range all {
		if of(s) {
			h.Write(s.seal[:])
			n++
		}
	}
	if n != v.Gaps || !slices.Equal(h.Sum(nil), v.Digest) {
		return all
	}
	return slices.DeleteFunc(all, of)
}

// Compact replaces records, of which there may be 10,000, by gaps, which must be in order, before the end of the log
// and where no gap is yet. It verifies the log, writes down in the chain what the gaps will be, and then replaces the
// records in one transaction. Who reads from a position inside of a gap gets [ErrCompacted]; who is reading gets some of
// the records and some of the gaps. It fails with the errors of [Owned.Append].
func (o *Owned) Compact(ctx context.Context, gaps []Gap) error {
	if len(gaps) == 0 {
		return nil
	}
	records, froms, err := o.gaps(ctx, gaps)
	if err == nil {
		h := sha256.New()
		for i := range records {
			h.Write(records[i].Data[8:gapHead])
		}
		v := vouch{From: gaps[0].From, To: gaps[len(gaps)-1].To, Gaps: len(gaps), Digest: h.Sum(nil)}
		data, e := json.Marshal(v)
		if err = e; err == nil {
			err = o.vouch(ctx, data)
		}
	}
	if err != nil {
		return fmt.Errorf("compact session %q: %w", o.id, err)
	}
	ok, err := o.e.db.Compact(ctx, Batch{Session: o.id, Key: o.key, Epoch: o.epoch, Claim: o.claim, Records: records}, froms)
	if err == nil && !ok {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("compact session %q: %w", o.id, err)
	}
	return nil
}

// vouch appends the record that vouches for gaps.
func (o *Owned) vouch(ctx context.Context, data []byte) error {
	_, err := o.append(ctx, "", []Record{{Kind: kindCompacted, Data: data}})
	return err
}

// gaps returns what is stored for gaps, after reading the log.
func (o *Owned) gaps(ctx context.Context, gaps []Gap) (records []Record, froms []uint64, err error) {
	total := uint64(0)
	for i, g := range gaps {
		switch {
		case g.From == 0 || g.To < g.From || i > 0 && g.From <= gaps[i-1].To || g.To > o.Head().Seq:
			return nil, nil, fmt.Errorf("%w: gap %d to %d", ErrInvalid, g.From, g.To)
		case len(g.Data) > MaxData-gapHead:
			return nil, nil, fmt.Errorf("%w: a gap with %d bytes", ErrInvalid, len(g.Data))
		}
		if err := checkName("kind", gapPrefix+g.Kind, false); err != nil {
			return nil, nil, err
		}
		total += g.To - g.From + 1
	}
	if total > maxCompact {
		return nil, nil, fmt.Errorf("%w records to be compacted: %d", ErrTooMany, total)
	}
	var prev, before [32]byte // before the record at hand, and before the gap at hand
	i := 0
	st, seen, err := o.e.state(ctx, o.id)
	if err != nil {
		return nil, nil, err
	}
	pass, err := o.e.reading(ctx, st, seen, 0)
	if err != nil {
		return nil, nil, err
	}
	pass.raw = true
	err = pass.run(ctx, func(r Record) bool {
		if i == len(gaps) {
			return true
		}
		g := &gaps[i]
		if r.isGap() && r.Seq >= g.From {
			return false
		}
		if r.Seq == g.From {
			before = prev
		}
		if r.Seq == g.To {
			out := Record{Seq: r.Seq, Epoch: r.Epoch, Time: r.Time, Kind: g.Kind, Data: g.Data, Hash: r.Hash}
			seal := out.gapSeal(g.From, before, o.id)
			out.Kind = gapPrefix + g.Kind
			out.Data = append(append(binary.BigEndian.AppendUint64(nil, g.From), seal[:]...), g.Data...)
			records, froms = append(records, out), append(froms, g.From)
			i++
		}
		prev = r.Hash
		return true
	})
	if err == nil && i < len(gaps) {
		err = fmt.Errorf("%w: gap %d to %d is not where records are", ErrInvalid, gaps[i].From, gaps[i].To)
	}
	return records, froms, err
}

// gap takes a gap, which must be the next in the log. It reports whether the pass goes beyond it.
func (r *reading) gap(ctx context.Context, rec *Record, yield func(Record) bool) (bool, error) {
	from, ok := rec.gapFrom()
	switch {
	case !ok || from > r.at.Seq+1 || rec.Seq <= r.at.Seq:
		return false, r.bad(ctx, r.at.Seq+1, ErrChain)
	case from <= r.at.Seq: // it came meanwhile, or this is the position of somebody who was here before
		return false, ErrCompacted
	}
	inner, seal := rec.opened()
	if seal != inner.gapSeal(from, r.at.Hash, r.st.Session) {
		return false, r.bad(ctx, rec.Seq, ErrChain)
	}
	r.gaps = append(r.gaps, sealed{rec.Seq, seal})
	r.at = Head{rec.Seq, rec.Hash}
	switch {
	case r.raw:
		return yield(*rec), nil
	case inner.Kind == "":
		return true, nil
	}
	return yield(inner), nil
}

// check compares what a record says of gaps with those that were met.
func (r *reading) check(ctx context.Context, rec *Record) error {
	var v vouch
	if err := json.Unmarshal(rec.Data, &v); err != nil {
		return r.bad(ctx, rec.Seq, ErrChain)
	}
	if v.From <= r.began { // not all of them were met
		r.gaps = slices.DeleteFunc(r.gaps, func(s sealed) bool { return s.to >= v.From && s.to <= v.To })
		return nil
	}
	r.gaps = v.vouched(r.gaps)
	return nil
}

// maxPasses bounds the passes over a log that is compacted again and again.
const maxPasses = 4

// errUnvouched reports, to the pass that has caused this one, that nobody vouches for a gap.
var errUnvouched = errors.New("nobody vouches for a gap")

// unvouched is called at the end of a pass that has met gaps for which no record vouches. It may have begun before they
// were there: then the record that vouches for them is behind its end, or it has met records instead of some of them. So
// it is damage only if the next pass, from the same position, finds the same.
func (r *reading) unvouched(ctx context.Context) error {
	if r.again {
		return errUnvouched
	}
	first := r.gaps[0].to
	for range maxPasses {
		st, seen, err := r.e.state(ctx, r.st.Session)
		if err != nil {
			return err
		}
		next, err := r.e.reading(ctx, st, seen, r.began)
		if err != nil {
			return err
		}
		next.again = true
		err = next.run(ctx, func(Record) bool { return true })
		switch {
		case !errors.Is(err, errUnvouched):
			return err // nil if somebody vouches
		case next.gaps[0].to == first:
			return r.bad(ctx, first, ErrChain)
		}
		first = next.gaps[0].to
	}
	return ErrCompacted
}
