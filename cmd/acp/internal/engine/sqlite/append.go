package sqlite

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

const (
	headSQL = `UPDATE acp_head SET seq = ?1, hash = ?2 WHERE id = ?3 AND epoch = ?4 AND claim = ?5 AND seq = ?6 AND hash = ?7`
	// One record for each statement: more at a time are not faster, see BenchmarkInsert.
	stateSQL  = `UPDATE acp_session SET state = ?1, updated = ?2, version = version + 1 WHERE id = ?3`
	insertSQL = `INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`
)

// prepare prepares the statements of an append.
func (w *writer) prepare(ctx context.Context) (err error) {
	if w.head == nil {
		w.head, err = w.conn.PrepareContext(ctx, headSQL)
	}
	if err == nil && w.insert == nil {
		w.insert, err = w.conn.PrepareContext(ctx, insertSQL)
	}
	return err
}

// Append implements [engine.Database]. A session that is fenced is skipped.
func (d *Database) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	done := make([]bool, len(batches))
	err := d.transact(ctx, func(w *writer) error {
		if err := w.prepare(ctx); err != nil {
			return err
		}
		for i, b := range batches {
			r, err := w.head.ExecContext(ctx, int64(b.New.Seq), b.New.Hash[:], b.Session, int64(b.Epoch), b.Claim, int64(b.Old.Seq), b.Old.Hash[:])
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			done[i] = true
			if b.State != "" {
				if _, err := w.conn.ExecContext(ctx, stateSQL, b.State, b.Records[len(b.Records)-1].At.UnixNano(), b.Session); err != nil {
					return err
				}
			}
			for k := range b.Records {
				r := &b.Records[k]
				data := r.Data
				if data == nil {
					data = []byte{}
				}
				if _, err := w.insert.ExecContext(ctx, b.Key, int64(r.Seq), int64(r.Epoch), r.At.UnixNano(), r.Kind, data, r.Hash[:]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap(err)
	}
	return done, nil
}
