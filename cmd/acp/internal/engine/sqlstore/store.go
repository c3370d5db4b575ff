// Package sqlstore is the part of an [engine.Database] that is the same SQL everywhere: everything
// but opening, appending and confirming. It uses what SQLite, PostgreSQL, CockroachDB and YugabyteDB
// have in common.
package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// Version is that of the tables. A database with another one is not opened, except for one of EarlierVersion, which had the same
// tables, and records that are not those of journals: see [engine.Earlier].
const (
	Version        = 2
	EarlierVersion = 1
)

// tables has {…} where databases differ; see [Dialect].
const tables = `
CREATE TABLE IF NOT EXISTS acp_meta (version bigint PRIMARY KEY);
CREATE TABLE IF NOT EXISTS acp_session (
	id            text   PRIMARY KEY,
	agent         text   NOT NULL,
	agent_session text   NOT NULL,
	cwd           text   NOT NULL,
	title         text   NOT NULL,
	owner         text   NOT NULL,
	state         text   NOT NULL,
	parent        text   NOT NULL,
	attributes    {blob} NOT NULL,
	created       bigint NOT NULL, -- nanoseconds since 1970, by the clock of a node
	updated       bigint NOT NULL,
	version       bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS acp_session_updated ON acp_session (updated, id);
CREATE INDEX IF NOT EXISTS acp_session_owner ON acp_session (owner, updated, id);
CREATE TABLE IF NOT EXISTS acp_share (
	session text NOT NULL,
	who     text NOT NULL,
	role    text NOT NULL,
	PRIMARY KEY (session, who)
);
CREATE INDEX IF NOT EXISTS acp_share_who ON acp_share (who, session);
CREATE TABLE IF NOT EXISTS acp_head ( -- apart from acp_session, since each append rewrites its row
	id         text   PRIMARY KEY,
	n          bigint NOT NULL UNIQUE,
	epoch      bigint NOT NULL,
	claim      bigint NOT NULL, -- a random number of each claim
	node       text   NOT NULL,
	seq        bigint NOT NULL,
	hash       {blob} NOT NULL,
	damaged    text   NOT NULL,
	damaged_at bigint NOT NULL
) {head};
CREATE TABLE IF NOT EXISTS acp_record (
	n     bigint NOT NULL,
	seq   bigint NOT NULL,
	epoch bigint NOT NULL,
	time  bigint NOT NULL,
	kind  text   NOT NULL,
	data  {blob} NOT NULL,
	hash  {blob} NOT NULL,
	PRIMARY KEY (n, seq)
) {record};
CREATE TABLE IF NOT EXISTS acp_tombstone (
	id      text   PRIMARY KEY,
	n       bigint NOT NULL,
	deleted bigint NOT NULL, -- microseconds by the clock of the database, as until and expires
	purged  bigint NOT NULL  -- whether the records are gone
);
CREATE TABLE IF NOT EXISTS acp_lease (
	node   text   PRIMARY KEY,
	token  bigint NOT NULL,
	expires bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS acp_node (
	node text   PRIMARY KEY,
	info {blob} NOT NULL,
	seen bigint NOT NULL -- when it was written, as expires
)`

// A Tx is what runs statements in a transaction: [*sql.Tx] is one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A Dialect is what differs between databases.
type Dialect struct {
	// Blob is the type of bytes.
	Blob string
	// Head and Record are options of the tables of heads and records; they may be empty.
	Head, Record string
	// Now is an expression for the time by the clock of the database, in microseconds since 1970.
	Now string
	// Read is for reading, outside of transactions.
	Read *sql.DB
	// Write calls f in a transaction and commits it. If the outcome is unknown, or the transaction
	// was refused for a reason that passes, it begins anew; f recognises what it did before.
	Write func(ctx context.Context, f func(Tx) error) error
	// Wrap makes an error of the database wrap a sentinel of package engine where one applies.
	Wrap func(error) error
}

// A Store implements the methods of an [engine.Database] aside from Append, Confirm, Writers and
// Close. It is safe for concurrent use.
type Store struct {
	d       Dialect
	words   *strings.Replacer
	renewed int
}

// New returns a store in a database that [Store.Prepare] must prepare.
func New(d Dialect) *Store {
	return &Store{d: d, words: strings.NewReplacer("{blob}", d.Blob, "{head}", d.Head, "{record}", d.Record, "{now}", d.Now)}
}

// Prepare creates the tables that are missing, and ends deletions that were cut off. It makes journals of the sessions in a
// database of [EarlierVersion], unless nodes are live that use it. It fails if the tables are of another version.
func (s *Store) Prepare(ctx context.Context) error {
	r, needed := renewal(newToken()), false
	err := s.d.Write(ctx, func(tx Tx) error {
		for _, stmt := range strings.Split(s.sql(tables), ";\n") {
			if _, err := tx.ExecContext(ctx, stmt); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO acp_meta (version) SELECT cast($1 AS bigint) WHERE NOT EXISTS (SELECT 1 FROM acp_meta)`, Version); err != nil {
			return err
		}
		version, err := VersionOf(ctx, tx)
		if err == nil && version > Version {
			err = fmt.Errorf("the tables have version %d, this program knows %d", version, Version)
		}
		if err == nil {
			needed, err = s.beginRenewal(ctx, tx, r)
		}
		return err
	})
	if err == nil && needed {
		err = s.renew(ctx, r)
	}
	if err != nil {
		return s.d.Wrap(err)
	}
	return s.purgeAll(ctx)
}

// Renewed returns how many sessions of an earlier version Prepare has made journals of.
func (s *Store) Renewed() int { return s.renewed }

// VersionOf returns the version of the tables, or 0 if there are none.
func VersionOf(ctx context.Context, tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM acp_meta`).Scan(&version)
	return version, err
}

// sql puts the words of the dialect into a statement.
func (s *Store) sql(q string) string {
	if !strings.Contains(q, "{") {
		return q
	}
	return s.words.Replace(q)
}

// write runs f in a transaction, with the errors wrapped.
func (s *Store) write(ctx context.Context, f func(Tx) error) error {
	return s.d.Wrap(s.d.Write(ctx, f))
}

// exec runs a statement and returns how many rows it has changed.
func (s *Store) exec(ctx context.Context, tx Tx, q string, args ...any) (int64, error) {
	r, err := tx.ExecContext(ctx, s.sql(q), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// newToken returns a random positive number, by which a call recognises what it has written.
func newToken() int64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) >> 1)
}

func instant(n int64) time.Time { return time.Unix(0, n).UTC() }

// bytesOf returns bytes that are not NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// nilIfEmpty is the reverse.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// stateColumns are those that scanState reads.
const stateColumns = `acp_head.id, acp_head.n, acp_head.epoch, acp_head.claim, acp_head.node, acp_head.seq, acp_head.hash`

// StateQuery reads the row of a session for [ScanState].
const StateQuery = `SELECT ` + stateColumns + ` FROM acp_head WHERE id = $1`

// ConfirmQuery is StateQuery as a write.
const ConfirmQuery = `UPDATE acp_head SET seq = seq WHERE id = $1 RETURNING ` + stateColumns

// stateRow is where a row of acp_head is scanned to.
type stateRow struct {
	st         engine.State
	epoch, seq int64
	hash       []byte
}

func (r *stateRow) into() []any {
	return []any{&r.st.Session, &r.st.Key, &r.epoch, &r.st.Claim, &r.st.Node, &r.seq, &r.hash}
}

// state returns the row. A head that cannot be one is damaged.
func (r *stateRow) state() (engine.State, error) {
	if r.epoch < 0 || r.epoch > 1<<32-1 || r.seq < 0 || len(r.hash) != len(r.st.Hash) {
		return engine.State{}, fmt.Errorf("%w: the head of session %q makes no sense", engine.ErrCorrupt, r.st.Session)
	}
	r.st.Epoch, r.st.Seq = uint32(r.epoch), uint64(r.seq)
	copy(r.st.Hash[:], r.hash)
	return r.st, nil
}

// ScanState reads a row of the columns of StateQuery.
func ScanState(scan func(...any) error) (engine.State, error) {
	var r stateRow
	if err := scan(r.into()...); err != nil {
		return engine.State{}, err
	}
	return r.state()
}

// Missing returns the error for a session that has no head: that it was deleted, or never was.
func (s *Store) Missing(ctx context.Context, tx Tx, id string) error {
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM acp_tombstone WHERE id = $1`, id).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return engine.ErrDeleted
	}
	return engine.ErrNotFound
}

// State implements [engine.Database].
func (s *Store) State(ctx context.Context, id string) (engine.State, error) {
	st, err := ScanState(s.d.Read.QueryRowContext(ctx, StateQuery, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.Missing(ctx, s.d.Read, id)
	}
	return st, s.d.Wrap(err)
}

// Records implements [engine.Database].
func (s *Store) Records(ctx context.Context, key int64, from uint64, n, size int) ([]engine.Record, error) {
	rows, err := s.d.Read.QueryContext(ctx, `SELECT seq, epoch, time, kind, data, hash FROM acp_record WHERE n = $1 AND seq >= $2 ORDER BY seq LIMIT $3`, key, int64(from), n)
	if err != nil {
		return nil, s.d.Wrap(err)
	}
	defer rows.Close()
	all := make([]engine.Record, 0, n)
	var r engine.Record // these are filled anew for each row
	var seq, epoch, at int64
	var hash sql.RawBytes
	for size > 0 && rows.Next() {
		if err := rows.Scan(&seq, &epoch, &at, &r.Kind, &r.Data, &hash); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			// Each column has the type it is scanned to: only damage gives it another one.
			return nil, fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
		if epoch < 0 || epoch > 1<<32-1 || len(hash) != len(r.Hash) {
			return nil, fmt.Errorf("%w: record %d makes no sense", engine.ErrCorrupt, seq)
		}
		r.Seq, r.Epoch, r.At, r.Hash = uint64(seq), uint32(epoch), instant(at), [32]byte(hash)
		size -= len(r.Data)
		all = append(all, r)
	}
	return all, s.d.Wrap(rows.Err())
}
