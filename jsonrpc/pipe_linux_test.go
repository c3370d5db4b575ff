package jsonrpc

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// pipeSize is how many bytes a pipe holds.
func pipeSize(t *testing.T, f *os.File) int {
	t.Helper()
	rc, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n uintptr
	var errno syscall.Errno
	if err := rc.Control(func(fd uintptr) { n, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, getPipeSize, 0) }); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	return int(n)
}

// TestPipeGrows: the pipe of who has much to say at once gets larger, that of
// others does not, however long they speak; and nothing is lost by it.
func TestPipeGrows(t *testing.T) {
	for name, tt := range map[string]struct {
		batch, batches int
		grows          bool
	}{
		"a burst":      {batch: 64 << 10, batches: 4, grows: true},
		"a short one":  {batch: 64 << 10, batches: 3},
		"a large text": {batch: 1 << 20, batches: 1, grows: true},
		"little":       {batch: growFrom - 1, batches: 50},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			s := newByteStream(r, w, framingLines)
			read := make(chan int64)
			go func() {
				n, _ := io.Copy(io.Discard, r)
				read <- n
			}()
			before := pipeSize(t, w)
			want := max(before, growTo) // where pages are large it holds more from the start
			for range tt.batches {
				if err := s.writeAll(make([]byte, tt.batch)); err != nil {
					t.Fatal(err)
				}
			}
			after := pipeSize(t, w)
			_ = w.Close()
			if n := <-read; n != int64(tt.batch*tt.batches) {
				t.Errorf("%d bytes arrived", n)
			}
			_ = r.Close()
			switch {
			case tt.grows && after != want && os.Geteuid() != 0:
				t.Skip("this user has too many large pipes")
			case tt.grows && after != want, !tt.grows && after != before:
				t.Errorf("the pipe holds %d bytes, and %d before", after, before)
			}
		})
	}
}

// TestPipeGrowsNot: what is no pipe is left alone.
func TestPipeGrowsNot(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	s := newByteStream(a, a, framingLines)
	if s.try == nil {
		t.Fatal("the socket is not written without blocking")
	}
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, b)
		read <- n
	}()
	if err := s.writeAll(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	if n := <-read; n != 1<<20 {
		t.Errorf("%d bytes arrived", n)
	}
	_ = b.Close()
}

// TestPipeShrinksNot: who made the pipe may have given it more room than we would.
func TestPipeShrinksNot(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const large = 4 * growTo
	rc, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = rc.Control(func(fd uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, large) })
	if pipeSize(t, w) < large {
		t.Skip("this user cannot have such a pipe")
	}
	s := newByteStream(r, w, framingLines)
	if err := s.writeAll(make([]byte, growAt)); err != nil {
		t.Fatal(err)
	}
	if n := pipeSize(t, w); n != large {
		t.Errorf("the pipe holds %d bytes", n)
	}
	// Growing what is closed is no error anybody could do something about.
	_ = w.Close()
	s.try.grow(2 * large)
}
