// Package filelock has locks between processes. A lock belongs to an open file, and ends with it.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// patience bounds how long [Do] waits for others.
const patience = 10 * time.Second

// ErrBusy says that another process has had a lock for too long.
var ErrBusy = errors.New("another acp is at it")

// Do calls f while no other caller of Do with the same name, in any process, is in its f. name is a
// file, which is created with its directory, and stays. Do waits up to ten seconds; then it returns
// [ErrBusy]. Where files cannot be locked, f is called all the same.
func Do(ctx context.Context, name string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		ok, err := TryLock(file, true)
		if ok || err != nil {
			return f()
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-end.C:
			return fmt.Errorf("%s: %w", name, ErrBusy)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
