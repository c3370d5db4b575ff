package identity

import "golang.org/x/sys/unix"

func peerOfFD(fd int) (Peer, error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{UID: int(c.Uid), GID: int(c.Groups[0])}
	p.PID, _ = unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID) // for the log only
	return p, nil
}
