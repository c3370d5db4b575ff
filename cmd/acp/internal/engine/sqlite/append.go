package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// several is how many records one statement inserts if there are as many. Measured in
// BenchmarkInsert.
const several = 16

const (
	headSQL   = `UPDATE acp_head SET seq = ?1, hash = ?2 WHERE id = ?3 AND epoch = ?4 AND seq = ?5 AND hash = ?6 AND damaged = ''`
	insertSQL = `INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`
	columns   = 7
)

// prepare prepares the statements of an append.
func (w *writer) prepare(ctx context.Context) (err error) {
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{{&w.head, headSQL}, {&w.one, insertSQL}, {&w.several, insertSQL + strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?)`, several-1)}} {
		if *s.stmt != nil {
			continue
		}
		if *s.stmt, err = w.conn.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [engine.Database]. A session that is fenced is skipped.
func (d *Database) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	done := make([]bool, len(batches))
	err := d.transact(ctx, func(w *writer) error {
		if err := w.prepare(ctx); err != nil {
			return err
		}
		var args []any
		for i, b := range batches {
			r, err := w.head.ExecContext(ctx, int64(b.New.Seq), b.New.Hash[:], b.Session, int64(b.Epoch), int64(b.Old.Seq), b.Old.Hash[:])
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
			for k := range b.Records {
				r := &b.Records[k]
				data := r.Data
				if data == nil {
					data = []byte{}
				}
				args = append(args, b.Key, int64(r.Seq), int64(r.Epoch), r.Time.UnixNano(), r.Kind, data, r.Hash[:])
			}
		}
		return w.insert(ctx, args)
	})
	if err != nil {
		return nil, wrap(err)
	}
	return done, nil
}

// insert stores records, of which args has the columns.
func (w *writer) insert(ctx context.Context, args []any) error {
	for len(args) > 0 {
		stmt, n := w.one, columns
		if len(args) >= several*columns {
			stmt, n = w.several, several*columns
		}
		if _, err := stmt.ExecContext(ctx, args[:n]...); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}
