//go:build unix && !linux

package pty

import (
	"syscall"

	"github.com/goacp/acp/internal/process"
)

func dieWithParent(*syscall.SysProcAttr) {}

// A tree is the process group of a command.
type tree struct{}

func findTree(int) tree { return tree{} }

func (tree) add(tree) {}

func marked(process.Mark) tree { return tree{} }

// signal sends a signal to the group.
func (tree) signal(group int, sig syscall.Signal) int {
	if group > 1 {
		_ = syscall.Kill(-group, sig)
	}
	return 0
}

// holders reports whether the group of an ended command held its number when the command was
// reaped.
type holders struct{ group int }

func holdersOf(group int) holders {
	if syscall.Kill(-group, 0) != nil {
		return holders{}
	}
	return holders{group}
}

// any reports whether the group still exists, as far as can be seen.
func (h holders) any() bool { return h.group > 1 && syscall.Kill(-h.group, 0) == nil }

// killTree kills the group.
func killTree(_, group int) { tree{}.signal(group, syscall.SIGKILL) }
