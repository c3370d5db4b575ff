//go:build unix

package wire

import (
	"os"
	"syscall"
	"testing"
)

// guarded returns n bytes that begin and end next to pages nobody may touch: to
// read or write beyond them ends the process.
func guarded(t *testing.T, n int) []byte {
	t.Helper()
	page := os.Getpagesize()
	b, err := syscall.Mmap(-1, 0, n+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	for _, edge := range [][]byte{b[:page], b[page+n:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return b[page : page+n]
}
