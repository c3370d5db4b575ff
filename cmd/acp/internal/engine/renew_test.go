package engine_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlstore"
	"github.com/goacp/acp/internal/long"
)

// grow adds a session with records, as the earlier version has written them, to its log.
func grow(t testing.TB, db *sql.DB, id string, records int) (end engine.Head) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	exec := func(q string, args ...any) {
		t.Helper()
		if _, err := tx.ExecContext(t.Context(), q, args...); err != nil {
			t.Fatal(err)
		}
	}
	n := int64(binary.BigEndian.Uint64(fmt.Appendf(nil, "%-8.8s", id)))
	data := fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk","text":%q}}`, strings.Repeat("word ", 100))
	for at := time.Unix(1_700_000_000, 0); end.Seq < uint64(records); {
		end.Seq++
		const kind, epoch = "update", 1
		h := sha256.New()
		h.Write(append([]byte("acp engine record 1\n"), end.Hash[:]...))
		for _, v := range []any{end.Seq, uint32(epoch), uint64(at.UnixNano()), uint64(len(id)), uint64(len(kind)), uint64(len(data))} {
			_ = binary.Write(h, binary.BigEndian, v)
		}
		h.Write([]byte(id + kind + string(data)))
		h.Sum(end.Hash[:0])
		exec(`INSERT INTO acp_record (n, seq, epoch, time, kind, data, hash) VALUES (?, ?, ?, ?, ?, ?, ?)`, n, int64(end.Seq), epoch, at.UnixNano(), kind, data, end.Hash[:])
	}
	exec(`INSERT INTO acp_head (id, n, epoch, claim, node, seq, hash, damaged, damaged_at) VALUES (?, ?, 1, 0, '', ?, ?, '', 0)`, id, n, int64(end.Seq), end.Hash[:])
	exec(`INSERT INTO acp_session (id, agent, agent_session, cwd, title, owner, state, parent, attributes, created, updated, version)
		VALUES (?, 'a', 's', '/', '', 'local', 'idle', '', x'', 1000, 1000, 0)`, id)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return end
}

// earlierFile opens the log of the earlier version as a database.
func earlierFile(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "log.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// logged opens a database as nodes do.
func logged(t testing.TB, db engine.Database) *engine.Engine {
	t.Helper()
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(t.TempDir(), "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(db, w, engine.Options{LeaseTTL: time.Hour, Alarm: func(session string, err error) { t.Error(session, err) }})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// usable appends to a session.
func usable(t *testing.T, e *engine.Engine, id string) {
	t.Helper()
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	own, err := e.Claim(t.Context(), id, l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Append(t.Context(), engine.Record{Kind: "mark", Data: []byte("{}")}); err != nil {
		t.Error(err)
	}
	if err := errors.Join(e.Verify(t.Context(), id), own.Release(t.Context()), l.Release(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestRenew: a database of the earlier version is refused while a node is live that uses it. Otherwise it says the same as
// journals, which can be continued, and nothing else is left in it.
func TestRenew(t *testing.T) {
	dir, all := earlierDir(t)
	file := filepath.Join(dir, "log.db")
	change(t, dir, `UPDATE acp_lease SET expires = 9000000000000000`)
	if _, err := sqlite.OpenDatabase(t.Context(), file, 0); err == nil || !strings.Contains(err.Error(), "uses them (node-4)") {
		t.Errorf("while a node is live: %v", err)
	}
	change(t, dir, `UPDATE acp_lease SET expires = 1`)
	change(t, dir, `CREATE TABLE IF NOT EXISTS acp_ask (id text)`)
	if v, err := sqlstore.VersionOf(t.Context(), earlierFile(t, dir)); v != sqlstore.EarlierVersion || err != nil {
		t.Errorf("it has version %d then, %v", v, err)
	}
	for range 2 {
		db, err := sqlite.OpenDatabase(t.Context(), file, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := logged(t, db)
		same(t, e, all)
		usable(t, e, "s_e84ca94f1a4b729930f6d7a8")
		usable(t, e, "s_quiet")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	left(t, earlierFile(t, dir))
}

// left checks that nothing is left of a renewal.
func left(t testing.TB, db *sql.DB) {
	t.Helper()
	for what, q := range map[string]string{
		"versions": `SELECT count(*) - 1 FROM acp_meta`, "another version": fmt.Sprintf(`SELECT max(version) - %d FROM acp_meta`, sqlstore.Version),
		"tables":     `SELECT count(*) FROM sqlite_schema WHERE name IN ('acp_ask', 'acp_operation')`,
		"tombstones": `SELECT count(*) FROM acp_tombstone`, "leases": `SELECT count(*) FROM acp_lease WHERE node LIKE '/%'`,
		"records": `SELECT count(*) FROM acp_record WHERE n NOT IN (SELECT n FROM acp_head)`,
	} {
		var n int
		if err := db.QueryRowContext(t.Context(), q).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
}

// TestRenewCutOff: wherever it is cut off, no program of the earlier version opens the database, no other one continues before the
// lease has lapsed, and then one does.
func TestRenewCutOff(t *testing.T) {
	cutOff := 0
	for n := 1; ; n += 7 {
		dir, all := earlierDir(t)
		raw := earlierFile(t, dir)
		want := grow(t, raw, "large", 600) // more than a transaction has
		if _, err := raw.ExecContext(t.Context(), `UPDATE acp_lease SET expires = 1`); err != nil {
			t.Fatal(err)
		}
		writes := n
		store := sqlstore.New(sqlstore.Dialect{
			Blob: "blob", Record: "WITHOUT ROWID", Now: "cast(unixepoch('subsec') * 1000000 AS integer)", Read: raw,
			Write: func(ctx context.Context, f func(sqlstore.Tx) error) error {
				if writes--; writes < 0 {
					return errCut
				}
				tx, err := raw.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer tx.Rollback()
				if err := f(tx); err != nil {
					return err
				}
				return tx.Commit()
			},
			Wrap: func(err error) error { return err },
		})
		err := store.Prepare(t.Context())
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if v, err := sqlstore.VersionOf(t.Context(), raw); v != sqlstore.Version || err != nil {
			t.Errorf("after %d writes it has version %d, %v", n, v, err)
		}
		file := filepath.Join(dir, "log.db")
		if err != nil {
			cutOff++
			if _, e := sqlite.OpenDatabase(t.Context(), file, 0); e == nil && !clean(t, raw) || e != nil && !strings.Contains(e.Error(), "another acp serve converts") {
				t.Errorf("after %d writes: %v", n, e)
			}
		}
		change(t, dir, `UPDATE acp_lease SET expires = 1`)
		db, e := sqlite.OpenDatabase(t.Context(), file, 0)
		if e != nil {
			t.Fatal(e)
		}
		log := logged(t, db)
		if h, err := log.Head(t.Context(), "large"); h.Seq != want.Seq+1 || err != nil {
			t.Errorf("the large session ends with record %d, %v", h.Seq, err)
		}
		if err := log.Verify(t.Context(), "large"); err != nil {
			t.Error(err)
		}
		if _, err := log.Delete(t.Context(), "large"); err != nil {
			t.Error(err)
		}
		same(t, log, all)
		change(t, dir, `DELETE FROM acp_tombstone WHERE id = 'large' AND purged = 1`)
		left(t, raw)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
	}
	if cutOff < 5 {
		t.Errorf("it was cut off %d times", cutOff)
	}
}

// clean reports whether all sessions are journals.
func clean(t testing.TB, db *sql.DB) bool {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM acp_meta`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// TestRenewPostgres is TestRenew with PostgreSQL, and two nodes that begin at the same time.
func TestRenewPostgres(t *testing.T) {
	long.Test(t)
	s := pgtest.New(t)
	t.Cleanup(s.Remove)
	s.Init(t)
	s.Start(t)
	s.Query(t, "postgres", "CREATE DATABASE acp")
	open := func() (engine.Database, error) { return postgres.OpenDatabase(t.Context(), s.DSN("acp")) }
	db, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	dir, all := earlierDir(t)
	raw := earlierFile(t, dir)
	grow(t, raw, "large", 600)
	for table, columns := range map[string]int{"acp_session": 12, "acp_share": 3, "acp_head": 9, "acp_record": 7, "acp_lease": 3} {
		rows, err := raw.QueryContext(t.Context(), `SELECT * FROM `+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, columns), make([]any, columns)
			var marks []string
			for i := range values {
				into[i], marks = &values[i], append(marks, fmt.Sprintf("$%d", i+1))
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				if b, ok := v.([]byte); v == nil || ok && b == nil {
					values[i] = []byte{} // no column is NULL
				}
			}
			s.Query(t, "acp", `INSERT INTO `+table+` VALUES (`+strings.Join(marks, ", ")+`)`, values...)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s.Query(t, "acp", `UPDATE acp_meta SET version = 1`)
	s.Query(t, "acp", `UPDATE acp_lease SET expires = 9000000000000000`)
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "uses them (node-4)") {
		t.Errorf("while a node is live: %v", err)
	}
	s.Query(t, "acp", `UPDATE acp_lease SET expires = 1`)
	type opened struct {
		db  engine.Database
		err error
	}
	both := make(chan opened)
	for range 2 {
		go func() {
			db, err := open()
			both <- opened{db, err}
		}()
	}
	done := 0
	for range 2 {
		o := <-both
		if o.err != nil {
			if !strings.Contains(o.err.Error(), "another acp serve converts") {
				t.Error(o.err)
			}
			continue
		}
		done++
		if err := o.db.Close(); err != nil {
			t.Error(err)
		}
	}
	if done == 0 {
		t.Error("nobody has opened it")
	}
	if db, err = open(); err != nil {
		t.Fatal(err)
	}
	e := logged(t, db)
	usable(t, e, "large")
	if _, err := e.Delete(t.Context(), "large"); err != nil {
		t.Error(err)
	}
	same(t, e, all)
	usable(t, e, "s_e84ca94f1a4b729930f6d7a8")
	usable(t, e, "s_quiet")
}
