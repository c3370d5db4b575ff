package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A faulty disk fails on demand.
type faulty struct {
	System
	mu       sync.Mutex
	err      error  // of what writes, after half of it
	stuck    bool   // nothing can be truncated either
	syncErr  error  // of syncs
	rewrote  string // what was written again
	unlocked bool   // there are no locks
}

func (d *faulty) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *faulty) fails() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *faulty) Open(name string, flag int) (File, error) {
	if err := d.fails(); err != nil && flag&(os.O_CREATE|os.O_RDWR) != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := d.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faulty) Remove(name string) error {
	if err := d.fails(); err != nil {
		return err
	}
	return d.System.Remove(name)
}

func (d *faulty) Truncate(name string, size int64) error {
	if d.stuck && d.fails() != nil {
		return d.fails()
	}
	return d.System.Truncate(name, size)
}

func (d *faulty) Lock(f File, exclusive bool) (bool, error) {
	if d.unlocked {
		return false, errors.ErrUnsupported
	}
	return d.System.Lock(f.(*faultyFile).File, exclusive)
}

type faultyFile struct {
	File
	d *faulty
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.d.fails(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.mu.Lock()
	f.d.rewrote += string(b)
	f.d.mu.Unlock()
	return f.File.WriteAt(b, at)
}

func (f *faultyFile) Sync() error {
	f.d.mu.Lock()
	err := f.d.syncErr
	f.d.mu.Unlock()
	if err != nil {
		return err
	}
	return f.File.Sync()
}

// TestFull: a write that has failed in the middle leaves nothing behind, or what it has left is removed before the next.
func TestFull(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			d := &faulty{stuck: stuck}
			c := journal.New(newBackend(d, dir, ""), journal.Options{})
			defer c.Close()
			w, err := c.Create(t.Context(), "s")
			must(t, err)
			must(t, texts(t, w, journal.KindUpdate, "0"))
			for range 3 {
				d.set(syscall.ENOSPC)
				done := make(chan error, 1)
				must(t, w.Append([]journal.Draft{{Kind: journal.KindPrompt, Data: []byte(`"later"`)}}, func(_ []*journal.Record, err error) { done <- err }))
				time.Sleep(time.Hour)
				if got, err := read(t, c, "s"); err != nil || len(got) == 0 || got[0] != "0" {
					t.Errorf("stuck %v: meanwhile %q, %v", stuck, got, err)
				}
				d.set(nil)
				must(t, <-done)
			}
			if got, err := read(t, c, "s"); err != nil || len(got) != 4 {
				t.Errorf("stuck %v: afterwards %q, %v", stuck, got, err)
			}
		})
	}
}

// TestCreateUnknown: a file of which nothing can be known once it is made is not in the way of the next try.
func TestCreateUnknown(t *testing.T) {
	b := newBackend(&unknown{}, t.TempDir(), "")
	if _, err := b.Create(t.Context(), "s"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("create: %v", err)
	}
	c, err := b.Create(t.Context(), "s")
	must(t, err)
	must(t, c.Close())
}

// unknown is a disk that cannot say what the first file is that is made.
type unknown struct {
	System
	made bool
}

func (d *unknown) Open(name string, flag int) (File, error) {
	f, err := d.System.Open(name, flag)
	if err == nil && flag&os.O_EXCL != 0 && !d.made {
		d.made = true
		return unknownFile{f}, nil
	}
	return f, err
}

type unknownFile struct{ File }

func (unknownFile) Stat() (fs.FileInfo, error) { return nil, syscall.EIO }

// TestSyncAgain: what a sync that has failed was for is written again before the next one.
func TestSyncAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &faulty{}
		c := journal.New(newBackend(d, dir, ""), journal.Options{})
		defer c.Close()
		w, err := c.Create(t.Context(), "s")
		must(t, err)
		before, err := os.ReadFile(dir + "/s" + suffix)
		must(t, err)
		d.syncErr = syscall.EIO
		must(t, texts(t, w, journal.KindUpdate, "0", "1"))
		time.Sleep(time.Minute)
		d.mu.Lock()
		d.syncErr, d.rewrote = nil, ""
		d.mu.Unlock()
		must(t, w.Sync(t.Context()))
		after, err := os.ReadFile(dir + "/s" + suffix)
		must(t, err)
		if want := string(after[len(before):]); d.rewrote != want {
			t.Errorf("written again: %q, want %q", d.rewrote, want)
		}
		d.rewrote = ""
		must(t, texts(t, w, journal.KindPrompt, "2"))
		if d.rewrote != "" {
			t.Errorf("written again without a reason: %q", d.rewrote)
		}
	})
}

// TestReplaceFails: if a journal cannot be compacted nothing has changed, and it can be continued.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	d := &faulty{}
	c := journal.New(newBackend(d, dir, ""), journal.Options{})
	defer c.Close()
	w, err := c.Create(t.Context(), "s")
	must(t, err)
	must(t, texts(t, w, journal.KindUpdate, "0", "1", "2"))
	must(t, w.Sync(t.Context()))
	d.set(syscall.ENOSPC)
	if err := w.Compact(t.Context(), journal.Gap{From: 2, To: 3}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("compact: %v", err)
	}
	d.set(nil)
	must(t, texts(t, w, journal.KindUpdate, "3"))
	if got, err := read(t, c, "s"); err != nil || len(got) != 4 {
		t.Errorf("%q, %v", got, err)
	}
	must(t, w.Compact(t.Context(), journal.Gap{From: 2, To: 3}))
	must(t, texts(t, w, journal.KindPrompt, "4"))
	if got, err := read(t, c, "s"); err != nil || len(got) != 4 {
		t.Errorf("%q, %v", got, err)
	}
}
