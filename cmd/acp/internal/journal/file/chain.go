package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

const (
	// keepBuffer is how large the buffer of a journal may stay between writes.
	keepBuffer = 1 << 20
	// maxRewrite bounds what is written again after a sync that failed: the last part of it.
	maxRewrite = 64 << 20
)

// A chain is a journal that is owned. It implements [journal.Chain].
type chain struct {
	b    *backend
	id   string
	lock File
	buf  []byte // of Write
	torn int64  // there may be that much behind the end, which a write that failed has left

	mu   sync.Mutex // guards what Write and Sync share
	f    File       // nil if it could not be opened again
	info fs.FileInfo
	size int64 // the end of the last record

	// The rest is of Sync.
	named  bool  // the name survives a loss of power; that of a journal whose maker was killed may not
	failed bool  // the last sync
	safe   int64 // up to where the last one was that did not fail
}

func (c *chain) name() string { return c.b.name(c.id, suffix) }

// reopen opens the file.
func (c *chain) reopen(flag int) error {
	f, err := c.b.d.Open(c.name(), flag)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		if flag&os.O_EXCL != 0 { // or the next try would find a journal of that id
			err = errors.Join(err, c.b.d.Remove(c.name()))
		}
		return errors.Join(err, f.Close())
	}
	c.f, c.info = f, info
	return nil
}

// Epoch implements [journal.Chain].
func (c *chain) Epoch() uint32 { return 0 }

// Begin implements [journal.Chain].
func (c *chain) Begin(at int64) (cut int64, err error) {
	info, err := c.f.Stat()
	if err != nil {
		return 0, err
	}
	c.size = at
	if cut = info.Size() - at; cut > 0 {
		err = c.b.d.Truncate(c.name(), at)
	}
	return cut, err
}

// mine fails unless the file is the one that this owner has left.
func (c *chain) mine() error {
	info, err := c.b.d.Stat(c.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return journal.ErrDeleted
	case err != nil:
		return err
	case !os.SameFile(info, c.info) || info.Size() < c.size || info.Size() > c.size+c.torn:
		return fmt.Errorf("%w: %s has %d bytes, and not %d, or is another file", journal.ErrFenced, c.name(), info.Size(), c.size)
	}
	if c.torn > 0 {
		if err := c.b.d.Truncate(c.name(), c.size); err != nil {
			return err
		}
		c.torn = 0
	}
	return nil
}

// Write implements [journal.Chain], with one call to the system.
func (c *chain) Write(records []journal.Record) (durable bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.f == nil {
		if err := c.reopen(os.O_RDWR | os.O_APPEND); err != nil {
			return false, err
		}
	}
	if err := c.mine(); err != nil {
		return false, err
	}
	b := c.buf[:0]
	for i := range records {
		b = journal.AppendLine(b, &records[i])
	}
	if cap(b) <= keepBuffer {
		c.buf = b
	}
	n, err := c.f.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if c.torn = int64(len(b)); c.b.d.Truncate(c.name(), c.size) == nil {
			c.torn = 0
		}
		return false, err
	}
	c.size += int64(n)
	return false, nil
}

// Sync implements [journal.Chain].
func (c *chain) Sync() error {
	c.mu.Lock()
	f, size := c.f, c.size
	c.mu.Unlock()
	if f == nil {
		return nil // it was synced before it was replaced
	}
	if c.failed {
		if err := c.rewrite(max(c.safe, size-maxRewrite), size); err != nil {
			return err
		}
	}
	err := f.Sync()
	if err == nil && !c.named {
		err = c.b.d.SyncDir(c.b.dir)
		c.named = err == nil
	}
	if c.failed = err != nil; !c.failed {
		c.safe = size
	}
	return err
}

// rewrite writes what is between two places again, as it is read back. After a sync that failed the system may regard
// pages as written that are not, and would not try again.
func (c *chain) rewrite(from, to int64) (err error) {
	f, err := c.b.d.Open(c.name(), os.O_RDWR) // nothing can be written in between where all is appended
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, min(to-from, 1<<20))
	for from < to {
		n := min(to-from, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], from); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// Replace implements [journal.Chain]: it writes another file and renames it.
func (c *chain) Replace(with []journal.Record) error {
	if err := c.mine(); err != nil {
		return err
	}
	next := c.b.name(c.id, renewed)
	size, err := c.copy(next, with)
	if err != nil {
		return errors.Join(err, c.b.d.Remove(next))
	}
	// Where files that are open cannot be renamed, this one must not be. Its lock is another file's.
	err = c.f.Close()
	c.f = nil
	if err == nil {
		err = c.b.d.Rename(next, c.name())
	}
	if err == nil {
		c.size, c.safe, c.failed = size, size, false
		err = c.b.d.SyncDir(c.b.dir)
	}
	return errors.Join(err, c.reopen(os.O_RDWR|os.O_APPEND))
}

// copy writes a file like this one, with records in the place of those that they stand for, and syncs it.
func (c *chain) copy(name string, with []journal.Record) (size int64, err error) {
	out, err := c.b.d.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := make([]byte, 0, readBuffer)
	flush := func() bool {
		size += int64(len(buf))
		_, err = out.Write(buf)
		buf = buf[:0]
		return err == nil
	}
	_, failed := lines(c.f, 0, c.size, func(line []byte, _ int64) bool {
		seq := journal.SeqOf(line)
		if len(with) > 0 && seq >= with[0].From && seq <= with[0].Seq {
			if seq < with[0].Seq {
				return true
			}
			buf = journal.AppendLine(buf, &with[0])
			with = with[1:]
		} else {
			buf = append(append(buf, line...), '\n')
		}
		return len(buf) < readBuffer || flush()
	})
	if failed == nil && err == nil && flush() {
		err = out.Sync()
	}
	return size, errors.Join(failed, err)
}

// Close implements [journal.Chain].
func (c *chain) Close() error {
	var err error
	if c.f != nil {
		err = c.f.Close()
	}
	return errors.Join(err, c.unlock())
}

// unlock removes the lock, unless it belongs to somebody else by now: the journal may have been deleted and made anew.
func (c *chain) unlock() error {
	name := c.b.name(c.id, locked)
	if ok, err := c.b.same(c.lock, name); ok && err == nil {
		_ = c.b.d.Remove(name) // it is useless now; where another process has it open it may have to stay
	}
	return c.lock.Close()
}
