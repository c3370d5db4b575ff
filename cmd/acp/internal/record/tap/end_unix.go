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

// lookEvery is the time between two checks whether the editor still exists.
const lookEvery = time.Second

// deserted waits until the editor has closed both ends, or until stop is closed, and reports which.
// An editor that dies closes both, but a read notices that only after the agent has accepted what
// came before, and a write only if the agent has something to say.
func deserted(in io.Reader, out io.Writer, stop <-chan struct{}) bool {
	r, ok1 := in.(*os.File)
	w, ok2 := out.(*os.File)
	if !ok1 || !ok2 {
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
		// If one was closed here, because the agent has closed its own, that does not tell whether
		// anybody reads; but nobody can write there.
		if in, closed := hungUp(r); in || closed {
			if out, _ := hungUp(w); out {
				return true
			}
		}
	}
}

// hungUp reports whether nobody has the other end open, and whether this end is closed.
func hungUp(f *os.File) (hung, closed bool) {
	conn, err := f.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(fds, 0)
			hung = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		})
	}
	return hung, err != nil
}

// numberOf returns the number of a signal by its name, or 0 if there is no signal of that name.
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
