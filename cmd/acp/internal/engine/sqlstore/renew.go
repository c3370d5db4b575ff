package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// While journals are made of the sessions of [EarlierVersion], the database has that version and [Version]. So no program
// opens it that only knows the earlier one. One process does it, which has a lease; if it dies the next one continues.
//
// The records of a session are written under another key, which its head gets in the end, in one transaction with what
// else changes. Until then a tombstone has the new key, and afterwards the old one: whatever is under the key of a
// tombstone is removed.

const (
	// renewNode has the lease of the process that makes journals. No node can have that name.
	renewNode = "/renewal"
	renewTTL  = time.Minute
	// renewTomb begins the ids of such tombstones. No session has such an id.
	renewTomb = "/renewed/"
	// What one transaction writes.
	renewRecords, renewBytes = engine.MaxRecords, 4 << 20
	// renewAtOnce is how many records a statement writes.
	renewAtOnce = 64
)

// errChanged reports that somebody has used a session while its journal was made.
var errChanged = errors.New("an earlier version of acp serve has used it meanwhile: stop all, and start this one again")

// A renewal is the process that makes journals, by the token of its lease.
type renewal int64

// beginRenewal takes the lease if journals have to be made, which it reports.
func (s *Store) beginRenewal(ctx context.Context, tx Tx, r renewal) (needed bool, err error) {
	var left int
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM acp_meta WHERE version = $1`, EarlierVersion).Scan(&left)
	if err != nil || left == 0 {
		return false, err
	}
	if err := s.unused(ctx, tx); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, `INSERT INTO acp_lease (node, token, expires) VALUES ($1, $2, {now} + $3)
		ON CONFLICT (node) DO UPDATE SET token = excluded.token, expires = excluded.expires
		WHERE acp_lease.expires <= {now} OR acp_lease.token = excluded.token`,
		renewNode, int64(r), renewTTL.Microseconds())
	if err == nil && n == 0 {
		err = errors.New("another acp serve converts the tables of an earlier version, " +
			"or was killed less than a minute ago while it did: start this one again then")
	}
	if err == nil {
		_, err = s.exec(ctx, tx, `INSERT INTO acp_meta (version) VALUES (cast($1 AS bigint))
			ON CONFLICT (version) DO NOTHING`, Version)
	}
	return err == nil, err
}

// unused fails while nodes are live. They are of the earlier version: no other one opens the database.
func (s *Store) unused(ctx context.Context, tx Tx) error {
	rows, err := tx.QueryContext(ctx, s.sql(`SELECT node FROM acp_lease WHERE expires > {now} AND node <> $1
		ORDER BY node LIMIT 10`), renewNode)
	if err != nil {
		return err
	}
	defer rows.Close()
	var live []string
	for rows.Next() {
		var node string
		if err := rows.Scan(&node); err != nil {
			return err
		}
		live = append(live, node)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || live == nil {
		return err
	}
	return fmt.Errorf("the tables have version %d, and acp serve of an earlier version uses them (%s): "+
		"stop it everywhere, make a backup, and start this one again", EarlierVersion, strings.Join(live, ", "))
}

// renewing runs f in a transaction of a renewal that still has its lease, which it prolongs.
func (s *Store) renewing(ctx context.Context, r renewal, f func(Tx) error) error {
	return s.d.Write(ctx, func(tx Tx) error {
		n, err := s.exec(ctx, tx, `UPDATE acp_lease SET expires = {now} + $3
			WHERE node = $1 AND token = $2 AND expires > {now}`, renewNode, int64(r), renewTTL.Microseconds())
		if err == nil && n == 0 {
			err = errors.New("another acp serve is converting the tables by now")
		}
		if err != nil {
			return err
		}
		return f(tx)
	})
}

// renew makes journals of all sessions.
func (s *Store) renew(ctx context.Context, r renewal) error {
	if err := s.clearTombs(ctx, r); err != nil { // of a process that was killed
		return err
	}
	for after := ""; ; {
		ids, err := s.idsAfter(ctx, after)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.renewSession(ctx, r, id); err != nil {
				return fmt.Errorf("convert session %q: %w", id, err)
			}
			after = id
		}
		if len(ids) < renewRecords {
			break
		}
	}
	if err := s.clearTombs(ctx, r); err != nil {
		return err
	}
	return s.renewing(ctx, r, func(tx Tx) error {
		for _, table := range []string{"acp_operation", "acp_ask"} { // which nobody uses any more
			if _, err := s.exec(ctx, tx, `DROP TABLE IF EXISTS `+table); err != nil {
				return err
			}
		}
		_, err := s.exec(ctx, tx, `DELETE FROM acp_meta WHERE version = $1`, EarlierVersion)
		if err == nil {
			_, err = s.exec(ctx, tx, `DELETE FROM acp_lease WHERE node = $1 AND token = $2`, renewNode, int64(r))
		}
		return err
	})
}

// clearTombs removes what is under the keys of tombstones, and then those tombstones that are of a renewal.
func (s *Store) clearTombs(ctx context.Context, r renewal) error {
	if err := s.purgeAll(ctx); err != nil {
		return err
	}
	return s.renewing(ctx, r, func(tx Tx) error {
		_, err := s.exec(ctx, tx, `DELETE FROM acp_tombstone WHERE id LIKE $1 AND purged = 1`, renewTomb+"%")
		return err
	})
}

func (s *Store) idsAfter(ctx context.Context, after string) (ids []string, err error) {
	rows, err := s.d.Read.QueryContext(ctx, `SELECT id FROM acp_head WHERE id > $1 ORDER BY id LIMIT $2`, after, renewRecords)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(rows.Err(), rows.Close())
}

// renewSession makes the journal of a session, unless it has one.
func (s *Store) renewSession(ctx context.Context, r renewal, id string) error {
	st, err := s.State(ctx, id)
	if err != nil {
		return err
	}
	if first, err := s.Records(ctx, st.Key, 1, 1, renewBytes); !errors.Is(err, engine.ErrCorrupt) {
		if err != nil || len(first) > 0 && first[0].Kind == journal.KindSession || st.Seq == 0 {
			return err // an empty one gets its first record from its next owner
		}
	}
	session, err := s.Session(ctx, id)
	if err != nil {
		return err
	}
	key, end := newToken(), engine.Head{}
	if err := s.renewing(ctx, r, func(tx Tx) error {
		_, err := s.exec(ctx, tx, `INSERT INTO acp_tombstone (id, n, deleted, purged) VALUES ($1, $2, {now}, 0)
			ON CONFLICT (id) DO UPDATE SET n = excluded.n, purged = 0`, renewTomb+id, key)
		return err
	}); err != nil {
		return err
	}
	var some []engine.Record
	size := 0
	flush := func() error {
		err := s.renewing(ctx, r, func(tx Tx) error { return s.addRenewed(ctx, tx, key, some) })
		some, size = nil, 0
		return err
	}
	first := journal.Draft{Kind: journal.KindSession, At: session.Created, Data: fmt.Appendf(nil, `{"format":%d}`, journal.Format)}
	err = engine.Earlier(ctx, s, st, first, func(rec *engine.Record) error {
		some, size, end = append(some, *rec), size+len(rec.Body), engine.Head{Seq: rec.Seq, Hash: rec.Hash}
		if len(some) < renewRecords && size < renewBytes {
			return nil
		}
		return flush()
	})
	if err == nil && len(some) > 0 {
		err = flush()
	}
	if err == nil {
		err = s.renewing(ctx, r, func(tx Tx) error { return s.exchange(ctx, tx, st, session, key, end) })
	}
	if err == nil {
		s.renewed++
		err = s.purge(ctx, renewTomb+id, st.Key)
	}
	return err
}

// addRenewed stores records of a journal, once, with few statements: each may take a while to the server and back.
func (s *Store) addRenewed(ctx context.Context, tx Tx, key int64, all []engine.Record) error {
	for some := range slices.Chunk(all, renewAtOnce) {
		var q strings.Builder
		q.WriteString(`INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash) VALUES `)
		var args []any
		for i := range some {
			r := &some[i]
			if i > 0 {
				q.WriteString(", ")
			}
			n := len(args)
			fmt.Fprintf(&q, "($%d, $%d, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5, n+6, n+7)
			line := bytes.TrimSuffix(journal.AppendLine(nil, r), []byte("\n"))
			args = append(args, key, int64(r.Seq), int64(r.Epoch), r.At.UnixNano(), string(r.Kind), line, r.Hash[:])
		}
		q.WriteString(` ON CONFLICT (n, seq) DO NOTHING`)
		if _, err := s.exec(ctx, tx, q.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// exchange gives a session the journal that is under another key.
func (s *Store) exchange(ctx context.Context, tx Tx, st engine.State, session engine.Session, key int64, end engine.Head) error {
	if err := s.unused(ctx, tx); err != nil {
		return err
	}
	n, err := s.exec(ctx, tx, `UPDATE acp_head SET n = $1, seq = $2, hash = $3, damaged = '', damaged_at = 0
		WHERE id = $4 AND n = $5 AND epoch = $6 AND claim = $7 AND seq = $8 AND hash = $9`,
		key, int64(end.Seq), end.Hash[:], st.Session, st.Key, int64(st.Epoch), st.Claim, int64(st.Seq), st.Hash[:])
	if err != nil {
		return err
	}
	if n == 0 {
		var has int64
		err := tx.QueryRowContext(ctx, `SELECT n FROM acp_head WHERE id = $1`, st.Session).Scan(&has)
		if errors.Is(err, sql.ErrNoRows) || err == nil && has != key {
			err = errChanged
		}
		return err // or an earlier try was committed
	}
	if _, err := s.exec(ctx, tx, `UPDATE acp_session SET attributes = $2, version = version + 1 WHERE id = $1`,
		st.Session, bytesOf(engine.EarlierAttributes(session.Attributes))); err != nil {
		return err
	}
	_, err = s.exec(ctx, tx, `UPDATE acp_tombstone SET n = $2 WHERE id = $1`, renewTomb+st.Session, st.Key)
	return err
}
