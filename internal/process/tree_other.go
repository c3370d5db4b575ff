//go:build !unix && !windows

package process

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

const separators = "/"

func prepare(*exec.Cmd) error { return nil }

// A tree is the child alone.
type tree struct {
	mu    sync.Mutex
	child *os.Process
}

func newTree(*Config) *tree { return new(tree) }

func (t *tree) attributes(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

func (t *tree) adopt(p *os.Process) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child = p
	return nil
}

func (t *tree) exited() bool { return false }

func (t *tree) survey() {}

func (t *tree) terminate() bool { return false }

func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child != nil {
		_ = t.child.Kill()
	}
}

func (t *tree) end() (left int) {
	t.kill()
	return 0 // nothing is known of it
}

func signalName(*os.ProcessState) string { return "" }
