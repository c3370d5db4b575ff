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
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/records"
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

// Restore makes the sessions of a backup those of a directory, which nobody may have open. What was there is kept, in a
// directory beside it whose path is returned, or "". So are the index, which is made anew, and the ends that were seen:
// they may be of records that the backup does not have. After an error everything is where it was, unless the error
// says otherwise.
//
// elsewhere is where the journals are, if that is not in the directory: beside conversations that no gateway has begun.
// Of those the ones stay that the backup does not have. No program may have one open that is replaced.
func Restore(ctx context.Context, from *file.Archive, dir, elsewhere string) (kept string, err error) {
	return replace(ctx, dir, journals, elsewhere, func(part string) error { return from.Extract(ctx, part) })
}

// RestoreLog is [Restore] for a backup of an earlier version, which is a database: [Open] takes it over, and verifies
// its records then. It fails with [engine.ErrCorrupt] if pages of the database are damaged, unless that is accepted.
func RestoreLog(ctx context.Context, from, dir, elsewhere string, damaged bool) (kept string, err error) {
	return replace(ctx, dir, earlierName, elsewhere, func(part string) error {
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

// A renaming is a file, or a directory, that gets another name.
type renaming struct{ from, to string }

// replace puts what make makes in the place of all sessions of a directory, under a name. elsewhere is where the
// journals are, if that is another directory.
func replace(ctx context.Context, dir, name, elsewhere string, make func(part string) error) (kept string, err error) {
	part := filepath.Join(cmp.Or(elsewhere, dir), "restoring")
	if err := os.RemoveAll(part); err != nil { // of one that was interrupted
		return "", err
	}
	// All of it first, so that what is there is left alone until it is whole.
	if err = os.MkdirAll(filepath.Dir(part), 0o700); err == nil {
		err = make(part)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	old := filepath.Join(dir, "before-"+strconv.FormatInt(time.Now().UnixMicro(), 10))
	var away []renaming
	for _, was := range keptNames() {
		away = append(away, renaming{filepath.Join(dir, was), filepath.Join(old, was)})
	}
	in := []renaming{{part, filepath.Join(dir, name)}}
	dirs := []string{old}
	if elsewhere != "" {
		apart := filepath.Join(elsewhere, filepath.Base(old))
		dirs = append(dirs, apart)
		var more []renaming
		if more, in, err = exchange(ctx, elsewhere, apart, part, in); err != nil {
			return "", errors.Join(err, os.RemoveAll(part))
		}
		away = append(away, more...)
	}
	for _, d := range dirs {
		err = errors.Join(err, os.Mkdir(d, 0o700))
	}
	moved, err := rename(away, err)
	placed, err := rename(in, err)
	if err != nil {
		for _, m := range append(placed, moved...) {
			err = errors.Join(err, os.Rename(m.to, m.from))
		}
	}
	kept = old
	for _, d := range dirs { // only the empty ones go
		if os.Remove(d) != nil {
			kept = d
		} else if d == old {
			kept = ""
		}
	}
	for _, d := range []string{dir, elsewhere} {
		if d != "" {
			err = errors.Join(err, file.System{}.SyncDir(d))
		}
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	return kept, os.RemoveAll(part)
}

// rename renames what is there, in order, unless there is an error, and returns what it has renamed.
func rename(all []renaming, err error) ([]renaming, error) {
	var done []renaming
	for _, r := range all {
		if err != nil {
			break
		}
		if err = os.Rename(r.from, r.to); err == nil {
			done = append(done, r)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return done, err
}

// exchange returns which files of a directory go apart when a restored one comes in: those of sessions that it has, and
// those that a gateway has begun. It fails with a [*journal.OwnedError] if a program has one of them open.
func exchange(ctx context.Context, dir, apart, part string, in []renaming) (away, back []renaming, err error) {
	restored, err := os.ReadDir(part)
	if err == nil { // otherwise it is a database, which goes to the directory of the server
		in = nil
	}
	for _, e := range restored {
		in = append(in, renaming{filepath.Join(part, e.Name()), filepath.Join(dir, e.Name())})
	}
	c := file.Open(dir, file.Options{})
	defer func() { err = errors.Join(err, c.Close()) }()
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list {
		id, _, _ := strings.Cut(e.Name(), ".")
		if !e.Type().IsRegular() || !exists(filepath.Join(part, id+".jsonl")) && !strings.HasPrefix(id, records.GatewayID) {
			continue
		}
		if who, owned, err := c.Owner(ctx, id); owned || err != nil && !errors.Is(err, journal.ErrNoLocks) {
			return nil, nil, cmp.Or(err, error(&journal.OwnedError{ID: id, Who: who}))
		}
		away = append(away, renaming{filepath.Join(dir, e.Name()), filepath.Join(apart, e.Name())})
	}
	return away, in, nil
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
