//go:build !linux

package agents

import "errors"

// A survivor is a process that has outlived the agent which started it.
type survivor struct {
	pid     int
	command string
}

// survivors is not supported here: the environment of other processes cannot be read.
func survivors(string) ([]survivor, error) { return nil, errors.ErrUnsupported }
