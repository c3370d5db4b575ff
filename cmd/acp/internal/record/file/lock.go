package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// ErrTaken is what errors wrap if a file is being recorded to already.
var ErrTaken = errors.New("another acp is recording to it")

// maxTaken bounds the names that [OpenFree] tries.
const maxTaken = 1000

// OpenFree is [OpenLocked] for a file that may be recorded to already, as when an editor starts the same command
// several times, or one process serves several clients: then the name of the file that it opens has the process id
// before its extension, and a number if that is taken, too.
func OpenFree(name string) (*os.File, error) {
	f, err := OpenLocked(name)
	ext := filepath.Ext(name)
	free := fmt.Sprintf("%s-%d", strings.TrimSuffix(name, ext), os.Getpid())
	for n := 1; errors.Is(err, ErrTaken) && n <= maxTaken; n++ {
		next := free + ext
		if n > 1 {
			next = fmt.Sprintf("%s-%d%s", free, n, ext)
		}
		f, err = OpenLocked(next)
	}
	return f, err
}

// OpenLocked opens a file to record to, and locks it against all others that record until it is
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
