package store

import (
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A slowLook is a file system on which a file that was opened for reading keeps its lock until released is
// closed: Close waits for that. A writer that finds the file locked closes it.
type slowLook struct {
	System
	looking  chan struct{} // gets one for each Close that waits
	released chan struct{}
	release  func()
	closed   sync.WaitGroup
}

func newSlowLook() *slowLook {
	l := &slowLook{looking: make(chan struct{}, 100), released: make(chan struct{})}
	l.release = sync.OnceFunc(func() { close(l.released) })
	return l
}

type slowFile struct {
	File
	look *slowLook // nil for a writer
}

func (l *slowLook) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := l.System.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if flag != 0 {
		return slowFile{File: f}, nil
	}
	l.closed.Add(1)
	return slowFile{f, l}, nil
}

func (f slowFile) Close() error {
	if f.look == nil {
		return f.File.Close()
	}
	defer f.look.closed.Done()
	f.look.looking <- struct{}{}
	<-f.look.released
	return f.File.Close()
}

func (l *slowLook) TryLock(f File, exclusive bool) (bool, error) {
	s := f.(slowFile)
	ok, err := l.System.TryLock(s.File, exclusive)
	if s.look == nil && !ok && err == nil {
		l.release()
		l.closed.Wait()
	}
	return ok, err
}

// TestWritingBesideWriting: a conversation that nobody writes is reported as such while another call of
// Writing has its log locked.
func TestWritingBesideWriting(t *testing.T) {
	dir := t.TempDir()
	id := write(t, openTest(t, dir), Session{Key: key}, chunk("agent", "m", "word"))
	files := newSlowLook()
	s := openWith(t, Options{Path: dir, Normal: true, Files: files})
	var calls sync.WaitGroup
	defer calls.Wait()
	defer files.release()
	for range 2 {
		calls.Go(func() {
			if is, err := s.Writing(t.Context(), id); is || err != nil {
				t.Errorf("written: %v, %v", is, err)
			}
		})
		<-files.looking
	}
}

// TestRecordBesideWriting: a recorder that finds the log locked by a call of Writing writes to that log when
// the call has ended, and begins no other part.
func TestRecordBesideWriting(t *testing.T) {
	dir := t.TempDir()
	id := write(t, openTest(t, dir), Session{Key: key}, chunk("agent", "m", "word"))
	files := newSlowLook()
	s := openWith(t, Options{Path: dir, Normal: true, Files: files})
	var calls sync.WaitGroup
	defer calls.Wait()
	defer files.release()
	calls.Go(func() {
		if is, err := s.Writing(t.Context(), id); is || err != nil {
			t.Errorf("written: %v, %v", is, err)
		}
	})
	<-files.looking
	write(t, s, Session{Conversation: id, Key: key}, chunk("agent", "m", "more"))
	parts, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(parts) != 1 {
		t.Errorf("%q, %v", parts, err)
	}
}

// TestWritingSeesWriter: the writer of a conversation is seen by every call until it is closed, and a second
// writer begins a part of its own, after the attempts that it has.
func TestWritingSeesWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t, dir)
		rec := s.Record(Session{Key: key}, RecordOptions{})
		rec.Append(chunk("agent", "m", "word"))
		id := rec.Conversation()
		for range 3 {
			if is, err := s.Writing(t.Context(), id); !is || err != nil {
				t.Errorf("written: %v, %v", is, err)
			}
		}
		begin := time.Now()
		write(t, s, Session{Conversation: id, Key: key}, chunk("agent", "m", "beside"))
		if took := time.Since(begin); took >= appendWait { // of the bubble's clock
			t.Errorf("the second writer began after %v", took)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
		if parts, err := s.parts(id); err != nil || len(parts) != 2 {
			t.Errorf("%d parts, %v", len(parts), err)
		}
		if is, err := s.Writing(t.Context(), id); is || err != nil {
			t.Errorf("written in the end: %v, %v", is, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
