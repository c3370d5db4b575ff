//go:build !unix

package tap

import "os"

// passed are the signals that are passed on to the agent; where that is not possible it is ended.
var passed = []os.Signal{os.Interrupt}
