package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// Backup writes everything that is in the log of a directory to a file, which must not exist, as it is at one moment,
// also while another process serves and writes. The file is not complete until Backup has returned: it then has its
// name. It has the mode 0600.
func Backup(ctx context.Context, dir, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s: %w", file, os.ErrExist)
	}
	part := file + ".part"
	defer os.Remove(part)
	if err := copyLog(ctx, filepath.Join(dir, logName), part); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// OpenFile opens a file of [Backup], by itself: nothing else knows the ends of its sessions.
func OpenFile(ctx context.Context, file string, o engine.Options) (*engine.Engine, error) {
	if _, err := os.Stat(file); err != nil { // it is not to be created
		return nil, err
	}
	db, err := OpenDatabase(ctx, file, 0)
	if err != nil {
		return nil, err
	}
	return engine.New(db, blind{}, o), nil
}

// blind is a witness that has seen nothing.
type blind struct{}

func (blind) Seen(context.Context, string) (engine.Head, error)  { return engine.Head{}, nil }
func (blind) Note(context.Context, map[string]engine.Head) error { return nil }
func (blind) Forget(context.Context, string) error               { return nil }
func (blind) Close() error                                       { return nil }

// Restore makes a file of [Backup] the log of a directory, which nobody may have open. What was there is kept, in a
// directory beside it whose path is returned, or "". The heads that were seen are not used any more: they may be of
// sessions that the backup does not have.
func Restore(ctx context.Context, file, dir string) (kept string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// A copy first, so that what is there is left alone until the copy is whole.
	part := filepath.Join(dir, "restoring.db")
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(part + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	if err := copyLog(ctx, file, part); err != nil {
		return "", err
	}
	old := filepath.Join(dir, "before-"+strconv.FormatInt(time.Now().UnixMicro(), 10))
	for _, name := range []string{logName, witnessName} {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			from := filepath.Join(dir, name+suffix)
			if _, err := os.Lstat(from); err != nil {
				continue
			}
			if err := os.MkdirAll(old, 0o700); err != nil {
				return "", err
			}
			if err := os.Rename(from, filepath.Join(old, name+suffix)); err != nil {
				return old, err
			}
			kept = old
		}
	}
	return kept, os.Rename(part, filepath.Join(dir, logName))
}

// copyLog copies a file that is a log.
func copyLog(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	db, err := open(ctx, from, logID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// SQLite would make it readable by others.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return fmt.Errorf("%s: %w", from, wrap(err))
	}
	if f, err = os.OpenFile(to, os.O_RDWR, 0); err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
