//go:build unix

package seek

import (
	"io"

	"golang.org/x/sys/unix"
)

// readFile reads a regular file into a buffer, up to its end or most bytes, and stops after
// what head refuses of its beginning. It opens files itself, since package os does much for
// each of them that is of no use here. It returns the buffer, which may be another one, and
// whether there is more.
func readFile(path string, buf []byte, most int, head func([]byte) bool) (data []byte, more bool, err error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return buf[:0], false, err
	}
	defer func() { _ = unix.Close(fd) }() // it was only read
	return readAll(func(b []byte) (int, error) {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, b) })
		if n <= 0 && err == nil {
			return 0, io.EOF
		}
		return max(n, 0), err
	}, buf, most, head)
}

func ignoringEINTR(f func() (int, error)) (n int, err error) {
	for {
		if n, err = f(); err != unix.EINTR {
			return n, err
		}
	}
}
