// Package file keeps journals in files: a directory with <id>.jsonl for each, a line for each record, which only its owner
// can read. Any number of processes may use a directory; the one that owns a journal has the lock of <id>.lock, which
// is there for as long.
package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

const (
	suffix = ".jsonl"
	// locked ends the name of the file that is locked. Its first line names the owner. A journal itself is not locked,
	// since [chain.Replace] exchanges it.
	locked = ".lock"
	// renewed ends the name of what a journal is about to be replaced by.
	renewed = suffix + ".new"

	// poll is how long a follower waits before it looks for what other processes have written.
	poll = 200 * time.Millisecond
	// A lock is tried lockTries times: another process that tries it has it for a moment.
	lockTries, lockPause = 50, time.Millisecond
	// readBuffer is how much is read at once, and searchStep how much a search reads.
	readBuffer, searchStep = 256 << 10, 64 << 10
	// maxWho bounds what an owner says of itself, in bytes.
	maxWho = 200
)

// Options of a container of files. The zero value is ready to use.
type Options struct {
	journal.Options
	// Who describes the owner to others, in a line such as "acp chat". If it is empty they get the process id.
	Who string
	// Disk is where the directory is; nil is the machine's.
	Disk Disk
}

// Open returns a container of the journals in a directory, which need not exist yet.
func Open(dir string, o Options) *journal.Container {
	return journal.New(NewBackend(dir, o), o.Options)
}

// NewBackend returns what Open keeps journals with.
func NewBackend(dir string, o Options) journal.Backend {
	if o.Disk == nil {
		o.Disk = System{}
	}
	return newBackend(o.Disk, dir, o.Who)
}

func newBackend(d Disk, dir, who string) *backend {
	if who == "" {
		who = fmt.Sprintf("process %d", os.Getpid())
	}
	who = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, who)
	return &backend{d: d, dir: dir, who: who[:min(len(who), maxWho)], closeFirst: runtime.GOOS == "windows"}
}

// A backend implements [journal.Backend].
type backend struct {
	d        Disk
	dir, who string
	// closeFirst says that files that are open cannot be replaced.
	closeFirst bool

	mu     sync.Mutex
	listed map[string][]int // the parts that the last list has seen; nil before
}

func (b *backend) name(id, end string) string { return filepath.Join(b.dir, id+end) }

// Create implements [journal.Backend].
func (b *backend) Create(ctx context.Context, id string) (journal.Chain, error) {
	if _, err := b.d.Stat(b.dir); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(b.dir, 0o700), b.d.SyncDir(filepath.Dir(b.dir))); err != nil {
			return nil, err
		}
	}
	return b.open(ctx, id, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
}

// Own implements [journal.Backend].
func (b *backend) Own(ctx context.Context, id string) (journal.Chain, error) {
	switch info, err := b.d.Stat(b.name(id, suffix)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, journal.ErrNotFound
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: b.name(id, suffix), Err: errors.New("not a regular file")}
	}
	return b.open(ctx, id, os.O_RDWR|os.O_APPEND)
}

// open locks a journal and opens its file.
func (b *backend) open(ctx context.Context, id string, flag int) (journal.Chain, error) {
	lock, err := b.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &chain{b: b, id: id, lock: lock}
	if flag&os.O_EXCL == 0 {
		err = b.renew(ctx, id)
	}
	if err == nil {
		err = c.reopen(flag)
	}
	switch {
	case err == nil:
		_ = b.d.Remove(b.name(id, renewed)) // of an owner that was killed
		return c, nil
	case errors.Is(err, fs.ErrExist):
		err = journal.ErrExists
	case errors.Is(err, fs.ErrNotExist):
		err = journal.ErrNotFound
	}
	return nil, errors.Join(err, c.unlock())
}

// lock locks a journal.
func (b *backend) lock(ctx context.Context, id string) (File, error) {
	for n := 0; ; n++ {
		f, who, err := b.tryLock(id)
		if f != nil || err != nil {
			return f, err
		}
		if n >= lockTries {
			return nil, &journal.OwnedError{ID: id, Who: who}
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryLock locks a journal, or returns the name of its owner.
func (b *backend) tryLock(id string) (f File, who string, err error) {
	name := b.name(id, locked)
	f, err = b.d.Open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, "", err
	}
	ok, err := b.d.Lock(f, true)
	if err != nil {
		err = fmt.Errorf("%w: %w", journal.ErrNoLocks, err)
	} else if !ok {
		who = ownerIn(f)
	} else if ok, err = b.same(f, name); ok && err == nil {
		_, _ = f.Write([]byte(b.who + "\n")) // a full disk keeps nobody from owning it
		return f, "", nil
	}
	return nil, who, errors.Join(err, f.Close())
}

// ownerIn returns what a file that is locked says of the owner.
func ownerIn(f File) string {
	var line [maxWho]byte
	n, _ := f.ReadAt(line[:], 0)
	who, _, _ := strings.Cut(string(line[:n]), "\n")
	return who
}

// Owner implements [journal.Backend].
func (b *backend) Owner(_ context.Context, id string) (who string, owned bool, err error) {
	f, err := b.d.Open(b.name(id, locked), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		owned, err = b.oldOwner(id)
		return "", owned, err
	}
	if err != nil {
		return "", false, err
	}
	free, err := b.d.Lock(f, false) // shared, so that two who ask do not take each other for an owner
	if err == nil && !free {
		who = ownerIn(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", false, err
	}
	return who, !free, nil
}

// same reports whether a file still has its name: an owner removes it.
func (b *backend) same(f File, name string) (bool, error) {
	here, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := b.d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && (here == there || os.SameFile(here, there)), err // the former in a backup
}

// Scan implements [journal.Backend]. Places are offsets.
func (b *backend) Scan(ctx context.Context, id string, after uint64, at int64, yield func(line []byte, end int64) bool) error {
	f, size, err := b.openScan(id)
	for n := 0; err == nil && n < 2 && isOld(f, size); n++ {
		was, failed := b.scanOld(ctx, id, yield)
		if failed = errors.Join(failed, f.Close()); was || failed != nil {
			return failed
		}
		f, size, err = b.openScan(id) // somebody has made a journal of it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case at > 0 && at <= size && continues(f, at, size, after):
	case at >= 0 && after > 0:
		if at, err = search(f, size, after); err != nil {
			return err
		}
		if at > 0 {
			more := true
			if _, err := lines(f, 0, size, func(line []byte, end int64) bool {
				more = yield(line, end)
				return false
			}); !more || err != nil {
				return err
			}
		}
	default:
		at = 0
	}
	_, err = lines(f, at, size, yield)
	return err
}

// openScan opens the file of a journal, or the first part of a conversation of format 1.
func (b *backend) openScan(id string) (f File, size int64, err error) {
	f, err = b.d.Open(b.name(id, suffix), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, journal.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// continues reports whether what follows a record is at a place.
func continues(f io.ReaderAt, at, size int64, after uint64) bool {
	var begin [64]byte
	n, err := f.ReadAt(begin[:], at-1)
	if err != nil && err != io.EOF || n == 0 || begin[0] != '\n' {
		return false
	}
	return at == size || journal.SeqOf(begin[1:n]) == after+1 || bytes.IndexByte(begin[1:n], '\n') < 0 && n < len(begin)
}

// search returns a place from which less than all has to be read to find what follows a record, at which a line begins.
func search(f io.ReaderAt, size int64, after uint64) (int64, error) {
	low, high := int64(0), size
	buf := make([]byte, searchStep)
	for high-low > readBuffer {
		middle := low + (high-low)/2
		n, err := f.ReadAt(buf, middle)
		if err != nil && err != io.EOF {
			return 0, err
		}
		at, seq := middle, uint64(0)
		for rest := buf[:n]; seq == 0; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest, at = rest[i+1:], at+int64(i+1)
			seq = journal.SeqOf(rest)
		}
		if seq == 0 || seq > after {
			high = middle
		} else {
			low = at
		}
	}
	return low, nil
}

// lines calls yield with the whole lines from an offset on until it returns false, which it reports. A line that is too
// long is nil.
func lines(f io.ReaderAt, at, size int64, yield func(line []byte, end int64) bool) (more bool, err error) {
	more, _, err = split(f, at, size, journal.MaxLine, yield)
	return more, err
}

// split is lines with a bound on them. It returns also what follows the last end of a line.
func split(f io.ReaderAt, at, size int64, most int, yield func(line []byte, end int64) bool) (bool, []byte, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(f, at, size-at), int(min(readBuffer, max(size-at, 16))))
	var line []byte
	for n := 0; ; {
		piece, err := in.ReadSlice('\n')
		at, n = at+int64(len(piece)), n+len(piece)
		if n <= most {
			line = append(line, piece...)
		} else {
			line = nil
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF:
			return true, line, nil
		case err != nil:
			return false, nil, err
		}
		if text := bytes.TrimSuffix(line, []byte("\n")); n > 1 && !yield(text[:len(text):len(text)], at) {
			return false, nil, nil
		}
		line, n = nil, 0
	}
}

const (
	// statters is how many goroutines ask for the sizes of files, and statAtOnce for how many each asks at least: if there
	// are many, that takes most of the time of a list.
	statters, statAtOnce = 4, 256
)

// List implements [journal.Backend].
func (b *backend) List(_ context.Context, yield func(id string, size int64) bool) error {
	list, err := b.d.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listed := numbersIn(list)
	b.mu.Lock()
	b.listed = listed
	b.mu.Unlock()
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		return !ok || journal.CheckID(id) != nil
	})
	sizes := make([]int64, len(list))
	var group sync.WaitGroup
	step := max(len(list)/statters+1, statAtOnce)
	for begin := 0; begin < len(list); begin += step {
		group.Go(func() {
			for i := begin; i < min(begin+step, len(list)); i++ {
				sizes[i] = -1 // deleted meanwhile, or no file
				if info, err := list[i].Info(); err == nil && info.Mode().IsRegular() {
					sizes[i] = info.Size()
				}
			}
		})
	}
	group.Wait()
	all := make(map[string]int64, len(list))
	for _, parts := range []bool{false, true} { // a part counts if there is a first one
		for i, e := range list {
			id, n := partOf(strings.TrimSuffix(e.Name(), suffix))
			if _, known := all[id]; sizes[i] >= 0 && (n == 1 && !parts || known && parts && n > 1) {
				all[id] += sizes[i]
			}
		}
	}
	for id, size := range all {
		if !yield(id, size) {
			break
		}
	}
	return nil
}

// Delete implements [journal.Backend].
func (b *backend) Delete(_ context.Context, id string) error {
	list, err := b.d.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	found := false
	for _, e := range list {
		switch name := e.Name(); {
		case name == id+suffix: // the last one, so that it is found again if this is interrupted
			found = true
		case strings.HasPrefix(name, id+"."):
			if err := b.d.Remove(filepath.Join(b.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if !found {
		return journal.ErrNotFound
	}
	if err := b.d.Remove(b.name(id, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.d.SyncDir(b.dir)
}

// Poll implements [journal.Backend].
func (b *backend) Poll() time.Duration { return poll }

// Close implements [journal.Backend].
func (b *backend) Close() error { return nil }
