//go:build !unix && !windows

package filelock

import (
	"errors"
	"os"
)

// TryLock cannot lock here: it returns [errors.ErrUnsupported].
func TryLock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
