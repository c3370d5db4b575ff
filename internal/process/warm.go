package process

import "os"

// Warm finds out in advance what the first Start has to know of the system. A program calls it beside what else it does
// before that. It may be called from any goroutine, and costs nothing when it is called again.
func Warm() {
	_ = newMark("") // lists the processes that there are
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release() // whether there are descriptors of processes
	}
}
