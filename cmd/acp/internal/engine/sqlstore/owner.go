package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// TakeLease implements [engine.Database].
func (s *Store) TakeLease(ctx context.Context, node string, token int64, ttl time.Duration) error {
	return s.write(ctx, func(tx Tx) error {
		_, err := s.exec(ctx, tx, `INSERT INTO acp_lease (node, token, expires) VALUES ($1, $2, {now} + $3)
			ON CONFLICT (node) DO UPDATE SET token = excluded.token, expires = excluded.expires`, node, token, ttl.Microseconds())
		return err
	})
}

// RenewLease implements [engine.Database].
func (s *Store) RenewLease(ctx context.Context, node string, token int64, ttl time.Duration) error {
	return s.write(ctx, func(tx Tx) error {
		n, err := s.exec(ctx, tx, `UPDATE acp_lease SET expires = {now} + $3 WHERE node = $1 AND token = $2 AND expires > {now}`, node, token, ttl.Microseconds())
		if err == nil && n == 0 {
			err = engine.ErrLapsed
		}
		return err
	})
}

// EndLease implements [engine.Database].
func (s *Store) EndLease(ctx context.Context, node string, token int64) error {
	return s.write(ctx, func(tx Tx) error {
		_, err := s.exec(ctx, tx, `DELETE FROM acp_lease WHERE node = $1 AND token = $2`, node, token)
		return err
	})
}

// Claim implements [engine.Database].
func (s *Store) Claim(ctx context.Context, session, node string, token int64) (st engine.State, err error) {
	err = s.write(ctx, func(tx Tx) error {
		var err error
		st, err = ScanState(tx.QueryRowContext(ctx, s.sql(`UPDATE acp_head SET epoch = epoch + 1, claim = $4, node = $2
			WHERE id = $1
			AND EXISTS (SELECT 1 FROM acp_lease l WHERE l.node = $2 AND l.token = $3 AND l.expires > {now})
			AND (acp_head.node = '' OR acp_head.node = $2
				OR NOT EXISTS (SELECT 1 FROM acp_lease l WHERE l.node = acp_head.node AND l.expires > {now}))
			RETURNING `+stateColumns), session, node, token, newToken()).Scan)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		st, err = ScanState(tx.QueryRowContext(ctx, StateQuery, session).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return s.Missing(ctx, tx, session)
		}
		if err != nil {
			return err
		}
		var mine int
		if err := tx.QueryRowContext(ctx, s.sql(`SELECT count(*) FROM acp_lease WHERE node = $1 AND token = $2 AND expires > {now}`), node, token).Scan(&mine); err != nil {
			return err
		}
		if mine == 0 {
			return engine.ErrLapsed
		}
		return engine.ErrOwned
	})
	if err != nil {
		return engine.State{}, err
	}
	return st, nil
}

// Release implements [engine.Database].
func (s *Store) Release(ctx context.Context, session string, epoch uint32) error {
	return s.write(ctx, func(tx Tx) error {
		_, err := s.exec(ctx, tx, `UPDATE acp_head SET node = '' WHERE id = $1 AND epoch = $2`, session, int64(epoch))
		return err
	})
}
