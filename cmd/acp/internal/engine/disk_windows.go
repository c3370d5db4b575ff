package engine

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isDiskFull reports whether an error says that the disk is full.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
