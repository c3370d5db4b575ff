//go:build unix

package jsonrpc

import (
	"io"
	"os"
	"syscall"
	"time"
)

// tryWriter makes single write(2) attempts on a non-blocking descriptor.
type tryWriter struct {
	rc  syscall.RawConn
	fn  func(fd uintptr) bool // built once: a closure per write would allocate
	p   []byte
	n   int
	err error
}

// newTryWriter returns nil when writes to w cannot be made non-blocking. Only
// files are asked: a type that embeds one may do more in its Write.
func newTryWriter(w io.Writer) *tryWriter {
	f, ok := w.(*os.File)
	if !ok || f.SetWriteDeadline(time.Time{}) != nil {
		return nil // not in the poller, so a write would block
	}
	rc, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	t := &tryWriter{rc: rc}
	t.fn = func(fd uintptr) bool {
		for {
			t.n, t.err = syscall.Write(int(fd), t.p)
			if t.err != syscall.EINTR {
				return true // whatever happened, do not wait
			}
		}
	}
	return t
}

func (t *tryWriter) write(p []byte) (int, error) {
	t.p = p
	err := t.rc.Write(t.fn)
	t.p = nil
	switch {
	case err != nil:
		return 0, os.ErrClosed // the poller has an error of its own for that
	case t.err == syscall.EAGAIN:
		return 0, nil
	}
	return max(t.n, 0), os.NewSyscallError("write", t.err)
}

// pollable returns a file for the same pipe or socket whose reads and writes
// can be interrupted, or f itself when there is none.
func pollable(f *os.File) io.ReadWriteCloser {
	if f.SetDeadline(time.Time{}) == nil {
		return f
	}
	fi, err := f.Stat()
	if err != nil || fi.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		// The blocking mode of a terminal or a file belongs to everybody
		// who has it open.
		return f
	}
	if e, err := os.Stderr.Stat(); err == nil && os.SameFile(fi, e) {
		return f // a non-blocking standard error would lose log lines
	}
	// A new descriptor: Go ends a process that gets EPIPE on descriptor 1.
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return f
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return f
	}
	n := os.NewFile(uintptr(fd), f.Name())
	if n.SetDeadline(time.Time{}) != nil {
		_ = syscall.SetNonblock(fd, false)
		_ = n.Close()
		return f
	}
	return &dupFile{n, f}
}

// dupFile is a duplicate that takes the original with it.
type dupFile struct {
	*os.File
	orig *os.File
}

func (d *dupFile) Close() error {
	err := d.File.Close()
	_ = d.orig.Close()
	return err
}

// tryTarget returns what newTryWriter has to look at.
func tryTarget(w io.Writer) io.Writer {
	if d, ok := w.(*dupFile); ok {
		return d.File
	}
	return w
}
