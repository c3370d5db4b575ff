package store

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
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

const (
	// busy is how long a call waits for other writers, in milliseconds.
	busy = 10_000
	// smallFile is the size in bytes up to which a file is always checked in full.
	smallFile = 8 << 20
	// checkTime bounds the full check of a file; what it did not get to see shows when it
	// is read.
	checkTime = 3 * time.Second
	// lockTime bounds waiting for another process that is making, checking or
	// rebuilding the store.
	lockTime = 30 * time.Second
)

// Open opens a store, and makes one, with its directory, if there is none. Both can be read by their
// owner only.
//
// A file that is broken is set aside and what can be read from it is put into a new one; damage
// tells, and err is nil. That is not done while another process has the file open: then the
// error is [ErrBroken]. A file of a later version of the program is [ErrNewer], one of another program
// [ErrForeign]; they are left alone.
//
// The whole file is checked if it is small, if the last process that had it open did not
// close it, or if it could not be read then. That takes three seconds at most.
func Open(ctx context.Context, o Options) (s *Store, damage *Damage, err error) {
	if o.Path == "" {
		s, err = openFile(ctx, o)
		if err != nil {
			return nil, nil, fmt.Errorf("open store in memory: %w", err)
		}
		return s, nil, nil
	}
	if o.Path, err = filepath.Abs(o.Path); err != nil {
		return nil, nil, fmt.Errorf("open store: %w", err)
	}
	s, damage, err = open(ctx, o)
	if err != nil {
		return nil, nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	return s, damage, nil
}

func open(ctx context.Context, o Options) (_ *Store, damage *Damage, err error) {
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(o.Path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a file")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	lock, alone, err := lockStore(ctx, o.Path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil && lock != nil {
			lock.Close()
		}
	}()
	if alone {
		sweep(o.Path)
		if damage, err = resume(o.Path); err != nil {
			return nil, nil, err
		}
	}
	reason, err := inspect(o.Path)
	if err != nil {
		return nil, nil, err
	}
	var s *Store
	if reason == nil {
		// SQLite removes this file when the last process closes the store.
		_, unclean := os.Stat(o.Path + "-wal")
		s, err = openFile(ctx, o)
		if err == nil && alone {
			if reason = s.check(ctx, unclean == nil); reason != nil {
				s.Close()
			}
		} else if isBroken(err) {
			reason, err = err, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if reason == nil && damage != nil {
		if err := s.count(ctx, damage); err != nil {
			s.Close()
			return nil, nil, err
		}
	}
	if reason != nil {
		if !alone {
			return nil, nil, fmt.Errorf("%w (%v), and another acp has it open: end that and try again", ErrBroken, reason)
		}
		if damage, err = rebuild(ctx, o.Path, reason); err != nil {
			return nil, nil, err
		}
		if s, err = openFile(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	if alone && lock != nil {
		os.Remove(suspectPath(o.Path))
		// Taken back at once, but by no means to wait for: who has it now opens the same file.
		_, _ = filelock.TryLock(lock, false)
	}
	s.lock = lock
	return s, damage, nil
}

// lockStore takes the lock beside the store: alone if nobody else has it, else with the others. Where
// there are no locks it is nil, and not alone.
func lockStore(ctx context.Context, path string) (_ *os.File, alone bool, err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	end := time.NewTimer(lockTime)
	defer end.Stop()
	for {
		for _, alone := range []bool{true, false} {
			ok, err := filelock.TryLock(f, alone)
			if err != nil {
				f.Close()
				return nil, false, nil
			}
			if ok {
				return f, alone, nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-end.C:
			f.Close()
			return nil, false, errors.New("another acp is rebuilding it: try again later")
		case <-ctx.Done():
			f.Close()
			return nil, false, ctx.Err()
		}
	}
}

// inspect looks at the beginning of the file without SQLite, which would change it. It returns why the
// file is broken, or an error if it must be left alone.
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

// dsn returns the name by which the driver opens the file, with transactions that take the write lock
// from their beginning (immediate) or when they write (deferred).
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

// openFile opens a file that is sound as far as is known, or makes it, and brings it to the latest
// version.
func openFile(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Path != "" {
		if err := create(ctx, o.Path); err != nil {
			return nil, err
		}
	}
	sync := "synchronous(FULL)"
	if o.Normal {
		sync = "synchronous(NORMAL)"
	}
	common := []string{fmt.Sprintf("busy_timeout(%d)", busy), "foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)"}
	write, err := sql.Open("sqlite", dsn(o.Path, "immediate", append(common, sync, "secure_delete(FAST)", "journal_size_limit(67108864)")...))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	s := &Store{path: o.Path, write: write, read: write, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := migrate(ctx, write); err != nil {
		write.Close()
		return nil, err
	}
	if o.Path != "" {
		if s.read, err = sql.Open("sqlite", dsn(o.Path, "deferred", append(common, "query_only(1)")...)); err != nil {
			write.Close()
			return nil, err
		}
		s.read.SetMaxOpenConns(4)
		s.read.SetMaxIdleConns(2)
	}
	ictx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.runIndexer(ictx)
	return s, nil
}

// create makes a new file if there is none. It is made under another name, so that a file under its
// own name is never half a store.
func create(ctx context.Context, path string) (err error) {
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
	// What an earlier file has left would be taken for this one's.
	for _, tail := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// A link, unlike a rename, leaves the file of another process that was faster.
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
	}
	syncDir(path)
	return nil
}

// check looks at the whole file if there is reason to, and says what is wrong with it.
func (s *Store) check(ctx context.Context, unclean bool) error {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil
	}
	_, suspect := os.Stat(suspectPath(s.path))
	if info.Size() > smallFile && suspect != nil && !unclean {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var what string
	err = s.write.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&what)
	switch {
	case isBroken(err):
		return err
	case err != nil:
		return nil // not known to be broken
	case what == "ok":
		if suspect != nil {
			return nil
		}
		// What could not be read may have been the index of texts, which is not looked into by that.
		if _, err := s.write.ExecContext(ctx, `INSERT INTO message_text (message_text) VALUES ('rebuild')`); isBroken(err) {
			return err
		}
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
	return errors.Is(err, ErrBroken)
}

// suspectPath names the file that asks the next Open for a full check.
func suspectPath(path string) string { return path + ".suspect" }

// failed wraps an error of a call, and sees to it that a broken file is found at the next Open.
func (s *Store) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if isBroken(err) {
		if s.path != "" {
			s.suspect.Do(func() {
				if f, err := os.OpenFile(suspectPath(s.path), os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
					f.Close()
				}
			})
		}
		return fmt.Errorf("%s: %w: %w: it will be rebuilt at the next start", what, ErrBroken, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
