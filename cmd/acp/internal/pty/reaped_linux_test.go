package pty

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/internal/process"
)

// bystander starts a process that leads a session and ends when stop is called, which reports how.
func bystander(t *testing.T) (pid int, stop func() error) {
	t.Helper()
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() error {
		_ = in.Close()
		return cmd.Wait()
	}
}

// TestReaped: the number of a command that has ended, and of whose session nothing is left, may be another's:
// nobody who has it is killed.
func TestReaped(t *testing.T) {
	t.Run("end", func(t *testing.T) {
		p := sh(t, DefaultSize, "true").(*command)
		p.Wait()
		pid, stop := bystander(t)
		p.cmd.Process.Pid = pid // stands for a number that was given anew
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := stop(); err != nil {
			t.Errorf("a process that is not the command's: %v", err)
		}
	})
	t.Run("watchdog", func(t *testing.T) {
		for _, forget := range []bool{false, true} {
			pid, stop := bystander(t)
			dog, err := watch(pid, process.Mark{})
			if err != nil {
				t.Fatal(err)
			}
			if forget {
				dog.forgetSession()
			}
			_ = dog.hold.Close() // as the system does when the program is killed
			_, _ = dog.process.Wait()
			if err := stop(); (err == nil) != forget {
				t.Errorf("forget %v: %v", forget, err)
			}
		}
	})
}

// TestHeld: what is left of a command's session after the command holds its number, and ends with it.
func TestHeld(t *testing.T) {
	const left = `trap "" HUP; : >ready; sleep 1000`
	p := sh(t, DefaultSize, `env -u `+process.MarkVar+` sh -c '`+left+`' & until [ -e ready ]; do :; done`).(*command)
	p.Wait()
	if !p.held.any() || p.session() != p.cmd.Process.Pid {
		t.Error("what is left does not hold the number")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for len(findTree(p.cmd.Process.Pid)) > 0 { // zombies aside; the end of what is killed is announced by nobody
		time.Sleep(time.Millisecond)
	}
}
