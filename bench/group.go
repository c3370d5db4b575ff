package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a process group, so that its agent
// can be ended with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { killGroup(cmd); return nil }
}

// killGroup ends the command and its agent. It must not be called once the
// command has been waited for: the number may belong to another group then.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
