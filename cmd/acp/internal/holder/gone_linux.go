package holder

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A vigil waits for the end of the process at the other end of a connection. It holds a descriptor of
// the process, so that another process that gets its number is not taken for it.
type vigil struct{ fd int }

// watch begins a vigil. The number of the process is asked of the kernel, for which it is the right
// one even if the two processes count differently.
func watch(conn net.Conn) vigil {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return vigil{-1}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return vigil{-1}
	}
	fd := -1
	_ = raw.Control(func(s uintptr) {
		cred, err := unix.GetsockoptUcred(int(s), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil || cred.Pid <= 0 {
			return
		}
		if p, err := unix.PidfdOpen(int(cred.Pid), 0); err == nil {
			fd = p
		}
	})
	return vigil{fd}
}

// wait waits until the process has ended, for at most d, and reports whether it has, as far as that
// can be known.
func (v vigil) wait(d time.Duration) bool {
	if v.fd < 0 {
		return true
	}
	for end := time.Now().Add(d); ; {
		fds := []unix.PollFd{{Fd: int32(v.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(time.Until(end), 0)/time.Millisecond)+1)
		if n > 0 {
			return true
		}
		if err != unix.EINTR && (err != nil || !time.Now().Before(end)) {
			return false
		}
	}
}

// close ends the vigil.
func (v vigil) close() {
	if v.fd >= 0 {
		_ = unix.Close(v.fd)
	}
}
