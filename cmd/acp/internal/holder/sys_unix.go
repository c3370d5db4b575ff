//go:build unix

package holder

import (
	"errors"
	"os"
	"syscall"
)

func supported() error { return nil }

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// isDead reports whether an error of dialling says that nobody listens, or that there is no socket.
func isDead(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// isOurs reports whether a file belongs to the user of this process, or to root.
func isOurs(info os.FileInfo) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	return !ok || of.Uid == 0 || int(of.Uid) == os.Geteuid()
}
