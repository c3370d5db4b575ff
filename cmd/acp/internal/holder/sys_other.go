//go:build !unix

package holder

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func supported() error {
	return fmt.Errorf("holder: not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func newSession() *syscall.SysProcAttr { return nil }

func isDead(error) bool { return false }

func isOurs(os.FileInfo) bool { return true }
