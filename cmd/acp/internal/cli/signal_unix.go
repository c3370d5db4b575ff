//go:build !windows

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// notifyPipe makes writing into a closed pipe an error, which ends the process otherwise.
func notifyPipe(c chan<- os.Signal) { signal.Notify(c, syscall.SIGPIPE) }

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
