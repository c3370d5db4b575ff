package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
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
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS head (session text PRIMARY KEY, seq integer NOT NULL, hash blob NOT NULL, sum blob NOT NULL) WITHOUT ROWID`); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, wrap(err)), db.Close())
	}
	return &Witness{db}, nil
}

// check returns a hash over an entry: a damaged witness must not make a whole log look damaged. Neither must one of an earlier
// version, which has noted other hashes, and has not begun what is hashed with the format of journals.
func check(session string, h engine.Head) []byte {
	return checkSum(fmt.Sprintf("acp log %d\n", journal.Format), session, h)
}

func checkSum(begin, session string, h engine.Head) []byte {
	sum := sha256.Sum256(fmt.Appendf(binary.BigEndian.AppendUint64([]byte(begin), h.Seq), "%s%s", h.Hash[:], session))
	return sum[:16]
}

// Seen implements [engine.Witness]. An entry that is damaged is removed: it says nothing.
func (w *Witness) Seen(ctx context.Context, session string) (engine.Head, error) {
	var seq int64
	var hash, sum []byte
	err := w.db.QueryRowContext(ctx, `SELECT seq, hash, sum FROM head WHERE session = ?`, session).Scan(&seq, &hash, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return engine.Head{}, nil
	}
	if err != nil {
		return engine.Head{}, err // not wrapped: damage to the witness is not damage to the log
	}
	h := engine.Head{Seq: uint64(seq)}
	copy(h.Hash[:], hash)
	if len(hash) != len(h.Hash) || !bytes.Equal(sum, check(session, h)) {
		_, err := w.db.ExecContext(ctx, `DELETE FROM head WHERE session = ? AND sum = ?`, session, sum)
		return engine.Head{}, err
	}
	return h, nil
}

// Note implements [engine.Witness].
func (w *Witness) Note(ctx context.Context, heads map[string]engine.Head) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO head (session, seq, hash, sum) VALUES (?, ?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, sum = excluded.sum WHERE excluded.seq > seq`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for session, h := range heads {
		if _, err := stmt.ExecContext(ctx, session, int64(h.Seq), h.Hash[:], check(session, h)); err != nil {
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
