//go:build !unix

package acp

import "time"

var processorEpoch = time.Now()

// processorTime is the time that has passed.
func processorTime() time.Duration { return time.Since(processorEpoch) }
