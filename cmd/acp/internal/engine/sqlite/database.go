// Package sqlite keeps what an [engine.Engine] has on this machine beside its journals, in SQLite: an index of them, and a
// witness. Its [Database] can hold the records, too, as earlier versions had them; that is for what reads those, and for tests.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlstore"
)

const (
	witnessName = "heads.db"
	// What the files are marked as: "acpE", "acpW" and "acpR".
	logID     = 0x61637045
	witnessID = 0x61637057
	indexID   = 0x61637052
	// pageSize is SQLite's default.
	pageSize = 4096
	// readConns is how many connections read: the chunks of the engine, and short queries.
	readConns = 6
	// readCache is how much of the file each of them keeps in memory, in KiB: the inner pages of the trees. The system has
	// the others, and a log is read from one end to the other.
	readCache = 256
)

// A Database is the file with the log. It implements [engine.Database].
type Database struct {
	*sqlstore.Store
	read   *sql.DB
	write  *sql.DB
	turn   chan struct{} // holds a value while nobody writes
	closed chan struct{}
	writer *writer // of whoever has the turn; nil until it is needed
}

// A writer is the only connection that writes, with the statements it repeats.
type writer struct {
	conn         *sql.Conn
	head, insert *sql.Stmt
}

// close closes the statements, without which SQLite would keep the connection open, and gives the
// connection back, as a broken one if bad is set.
func (w *writer) close(bad error) {
	for _, s := range []*sql.Stmt{w.head, w.insert} {
		if s != nil {
			s.Close()
		}
	}
	w.conn.Raw(func(any) error { return bad })
	w.conn.Close()
}

var _ engine.Database = (*Database)(nil)

// OpenDatabase opens the file of a log, or creates it. maxBytes bounds its size; at the bound writes
// fail with [engine.ErrFull]. 0 means that only the disk bounds it.
func OpenDatabase(ctx context.Context, path string, maxBytes int64) (*Database, error) {
	return openDatabase(ctx, path, logID, maxBytes, "synchronous(FULL)")
}

func openDatabase(ctx context.Context, path string, id int, maxBytes int64, pragmas ...string) (_ *Database, err error) {
	pragmas = append(pragmas, "cache_size(-16000)")
	if maxBytes > 0 {
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", max(maxBytes/pageSize, 1)))
	}
	d := &Database{turn: make(chan struct{}, 1), closed: make(chan struct{})}
	d.turn <- struct{}{}
	if d.write, err = open(ctx, path, id, pragmas...); err != nil {
		return nil, err
	}
	if d.read, err = open(ctx, path, id, "query_only(1)", fmt.Sprintf("cache_size(-%d)", readCache)); err != nil {
		return nil, errors.Join(err, d.write.Close())
	}
	d.read.SetMaxOpenConns(readConns)
	d.read.SetMaxIdleConns(readConns)
	d.Store = sqlstore.New(sqlstore.Dialect{
		// Records lie by session in the file, so that a damaged page hits few of them.
		Blob: "blob", Record: "WITHOUT ROWID",
		Now:  "cast(unixepoch('subsec') * 1000000 AS integer)",
		Read: d.read,
		Write: func(ctx context.Context, f func(sqlstore.Tx) error) error {
			return d.transact(ctx, func(w *writer) error { return f(w.conn) })
		},
		Wrap: wrap,
	})
	if err = d.Prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), d.Close())
	}
	return d, nil
}

// open opens a file that is empty or has an id.
func open(ctx context.Context, path string, id int, pragmas ...string) (_ *sql.DB, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite would create it readable by others.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	q := url.Values{}
	for _, p := range append([]string{"busy_timeout(10000)", "journal_mode(WAL)", "trusted_schema(0)", "cell_size_check(1)",
		"secure_delete(FAST)", "journal_size_limit(67108864)"}, pragmas...) {
		q.Add("_pragma", p)
	}
	db, err := sql.Open("sqlite", location(path, q))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, wrap(err)), db.Close())
		}
	}()
	var has, tables int
	if err := db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&has, &tables); err != nil {
		return nil, err
	}
	switch {
	case has == id:
		return db, nil
	case has != 0 || tables > 0:
		return nil, errors.New("the file is of another program")
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, id))
	return db, err
}

// location returns a path as SQLite wants it, with parameters.
func location(path string, q url.Values) string {
	url := url.URL{Path: filepath.ToSlash(path)}
	name := url.EscapedPath()
	if !strings.HasPrefix(name, "/") {
		if abs, err := filepath.Abs(path); err == nil {
			url.Path = filepath.ToSlash(abs)
		}
		if name = url.EscapedPath(); !strings.HasPrefix(name, "/") { // a drive
			name = "/" + name
		}
	}
	return "file://" + name + "?" + q.Encode()
}

// Writers implements [engine.Database]: SQLite has one.
func (d *Database) Writers() int { return 1 }

// Close implements [engine.Database].
func (d *Database) Close() error {
	<-d.turn // and it is not given back: nobody writes any more
	close(d.closed)
	// The last connection to be closed moves what is in SQLite's log to the file, and those that
	// read must not.
	err := d.read.Close()
	if d.writer != nil {
		d.writer.close(nil)
	}
	return errors.Join(err, d.write.Close())
}

// begin waits for the turn and returns the writer.
func (d *Database) begin(ctx context.Context) (*writer, error) {
	select {
	case <-d.turn:
	case <-d.closed:
		return nil, engine.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.writer != nil {
		return d.writer, nil
	}
	conn, err := d.write.Conn(ctx)
	if err != nil {
		d.turn <- struct{}{}
		return nil, err
	}
	d.writer = &writer{conn: conn}
	return d.writer, nil
}

// end gives the turn back. After an error that is not the engine's own the connection is closed: no
// transaction may be left open in it.
func (d *Database) end(w *writer, broken bool) {
	if broken {
		d.writer = nil
		w.close(driver.ErrBadConn)
	}
	d.turn <- struct{}{}
}

// transact runs f in a transaction.
func (d *Database) transact(ctx context.Context, f func(*writer) error) (err error) {
	w, err := d.begin(ctx)
	if err != nil {
		return err
	}
	broken := true // also if f panics
	defer func() { d.end(w, broken) }()
	if _, err := w.conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := f(w); err != nil {
		_, e := w.conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		broken = e != nil
		return err
	}
	// Not given up half way: what is known then is whether it was committed.
	if _, err := w.conn.ExecContext(context.WithoutCancel(ctx), `COMMIT`); err != nil {
		w.conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		return err
	}
	broken = false
	return nil
}

// Confirm implements [engine.Database]. There are no standbys; the connection that writes sees what was
// committed.
func (d *Database) Confirm(ctx context.Context, session string) (engine.State, error) {
	w, err := d.begin(ctx)
	if err != nil {
		return engine.State{}, err
	}
	st, err := sqlstore.ScanState(w.conn.QueryRowContext(ctx, sqlstore.StateQuery, session).Scan)
	missing := errors.Is(err, sql.ErrNoRows)
	d.end(w, err != nil && !missing)
	if missing {
		err = d.Missing(ctx, d.read, session)
	}
	return st, wrap(err)
}

// wrap makes errors of SQLite wrap the sentinels of package engine.
func wrap(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", engine.ErrFull, err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	case sqlite3.SQLITE_IOERR:
		if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
	}
	return err
}
