package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// A File is an open log.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// A FileSystem is where logs are kept. It is an interface because any of its methods may fail or
// block, which tests make them do. They may be called from any goroutine. [System] is the real one.
type FileSystem interface {
	// OpenFile is like [os.OpenFile].
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// ReadDir is like [os.ReadDir].
	ReadDir(name string) ([]fs.DirEntry, error)
	// Remove is like [os.Remove].
	Remove(name string) error
	// TryLock locks a file: exclusively, or shared with others that do not lock it exclusively. It
	// reports false if another open file of the same name has a conflicting lock, and an error
	// where files cannot be locked. Closing the file releases the lock.
	TryLock(f File, exclusive bool) (bool, error)
	// SyncDir makes the names in a directory survive a loss of power, where that is possible.
	SyncDir(name string) error
}

// System is the file system of the machine. The zero value is ready to use.
type System struct{}

// OpenFile implements [FileSystem].
func (System) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in a File
	}
	return f, nil
}

// ReadDir implements [FileSystem].
func (System) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Remove implements [FileSystem].
func (System) Remove(name string) error { return os.Remove(name) }

// TryLock implements [FileSystem].
func (System) TryLock(f File, exclusive bool) (bool, error) {
	o, ok := f.(*os.File)
	if !ok {
		return false, errors.ErrUnsupported
	}
	return filelock.TryLock(o, exclusive)
}

// SyncDir implements [FileSystem].
func (System) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// makeDir creates a directory that only its owner can read, with those above it. It follows a link
// that leads nowhere, and creates the directory that the link names.
func makeDir(name string) error {
	for range 40 { // as many as systems follow
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	return os.MkdirAll(name, 0o700)
}
