package file

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// A disk is where files are. It is an interface because each of its methods may fail or block, which tests make them do.
type Disk interface {
	Open(name string, flag int) (File, error)
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Remove(name string) error
	Rename(from, to string) error
	Truncate(name string, size int64) error
	// Lock locks a file until it is closed: exclusively, or shared with others that do not lock it exclusively. It reports
	// false if somebody else has a lock that conflicts.
	Lock(f File, exclusive bool) (bool, error)
	// SyncDir makes the names in a directory survive a loss of power, where that is possible.
	SyncDir(name string) error
}

// A File is an open file.
type File interface {
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// System is the disk of the machine.
type System struct{}

type systemFile struct{ *os.File }

// Sync implements [File].
func (f systemFile) Sync() error { return syncFile(f.File) }

func (System) Open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

func (System) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (System) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (System) Remove(name string) error                   { return os.Remove(name) }
func (System) Rename(from, to string) error               { return os.Rename(from, to) }
func (System) Truncate(name string, size int64) error     { return os.Truncate(name, size) }
func (System) Lock(f File, exclusive bool) (bool, error) {
	own, ok := f.(systemFile)
	if !ok {
		return false, errors.ErrUnsupported
	}
	return filelock.TryLock(own.File, exclusive)
}
func (System) SyncDir(name string) error { return syncDir(name) }
