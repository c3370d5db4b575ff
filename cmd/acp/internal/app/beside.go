package app

import (
	"errors"
	"os"
	"path/filepath"
)

// CreateBeside makes a temporary file, named as [os.CreateTemp] does, in the directory of a file that it
// is to become. An error names that file, which is the one the user knows.
func CreateBeside(file, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(file), pattern)
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		err = &os.PathError{Op: bad.Op, Path: file, Err: bad.Err}
	}
	return f, err
}
