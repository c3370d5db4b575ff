package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A hookDisk calls functions before it does something.
type hookDisk struct {
	System
	open   func(name string) // may be nil, as the others
	dir    func()
	rename func() // to the name of a journal
	remove func(name string) error
	files  atomic.Int64 // that are open
	most   atomic.Int64 // that were at once
}

type hookFile struct {
	File
	d *hookDisk
}

func (d *hookDisk) Open(name string, flag int) (File, error) {
	if d.open != nil {
		d.open(name)
	}
	f, err := d.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	d.most.Store(max(d.most.Load(), d.files.Add(1)))
	return &hookFile{f, d}, nil
}

func (f *hookFile) Close() error {
	f.d.files.Add(-1)
	return f.File.Close()
}

func (d *hookDisk) Lock(f File, exclusive bool) (bool, error) {
	return d.System.Lock(f.(*hookFile).File, exclusive)
}

func (d *hookDisk) ReadDir(name string) ([]fs.DirEntry, error) {
	if d.dir != nil {
		d.dir()
	}
	return d.System.ReadDir(name)
}

func (d *hookDisk) Rename(from, to string) error {
	if d.rename != nil && strings.HasSuffix(to, suffix) {
		d.rename()
	}
	return d.System.Rename(from, to)
}

func (d *hookDisk) Remove(name string) error {
	if d.remove != nil {
		if err := d.remove(name); err != nil {
			return err
		}
	}
	return d.System.Remove(name)
}

// TestOldTakenOver: a reader misses nothing if somebody makes a journal of the conversation after any file was opened.
func TestOldTakenOver(t *testing.T) {
	want, _ := oldTexts(t, Open(copyOld(t), Options{}), oldID)
	for when := 1; ; when++ {
		dir := copyOld(t)
		n := 0
		c := Open(dir, Options{Disk: &hookDisk{open: func(string) {
			if n++; n == when {
				takeOver(t, dir, oldID)
			}
		}}})
		got, damage := oldTexts(t, c, oldID)
		must(t, c.Close())
		if !slices.Equal(got, want) || damage != nil {
			t.Errorf("at file %d: %d of %d records, damage %v", when, len(got), len(want), damage)
		}
		if n < when {
			return
		}
	}
}

// TestOldWritten: what an earlier version writes before the journal has its name is not lost: it cannot write then, or nobody
// owns the conversation.
func TestOldWritten(t *testing.T) {
	for _, closeFirst := range []bool{false, true} {
		for _, part := range []string{oldID, oldID + ".2", oldID + ".3"} {
			dir := copyOld(t)
			wrote, looked := false, 0
			write := func() {
				f, err := os.OpenFile(filepath.Join(dir, part+suffix), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
				must(t, err)
				defer f.Close()
				if ok, err := filelock.TryLock(f, true); ok && err == nil { // as an earlier version does
					_, err := f.WriteString("MARK")
					must(t, err)
					wrote = true
				}
			}
			d := &hookDisk{}
			if !closeFirst && part != oldID+".3" {
				d.rename = write
			} else {
				d.dir = func() { // the second time, before the name changes
					if looked++; looked == 2 {
						write()
					}
				}
			}
			b := newBackend(d, dir, "")
			b.closeFirst = closeFirst
			c := journal.New(b, journal.Options{})
			w, err := c.Own(t.Context(), oldID, nil)
			switch {
			case err == nil && wrote:
				t.Errorf("close first %v: what was written to %s is gone", closeFirst, part)
			case err != nil && !errors.As(err, new(*journal.OwnedError)):
				t.Errorf("close first %v, %s: %v", closeFirst, part, err)
			case err == nil:
				must(t, w.Release(t.Context()))
			}
			must(t, c.Close())
		}
	}
}

// TestOldLeft: a part that cannot be removed keeps nobody from owning the journal.
func TestOldLeft(t *testing.T) {
	dir := copyOld(t)
	c := Open(dir, Options{Disk: &hookDisk{remove: func(name string) error {
		if strings.HasSuffix(name, ".2"+suffix) {
			return errors.New("sharing violation")
		}
		return nil
	}}})
	defer c.Close()
	w, err := c.Own(t.Context(), oldID, nil)
	must(t, err)
	must(t, w.Release(t.Context()))
}

// TestOldAsked: somebody who asks for the owner keeps nobody from owning the conversation.
func TestOldAsked(t *testing.T) {
	dir := copyOld(t)
	f, err := os.Open(filepath.Join(dir, oldID+suffix))
	must(t, err)
	if ok, err := filelock.TryLock(f, false); !ok || err != nil {
		t.Skip("files cannot be locked here")
	}
	d := &lockDisk{refused: func() { _ = f.Close() }}
	c := Open(dir, Options{Disk: d})
	defer c.Close()
	w, err := c.Own(t.Context(), oldID, nil)
	must(t, err)
	must(t, w.Release(t.Context()))
}

// A lockDisk calls a function when it has not locked a file.
type lockDisk struct {
	System
	refused func()
}

func (d *lockDisk) Lock(f File, exclusive bool) (bool, error) {
	ok, err := d.System.Lock(f, exclusive)
	if !ok {
		d.refused()
	}
	return ok, err
}
