package agent

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// tryLock takes the lock of a journal, which ends with the file. It reports false
// when somebody else has it, in this program or another. What is locked is a
// byte far behind the end, so that the file can still be read.
func tryLock(f *os.File) (bool, error) {
	const failImmediately, exclusive = 1, 2
	const lockViolation = syscall.Errno(33)
	at := syscall.Overlapped{OffsetHigh: 0x7fffffff}
	ok, _, err := lockFileEx.Call(f.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, lockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}
