//go:build !windows

package agent

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes sure that files that were made or removed in a directory stay so
// after a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// removeOpen removes a journal while its lock is held.
func removeOpen(j *journal) error {
	if j.file == nil {
		return nil
	}
	return os.Remove(j.file.Name())
}
