//go:build unix

package engine

import (
	"errors"
	"syscall"
)

// isDiskFull reports whether an error says that a user's part of the disk is full.
func isDiskFull(err error) bool { return errors.Is(err, syscall.EDQUOT) }
