package sqlstore

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// Usage implements [engine.Database].
func (s *Store) Usage(ctx context.Context, owner string) (u engine.Usage, err error) {
	err = s.d.Read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM acp_session WHERE owner = $1),
		(SELECT cast(coalesce(sum(length(r.data)), 0) AS bigint) FROM acp_record r WHERE r.n IN
			(SELECT h.n FROM acp_head h JOIN acp_session v ON v.id = h.id WHERE v.owner = $1))`, owner).Scan(&u.Sessions, &u.Bytes)
	return u, s.d.Wrap(err)
}

// PutShare implements [engine.Database].
func (s *Store) PutShare(ctx context.Context, session string, v engine.Share, limit int) error {
	return s.write(ctx, func(tx Tx) error {
		// The write locks the row: the session is not deleted in between, and shares are counted one by one.
		n, err := s.exec(ctx, tx, `UPDATE acp_head SET seq = seq WHERE id = $1`, session)
		if err != nil {
			return err
		}
		if n == 0 {
			return s.Missing(ctx, tx, session)
		}
		if v.Role == "" {
			_, err = s.exec(ctx, tx, `DELETE FROM acp_share WHERE session = $1 AND who = $2`, session, v.User)
			return err
		}
		var others int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM acp_share WHERE session = $1 AND who <> $2`, session, v.User).Scan(&others); err != nil {
			return err
		}
		if others >= limit {
			return engine.ErrTooMany
		}
		_, err = s.exec(ctx, tx, `INSERT INTO acp_share (session, who, role) VALUES ($1, $2, $3)
			ON CONFLICT (session, who) DO UPDATE SET role = excluded.role`, session, v.User, v.Role)
		return err
	})
}

// Shares implements [engine.Database].
func (s *Store) Shares(ctx context.Context, session string) ([]engine.Share, error) {
	rows, err := s.d.Read.QueryContext(ctx, `SELECT who, role FROM acp_share WHERE session = $1 ORDER BY who`, session)
	if err != nil {
		return nil, s.d.Wrap(err)
	}
	defer rows.Close()
	var all []engine.Share
	for rows.Next() {
		var v engine.Share
		if err := rows.Scan(&v.User, &v.Role); err != nil {
			return nil, s.d.Wrap(err)
		}
		all = append(all, v)
	}
	return all, s.d.Wrap(rows.Err())
}
