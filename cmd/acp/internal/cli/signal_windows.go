package cli

import (
	"errors"
	"os"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

func notifyPipe(chan<- os.Signal) {}

// errNoData is ERROR_NO_DATA: the pipe is being closed.
const errNoData = syscall.Errno(232)

func isBrokenPipe(err error) bool {
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, errNoData)
}
