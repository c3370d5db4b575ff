package file

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// ErrTaken is what errors wrap if another process is recording to a file.
var ErrTaken = errors.New("another acp is recording to it")

// OpenLocked opens a file to record to, and locks it against other processes that record until it is
// closed. Only its owner can read a new one.
func OpenLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" {
		return f, nil // locks would keep readers away there
	}
	// A file system without locks is treated as if nobody else were recording.
	if ok, err := filelock.TryLock(f, true); err == nil && !ok {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, ErrTaken)
	}
	return f, nil
}
