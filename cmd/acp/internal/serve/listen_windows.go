package serve

import (
	"errors"
	"net"
	"syscall"
)

// listenSocket is for Unix: on Windows nothing keeps other users from a socket.
func listenSocket(string, bool) (net.Listener, error) {
	return nil, errors.New("Unix sockets are not served on Windows; listen on 127.0.0.1")
}

// errInUse is WSAEADDRINUSE.
const errInUse = syscall.Errno(10048)

func isInUse(err error) bool { return errors.Is(err, errInUse) }
