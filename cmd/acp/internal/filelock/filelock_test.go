package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestDo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dir", "lock")
	// In a file, since the lock is one of the system, of which the race detector knows nothing.
	counter := filepath.Join(t.TempDir(), "counter")
	count := func() error {
		data, _ := os.ReadFile(counter) // none at first
		return os.WriteFile(counter, append(data, '.'), 0o600)
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 20 {
				if err := Do(t.Context(), name, count); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if data, err := os.ReadFile(counter); err != nil || len(data) != 160 {
		t.Errorf("%d of 160 calls counted, %v", len(data), err)
	}
	want := errors.New("on purpose")
	if err := Do(t.Context(), name, func() error { return want }); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
}

func TestDoGivesUp(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ok, err := TryLock(f, true); err != nil {
		t.Skip(err)
	} else if !ok {
		t.Fatal("a new file is locked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Do(ctx, name, func() error { t.Error("it was called"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
