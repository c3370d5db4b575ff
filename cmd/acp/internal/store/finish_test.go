package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestFinish: at the bound, with a disk that does not answer, Append waits until Finish is called. Then
// it takes as much once more, and what is beyond that counts as lost.
func TestFinish(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		disk := new(faults)
		s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
		defer s.Close()
		stall := make(chan struct{})
		disk.set(nil, stall)
		rec := s.Record(Session{Key: key}, RecordOptions{})
		e := chunk("agent", "m", strings.Repeat("x", 1<<20))
		const fit, beyond = 2 * journal.MaxBacklog >> 20, 10
		appended := make(chan struct{})
		go func() {
			defer close(appended)
			for range fit + beyond {
				rec.Append(e)
			}
		}()
		time.Sleep(time.Minute)
		select {
		case <-appended:
			t.Error("Append did not wait at the bound")
		default:
		}
		rec.Finish()
		<-appended
		rec.mu.Lock()
		lost, waiting := rec.lost, rec.waiting
		rec.mu.Unlock()
		if lost < beyond || lost > beyond+1 || waiting > fit {
			t.Errorf("%d events lost, %d kept", lost, waiting)
		}
		if err := rec.Close(); !errors.Is(err, ErrUnsaved) {
			t.Errorf("Close: %v", err)
		}
		if err := rec.Sync(t.Context()); !errors.Is(err, ErrUnsaved) {
			t.Errorf("Sync after Close: %v", err)
		}
		close(stall)
	})
}
