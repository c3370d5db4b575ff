package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// CreateSession implements [engine.Database].
func (s *Store) CreateSession(ctx context.Context, v engine.Session) error {
	n := newToken() // also shows whether an earlier try was committed
	return s.write(ctx, func(tx Tx) error {
		added, err := s.exec(ctx, tx, `INSERT INTO acp_head (id, n, epoch, claim, node, seq, hash, damaged, damaged_at)
			VALUES ($1, $2, 0, 0, '', 0, $3, '', 0) ON CONFLICT (id) DO NOTHING`, v.ID, n, make([]byte, 32))
		if err != nil {
			return err
		}
		if added == 0 {
			var has int64
			err := tx.QueryRowContext(ctx, `SELECT n FROM acp_head WHERE id = $1`, v.ID).Scan(&has)
			if err == nil && has != n {
				err = engine.ErrExists
			}
			return err
		}
		// After the insert: a deletion that was committed while it waited is seen now.
		if err := s.Missing(ctx, tx, v.ID); err != engine.ErrNotFound { // not ErrDeleted, which wraps it
			return err
		}
		_, err = s.exec(ctx, tx, `INSERT INTO acp_session (id, agent, agent_session, cwd, title, owner, state, parent, attributes, created, updated, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)`,
			v.ID, v.Agent, v.AgentSession, v.Cwd, v.Title, v.Owner, v.State, v.Parent, bytesOf(v.Attributes), v.Created.UnixNano(), v.Updated.UnixNano())
		return err
	})
}

// sessionQuery selects what scanSession reads.
const sessionQuery = `SELECT s.agent, s.agent_session, s.cwd, s.title, s.owner, s.state, s.parent, s.attributes, s.created, s.updated, s.version, ` +
	stateColumns + ` FROM acp_session s JOIN acp_head ON acp_head.id = s.id WHERE `

func scanSession(scan func(...any) error) (v engine.Session, err error) {
	var created, updated int64
	var attributes []byte
	var r stateRow
	if err := scan(append([]any{&v.Agent, &v.AgentSession, &v.Cwd, &v.Title, &v.Owner, &v.State, &v.Parent, &attributes, &created, &updated, &v.Version}, r.into()...)...); err != nil {
		return engine.Session{}, err
	}
	st, err := r.state()
	if err != nil {
		return engine.Session{}, err
	}
	v.ID, v.Epoch, v.Head = st.Session, st.Epoch, st.Head
	v.Attributes, v.Created, v.Updated = nilIfEmpty(attributes), instant(created), instant(updated)
	return v, nil
}

// Session implements [engine.Database].
func (s *Store) Session(ctx context.Context, id string) (engine.Session, error) {
	v, err := scanSession(s.d.Read.QueryRowContext(ctx, sessionQuery+`s.id = $1`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.Missing(ctx, s.d.Read, id)
	}
	return v, s.d.Wrap(err)
}

// UpdateSession implements [engine.Database].
func (s *Store) UpdateSession(ctx context.Context, v engine.Session) (ok bool, err error) {
	err = s.write(ctx, func(tx Tx) error {
		n, err := s.exec(ctx, tx, `UPDATE acp_session SET agent = $2, agent_session = $3, cwd = $4, title = $5, owner = $6, state = $7, parent = $8, attributes = $9, updated = $10, version = version + 1
			WHERE id = $1 AND version = $11`,
			v.ID, v.Agent, v.AgentSession, v.Cwd, v.Title, v.Owner, v.State, v.Parent, bytesOf(v.Attributes), v.Updated.UnixNano(), v.Version)
		ok = n > 0
		return err
	})
	return ok, err
}

// ListSessions implements [engine.Database].
func (s *Store) ListSessions(ctx context.Context, q engine.Query, after engine.Position, n int) ([]engine.Session, error) {
	var where []string
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	for _, f := range [...]struct{ column, want string }{{"owner", q.Owner}, {"agent", q.Agent}, {"state", q.State}, {"parent", q.Parent}} {
		if f.want != "" {
			where = append(where, "s."+f.column+" = "+arg(f.want))
		}
	}
	if q.Reader != "" {
		who := arg(q.Reader)
		where = append(where, "(s.owner = "+who+" OR s.id IN (SELECT h.session FROM acp_share h WHERE h.who = "+who+"))")
	}
	if after.ID != "" {
		where = append(where, "(s.updated, s.id) < ("+arg(after.Updated.UnixNano())+", "+arg(after.ID)+")")
	}
	if where == nil {
		where = []string{"1 = 1"}
	}
	rows, err := s.d.Read.QueryContext(ctx, sessionQuery+strings.Join(where, " AND ")+` ORDER BY s.updated DESC, s.id DESC LIMIT `+arg(n), args...)
	if err != nil {
		return nil, s.d.Wrap(err)
	}
	defer rows.Close()
	var all []engine.Session
	for rows.Next() {
		v, err := scanSession(rows.Scan)
		if err != nil {
			return nil, s.d.Wrap(err)
		}
		all = append(all, v)
	}
	return all, s.d.Wrap(rows.Err())
}

// purgeChunk is how many records a transaction deletes: the writer does not wait longer for it.
const purgeChunk = 2000

// DeleteSession implements [engine.Database]. The session is gone with the first transaction; its
// records follow in chunks.
func (s *Store) DeleteSession(ctx context.Context, id string) (owner string, err error) {
	var n, purged int64
	err = s.write(ctx, func(tx Tx) error {
		err := tx.QueryRowContext(ctx, `DELETE FROM acp_head WHERE id = $1 RETURNING n, node`, id).Scan(&n, &owner)
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRowContext(ctx, `SELECT n, purged FROM acp_tombstone WHERE id = $1`, id).Scan(&n, &purged)
			if errors.Is(err, sql.ErrNoRows) {
				err = engine.ErrNotFound
			}
			return err
		}
		if err != nil {
			return err
		}
		for _, q := range []string{
			`DELETE FROM acp_session WHERE id = $1`,
			`DELETE FROM acp_share WHERE session = $1`,
		} {
			if _, err := s.exec(ctx, tx, q, id); err != nil {
				return err
			}
		}
		_, err = s.exec(ctx, tx, `INSERT INTO acp_tombstone (id, n, deleted, purged) VALUES ($1, $2, {now}, 0)`, id, n)
		return err
	})
	if err != nil {
		return "", err
	}
	if purged == 0 {
		if err := s.purge(ctx, id, n); err != nil {
			return owner, fmt.Errorf("%w: %w", engine.ErrUnpurged, err)
		}
	}
	return owner, nil
}

// purge deletes the records of a deleted session.
func (s *Store) purge(ctx context.Context, id string, n int64) error {
	for more := true; more; {
		err := s.write(ctx, func(tx Tx) error {
			gone, err := s.exec(ctx, tx, `DELETE FROM acp_record WHERE n = $1 AND seq IN (SELECT seq FROM acp_record WHERE n = $1 ORDER BY seq LIMIT $2)`, n, purgeChunk)
			if err != nil {
				return err
			}
			if more = gone == purgeChunk; !more {
				_, err = s.exec(ctx, tx, `UPDATE acp_tombstone SET purged = 1 WHERE id = $1`, id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// purgeAll deletes the records of all sessions whose deletion was cut off.
func (s *Store) purgeAll(ctx context.Context) error {
	rows, err := s.d.Read.QueryContext(ctx, `SELECT id, n FROM acp_tombstone WHERE purged = 0`)
	if err != nil {
		return s.d.Wrap(err)
	}
	defer rows.Close()
	left := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return s.d.Wrap(err)
		}
		left[id] = n
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return s.d.Wrap(err)
	}
	for id, n := range left {
		if err := s.purge(ctx, id, n); err != nil {
			return err
		}
	}
	return nil
}

// Replace stores a session in a transaction, whatever was there of it, as of its head.
func Replace(ctx context.Context, tx Tx, v engine.Session) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO acp_head (id, n, epoch, claim, node, seq, hash, damaged, damaged_at)
		VALUES ($1, $2, $3, 0, '', $4, $5, '', 0) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, hash = excluded.hash`,
		v.ID, newToken(), int64(v.Epoch), int64(v.Head.Seq), v.Head.Hash[:]); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO acp_session (id, agent, agent_session, cwd, title, owner, state, parent, attributes, created, updated, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO UPDATE SET agent = $2, agent_session = $3, cwd = $4, title = $5, owner = $6, state = $7, parent = $8, attributes = $9,
			created = $10, updated = $11, version = acp_session.version + 1`,
		v.ID, v.Agent, v.AgentSession, v.Cwd, v.Title, v.Owner, v.State, v.Parent, bytesOf(v.Attributes), v.Created.UnixNano(), v.Updated.UnixNano(), v.Version)
	return err
}
