//go:build !windows

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// notifyPipe makes writing to a closed pipe fail. Unless SIGPIPE is registered, the runtime ends
// the process when that pipe is standard output or standard error.
func notifyPipe(c chan<- os.Signal) { signal.Notify(c, syscall.SIGPIPE) }

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
