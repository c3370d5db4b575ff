package store

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// unread is a file system with logs whose ends cannot be read, and, while stall is set, with
// directories that do not answer.
type unread struct {
	System
	mu    sync.Mutex
	stall chan struct{}
	stuck bool // something waits for it
}

func (u *unread) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := u.System.OpenFile(name, flag, perm)
	if err != nil || !strings.HasSuffix(name, suffix) {
		return f, err
	}
	return unreadFile{f}, nil
}

func (u *unread) TryLock(f File, exclusive bool) (bool, error) {
	return u.System.TryLock(f.(unreadFile).File, exclusive)
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

type unreadFile struct{ File }

func (unreadFile) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// TestUnreadableEnd: a log that cannot be gone on with costs nothing of what is said from then on. It
// goes into a part of its own.
func TestUnreadableEnd(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, Options{Path: dir})
	defer s.Close()
	rec := s.Record(Session{Key: key}, RecordOptions{})
	rec.Append(chunk("user", "0", "before"))
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	broken := openWith(t, Options{Path: dir, Files: new(unread)})
	defer broken.Close()
	again := broken.Record(Session{Conversation: rec.Conversation(), Key: key}, RecordOptions{})
	again.Append(chunk("agent", "1", "after"))
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if parts, _ := filepath.Glob(filepath.Join(dir, "*"+suffix)); len(parts) != 2 {
		t.Errorf("parts: %q", parts)
	}
	events := all(t, s, rec.Conversation())
	if n := len(events); n == 0 || !strings.Contains(string(events[n-1].Data), "after") {
		t.Errorf("%d events, the last is not what was said after the fault", n)
	}
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
		s := openWith(t, Options{Path: dir, Normal: true, Files: disk})
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
			rec.Append(Event{Kind: EventTurn})
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
