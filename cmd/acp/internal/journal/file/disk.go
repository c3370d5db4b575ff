package file

import (
	"io"
	"io/fs"
	"os"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// A disk is where files are. It is an interface because each of its methods may fail or block, which tests make them do.
type disk interface {
	Open(name string, flag int) (handle, error)
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Remove(name string) error
	Rename(from, to string) error
	Truncate(name string, size int64) error
	// Lock locks a file exclusively until it is closed, and reports false if somebody else has.
	Lock(f handle) (bool, error)
	// SyncDir makes the names in a directory survive a loss of power, where that is possible.
	SyncDir(name string) error
}

// A handle is an open file.
type handle interface {
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// system is the disk of the machine.
type system struct{}

type systemFile struct{ *os.File }

// Sync implements [handle].
func (f systemFile) Sync() error { return syncFile(f.File) }

func (system) Open(name string, flag int) (handle, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

func (system) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (system) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (system) Remove(name string) error                   { return os.Remove(name) }
func (system) Rename(from, to string) error               { return os.Rename(from, to) }
func (system) Truncate(name string, size int64) error     { return os.Truncate(name, size) }
func (system) Lock(f handle) (bool, error)                { return filelock.TryLock(f.(systemFile).File, true) }
func (system) SyncDir(name string) error                  { return syncDir(name) }
