package sqlite

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// Backup writes the journals in a directory to a file, which must not exist, also while other processes
// write them: see [file.Backup]. The file is not complete until Backup has returned: it then has its name. It
// has the mode 0600.
func Backup(ctx context.Context, journals, name string) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	part := name + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was interrupted
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	err = file.Backup(ctx, journals, w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	return file.System{}.SyncDir(filepath.Dir(name))
}

// Restore makes the sessions of a backup those of a directory, which nobody may have open. journals is where they are, if that is
// elsewhere; no program may have one of them open. What was there is kept, in a
// directory beside it whose path is returned, or "". So are the index, which is made anew, and the ends that were seen:
// they may be of records that the backup does not have. After an error everything is where it was, unless the error
// says otherwise.
func Restore(ctx context.Context, from *file.Archive, dir, elsewhere string) (kept string, err error) {
	at := cmp.Or(elsewhere, filepath.Join(dir, journals))
	c := file.Open(at, file.Options{})
	defer func() { err = errors.Join(err, c.Close()) }()
	var open error
	if err := c.List(ctx, func(id string, _ int64) bool {
		if who, owned, err := c.Owner(ctx, id); owned || err != nil {
			open = cmp.Or(err, error(&journal.OwnedError{ID: id, Who: who}))
		}
		return open == nil
	}); err != nil || open != nil {
		return "", errors.Join(err, open)
	}
	return replace(dir, at, func(part string) error { return from.Extract(ctx, part) })
}

// RestoreLog is [Restore] for a backup of an earlier version, which is a database: [Open] takes it over, and verifies
// its records then. It fails with [engine.ErrCorrupt] if pages of the database are damaged, unless that is accepted.
func RestoreLog(ctx context.Context, from, dir string, damaged bool) (kept string, err error) {
	return replace(dir, filepath.Join(dir, earlierName), func(part string) error {
		if err := copyFile(ctx, from, part); err != nil {
			return err
		}
		return errors.Join(checkLog(ctx, part, damaged), removeFiles(part, databaseEnds[1:]))
	})
}

// copyFile copies a file, and syncs it.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(out, in, 64<<20)
		}
	}
	if err == io.EOF {
		err = out.Sync()
	}
	return err
}

// checkLog fails if a file is not the database of an earlier version, or is damaged as a database, unless that is
// accepted.
func checkLog(ctx context.Context, path string, damaged bool) (err error) {
	db, err := open(ctx, path, logID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var says string
	if err = wrap(db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&says)); err == nil && says != "ok" {
		err = fmt.Errorf("%w: %s", engine.ErrCorrupt, says)
	}
	if damaged && errors.Is(err, engine.ErrCorrupt) {
		return nil
	}
	return err
}

// replace puts what make makes in the place of all sessions of a directory, under a path.
func replace(dir, at string, make func(part string) error) (kept string, err error) {
	part := at + ".restoring"
	if err := os.RemoveAll(part); err != nil { // of one that was interrupted
		return "", err
	}
	// All of it first, so that what is there is left alone until it is whole.
	if err := make(part); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	before := "before-" + strconv.FormatInt(time.Now().UnixMicro(), 10)
	old := filepath.Join(dir, before)
	if err := os.Mkdir(old, 0o700); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	moves := [][2]string{}
	for _, was := range keptNames() {
		moves = append(moves, [2]string{filepath.Join(dir, was), filepath.Join(old, was)})
	}
	if filepath.Dir(at) != filepath.Clean(dir) { // last, so that it is what is returned
		moves = append(moves, [2]string{at, at + "." + before})
	}
	var moved [][2]string
	for _, m := range moves {
		if err = os.Rename(m[0], m[1]); err == nil {
			moved = append(moved, m)
		} else if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = nil
	}
	if err == nil {
		err = os.Rename(part, at)
	}
	if err != nil {
		for _, m := range moved {
			err = errors.Join(err, os.Rename(m[1], m[0]))
		}
		return "", errors.Join(err, os.Remove(old), os.RemoveAll(part))
	}
	err = errors.Join(file.System{}.SyncDir(dir), file.System{}.SyncDir(filepath.Dir(at)))
	if len(moved) == 0 {
		return "", errors.Join(os.Remove(old), err)
	}
	if last := moved[len(moved)-1]; last[0] == at && filepath.Dir(at) != filepath.Clean(dir) {
		return last[1], err
	}
	return old, err
}

// keptNames returns the names of everything that is kept of sessions in a directory, or was by earlier versions.
func keptNames() []string {
	names := []string{journals}
	for _, name := range []string{indexName, witnessName, earlierName} {
		for _, end := range databaseEnds {
			names = append(names, name+end)
		}
	}
	return names
}

// Look opens the sessions that are kept in a directory for reading, also while another process has them open. It writes
// neither the index, of which it makes a copy that is gone when the engine is closed, nor journals.
func Look(ctx context.Context, dir string, o engine.Options) (_ *engine.Engine, err error) {
	own, err := os.MkdirTemp("", "acp-index-")
	if err != nil {
		return nil, err
	}
	x := &lookIndex{dir: own}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	path := filepath.Join(own, indexName)
	if copyIndex(ctx, filepath.Join(dir, indexName), path) != nil { // then it is made of the journals
		if err := removeFiles(path, databaseEnds); err != nil {
			return nil, err
		}
	}
	if x.Index, err = OpenIndex(ctx, path); err != nil {
		return nil, err
	}
	var w engine.Witness = blind{}
	if heads := filepath.Join(dir, witnessName); exists(heads) {
		if w, err = OpenWitness(ctx, heads); err != nil {
			return nil, err
		}
	}
	e, err := engine.Files(ctx, journalsOf(dir, o), "", x, w, o)
	if err != nil {
		x = nil // it is closed
	}
	return e, err
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// copyIndex makes a copy of an index, as it is at one moment.
func copyIndex(ctx context.Context, from, to string) (err error) {
	if !exists(from) {
		return fs.ErrNotExist
	}
	// One that may only read would leave files beside it.
	q := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(10000)", "trusted_schema(0)"}}
	db, err := sql.Open("sqlite", location(from, q))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return err
}

// A lookIndex is an index in a directory of its own.
type lookIndex struct {
	*Index
	dir string
}

// Close closes the index and removes it. It does nothing if x is nil.
func (x *lookIndex) Close() (err error) {
	if x == nil {
		return nil
	}
	if x.Index != nil {
		err = x.Index.Close()
	}
	return errors.Join(err, os.RemoveAll(x.dir))
}

// blind is a witness that has seen nothing.
type blind struct{}

func (blind) Seen(context.Context, string) (engine.Head, error)  { return engine.Head{}, nil }
func (blind) Note(context.Context, map[string]engine.Head) error { return nil }
func (blind) Forget(context.Context, string) error               { return nil }
func (blind) Close() error                                       { return nil }
