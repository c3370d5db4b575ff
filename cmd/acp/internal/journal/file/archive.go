package file

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// ErrNoBackup reports that a file is not one that [Backup] has written.
var ErrNoBackup = errors.New("not a backup")

// An Archive is a file of [Backup]. Its methods are safe for concurrent use. Close it when done with it.
type Archive struct {
	f       io.ReaderAt
	close   func() error
	members []*member // by name
	names   map[string]*member
}

// OpenArchive opens a file of [Backup]. It fails with [ErrNoBackup], and if the file is of a later version, or not
// complete. It reads no records: see [journal.Container.Verify].
func OpenArchive(ctx context.Context, name string) (*Archive, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNoBackup
	}
	var a *Archive
	if err == nil {
		a, err = newArchive(ctx, f, info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	a.close = f.Close
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.close() }

// newArchive reads the names in a file.
func newArchive(ctx context.Context, f io.ReaderAt, size int64) (*Archive, error) {
	a := &Archive{f: f, names: map[string]*member{}}
	in := io.NewSectionReader(f, 0, size)
	r := tar.NewReader(in) // it reads nothing in advance
	last := ""
	for {
		h, err := r.Next()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && last == "":
			return nil, ErrNoBackup
		case err == io.EOF:
			return nil, fmt.Errorf("the backup is not complete: it ends behind %s", last)
		case err != nil:
			return nil, fmt.Errorf("the backup is not complete, or damaged, behind %s: %w", last, err)
		case h.Name == manifestName && plain(h):
			return a, a.finish(r)
		case last == "" && !isJournal(h.Name):
			return nil, ErrNoBackup
		case !isJournal(h.Name) || !plain(h) || h.Name <= last || len(a.members) == maxMembers:
			return nil, fmt.Errorf("the backup has %.200q, which no backup of this version has there", h.Name)
		}
		at, err := in.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if last = h.Name; h.Size > size-at {
			return nil, fmt.Errorf("the backup is not complete: it ends within %s", last)
		}
		m := &member{name: h.Name, at: at, size: h.Size, time: h.ModTime}
		a.members, a.names[m.name] = append(a.members, m), m
	}
}

// plain reports whether a member is a file that is in the archive byte for byte: others could stand for more than was
// read.
func plain(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return false
		}
	}
	return h.Typeflag == tar.TypeReg && h.Size >= 0
}

// finish reads the manifest.
func (a *Archive) finish(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil {
		return fmt.Errorf("the backup is not complete: %w", err)
	}
	var m manifest
	switch err := json.Unmarshal(data, &m); {
	case err != nil:
		return fmt.Errorf("the manifest of the backup is damaged: %w", err)
	case m.Format > backupFormat:
		return fmt.Errorf("the backup has format %d: a later version of the program can read it", m.Format)
	case m.Format < 1:
		return ErrNoBackup
	case m.Journals != len(a.members):
		return fmt.Errorf("the backup has %d journals, and its manifest %d", len(a.members), m.Journals)
	}
	return nil
}

// Journals returns a container of the journals in the backup, for reading. It must not be used once the archive is
// closed.
func (a *Archive) Journals() *journal.Container {
	return journal.New(newBackend((*archiveDisk)(a), "", ""), journal.Options{})
}

// Extract makes a directory with the journals in the backup, which must not exist yet. After an error there may be a
// part of it. It is synced.
func (a *Archive) Extract(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *member)
	var wg sync.WaitGroup
	for range extractors {
		wg.Go(func() {
			for m := range work {
				if err := a.extract(ctx, m, dir); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, m := range a.members {
		work <- m
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// extractors is how many files of a backup are written at once: each waits for the disk.
const extractors = 8

func (a *Archive) extract(ctx context.Context, m *member, dir string) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, err := os.OpenFile(filepath.Join(dir, m.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, &reader{ctx, io.NewSectionReader(a.f, m.at, m.size)})
	if err == nil && n < m.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return syncFile(f)
}

// A member is a journal in a backup. It implements [fs.FileInfo] and [fs.DirEntry].
type member struct {
	name     string
	at, size int64
	time     time.Time
}

func (m *member) Name() string               { return m.name }
func (m *member) Size() int64                { return m.size }
func (m *member) Mode() fs.FileMode          { return 0o400 }
func (m *member) ModTime() time.Time         { return m.time }
func (m *member) IsDir() bool                { return false }
func (m *member) Sys() any                   { return nil }
func (m *member) Type() fs.FileMode          { return 0 }
func (m *member) Info() (fs.FileInfo, error) { return m, nil }

// An archiveDisk is the directory with the journals of a backup. It implements [Disk].
type archiveDisk Archive

func (d *archiveDisk) find(op, name string) (*member, error) {
	if m := d.names[name]; m != nil {
		return m, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

func (d *archiveDisk) Open(name string, flag int) (File, error) {
	if flag != os.O_RDONLY {
		return nil, fixed("write", name)
	}
	m, err := d.find("open", name)
	if err != nil {
		return nil, err
	}
	return &memberFile{io.NewSectionReader(d.f, m.at, m.size), m}, nil
}

func (d *archiveDisk) Stat(name string) (fs.FileInfo, error) { return d.find("stat", name) }

func (d *archiveDisk) ReadDir(string) ([]fs.DirEntry, error) {
	list := make([]fs.DirEntry, len(d.members))
	for i, m := range d.members {
		list[i] = m
	}
	return list, nil
}

func (d *archiveDisk) Remove(name string) error            { return fixed("remove", name) }
func (d *archiveDisk) Rename(from, _ string) error         { return fixed("rename", from) }
func (d *archiveDisk) Truncate(name string, _ int64) error { return fixed("truncate", name) }
func (d *archiveDisk) SyncDir(name string) error           { return fixed("sync", name) }

// Lock implements [Disk]: nobody owns what is in a backup.
func (d *archiveDisk) Lock(_ File, exclusive bool) (bool, error) { return !exclusive, nil }

// fixed is the error of what would change a backup.
func fixed(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

type memberFile struct {
	*io.SectionReader
	m *member
}

func (f *memberFile) Stat() (fs.FileInfo, error)         { return f.m, nil }
func (f *memberFile) Write([]byte) (int, error)          { return 0, fixed("write", f.m.name) }
func (f *memberFile) WriteAt([]byte, int64) (int, error) { return 0, fixed("write", f.m.name) }
func (f *memberFile) Sync() error                        { return fixed("sync", f.m.name) }
func (f *memberFile) Close() error                       { return nil }
