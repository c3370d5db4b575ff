//go:build unix

package postgres

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

const quit = syscall.SIGQUIT // "immediate shutdown" for PostgreSQL

// serverUser is whom the server runs as: not root, which it refuses.
func serverUser() (uid, gid int, err error) {
	if os.Getuid() != 0 {
		return os.Getuid(), os.Getgid(), nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return 0, 0, err
		}
	}
	uid, e1 := strconv.Atoi(u.Uid)
	gid, e2 := strconv.Atoi(u.Gid)
	if e1 != nil {
		return 0, 0, e1
	}
	return uid, gid, e2
}

// ownedByServer gives a directory to the user of the server.
func ownedByServer(dir string) error {
	uid, gid, err := serverUser()
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// asServer has a command run as that user.
func asServer(cmd *exec.Cmd) {
	if uid, gid, err := serverUser(); err == nil && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = "/"
	}
}
