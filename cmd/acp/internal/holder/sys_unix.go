//go:build unix

package holder

import (
	"errors"
	"syscall"
)

func supported() error { return nil }

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// isDead reports whether an error of dialling says that nobody listens, or that there is no socket.
func isDead(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}
