//go:build windows

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks a file, exclusively or shared, and reports false if a lock of somebody else
// conflicts. Closing the file releases the lock, and so does the end of the process.
func TryLock(f *os.File, alone bool) (bool, error) {
	h := windows.Handle(f.Fd())
	// Others could not even read the part that is locked, so it is a byte far beyond the end.
	where := func() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }
	// A lock cannot be changed, only released and acquired again.
	_ = windows.UnlockFileEx(h, 0, 1, 0, where())
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(h, flags, 0, 1, 0, where())
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	}
	return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}
