package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFinish: at the bound, with a disk that does not answer, Append waits until Finish is called. Then
// it takes as much once more, and what is beyond that counts as lost.
func TestFinish(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		disk := new(faults)
		s := openWith(t, Options{Path: dir, Normal: true, Files: disk})
		defer s.Close()
		stall := make(chan struct{})
		disk.set(nil, stall)
		rec := s.Record(Session{Key: key}, RecordOptions{})
		e := chunk("agent", "m", strings.Repeat("x", 1<<20))
		const fit, beyond = 2 * MaxBacklog >> 20, 10
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
		lost, bytes := rec.lost, rec.bytes
		rec.mu.Unlock()
		if lost < beyond || lost > beyond+1 || bytes > 2*MaxBacklog+2<<20 {
			t.Errorf("%d events lost, %d bytes kept", lost, bytes)
		}
		if err := rec.Close(); !errors.Is(err, ErrUnsaved) {
			t.Errorf("Close: %v", err)
		}
		close(stall)
	})
}
