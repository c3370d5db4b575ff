//go:build !unix

package pgtest

import (
	"errors"
	"os"
	"os/exec"
)

var quit, kill = os.Kill, os.Kill

func ownedByServer(string) error { return errors.ErrUnsupported }

func asServer(*exec.Cmd) {}

func signalAll(pid int, s os.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(s)
	}
}
