package identity

import (
	"context"
	"errors"
	"net"
	"os"
	"os/user"
)

// A Peer is the process at the other end of a Unix socket when it connected, as the system says. PID is
// 0 where the system does not say it.
type Peer struct{ UID, GID, PID int }

type peerKey struct{}

// ConnContext is for [http.Server.ConnContext]: it keeps the [Peer] of a connection over a Unix socket.
// On Linux it is that of SO_PEERCRED, on macOS that of LOCAL_PEERCRED. Other systems are not supported:
// connections there have no Peer, so [Gate.Local] accepts nobody.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	p, err := peerOf(socket)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns the peer of a connection, if [ConnContext] has kept it. ctx is that of a request.
func PeerOf(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// peerOf returns the process at the other end of a socket.
func peerOf(c *net.UnixConn) (p Peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	failed := raw.Control(func(fd uintptr) { p, err = peerOfFD(int(fd)) })
	return p, errors.Join(failed, err)
}

// CurrentUser returns the name of the user of this process, without a domain, or "local" if it is not
// known or cannot be the name of a user here.
func CurrentUser() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if checkName("user", name) != nil {
		return "local"
	}
	return name
}
