// Package legacy reads the databases in which earlier versions of the program kept conversations,
// so that these can be imported: see [github.com/goacp/acp/cmd/acp/internal/store.Open]. A damaged
// database is rebuilt from what can still be read.
package legacy

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// busy is how long a call waits for other writers, in milliseconds.
const busy = 10_000

var (
	// ErrNone says that there is no such database.
	ErrNone = errors.New("no database")
	// ErrInUse says that another process has the database open: one of an earlier version.
	ErrInUse = errors.New("another acp has it open")
	// ErrNewer says that the file was made by a later version of the program.
	ErrNewer = errors.New("made by a later version of acp")
	// ErrForeign says that the file is a database of some other program.
	ErrForeign = errors.New("the database of another program")
)

// A Damage describes a database that was broken: where it was put, and what could be read from it.
type Damage struct {
	Reason          string
	Aside           string // where the broken file is now
	Sessions        int    // that were read from it
	Events          int64
	LostSessions    int // that are known to be missing
	SessionsPartial int // that were read, but not all of their events
}

// A DB is an open database that no other process has open. Its methods must not be called
// concurrently. Close it.
type DB struct {
	path string
	db   *sql.DB
	lock *os.File
}

// Open opens a database. If there is none it returns [ErrNone]. If it cannot be imported, now or
// ever, it returns [ErrInUse], [ErrNewer] or [ErrForeign] and leaves the file unchanged. A broken
// database is renamed, and what can be read from it is copied to a new one; damage describes that.
func Open(ctx context.Context, path string) (d *DB, damage *Damage, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(rebuiltPath(path)); e != nil {
			return nil, nil, ErrNone
		}
	} else if err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a file")
	}
	lock, err := lockAlone(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	sweep(path)
	if damage, err = resume(path); err != nil {
		return nil, nil, err
	}
	reason, err := inspect(path)
	if err != nil {
		return nil, nil, err
	}
	if reason == nil {
		if d, err = openFile(ctx, path); err == nil {
			if reason = d.check(ctx); reason != nil {
				d.db.Close()
			}
		} else if isBroken(err) {
			reason, err = err, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if reason == nil && damage != nil {
		if err := d.count(ctx, damage); err != nil {
			d.db.Close()
			return nil, nil, err
		}
	}
	if reason != nil {
		if damage, err = rebuild(ctx, path, reason); err != nil {
			return nil, nil, err
		}
		if d, err = openFile(ctx, path); err != nil {
			return nil, nil, err
		}
	}
	d.lock = lock
	return d, damage, nil
}

// Close closes the database.
func (d *DB) Close() error { return errors.Join(d.db.Close(), d.lock.Close()) }

// lockAlone locks the file beside the database, as processes of earlier versions do.
func lockAlone(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if ok, err := filelock.TryLock(f, true); err == nil && !ok {
		f.Close()
		return nil, ErrInUse
	}
	return f, nil
}

// inspect reads the beginning of the file without SQLite, which would change it. It returns why the
// file is broken, or an error if the file must be left unchanged.
func inspect(path string) (reason, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 100)
	switch n, err := io.ReadFull(f, head); {
	case n == 0 && err == io.EOF:
		return errors.New("the file is empty"), nil
	case err == io.ErrUnexpectedEOF:
		return errors.New("the file is cut off"), nil
	case err != nil:
		return nil, err
	}
	if !strings.HasPrefix(string(head), "SQLite format 3\x00") {
		return errors.New("the file is not a database"), nil
	}
	if binary.BigEndian.Uint32(head[68:]) != applicationID {
		return nil, ErrForeign
	}
	if v := binary.BigEndian.Uint32(head[60:]); int64(v) > int64(len(migrations)) {
		return nil, fmt.Errorf("format %d, and this one knows up to %d: %w", v, len(migrations), ErrNewer)
	}
	return nil, nil
}

// dsn returns the name by which the driver opens the file. Its transactions take the write lock
// when they begin (immediate) or when they write (deferred).
func dsn(path, txlock string, pragmas ...string) string {
	q := url.Values{"_txlock": {txlock}}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	if path == "" {
		return "file::memory:?" + q.Encode()
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// openFile opens a file that seems sound, and migrates it to the latest version.
func openFile(ctx context.Context, path string) (*DB, error) {
	db, err := sql.Open("sqlite", dsn(path, "immediate", fmt.Sprintf("busy_timeout(%d)", busy), "foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)", "synchronous(FULL)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := migrate(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	return &DB{path: path, db: db}, nil
}

// Create creates a file if there is none. The file is created under another name first, so that a
// file under its own name is never half a store.
func Create(ctx context.Context, path string) (err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".new-store-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tmp := filepath.Join(dir, "store")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(tmp, "immediate", fmt.Sprintf("page_size(%d)", pageSize), "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(FULL)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := errors.Join(migrate(ctx, db), db.Close()); err != nil {
		return err
	}
	// What is left of an earlier file would be read as part of this one.
	for _, tail := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Unlike a rename, a link leaves the file of a process that was faster.
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
	}
	syncDir(path)
	return nil
}

// check reads the whole file, and returns what is wrong with it.
func (d *DB) check(ctx context.Context) error {
	var what string
	err := d.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&what)
	switch {
	case isBroken(err):
		return err
	case err != nil:
		return nil // not known to be broken
	case what == "ok":
		return nil
	}
	what = strings.TrimPrefix(strings.TrimSpace(what), "*** in database main ***")
	return errors.New(strings.Join(strings.Fields(what), " "))
}

// isBroken reports whether err is of SQLite and says that the file is damaged.
func isBroken(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
			return true
		}
		return e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return false
}
