package file

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A backup is a tar archive with a file for each file of a journal, by name, and a manifest behind them. It is not
// compressed: so a journal can be read where it is, and a byte that is damaged costs a record.

const (
	manifestName = "backup.json"
	// backupFormat is the version of backups. One of a later version is refused.
	backupFormat = 1
	// maxManifest bounds a manifest, and maxMembers the journals of a backup.
	maxManifest, maxMembers = 4 << 10, 1 << 22
)

// A manifest ends a backup, so that one that was cut off is noticed.
type manifest struct {
	Format   int       `json:"format"`
	Journals int       `json:"journals"`
	At       time.Time `json:"at"` // when it was complete
}

// isJournal reports whether a file with that name belongs to a journal: it has no directory in it.
func isJournal(name string) bool {
	id, ok := strings.CutSuffix(name, suffix)
	return ok && journal.CheckID(id) == nil && filepath.IsLocal(name)
}

// Backup writes the journals in a directory to w, as they stand, also while owners write them: of each the records that it
// has at one moment, which is another one for each journal. An unfinished record is left out. So is everything else in the
// directory: locks, and what others keep beside journals. A directory that does not exist has no journals. [OpenArchive]
// opens what was written.
func Backup(ctx context.Context, dir string, w io.Writer) error { return backup(ctx, System{}, dir, w) }

func backup(ctx context.Context, d Disk, dir string, w io.Writer) error {
	list, err := d.ReadDir(dir) // by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out := tar.NewWriter(w)
	n := 0
	// The parts of a conversation of format 1 come before the first one. So if that has become a journal meanwhile, the
	// backup has the journal.
	for _, e := range list {
		info, err := e.Info()
		if !isJournal(e.Name()) || err == nil && !info.Mode().IsRegular() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if n == maxMembers {
			return fmt.Errorf("%s: %w journals for a backup: at most %d", dir, journal.ErrTooMany, maxMembers)
		}
		ok, err := copyTo(ctx, out, d, dir, e.Name())
		if err != nil {
			return fmt.Errorf("back up %s: %w", filepath.Join(dir, e.Name()), err)
		}
		if ok {
			n++
		}
	}
	now := time.Now().UTC()
	about, err := json.Marshal(manifest{Format: backupFormat, Journals: n, At: now})
	if err != nil {
		return err
	}
	if err := out.WriteHeader(header(manifestName, int64(len(about)), now)); err != nil {
		return err
	}
	if _, err := out.Write(about); err != nil {
		return err
	}
	return out.Close()
}

func header(name string, size int64, at time.Time) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: at.Truncate(time.Second)}
}

// copyTo copies what a file has now. It reports false if the file has gone, or has no whole record yet.
func copyTo(ctx context.Context, out *tar.Writer, d Disk, dir, name string) (copied bool, err error) {
	f, err := d.Open(filepath.Join(dir, name), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	size, err := whole(f, info.Size())
	if err != nil || size == 0 {
		return false, err
	}
	if err := out.WriteHeader(header(name, size, info.ModTime())); err != nil {
		return false, err
	}
	n, err := io.Copy(out, &reader{ctx, io.NewSectionReader(f, 0, size)})
	if err == nil && n < size { // after a write that failed its owner cuts off what it has written of it
		err = errors.New("it became shorter while it was read; make the backup again")
	}
	return true, err
}

// whole returns where the last whole line ends of what a file has.
func whole(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, searchStep))
	for size > 0 {
		some := buf[:min(size, int64(len(buf)))]
		size -= int64(len(some))
		n, err := f.ReadAt(some, size)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(some[:n], '\n'); i >= 0 {
			return size + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// A reader reads until its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
