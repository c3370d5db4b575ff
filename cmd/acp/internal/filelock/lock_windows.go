//go:build windows

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock takes a lock on the file, alone or with others, if it is free. The end of the process
// gives it back.
func TryLock(f *os.File, alone bool) (bool, error) {
	h := windows.Handle(f.Fd())
	// Others could not even read what is locked here, so that is a byte far behind the end.
	where := func() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }
	// A lock cannot be changed here, only given back and taken again.
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
