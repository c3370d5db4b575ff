//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package agent

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of a journal, which ends with the file. It reports false
// when somebody else has it, in this program or another.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return true, nil // a file system without locks
		default:
			return false, err
		}
	}
}
