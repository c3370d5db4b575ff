//go:build !unix && !windows

package store

import (
	"errors"
	"os"
)

// tryLock cannot lock here.
func tryLock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
