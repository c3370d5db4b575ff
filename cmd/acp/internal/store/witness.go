package store

import (
	"context"
	"errors"
	"time"
)

// A witness is the last record of a log that the index has read. A log that was truncated between
// two records looks sound: only something that has seen more of it can tell. Without an index, or
// with one that was created later, that goes unnoticed.
type witness struct {
	Seq  int64
	Hash hash
}

// witnessWait is how long reading a conversation waits for the index.
const witnessWait = 50 * time.Millisecond

// witnesses returns what the index knows of the ends of a conversation's parts, or nothing if it
// cannot be used.
func (s *Store) witnesses(ctx context.Context, conv string) (all map[int]witness) {
	err := s.index.use(ctx, witnessWait, func(ctx context.Context, x *index) error {
		all = map[int]witness{}
		rows, err := x.db.QueryContext(ctx, `SELECT n, last, witness FROM part WHERE session = (SELECT id FROM session WHERE conv = ?)`, conv)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			var w witness
			var sum []byte
			if err := rows.Scan(&n, &w.Seq, &sum); err != nil || len(sum) != len(hash{}) {
				return errors.Join(errIndexBroken, err)
			}
			w.Hash = hash(sum)
			all[n] = w
		}
		return rows.Err()
	})
	if err != nil {
		s.log.Debug("the ends of a conversation are not compared with the index", "conversation", conv, "error", err)
		return nil
	}
	return all
}

// seen compares a record with what the index knows of it.
func (w witness) seen(r *record, d *Damage) {
	if r.Seq == w.Seq && r.Hash != w.Hash {
		d.Altered = true // the log was truncated before it, and written to after that
	}
}

// ended applies how many records a log has had after its last one.
func (w witness) ended(last int64, d *Damage) {
	d.Missing += max(w.Seq-last, 0)
}
