//go:build unix

package pty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// Run runs a program in a pseudo-terminal and connects that with the user's: what is typed at in
// goes to the program, what it prints goes to out, and changes of the size are passed on. The
// user's terminal is in raw mode meanwhile and is restored on every way out. When ctx is done, the
// program and everything in its session are killed. An exit status other than 0 is an
// [*exec.ExitError].
//
// in and out should be terminals. Otherwise the program gets them as they are, and when ctx is done
// it is killed with what it has started.
func Run(ctx context.Context, cmd *exec.Cmd, in, out *os.File) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return runBare(ctx, cmd, in, out)
	}
	master, tty, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	_ = pty.InheritSize(in, master)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	dieWithParent(cmd.SysProcAttr)

	keys, err := cancelreader.NewReader(in)
	if err != nil {
		_ = tty.Close()
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	defer keys.Close()
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		_ = tty.Close()
		return fmt.Errorf("taking over the terminal: %w", err)
	}
	defer term.Restore(int(in.Fd()), old)

	ended, err := launch(cmd)
	_ = tty.Close()
	if err != nil {
		return err
	}
	sizes := make(chan os.Signal, 1)
	signal.Notify(sizes, syscall.SIGWINCH)
	defer signal.Stop(sizes)
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		_, _ = io.Copy(master, keys)
	}()
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(out, master)
	}()
	done := ctx.Done()
	for {
		select {
		case <-sizes:
			_ = pty.InheritSize(in, master)
			continue
		case <-done:
			done = nil
			killTree(cmd.Process.Pid, cmd.Process.Pid)
			continue
		case err = <-ended:
		}
		break
	}
	findTree(cmd.Process.Pid).signal(cmd.Process.Pid, syscall.SIGHUP) // it has left the terminal
	t := time.NewTimer(500 * time.Millisecond)
	defer t.Stop()
	select {
	case <-printed:
	case <-t.C:
	}
	_ = master.Close()
	<-printed
	keys.Cancel()
	<-typed
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

// launch starts a program, and returns a channel that receives its end.
func launch(cmd *exec.Cmd) (ended <-chan error, err error) {
	end := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Linux kills the program when this thread ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- cmd.Wait()
		}
	}()
	return end, <-started
}

// runBare runs a program with in and out as they are. When ctx is done, it kills the program and
// what that has started: on Linux all descendants, elsewhere its group. The program gets its own
// group only where there is no terminal, which would otherwise stop it when it asks the user for
// something there.
func runBare(ctx context.Context, cmd *exec.Cmd, in, out *os.File) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !controlled()}
	dieWithParent(cmd.SysProcAttr)
	ended, err := launch(cmd)
	if err != nil {
		return err
	}
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	group := 0
	if cmd.SysProcAttr.Setpgid {
		group = cmd.Process.Pid
	}
	killTree(cmd.Process.Pid, group)
	_ = cmd.Process.Kill() // it may have ended
	return errors.Join(context.Cause(ctx), <-ended)
}

// controlled reports whether a terminal controls this process.
func controlled() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
