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
			WHERE id = $1 AND damaged = ''
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
		if st.Damaged != "" {
			return engine.MarkedError(st)
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

// Each begin of so many deletes operations that have expired, up to a number.
const (
	sweepEvery = 64
	sweepLimit = 1000
)

// Begin implements [engine.Database].
func (s *Store) Begin(ctx context.Context, op engine.Operation, ttl time.Duration) (got engine.Operation, err error) {
	token := newToken()
	if s.begins.Add(1)%sweepEvery == 0 {
		err := s.write(ctx, func(tx Tx) error {
			_, err := s.exec(ctx, tx, `DELETE FROM acp_operation WHERE (principal, id) IN
				(SELECT principal, id FROM acp_operation WHERE expires <= {now} ORDER BY expires LIMIT $1)`, sweepLimit)
			return err
		})
		if err != nil {
			return engine.Operation{}, err
		}
	}
	err = s.write(ctx, func(tx Tx) error {
		if _, err := s.exec(ctx, tx, `INSERT INTO acp_operation (principal, id, fingerprint, token, done, receipt, expires) VALUES ($1, $2, $3, $4, 0, $5, {now} + $6)
			ON CONFLICT (principal, id) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token, done = 0, receipt = excluded.receipt, expires = excluded.expires
			WHERE acp_operation.expires <= {now}`,
			op.Principal, op.ID, bytesOf(op.Fingerprint), token, []byte{}, ttl.Microseconds()); err != nil {
			return err
		}
		var err error
		got, err = s.operation(ctx, tx, op.Principal, op.ID, token)
		return err
	})
	return got, err
}

// operation reads an operation that has not expired. token is that of the call.
func (s *Store) operation(ctx context.Context, tx Tx, principal, id string, token int64) (engine.Operation, error) {
	op := engine.Operation{Principal: principal, ID: id, State: engine.OperationRunning}
	var has, done int64
	err := tx.QueryRowContext(ctx, s.sql(`UPDATE acp_operation SET token = token WHERE principal = $1 AND id = $2 AND expires > {now} RETURNING fingerprint, token, done, receipt`), principal, id).
		Scan(&op.Fingerprint, &has, &done, &op.Receipt)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return engine.Operation{}, engine.ErrNotFound
	case err != nil:
		return engine.Operation{}, err
	case done != 0:
		op.State = engine.OperationDone
	case has == token:
		op.State = engine.OperationNew
	}
	op.Receipt = nilIfEmpty(op.Receipt)
	return op, nil
}

// Finish implements [engine.Database].
func (s *Store) Finish(ctx context.Context, principal, id string, receipt []byte) (op engine.Operation, err error) {
	err = s.write(ctx, func(tx Tx) error {
		if _, err := s.exec(ctx, tx, `UPDATE acp_operation SET done = 1, receipt = $3 WHERE principal = $1 AND id = $2 AND done = 0 AND expires > {now}`, principal, id, bytesOf(receipt)); err != nil {
			return err
		}
		var err error
		op, err = s.operation(ctx, tx, principal, id, 0)
		return err
	})
	return op, err
}
