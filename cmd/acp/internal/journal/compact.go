package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// MaxCompact bounds the records that one call of [Writer.Compact] replaces.
const MaxCompact = 10_000

// A Gap stands for records, by their numbers, the first and the last included. It is read as one record with the number,
// the epoch, the hash and the time of the last of them and the kind and data of Left, or with [KindGap] if Left has no
// kind. Left.At is not used.
type Gap struct {
	From, To uint64
	Left     Draft
}

// seal returns a hash over a gap, in hexadecimal: over its body without the seal, and the hashes before it and of its last
// record, between which it stands.
func seal(id string, before [sha256.Size]byte, r *Record, body []byte) string {
	mark := sum(id, before, r.Seq, r.Epoch, body)
	h := sha256.New()
	h.Write([]byte("acp log gap 3\n"))
	h.Write(mark[:])
	h.Write(r.Hash[:])
	return hex.EncodeToString(h.Sum(nil))
}

// makeGap returns the record that stands for those from a number to last.
func makeGap(id string, before [sha256.Size]byte, from uint64, last *Record, left *Draft) (Record, error) {
	r := Record{Seq: last.Seq, From: from, Epoch: last.Epoch, Hash: last.Hash}
	g := gap{From: from, Seal: noSeal, Kind: left.Kind}
	if left.Kind != "" {
		g.Data = left.Data
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	err := enc.Encode(g)
	if err == nil {
		r.Body, err = appendBody(nil, KindGap, last.At.Truncate(time.Nanosecond), data.Bytes())
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: gap %d to %d: %w", ErrInvalid, from, last.Seq, err)
	}
	copy(r.Body[bytes.Index(r.Body, []byte(noSeal)):], seal(id, before, &r, r.Body))
	return r, nil
}

// Compact replaces records, at most [MaxCompact], by gaps, which must be in order, behind the first record, not behind the
// last one, and where no gap is yet. What was appended before is synced first. A follower gets some of the records and
// some of the gaps meanwhile; a reader whose position is inside of a gap gets a [*CompactedError]. If Compact fails
// nothing was replaced.
func (w *Writer) Compact(ctx context.Context, gaps ...Gap) error {
	if err := w.Sync(ctx); err != nil {
		return err
	}
	w.chaining.Lock() // nothing is written or synced meanwhile
	defer w.chaining.Unlock()
	with, err := w.gaps(ctx, gaps)
	if err == nil && len(with) > 0 {
		err = w.chain.Replace(with)
	}
	if err != nil {
		return fmt.Errorf("compact journal %s: %w", w.id, err)
	}
	return nil
}

// gaps returns what is stored for gaps, after reading the journal.
func (w *Writer) gaps(ctx context.Context, gaps []Gap) (with []Record, err error) {
	total, last := uint64(0), uint64(1)
	for _, g := range gaps {
		if g.From <= last || g.To < g.From || g.To > w.Head().Seq || g.Left.Kind == KindGap || g.Left.Kind != "" && !g.Left.Kind.Known() {
			return nil, fmt.Errorf("%w: gap %d to %d", ErrInvalid, g.From, g.To)
		}
		total, last = total+g.To-g.From+1, g.To
	}
	if total > MaxCompact {
		return nil, fmt.Errorf("%w records to be compacted: %d", ErrTooMany, total)
	}
	var hash, before [sha256.Size]byte // before the record at hand, and before the gap at hand
	rest, inside := gaps, false
	var fail error
	p := &place{check: newChecker(w.id)}
	_, err = w.c.pass(ctx, w.id, p, 0, w.Head().Seq, func(r *Record) bool {
		if len(rest) == 0 || r.From < r.Seq && r.Seq >= rest[0].From {
			return false
		}
		if r.Seq == rest[0].From {
			before, inside = hash, true
		}
		if r.Seq == rest[0].To && inside {
			var made Record
			if made, fail = makeGap(w.id, before, rest[0].From, r, &rest[0].Left); fail != nil {
				return false
			}
			with, rest, inside = append(with, made), rest[1:], false
		}
		hash = r.Hash
		return true
	})
	switch {
	case err != nil || fail != nil:
		return nil, errors.Join(err, fail)
	case len(rest) > 0:
		return nil, fmt.Errorf("%w: gap %d to %d is not where records are", ErrInvalid, rest[0].From, rest[0].To)
	case !p.check.damage.whole():
		return nil, &p.check.damage
	}
	return with, nil
}
