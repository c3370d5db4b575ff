package agent

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// Bounds of the store.
const (
	pageSize    = 50    // sessions on a page of the list
	maxListed   = 20000 // files that are looked at for the list
	maxInMemory = 256   // sessions that are kept when there is no directory
	// maxMemory bounds such a session, in bytes.
	maxMemory = 32 << 20
	// lockPatience is how long a session is waited for that is just being closed.
	lockPatience = time.Second
)

const (
	suffix      = ".ndjson"
	titleSuffix = ".title" // of the file with a session's title, so that listing reads little
)

// A store keeps the journals of sessions: one file for each in a directory, or
// in memory if there is none. A session is written by one opener at a time, also
// of several programs. Methods may be called from any goroutine.
type store struct {
	dir string

	mu  sync.Mutex
	mem map[acp.SessionID]*memory

	blanks []blank // in memory, the latest last
}

// memory is the journal of a session that is kept in memory; guarded by store.mu.
type memory struct {
	data    []byte
	title   string
	updated time.Time
	open    bool
}

func newStore(dir string) *store { return &store{dir: dir, mem: map[acp.SessionID]*memory{}} }

// busyError says that a session is open somewhere else.
func busyError(id acp.SessionID) error {
	return &acp.Failure{
		Message: "session " + string(id) + " is open in another place: close it there first",
		Reason:  "session_open", Scope: "session",
	}
}

// unreadable says that what was kept of a session is broken, or out of reach.
func unreadable(id acp.SessionID, err error) error {
	return &acp.Failure{
		Message: "session " + string(id) + " cannot be read: " + prose.OneLine(err.Error(), 300),
		Reason:  "session_unreadable", Scope: "session",
	}
}

// validID reports whether an id may become the name of a file.
func validID(id acp.SessionID) bool {
	if id == "" || len(id) > 100 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func (s *store) path(id acp.SessionID) string { return filepath.Join(s.dir, string(id)+suffix) }

// A journal is open for writing, and locked. Its methods may be called from any
// goroutine.
type journal struct {
	store *store
	id    acp.SessionID

	mu   sync.Mutex
	file *os.File // nil in memory
	mem  *memory
	size int64
	err  error // why nothing more is kept
	buf  []byte
}

// create makes the journal of a new session.
func (s *store) create(h *header) (*journal, error) {
	line, err := h.line()
	if err != nil {
		return nil, err
	}
	if !validID(h.ID) {
		return nil, acp.SessionNotFound(h.ID)
	}
	if s.dir == "" {
		return s.createInMemory(h.ID, line)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.path(h.ID), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{store: s, id: h.ID, file: f, size: int64(len(line))}
	ok, err := takeLock(f)
	if err == nil && !ok {
		err = busyError(h.ID)
	}
	if err == nil {
		_, err = f.Write(line)
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return j, nil
}

// takeLock takes the lock of a journal, which ends with the file. It reports false while
// somebody else has it, in this program or another. Where there are no locks two programs
// can write to a session at once.
func takeLock(f *os.File) (bool, error) {
	ok, err := filelock.TryLock(f, true)
	if errors.Is(err, errors.ErrUnsupported) {
		return true, nil
	}
	return ok, err
}

// createInMemory is create for a store without a directory.
func (s *store) createInMemory(id acp.SessionID, line []byte) (*journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem[id] != nil {
		return nil, fs.ErrExist
	}
	if len(s.mem) >= maxInMemory {
		s.forgetOldest()
	}
	m := &memory{data: line, updated: time.Now(), open: true}
	s.mem[id] = m
	return &journal{store: s, id: id, mem: m, size: int64(len(line))}, nil
}

// forgetOldest makes room: it drops the closed session that was changed least recently.
func (s *store) forgetOldest() {
	var oldest acp.SessionID
	for id, m := range s.mem {
		if !m.open && (oldest == "" || m.updated.Before(s.mem[oldest].updated)) {
			oldest = id
		}
	}
	delete(s.mem, oldest)
}

// open opens the journal of a session that exists, calls each for its updates and
// drops an unfinished line, to which the next one would be added otherwise.
func (s *store) open(id acp.SessionID, each func(entry) error) (*journal, *contents, error) {
	if !validID(id) {
		return nil, nil, acp.SessionNotFound(id)
	}
	j, err := s.lock(id)
	if err != nil {
		return nil, nil, err
	}
	r, err := j.reader()
	if err == nil {
		var c *contents
		if c, err = readEntries(r, each); err == nil {
			if err = j.truncate(c.whole); err == nil {
				return j, c, nil
			}
		}
	}
	_ = j.close()
	return nil, nil, unreadable(id, err)
}

// lock opens a journal. It waits for one that is being closed.
func (s *store) lock(id acp.SessionID) (*journal, error) {
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		j, err := s.tryOpen(id)
		if j != nil || err != nil {
			return j, err
		}
		if time.Now().After(end) {
			return nil, busyError(id)
		}
	}
}

// tryOpen returns nil if the journal is open somewhere else.
func (s *store) tryOpen(id acp.SessionID) (*journal, error) {
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		m := s.mem[id]
		switch {
		case m == nil:
			return nil, acp.SessionNotFound(id)
		case m.open:
			return nil, nil
		}
		m.open = true
		return &journal{store: s, id: id, mem: m, size: int64(len(m.data))}, nil
	}
	f, err := openRegular(s.path(id), os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, acp.SessionNotFound(id)
	}
	if err != nil {
		return nil, err
	}
	ok, err := takeLock(f)
	if err == nil && ok {
		// It may have been deleted between the two.
		var here, there fs.FileInfo
		if here, err = f.Stat(); err == nil {
			there, err = os.Stat(s.path(id))
			if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(here, there) {
				err = acp.SessionNotFound(id)
			}
		}
		if err == nil {
			return &journal{store: s, id: id, file: f, size: here.Size()}, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// openRegular opens a regular file. Reading anything else might never end.
func openRegular(path string, flags int) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.OpenFile(path, flags, 0)
}

// reader returns a reader of the journal as it is.
func (j *journal) reader() (io.Reader, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mem != nil {
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		return bytes.NewReader(j.mem.data), nil
	}
	if j.file == nil {
		return nil, fs.ErrClosed
	}
	return io.NewSectionReader(j.file, 0, j.size), nil
}

// truncate removes what follows a size: an unfinished line, to which the next one would be joined.
func (j *journal) truncate(size int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if size == j.size {
		return nil
	}
	j.size = size
	if j.mem != nil {
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		j.mem.data = j.mem.data[:size]
		return nil
	}
	return j.file.Truncate(size)
}

// add appends an update. After a failure nothing more is appended, so that the journal
// has no gaps; add then returns the first failure.
func (j *journal) add(u acp.SessionUpdate) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	line, err := appendEntry(j.buf[:0], time.Now(), u)
	return j.append(line, err)
}

// addRecord is add for a message, an intent or a result.
func (j *journal) addRecord(name string, value any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	line, err := appendRecord(j.buf[:0], time.Now(), name, value)
	return j.append(line, err)
}

// addLine appends a line of another journal.
func (j *journal) addLine(line []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	j.err = j.write(line)
	return j.err
}

// append appends a line that was encoded in buf, unless that failed.
func (j *journal) append(line []byte, err error) error {
	if cap(line) <= 64<<10 {
		j.buf = line[:0]
	}
	if err == nil {
		err = j.write(line)
	}
	j.err = err
	return err
}

// write appends a line. If that fails in the middle, it removes the piece.
func (j *journal) write(line []byte) error {
	if j.mem != nil {
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		if len(j.mem.data)+len(line) > maxMemory {
			return errFull
		}
		j.mem.data = append(j.mem.data, line...)
		j.mem.updated = time.Now()
		j.size += int64(len(line))
		return nil
	}
	if j.file == nil {
		return fs.ErrClosed
	}
	if j.size+int64(len(line)) > maxJournal || len(line) > maxLine {
		return errFull
	}
	n, err := j.file.Write(line)
	if err != nil && n > 0 {
		_ = j.file.Truncate(j.size) // or else the line stays unfinished, which readers can handle
		return err
	}
	j.size += int64(n)
	return err
}

// sync writes to disk what was appended, so that it survives a loss of power.
func (j *journal) sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Sync()
}

// bytes returns the size of the journal.
func (j *journal) bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// close releases the lock. Nothing can be appended afterwards.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mem != nil {
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		j.mem.open = false
		j.err = fs.ErrClosed
		return nil
	}
	if j.file == nil {
		return nil
	}
	err := errors.Join(j.file.Sync(), j.file.Close())
	j.file = nil
	return err
}

// setTitle keeps the title where the list finds it. The journal has it as well.
func (j *journal) setTitle(title string) error {
	if j.mem != nil {
		j.store.mu.Lock()
		defer j.store.mu.Unlock()
		j.mem.title = title
		return nil
	}
	return writeAtomically(strings.TrimSuffix(j.store.path(j.id), suffix)+titleSuffix, []byte(title))
}

// remove deletes a session that is not open.
func (s *store) remove(id acp.SessionID) error {
	if !validID(id) {
		return acp.SessionNotFound(id)
	}
	// First, so that a blank that an interrupted process left beside the journal does not bring it back.
	if s.removeBlank(id) && !s.exists(id) {
		return nil
	}
	j, err := s.lock(id)
	if err != nil {
		return err
	}
	defer func() { _ = j.close() }()
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mem, id)
		return nil
	}
	if err := os.Remove(strings.TrimSuffix(s.path(id), suffix) + titleSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeOpen(j); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// exists reports whether there is such a session.
func (s *store) exists(id acp.SessionID) bool {
	if !validID(id) {
		return false
	}
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mem[id] != nil
	}
	info, err := os.Lstat(s.path(id))
	return err == nil && info.Mode().IsRegular()
}

// copyOf makes a new session with what the journal of another holds, which may
// be open elsewhere. It calls each for every update.
func (s *store) copyOf(from acp.SessionID, h *header, each func(entry) error) (*journal, error) {
	var r io.Reader
	if !s.exists(from) {
		return nil, acp.SessionNotFound(from)
	}
	if s.dir == "" {
		s.mu.Lock()
		if m := s.mem[from]; m != nil {
			r = bytes.NewReader(m.data)
		}
		s.mu.Unlock()
		if r == nil {
			return nil, acp.SessionNotFound(from)
		}
	} else {
		f, err := openRegular(s.path(from), os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	h.From = from
	j, err := s.create(h)
	if err != nil {
		return nil, err
	}
	_, err = readEntries(r, func(e entry) error {
		if e.update != nil {
			return errors.Join(j.add(e.update), each(e))
		}
		return errors.Join(j.addLine(e.line), each(e))
	})
	if err == nil {
		err = j.sync()
	}
	if err != nil {
		s.drop(j)
		return nil, unreadable(from, err)
	}
	return j, nil
}

// drop removes what was begun and cannot be finished.
func (s *store) drop(j *journal) {
	_ = removeOpen(j)
	_ = j.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mem, j.id)
}

// writeAtomically replaces a file by one with other contents.
func writeAtomically(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".*.tmp") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
