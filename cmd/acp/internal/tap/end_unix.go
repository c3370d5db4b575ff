//go:build unix

package tap

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often it is looked whether the editor still reads, which is done only after it has
// stopped writing.
const lookEvery = 500 * time.Millisecond

// unread waits until nobody reads what is written to w, and reports that; or until stop is closed. An
// editor that dies closes both ends, but the agent may write nothing that would tell.
func unread(w io.Writer, stop <-chan struct{}) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return false
		case <-tick.C:
		}
		broken := false
		if conn.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(fds, 0)
			broken = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}) != nil {
			return false // closed on our side
		}
		if broken {
			return true
		}
	}
}

// numberOf returns the number of a signal by its name, 0 if there is none of that name.
func numberOf(name string) int { return int(unix.SignalNum(name)) }

// nameOf returns the name of a signal, such as SIGTERM.
func nameOf(sig os.Signal) string {
	if s, ok := sig.(syscall.Signal); ok {
		if name := unix.SignalName(s); name != "" {
			return name
		}
	}
	return fmt.Sprint(sig)
}
