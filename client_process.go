package acp

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp/internal/process"
)

// exitWait bounds how long to wait for the exit status of a process that has closed
// its output. It takes milliseconds as a rule, and more on a busy machine or if a
// daemon keeps the standard error open. It is shorter than the default
// [process.Config].CloseGrace: otherwise the error might be that we have ended a
// process that did not end by itself.
const exitWait = 1500 * time.Millisecond

// Kill terminates the agent's process and everything it has started immediately,
// if there is a process, and then behaves like Close. It may be called at any
// time, also while Close waits for a process that does not end: then both return.
func (c *ClientConn) Kill() error {
	if c.proc != nil {
		c.closed.Store(true) // that it ends is no failure
		c.proc.Kill()
	}
	return c.Close()
}

// exited returns how the agent's process ended, if it has ended or ends soon. The
// error has its exit status and the end of its standard error.
func (c *ClientConn) exited() (ended bool, err error) {
	if c.proc == nil || !c.proc.EndsWithin(exitWait) {
		return false, nil
	}
	return true, c.proc.Wait()
}

// exitErr returns how the agent's process ended, if that is known and an error.
func (c *ClientConn) exitErr() error {
	if c.proc != nil {
		_, err := c.exited()
		return err
	}
	for s := range layers(c.stream) {
		if x, ok := s.(interface{ ExitErr() error }); ok {
			return x.ExitErr()
		}
	}
	return nil
}

// quietEnd returns how a process has ended that has closed its output: also if that
// was not an error, or was done from here, after it had closed its output.
func (c *ClientConn) quietEnd() error {
	ended, exit := c.exited()
	own, _ := errors.AsType[*process.ExitError](exit)
	switch {
	case exit != nil && (own == nil || !c.proc.Forced() || own.Signal != "SIGTERM" && own.Signal != "SIGKILL"):
		return exit
	case ended && !c.proc.Forced():
		return &process.ExitError{Stderr: c.proc.StderrTail()}
	}
	return &process.StillRunningError{Stderr: c.proc.StderrTail()}
}

// awaitProcess waits until the process behind the stream, which was closed, has
// ended. The engine waits for its grace only. The stages of ending bound this.
func (c *ClientConn) awaitProcess() {
	if c.proc != nil {
		_ = c.proc.Stop(context.Background()) // whoever closed the stream got its error
	}
}
