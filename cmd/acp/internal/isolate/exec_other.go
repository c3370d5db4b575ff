//go:build !linux

package isolate

import "errors"

// Exec replaces this process by bubblewrap, which is there on Linux only.
func Exec([]string) error { return errors.ErrUnsupported }
