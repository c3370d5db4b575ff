//go:build unix && !linux

package process

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}

// strays are not looked for here.
type strays struct{}

func (*strays) find(child, group int, mark Mark) bool         { return false }
func (*strays) count(child, group int, mark Mark) (bool, int) { return false, 0 }
func (*strays) any() bool                                     { return false }
func (*strays) forget()                                       {}
func (*strays) signal(syscall.Signal)                         {}
