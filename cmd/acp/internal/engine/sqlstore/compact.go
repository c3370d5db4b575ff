package sqlstore

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// Compact implements [engine.Database].
func (s *Store) Compact(ctx context.Context, b engine.Batch, froms []uint64) (ok bool, err error) {
	err = s.write(ctx, func(tx Tx) error {
		// The write locks the row: nobody appends or claims the session in between.
		n, err := s.exec(ctx, tx, `UPDATE acp_head SET seq = seq WHERE id = $1 AND epoch = $2 AND claim = $3`, b.Session, int64(b.Epoch), b.Claim)
		if ok = n > 0; err != nil || !ok {
			return err
		}
		for i := range b.Records {
			r := &b.Records[i]
			if _, err := s.exec(ctx, tx, `DELETE FROM acp_record WHERE n = $1 AND seq >= $2 AND seq <= $3`, b.Key, int64(froms[i]), int64(r.Seq)); err != nil {
				return err
			}
			if _, err := s.exec(ctx, tx, `INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				b.Key, int64(r.Seq), int64(r.Epoch), r.At.UnixNano(), r.Kind, bytesOf(r.Data), r.Hash[:]); err != nil {
				return err
			}
		}
		return nil
	})
	return ok, err
}
