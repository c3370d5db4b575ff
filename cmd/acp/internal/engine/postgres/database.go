// Package postgres is the database of an [engine.Engine] that several nodes share: PostgreSQL. Each node
// keeps a witness in a file of its own.
//
// The server must have synchronous_standby_names set, with two standbys, for an acknowledged record to
// survive the primary, data checksums, and what else docs/adr/0019-the-gateways-log.md says. The SQL is
// meant to run on CockroachDB and YugabyteDB, too, which was not tried.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlstore"
)

// Connections of a node, by what they are for, so that nothing waits for what may be slow.
const (
	appendConns = 2 // more are slower
	writeConns  = 3
	leaseConns  = 1
	readConns   = 5
)

// Open opens the log in a database, whose tables it creates if they are missing, with the witness in a
// file. dsn is a connection string or URL, with all hosts of a cluster; the connection goes to one that
// accepts writes unless dsn has target_session_attrs. synchronous_commit and lock_timeout (2 s) are set
// unless dsn has them. Sessions that an earlier version has kept there are converted first: see [sqlstore.Store.Prepare].
func Open(ctx context.Context, dsn, witness string, o engine.Options) (*engine.Engine, error) {
	db, err := OpenDatabase(ctx, dsn)
	if err != nil {
		return nil, err
	}
	w, err := sqlite.OpenWitness(ctx, witness)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if n := db.Renewed(); n > 0 && o.Notice != nil {
		o.Notice(fmt.Sprintf("%d sessions in the database were converted; servers of an earlier version do not open it any more", n))
	}
	return engine.New(db, w, o), nil
}

// A Database is a PostgreSQL database with a log. It implements [engine.Database].
type Database struct {
	*sqlstore.Store
	leases *sqlstore.Store // on a connection of its own
	pools  []*sql.DB
	append *sql.DB
	read   *sql.DB
}

var _ engine.Database = (*Database)(nil)

// OpenDatabase opens a database. dsn is that of [Open].
func OpenDatabase(ctx context.Context, dsn string) (*Database, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err // the driver leaves the password out
	}
	for name, value := range map[string]string{"synchronous_commit": "on", "lock_timeout": "2000", "application_name": "acp"} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c := &connector{config: config}
	d := &Database{append: c.pool(appendConns), read: c.pool(readConns)}
	write, lease := c.pool(writeConns), c.pool(leaseConns)
	d.pools = []*sql.DB{d.append, d.read, write, lease}
	d.Store, d.leases = d.store(write), d.store(lease)
	// Two nodes that create the tables at the same time get in each other's way.
	for range 3 {
		if err = d.Prepare(ctx); !isCode(err, "23505", "42P07", "42710") {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the log: %w", err), d.Close())
	}
	return d, nil
}

// store returns the part that is the same everywhere, writing with a pool.
func (d *Database) store(write *sql.DB) *sqlstore.Store {
	return sqlstore.New(sqlstore.Dialect{
		Blob: "bytea",
		Head: "WITH (fillfactor = 50)", // room for the next version of a row in the same page
		Now:  "cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
		Read: d.read,
		Write: func(ctx context.Context, f func(sqlstore.Tx) error) error {
			return transact(ctx, write, f)
		},
		Wrap: wrap,
	})
}

// Writers implements [engine.Database].
func (d *Database) Writers() int { return appendConns }

// Close implements [engine.Database].
func (d *Database) Close() error {
	var errs []error
	for _, p := range d.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// TakeLease implements [engine.Database].
func (d *Database) TakeLease(ctx context.Context, node string, token int64, ttl time.Duration) error {
	return d.leases.TakeLease(ctx, node, token, ttl)
}

// RenewLease implements [engine.Database].
func (d *Database) RenewLease(ctx context.Context, node string, token int64, ttl time.Duration) error {
	return d.leases.RenewLease(ctx, node, token, ttl)
}

// writeTries bounds how often a transaction is begun anew.
const writeTries = 4

// transact runs f in a transaction, again if that failed for a reason that passes or its outcome is
// unknown.
func transact(ctx context.Context, db *sql.DB, f func(sqlstore.Tx) error) error {
	for try := 1; ; try++ {
		err := once(ctx, db, f)
		if err == nil || try == writeTries || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond << try):
		}
	}
}

// once runs f in a transaction.
func once(ctx context.Context, db *sql.DB, f func(sqlstore.Tx) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	settled(conn) // forget what was before
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return settled(conn)
}

// appendSQL has one row for each session in its first arrays, and one for each record in the others. A
// session that is fenced is missing in the result.
const appendSQL = `
WITH a AS (
	SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[], $13::bigint[], $14::text[], $15::bigint[]) AS t (id, epoch, old, old_hash, new, new_hash, claim, state, updated)
), f AS (
	UPDATE acp_head h SET seq = a.new, hash = a.new_hash FROM a
	WHERE h.id = a.id AND h.epoch = a.epoch AND h.claim = a.claim AND h.seq = a.old AND h.hash = a.old_hash
	RETURNING h.id, h.n, h.epoch
), s AS (
	UPDATE acp_session x SET state = a.state, updated = a.updated, version = x.version + 1 FROM a JOIN f ON f.id = a.id
	WHERE x.id = a.id AND a.state <> ''
), i AS (
	INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash)
	SELECT f.n, u.seq, f.epoch, u.time, u.kind, u.data, u.hash
	FROM f JOIN unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::bytea[], $12::bytea[]) AS u (n, seq, time, kind, data, hash) ON u.n = f.n
)
SELECT id FROM f`

// Append implements [engine.Database]: one statement, which is the transaction.
func (d *Database) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	var ids, kinds, states []string
	var updates, epochs, claims, olds, news, keys, seqs, times []int64
	var oldHashes, newHashes, data, hashes [][]byte
	index := make(map[string]int, len(batches))
	for i := range batches {
		b := &batches[i]
		index[b.Session] = i
		ids, epochs = append(ids, b.Session), append(epochs, int64(b.Epoch))
		states, updates = append(states, b.State), append(updates, b.Records[len(b.Records)-1].At.UnixNano())
		claims = append(claims, b.Claim)
		olds, oldHashes = append(olds, int64(b.Old.Seq)), append(oldHashes, b.Old.Hash[:])
		news, newHashes = append(news, int64(b.New.Seq)), append(newHashes, b.New.Hash[:])
		for k := range b.Records {
			r := &b.Records[k]
			keys, seqs, times = append(keys, b.Key), append(seqs, int64(r.Seq)), append(times, r.At.UnixNano())
			bytes := r.Data
			if bytes == nil {
				bytes = []byte{}
			}
			kinds, data, hashes = append(kinds, string(r.Kind)), append(data, bytes), append(hashes, r.Hash[:])
		}
	}
	done := make([]bool, len(batches))
	err := d.single(ctx, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, appendSQL, ids, epochs, olds, oldHashes, news, newHashes, keys, seqs, times, kinds, data, hashes, claims, states, updates)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			done[index[id]] = true
		}
		return rows.Err()
	})
	if err != nil {
		return nil, wrap(err)
	}
	return done, nil
}

// Confirm implements [engine.Database], with a write: that waits until everything before it has reached a
// standby, which reading does not.
func (d *Database) Confirm(ctx context.Context, session string) (st engine.State, err error) {
	err = d.single(ctx, func(conn *sql.Conn) (err error) {
		st, err = sqlstore.ScanState(conn.QueryRowContext(ctx, sqlstore.ConfirmQuery, session).Scan)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = d.Missing(ctx, d.read, session)
	}
	return st, wrap(err)
}

// single runs one statement that is a transaction.
func (d *Database) single(ctx context.Context, f func(*sql.Conn) error) error {
	conn, err := d.append.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	settled(conn) // forget what was before
	if err := f(conn); err != nil {
		return err
	}
	return settled(conn)
}

// isCode reports whether an error of the server has one of some codes.
func isCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	for _, c := range codes {
		if strings.HasPrefix(e.Code, c) {
			return true
		}
	}
	return false
}

// passes reports whether a transaction that failed may succeed when it is tried again, or may have been
// committed.
func passes(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Rolled back for others' sake, a lock that was not to be had, a server that starts or stops.
		return isCode(err, "40", "55P03", "57P0", "08")
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, e := range []error{errDoubt, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || pgconn.SafeToRetry(err)
}

// wrap makes errors of the server wrap the sentinels of package engine.
func wrap(err error) error {
	switch {
	case isCode(err, "53100"):
		return fmt.Errorf("%w: %w", engine.ErrFull, err)
	case isCode(err, "25006"):
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, err)
	case isCode(err, "XX001", "XX002"):
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return err
}
