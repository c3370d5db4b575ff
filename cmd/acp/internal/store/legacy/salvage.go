package legacy

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"
)

const (
	// salvageRows is how many rows are written to the new file in one transaction.
	salvageRows = 1000
	// pageSize is the page size of all stores, in bytes.
	pageSize = 4096
)

// rebuiltPath names a file that was rebuilt and is to replace the broken one.
func rebuiltPath(path string) string { return path + ".rebuilt" }

// rebuild makes a new file of what can be read from the broken one, renames that with what SQLite
// keeps beside it, and puts the new one in its place. If rebuild fails or is cut off before the
// renaming, the broken file is where it was; if it is cut off later, the next Open finishes it.
func rebuild(ctx context.Context, path string, reason error) (_ *Damage, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".new-store-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fresh := filepath.Join(dir, "store")
	if err := Create(ctx, fresh); err != nil {
		return nil, err
	}
	damage := &Damage{Reason: reason.Error()}
	if err := salvage(ctx, path, fresh, damage); err != nil {
		return nil, fmt.Errorf("rebuild it: %w", err)
	}
	if err := os.Rename(fresh, rebuiltPath(path)); err != nil {
		return nil, err
	}
	syncDir(path)
	damage.Aside, err = replace(path)
	return damage, err
}

// setAside renames a file, with what SQLite keeps beside it.
func setAside(path, as string) (aside string, err error) {
	aside, err = freeName(path+as, "", "-wal", "-shm")
	if err != nil {
		return "", err
	}
	for _, tail := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+tail, aside+tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	syncDir(path)
	return aside, nil
}

// replace renames a broken file and puts the rebuilt one in its place.
func replace(path string) (aside string, err error) {
	if aside, err = setAside(path, ".broken-"+time.Now().UTC().Format("20060102T150405Z")); err != nil {
		return "", err
	}
	if err := os.Rename(rebuiltPath(path), path); err != nil {
		return "", err
	}
	syncDir(path)
	return aside, nil
}

// resume finishes a rebuild that was cut off. The caller has the store alone. damage is nil if
// there is nothing to finish; the caller counts what is in the new file.
func resume(path string) (damage *Damage, err error) {
	if _, err := os.Stat(rebuiltPath(path)); err != nil {
		return nil, nil //nolint:nilerr // there is none
	}
	aside, err := replace(path)
	if err != nil {
		return nil, err
	}
	return &Damage{Reason: "it was being rebuilt when that was cut off", Aside: aside}, nil
}

// count returns how much is in a store that resume put in place.
func (d *DB) count(ctx context.Context, damage *Damage) error {
	return d.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM session WHERE agent <> 'unknown'), (SELECT count(*) FROM event), (SELECT count(*) FROM session WHERE agent = 'unknown')`).
		Scan(&damage.Sessions, &damage.Events, &damage.LostSessions)
}

// oldWork is the age from which on a directory counts as left behind by a process that was killed.
const oldWork = time.Hour

// sweep removes directories of processes that were killed while they created a store here: they may
// hold a copy of one.
func sweep(path string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-store-*")) // the pattern is sound
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > oldWork {
			_ = os.RemoveAll(dir) // otherwise the next time
		}
	}
}

// syncDir makes the names in the directory of a file survive a loss of power, where the system can.
func syncDir(path string) {
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// freeName returns name, or name with a number, such that no file has that name with any of the
// tails.
func freeName(name string, tails ...string) (string, error) {
	for i := range 1000 {
		try := name
		if i > 0 {
			try = fmt.Sprintf("%s-%d", name, i)
		}
		free := true
		for _, tail := range tails {
			_, err := os.Lstat(try + tail)
			free = free && errors.Is(err, fs.ErrNotExist)
		}
		if free {
			return try, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, fs.ErrExist)
}

// salvage copies what can be read. It does not change the broken file.
func salvage(ctx context.Context, from, to string, damage *Damage) error {
	dst, err := sql.Open("sqlite", dsn(to, "immediate", "foreign_keys(1)", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer dst.Close()
	dst.SetMaxOpenConns(1)
	// The file may be useless without the log beside it, or with it.
	for _, how := range []string{"mode=ro", "immutable=1"} {
		// A truncated file is opened only if the schema may be broken as well.
		name := dsn(from, "deferred", "query_only(1)", "cell_size_check(1)", "trusted_schema(0)", "writable_schema(1)")
		done, err := salvageFrom(ctx, name+"&"+how, dst, damage)
		if err != nil || done {
			return errors.Join(err, dst.Close())
		}
	}
	patched := to + "-patched"
	if ok, err := patch(from, to, patched); err != nil || !ok {
		return errors.Join(err, dst.Close())
	}
	_, err = salvageFrom(ctx, dsn(patched, "deferred", "query_only(1)", "cell_size_check(1)", "trusted_schema(0)", "writable_schema(1)")+"&immutable=1", dst, damage)
	return errors.Join(err, dst.Close())
}

// patch copies a file whose first page is useless, and replaces that page with one of a fresh file.
// It says where the tables begin, which is the same in all files of one version of the program.
// patch returns false if the file is too small to hold anything.
func patch(from, fresh, to string) (ok bool, err error) {
	src, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer src.Close()
	f, err := os.Open(fresh)
	if err != nil {
		return false, err
	}
	defer f.Close()
	page := make([]byte, pageSize)
	if _, err := io.ReadFull(f, page); err != nil {
		return false, err
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer dst.Close()
	n, err := io.Copy(dst, src)
	if err != nil || n < 2*pageSize {
		return false, err
	}
	binary.BigEndian.PutUint32(page[28:], uint32(min(n/pageSize, math.MaxUint32))) // the number of pages
	if _, err := dst.WriteAt(page, 0); err != nil {
		return false, err
	}
	return true, dst.Close()
}

// salvageFrom copies what can be read through a name for the driver. It returns false if that is
// nothing.
func salvageFrom(ctx context.Context, name string, dst *sql.DB, damage *Damage) (bool, error) {
	src, err := sql.Open("sqlite", name)
	if err != nil {
		return false, err
	}
	defer src.Close()
	src.SetMaxOpenConns(1)
	c := &copier{src: src, dst: dst, damage: damage, sessions: map[int64]bool{}}
	defer c.rollback()
	if err := c.each(ctx, `SELECT id, agent, sid, command, cwd, title, protocol, created, updated, turns, events, first, reset
FROM session NOT INDEXED WHERE id >= ? ORDER BY id`, c.session); err != nil {
		return false, err
	}
	if err := c.each(ctx, `SELECT id, session, seq, time, kind, data FROM event NOT INDEXED WHERE id >= ? ORDER BY id`, c.event); err != nil {
		return false, err
	}
	if err := c.finish(ctx); err != nil {
		return false, err
	}
	return damage.Sessions+damage.LostSessions > 0, nil
}

// A copier copies the rows of a broken file.
type copier struct {
	src, dst *sql.DB
	tx       *sql.Tx // in dst
	rows     int     // in tx
	damage   *Damage
	sessions map[int64]bool // that are in dst
}

// each calls f with the rows of a query that reads a table in the order of its ids, from a number
// on. At a broken place it continues with the next ids that can be read. It returns the errors of f
// and ctx only.
func (c *copier) each(ctx context.Context, query string, f func(context.Context, *sql.Rows) (id int64, err error)) error {
	next, readable := int64(math.MinInt64), true
	for readable {
		id, broken, err := c.run(ctx, query, next, f)
		if err != nil {
			return err
		}
		if !broken {
			return nil
		}
		if id < math.MaxInt64 {
			next = max(next, id+1)
		}
		if next, readable, err = c.skip(ctx, query, next); err != nil {
			return err
		}
	}
	return nil
}

// run reads rows until the end or a broken place; id is that of the last row.
func (c *copier) run(ctx context.Context, query string, from int64, f func(context.Context, *sql.Rows) (int64, error)) (id int64, broken bool, err error) {
	id = math.MinInt64
	rows, err := c.src.QueryContext(ctx, query, from)
	if err != nil {
		return id, true, ctx.Err()
	}
	defer rows.Close()
	for rows.Next() {
		n, err := f(ctx, rows)
		if err != nil {
			return id, false, err
		}
		id = max(id, n)
	}
	return id, rows.Err() != nil, ctx.Err()
}

// skip returns an id from which on rows can be read again. It tries ids at growing distances, and
// then halves the distance as often as it can. It may thus leave out rows between two broken
// places.
func (c *copier) skip(ctx context.Context, query string, from int64) (int64, bool, error) {
	from = max(from, 0) // ids are positive
	good := func(id int64) bool {
		var first sql.RawBytes
		rows, err := c.src.QueryContext(ctx, query+` LIMIT 1`, id)
		if err != nil {
			return false
		}
		defer rows.Close()
		for rows.Next() {
			cols, err := rows.Columns()
			if err != nil {
				return false
			}
			into := make([]any, len(cols))
			for i := range into {
				into[i] = &first
			}
			if rows.Scan(into...) != nil {
				return false
			}
		}
		return rows.Err() == nil
	}
	for step := int64(1); step < math.MaxInt64/4 && from < math.MaxInt64-step; step *= 2 {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		if !good(from + step) {
			continue
		}
		bad, ok := from+step/2, from+step
		for ok-bad > 1 {
			if mid := bad + (ok-bad)/2; good(mid) {
				ok = mid
			} else {
				bad = mid
			}
		}
		return ok, true, ctx.Err()
	}
	return 0, false, ctx.Err()
}

// session copies a row of a session, if its columns are what they should be.
func (c *copier) session(ctx context.Context, rows *sql.Rows) (int64, error) {
	var id, first, reset int64
	var v Session
	var command string
	var created, updated int64
	err := rows.Scan(&id, &v.Agent, &v.ID, &command, &v.Cwd, &v.Title, &v.Protocol, &created, &updated, &v.Turns, &v.Events, &first, &reset)
	if err != nil || v.ID == "" || id <= 0 {
		return id, nil
	}
	return id, c.insert(ctx, func(tx *sql.Tx) error {
		// events is the expected number, until finish counts.
		res, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO session (id, agent, sid, command, cwd, title, protocol, created, updated, turns, events, first, reset)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, v.Agent, v.ID, command, v.Cwd, v.Title, v.Protocol, created, updated, v.Turns, v.Events, first, reset)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		c.sessions[id] = true
		c.damage.Sessions++
		return nil
	})
}

// event copies a row of an event, if its columns have the right types. If its session is lost, it
// gets a session with an invented id, so that what was said can still be read.
func (c *copier) event(ctx context.Context, rows *sql.Rows) (int64, error) {
	var id, session, at int64
	var e Event
	var data []byte
	if err := rows.Scan(&id, &session, &e.Seq, &at, &e.Kind, &data); err != nil {
		return id, nil
	}
	switch e.Kind {
	case Update, Asked, Answered, Turn, Replayed, Reset:
	default:
		return id, nil
	}
	if e.Seq <= 0 || session <= 0 || !json.Valid(data) {
		return id, nil
	}
	return id, c.insert(ctx, func(tx *sql.Tx) error {
		if !c.sessions[session] {
			_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO session (id, agent, sid, title, created, updated) VALUES (?1, 'unknown', ?2, 'recovered', ?3, ?3)`,
				session, fmt.Sprintf("recovered-%d", session), at)
			if err != nil {
				return err
			}
			c.sessions[session] = true
			c.damage.LostSessions++
		}
		res, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO event (session, seq, time, kind, data) VALUES (?, ?, ?, ?, ?)`, session, e.Seq, at, string(e.Kind), data)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		c.damage.Events += n
		return err
	})
}

// insert runs f in a transaction that holds a number of rows.
func (c *copier) insert(ctx context.Context, f func(*sql.Tx) error) (err error) {
	if c.tx == nil {
		if c.tx, err = c.dst.BeginTx(ctx, nil); err != nil {
			return err
		}
	}
	if err := f(c.tx); err != nil {
		return err
	}
	if c.rows++; c.rows >= salvageRows {
		return c.commit()
	}
	return nil
}

func (c *copier) commit() error {
	tx := c.tx
	c.tx, c.rows = nil, 0
	if tx == nil {
		return nil
	}
	return tx.Commit()
}

func (c *copier) rollback() {
	if c.tx != nil {
		_ = c.tx.Rollback()
	}
}

// finish makes the sessions agree with the events that were read.
func (c *copier) finish(ctx context.Context) error {
	return c.insert(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `
SELECT count(*) FROM session WHERE agent <> 'unknown' AND events > (SELECT count(*) FROM event WHERE session = session.id)`).Scan(&c.damage.SessionsPartial)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `
UPDATE session SET
	events = (SELECT count(*) FROM event WHERE session = session.id),
	seq = (SELECT coalesce(max(seq), 0) FROM event WHERE session = session.id);
INSERT OR IGNORE INTO message (session, role, mid, text) SELECT id, 'title', '', title FROM session WHERE title <> ''`); err != nil {
			return err
		}
		return c.commit()
	})
}
