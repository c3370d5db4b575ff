package store

import (
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// unread is a disk with directories that do not answer while stall is set.
type unread struct {
	file.System
	mu    sync.Mutex
	stall chan struct{}
	stuck bool // something waits for it
}

func (u *unread) ReadDir(name string) ([]fs.DirEntry, error) {
	u.mu.Lock()
	stall := u.stall
	u.stuck = u.stuck || stall != nil
	u.mu.Unlock()
	if stall != nil {
		<-stall
	}
	return u.System.ReadDir(name)
}

// TestAppendAtOnce: what several goroutines append while the log is being begun is all there. The race
// detector finds a writer that shares the queue with them.
func TestAppendAtOnce(t *testing.T) {
	s := openWith(t, Options{Path: t.TempDir()})
	defer s.Close()
	rec := s.Record(Session{Key: key}, RecordOptions{})
	const writers, each = 4, 300
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				rec.Append(chunk("agent", "m", "x"))
			}
		})
	}
	wg.Wait()
	if err := rec.Close(); err != nil {
		t.Error(err)
	}
	if got := len(all(t, s, rec.Conversation())); got != writers*each {
		t.Errorf("%d events, want %d", got, writers*each)
	}
}

// TestCloseUnanswered: a store whose directory does not answer is closed within its bound.
func TestCloseUnanswered(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := new(unread)
		s := openWith(t, Options{Path: dir, Normal: true, Disk: disk})
		rec := s.Record(Session{Key: key}, RecordOptions{})
		rec.Append(chunk("user", "0", "before"))
		stall := make(chan struct{})
		disk.mu.Lock()
		disk.stall = stall
		disk.mu.Unlock()
		stuck := func() bool { disk.mu.Lock(); defer disk.mu.Unlock(); return disk.stuck }
		for i := 0; !stuck(); i++ { // the index may not have been free
			if i == 100 {
				t.Fatal("the index is not brought up to date")
			}
			rec.Append(Event{Kind: journal.KindEnd})
			synctest.Wait()
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		begin := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != closeAfter {
			t.Errorf("it took %v", took)
		}
		close(stall)
	})
}
