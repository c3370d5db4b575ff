package acphost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ResolvePath returns where an absolute path leads to on this machine when all
// symbolic links are followed. Of a path that does not exist, or not yet, the
// part that exists is followed; the rest stays as it is. It is what a [Policy]
// resolves paths with unless [Policy.Resolve] says otherwise.
//
// It fails if a link leads nowhere, if links lead in a circle, and if a directory
// on the way cannot be searched: where the path leads is not known then.
func ResolvePath(path string) (string, error) {
	path = filepath.Clean(path)
	for at, rest := path, ""; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", err
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return "", err // a link that leads nowhere
		}
		dir := filepath.Dir(at)
		if dir == at {
			return path, nil // not even the root or the drive is there
		}
		at, rest = dir, filepath.Join(filepath.Base(at), rest)
	}
}
