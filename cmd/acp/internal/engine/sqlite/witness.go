package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A Witness keeps the heads of logs in a file of its own. It implements [engine.Witness].
//
// Its writes are not synced one by one: after a power cut it may be behind, which only makes it notice
// less. It is never ahead of what was committed.
type Witness struct{ db *sql.DB }

var _ engine.Witness = (*Witness)(nil)

// OpenWitness opens the file of a witness, or creates it. A file that is damaged is not opened, because
// nothing would notice a loss; remove it to begin a new one.
func OpenWitness(ctx context.Context, path string) (*Witness, error) {
	db, err := open(ctx, path, witnessID, "synchronous(NORMAL)", "cache_size(-1000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS head (session text PRIMARY KEY, seq integer NOT NULL, hash blob NOT NULL) WITHOUT ROWID`); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, wrap(err)), db.Close())
	}
	return &Witness{db}, nil
}

// Seen implements [engine.Witness].
func (w *Witness) Seen(ctx context.Context, session string) (h engine.Head, err error) {
	var seq int64
	var hash []byte
	err = w.db.QueryRowContext(ctx, `SELECT seq, hash FROM head WHERE session = ?`, session).Scan(&seq, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return engine.Head{}, nil
	case err != nil:
		return engine.Head{}, err // damage to the witness is not damage to the log
	case len(hash) != len(h.Hash):
		return engine.Head{}, fmt.Errorf("the entry of session %q makes no sense", session)
	}
	return engine.Head{Seq: uint64(seq), Hash: [32]byte(hash)}, nil
}

// Note implements [engine.Witness].
func (w *Witness) Note(ctx context.Context, heads map[string]engine.Head) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO head (session, seq, hash) VALUES (?, ?, ?) ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash WHERE excluded.seq > seq`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for session, h := range heads {
		if _, err := stmt.ExecContext(ctx, session, int64(h.Seq), h.Hash[:]); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Forget implements [engine.Witness].
func (w *Witness) Forget(ctx context.Context, session string) error {
	_, err := w.db.ExecContext(ctx, `DELETE FROM head WHERE session = ?`, session)
	return err
}

// Close implements [engine.Witness].
func (w *Witness) Close() error { return w.db.Close() }
