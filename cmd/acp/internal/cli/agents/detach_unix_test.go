//go:build unix

package agents

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
