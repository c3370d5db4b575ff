//go:build !unix

package tap

import "os"

// passed are the signals that tap passes on to the agent. Where a signal cannot be passed on, the
// agent is ended instead.
var passed = []os.Signal{os.Interrupt}
