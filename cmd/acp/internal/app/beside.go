package app

import (
	"errors"
	"os"
	"path/filepath"
)

// CreateBeside creates a temporary file in the directory of the file that it is to become; the
// pattern of its name is that of [os.CreateTemp]. An error names that file, which is the one the
// user knows.
func CreateBeside(file, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(file), pattern)
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		err = &os.PathError{Op: bad.Op, Path: file, Err: bad.Err}
	}
	return f, err
}
