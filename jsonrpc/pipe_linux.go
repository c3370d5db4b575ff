package jsonrpc

import "syscall"

// setPipeSize is F_SETPIPE_SZ of fcntl(2).
const setPipeSize = 1031

// grow has the pipe, if it is one, hold size bytes. That it cannot be, or that
// the user has too many such pipes already, leaves it as it is.
func (t *tryWriter) grow(size int) {
	_ = t.rc.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, uintptr(size))
	})
}
