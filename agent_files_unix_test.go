//go:build unix

package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestIrregularFiles: what may never end is not read.
func TestIrregularFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	r := dialVersion(t, &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		_, read := t.ReadFile(fifo)
		write := t.WriteFile(fifo, "x")
		_, dir := t.ReadFile(filepath.Dir(fifo))
		_, none := t.ReadFile(fifo + ".none")
		if read == nil || write == nil || dir == nil || !errors.Is(none, os.ErrNotExist) {
			return "", fmt.Errorf("%v, %v, %v, %v", read, write, dir, none)
		}
		return StopEndTurn, nil
	}}, 2)
	if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
		t.Errorf("%q, %v", stop, err)
	}
}
