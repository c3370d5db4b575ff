//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// TryLock locks a file, exclusively or shared, and reports false if a lock of somebody else
// conflicts. Closing the file releases the lock, and so does the end of the process. On file
// systems without locks the error is [errors.ErrUnsupported].
func TryLock(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
