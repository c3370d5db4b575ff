//go:build unix

package tap

import (
	"os"
	"syscall"
)

// passed are the signals that tap passes on to the agent, so that the agent ends as it would
// without tap.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
