package jsonrpc

import "syscall"

// F_SETPIPE_SZ and F_GETPIPE_SZ of fcntl(2).
const (
	setPipeSize = 1031
	getPipeSize = 1032
)

// grow has the pipe, if it is one, hold at least size bytes. Whoever made it may
// have given it more, and where pages are large it holds more from the start.
// That it cannot be, or that the user has too many such pipes already, leaves
// it as it is.
func (t *tryWriter) grow(size int) {
	_ = t.rc.Control(func(fd uintptr) {
		if n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, getPipeSize, 0); errno == 0 && n < uintptr(size) {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, uintptr(size))
		}
	})
}
