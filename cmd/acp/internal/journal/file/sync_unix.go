//go:build unix

package file

import (
	"errors"
	"os"
	"syscall"
)

// syncFile makes what was written survive a loss of power, as far as the system call does. On macOS that is less than
// what [os.File.Sync] has the disk do there, which takes tens of milliseconds; SQLite does the same.
func syncFile(f *os.File) error {
	for {
		err := syscall.Fsync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fsync", err)
		}
	}
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syncFile(d); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
