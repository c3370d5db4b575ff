//go:build !linux

package conformance

import (
	"errors"
	"fmt"
)

func processUsage(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("conformance: process %d: %w", pid, errors.ErrUnsupported)
}
