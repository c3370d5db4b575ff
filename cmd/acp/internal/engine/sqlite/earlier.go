package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlstore"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

const (
	// earlierName is the file in which earlier versions had the records of all sessions, and earlierKept what it is
	// called once they are journals.
	earlierName, earlierKept = "log.db", "log.db.old"
	// maxKept bounds how many of those there may be.
	maxKept = 100
)

// takeOver makes journals of the sessions that an earlier version has kept in a directory. Then it renames their file. It
// fails while another program has the file open.
func takeOver(ctx context.Context, dir string, o engine.Options) error {
	if err := moveJournals(ctx, filepath.Join(dir, journals), journalsOf(dir, o)); err != nil {
		return fmt.Errorf("move the sessions of an earlier version: %w", err)
	}
	path, lock := filepath.Join(dir, earlierName), filepath.Join(dir, earlierName+".lock")
	there := func() (bool, error) {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if ok, err := there(); !ok || err != nil {
		return err
	}
	return filelock.Do(ctx, lock, func() error {
		if ok, err := there(); !ok || err != nil { // another process has done it
			return err
		}
		t, err := OpenEarlier(ctx, path)
		if err != nil {
			return err
		}
		n := 0
		if t.version > 0 {
			n, err = engine.TakeOver(ctx, journalsOf(dir, o), t, o)
		}
		if err = errors.Join(err, t.Close()); err != nil {
			return fmt.Errorf("take over the sessions of an earlier version (to begin without them, move %s away): %w", path, err)
		}
		kept, err := keepEarlier(dir)
		if err != nil {
			return err
		}
		if o.Notice != nil {
			o.Notice(fmt.Sprintf("%d sessions of an earlier version were taken over; its file is called %s now", n, kept))
		}
		_ = os.Remove(lock) // it is useless now; where another process has it open it may have to stay
		return nil
	})
}

// moveJournals moves the journals of a directory to another one, with what is beside them. A journal is the last file
// of its session that is moved, so that a call that was cut off can be repeated. If the other directory has that
// journal already, it is kept, and this one is moved there under a name that no program reads.
func moveJournals(ctx context.Context, from, to string) error {
	list, err := os.ReadDir(from)
	if from == to || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int {
		return cmp.Or(cmp.Compare(len(filepath.Ext(a.Name())), len(filepath.Ext(b.Name()))), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range list {
		if err == nil && e.Type().IsRegular() && filepath.Ext(e.Name()) != ".lock" {
			err = moveFile(ctx, filepath.Join(from, e.Name()), to)
		}
	}
	if err == nil {
		err = file.System{}.SyncDir(to)
	}
	if err == nil {
		_ = os.RemoveAll(from) // of what is left nobody needs anything
	}
	return err
}

// moveFile moves a file to a directory. Nothing is removed before it is there, on the disk.
func moveFile(ctx context.Context, name, dir string) error {
	to := filepath.Join(dir, filepath.Base(name))
	for exists(to) {
		to += ".old"
	}
	err := os.Rename(name, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	part := to + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := copyFile(ctx, name, part); err != nil {
		return err
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	if err := (file.System{}).SyncDir(dir); err != nil {
		return err
	}
	return os.Remove(name)
}

// keepEarlier gives the file of an earlier version another name, which it returns.
func keepEarlier(dir string) (string, error) {
	path := filepath.Join(dir, earlierKept)
	for i := 2; ; i++ {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if i > maxKept {
			return "", fmt.Errorf("there are %d files of earlier versions such as %s: move them away", maxKept, path)
		}
		path = filepath.Join(dir, fmt.Sprintf("%s.%d", earlierKept, i))
	}
	if err := os.Rename(filepath.Join(dir, earlierName), path); err != nil {
		return "", err
	}
	return path, file.System{}.SyncDir(dir)
}

// An Earlier is the file of an earlier version. It implements [engine.Tables].
type Earlier struct {
	*sqlstore.Store
	db      *sql.DB
	version int // 0 if the process that was about to make the tables was killed
	seen    map[string]uint64
}

// State implements [engine.Tables]. What the witness has seen behind the end is missing.
func (e *Earlier) State(ctx context.Context, id string) (engine.State, error) {
	st, err := e.Store.State(ctx, id)
	st.Seq = max(st.Seq, e.seen[id])
	return st, err
}

// noteSeen reads the witness of the earlier version, if there is one. What is damaged there says nothing.
func (e *Earlier) noteSeen(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	db, err := open(ctx, path, witnessID)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT session, seq, hash, sum FROM head`)
	if err != nil {
		return err
	}
	defer rows.Close()
	e.seen = map[string]uint64{}
	for rows.Next() {
		var id string
		var seq int64
		var hash, sum []byte
		if err := rows.Scan(&id, &seq, &hash, &sum); err != nil {
			return err
		}
		h := engine.Head{Seq: uint64(seq)}
		if copy(h.Hash[:], hash); bytes.Equal(sum, checkSum("", id, h)) {
			e.seen[id] = h.Seq
		}
	}
	return rows.Err()
}

// OpenEarlier opens the file of an earlier version for this process alone, until it is closed. Nothing is beside it then.
func OpenEarlier(ctx context.Context, path string) (*Earlier, error) {
	db, err := open(ctx, path, logID)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // another one would wait for this one
	e := &Earlier{Store: sqlstore.New(sqlstore.Dialect{Read: db, Wrap: wrap}), db: db}
	if err := e.begin(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, wrap(err)), db.Close())
	}
	if err := e.noteSeen(ctx, filepath.Join(filepath.Dir(path), witnessName)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return e, nil
}

// begin locks the file and sets the version.
func (e *Earlier) begin(ctx context.Context) error {
	var mode string
	_, err := e.db.ExecContext(ctx, `PRAGMA busy_timeout = 1000; PRAGMA locking_mode = EXCLUSIVE`)
	if err == nil { // which only succeeds if nobody else has it open
		err = e.db.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode)
	}
	switch {
	case isBusy(err):
		return fmt.Errorf("an earlier version of the program uses it, which must end first: %w", err)
	case err == nil && mode != "delete":
		return fmt.Errorf("its journal mode stays %q", mode)
	case err != nil:
		return err
	}
	err = e.db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'acp_meta'`).Scan(&e.version)
	if err == nil && e.version > 0 {
		e.version, err = sqlstore.VersionOf(ctx, e.db)
	}
	if err == nil && e.version > sqlstore.EarlierVersion {
		err = fmt.Errorf("the tables have version %d, which is not that of an earlier program", e.version)
	}
	return err
}

// isBusy reports whether an error says that another program has the file.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// Close closes the file.
func (e *Earlier) Close() error { return e.db.Close() }
