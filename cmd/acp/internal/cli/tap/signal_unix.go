//go:build unix

package tap

import (
	"os"
	"syscall"
)

// passed are the signals that are passed on to the agent.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
