//go:build !windows

package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// masking is held while the mask of the process is another one.
var masking sync.Mutex

// listenSocket listens on a Unix socket that only its owner can connect to, or everybody. It replaces a socket on
// which nobody listens, as a server that was killed leaves it.
func listenSocket(path string, everybody bool) (net.Listener, error) {
	l, err := listenMasked(path, everybody)
	if !isInUse(err) {
		return l, err
	}
	info, e := os.Lstat(path)
	if e != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, errors.New("there is a file of that name")
	}
	conn, e := net.Dial("unix", path)
	if e == nil {
		_ = conn.Close()
		return nil, errors.New("another server listens there")
	}
	if !errors.Is(e, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("there is a socket of that name, and who listens there is not known: %w", e)
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return listenMasked(path, everybody)
}

// listenMasked listens with a mask that makes the socket's mode 0600 from the beginning, or 0666.
func listenMasked(path string, everybody bool) (net.Listener, error) {
	masking.Lock()
	defer masking.Unlock()
	mask := 0o177
	if everybody {
		mask = 0o111
	}
	old := syscall.Umask(mask)
	defer syscall.Umask(old)
	return net.Listen("unix", path)
}

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
