package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// suffix ends the names of logs.
	suffix = ".jsonl"
	// maxParts bounds the parts of a conversation.
	maxParts = 10_000
	// tailWindow is how much of the end of a log is read at first to continue it.
	tailWindow = 64 << 10
	// maxTail bounds that. A log without a whole record in it is not continued.
	maxTail = 16 << 20
	// maxRewrite bounds what is written again after a failed sync: the last part of it.
	maxRewrite = 64 << 20
	// lockTries bounds the attempts to lock a log that another process has locked, and lockPause is
	// the time between them. [Store.Writing] locks a log for a moment, and a process that closes
	// one while it starts a command holds the lock a moment longer.
	lockTries = 50
	lockPause = time.Millisecond
	// keepBuffer is how large the buffer of a log may stay between writes.
	keepBuffer = 1 << 20
)

var (
	// errLocked says that another writer has the log.
	errLocked = errors.New("another writer has it")
	// errNoEnd says that the end of a log has no record after which to continue.
	errNoEnd = errors.New("its end has no whole record")
)

// logName names a part of a conversation.
func logName(id string, part int) string {
	if part == 1 {
		return id + suffix
	}
	return id + "." + strconv.Itoa(part) + suffix
}

// parseName is the reverse.
func parseName(name string) (id string, part int, ok bool) {
	name, ok = strings.CutSuffix(name, suffix)
	if !ok {
		return "", 0, false
	}
	id, number, more := strings.Cut(name, ".")
	part = 1
	if more {
		n, err := strconv.Atoi(number)
		if err != nil || n < 2 || n > maxParts || strconv.Itoa(n) != number {
			return "", 0, false
		}
		part = n
	}
	return id, part, validID(id)
}

// A logFile is a part of a conversation that only this process writes.
type logFile struct {
	fs     FileSystem
	name   string
	f      File
	id     string
	part   int
	at     place // the end of the last record
	epoch  int64
	torn   bool // there may be something after at.Offset
	unterm bool // the last record has no end of line
	head   bool // there is no record yet
	buf    []byte

	// Repaired is how many bytes of an unfinished record were removed.
	Repaired int64
}

// openLog opens a conversation for writing: its last part, or a new one if another process writes
// that or it cannot be continued, since its end cannot be read or more than 16 MiB of it is
// damaged.
func openLog(files FileSystem, dir, id string) (*logFile, error) {
	part, err := lastPart(files, dir, id)
	if err != nil {
		return nil, err
	}
	var last error // why the last part is not continued
	if part > 0 {
		l, err := openPart(files, dir, id, part, os.O_RDWR|os.O_APPEND)
		if err == nil {
			return l, nil
		}
		last = err
	}
	for part++; part <= maxParts; part++ {
		l, err := openPart(files, dir, id, part, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, os.ErrExist) && !errors.Is(err, errLocked):
			return nil, errors.Join(err, last)
		}
	}
	return nil, fmt.Errorf("conversation %s has %d parts", id, maxParts)
}

// lastPart returns the number of the last part of a conversation, or 0 if there is none.
func lastPart(files FileSystem, dir, id string) (last int, err error) {
	list, err := files.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	for _, e := range list {
		if of, part, ok := parseName(e.Name()); ok && of == id {
			last = max(last, part)
		}
	}
	return last, nil
}

// openPart opens a part, locks it, and finds where to continue.
func openPart(files FileSystem, dir, id string, part, flag int) (_ *logFile, err error) {
	l := &logFile{fs: files, name: filepath.Join(dir, logName(id, part)), id: id, part: part}
	f, err := files.OpenFile(l.name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	l.f = f
	ok, err := lockLog(files, f)
	switch {
	case err != nil && flag&os.O_EXCL == 0:
		// Whether another process writes it is unknown. A new part has no other writer.
		return nil, errors.Join(errors.ErrUnsupported, err)
	case err == nil && !ok:
		return nil, errLocked
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := l.findEnd(info.Size()); err != nil {
		return nil, err
	}
	return l, nil
}

// lockLog locks a log for writing. It reports false if others have the lock at each attempt.
func lockLog(files FileSystem, f File) (ok bool, err error) {
	for n := range lockTries {
		if n > 0 {
			time.Sleep(lockPause)
		}
		if ok, err = files.TryLock(f, true); ok || err != nil {
			break
		}
	}
	return ok, err
}

// findEnd finds the last whole record, and removes what follows it if that is the beginning of
// another record. Damaged lines stay: they count as records.
func (l *logFile) findEnd(size int64) error {
	l.at = place{Hash: root(l.id, l.part)}
	l.epoch = 1
	if size == 0 {
		l.head = true
		return nil
	}
	for window := int64(tailWindow); ; window *= 2 {
		if window > maxTail {
			return fmt.Errorf("%s: %w", filepath.Base(l.name), errNoEnd)
		}
		begin := max(size-window, 0)
		data := make([]byte, size-begin)
		if _, err := l.f.ReadAt(data, begin); err != nil && err != io.EOF {
			return err
		}
		if begin > 0 { // the first line is not whole
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				continue
			}
			begin += int64(i + 1)
			data = data[i+1:]
		}
		if l.endIn(data, begin) {
			break
		}
		if begin == 0 {
			// There is no whole record. The lines stay where they are, and readers report them.
			lines := int64(bytes.Count(data, []byte("\n")))
			l.at.Seq = lines
			l.at.Offset = int64(bytes.LastIndexByte(data, '\n') + 1)
			l.head = lines == 0
			break
		}
	}
	if size > l.at.Offset {
		l.Repaired = size - l.at.Offset
		l.torn = true
		return l.repair()
	}
	return nil
}

// endIn looks for the last whole record in the end of the log, which begins at an offset.
func (l *logFile) endIn(data []byte, begin int64) bool {
	end := len(data)
	bad := int64(0)
	for end > 0 {
		last := end
		ended := data[end-1] == '\n'
		if ended {
			last--
		}
		first := bytes.LastIndexByte(data[:last], '\n') + 1
		line := data[first:last]
		r, err := parseLine(line)
		if err != nil {
			// The end of the line may be what was damaged.
			if found := within(line); len(found) > 0 {
				r, err = found[len(found)-1], nil
			}
		}
		if err == nil {
			l.at.Seq, l.at.Hash, l.epoch = r.Seq+bad, r.Hash, r.Epoch+1
			if bad == 0 {
				l.at.Offset = begin + int64(end)
				l.unterm = !ended
			}
			return true
		}
		if ended && len(line) > 0 {
			if bad++; bad == 1 {
				l.at.Offset = begin + int64(end)
			}
		}
		end = first
	}
	l.at.Offset = 0
	return false
}

// repair removes what follows the last record.
func (l *logFile) repair() error {
	if !l.torn {
		return nil
	}
	if err := l.f.Truncate(l.at.Offset); err != nil {
		return fmt.Errorf("repair %s: %w", filepath.Base(l.name), err)
	}
	l.torn = false
	return nil
}

// append writes all events or none, with one call to the system. If the call fails, what it may
// have left behind is removed before the next one.
func (l *logFile) append(events []Event) error {
	if err := l.repair(); err != nil {
		return err
	}
	b := l.buf[:0]
	if l.unterm {
		b = append(b, '\n')
	}
	at := l.at
	for i := range events {
		at.Seq++
		b, at.Hash = appendLine(b, &events[i], at.Seq, l.epoch, at.Hash)
	}
	if cap(b) <= keepBuffer {
		l.buf = b
	}
	n, err := l.f.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.torn = true
		_ = l.repair() // otherwise the next time
		return err
	}
	at.Offset += int64(len(b))
	first := l.at.Seq
	l.at, l.unterm, l.head = at, false, false
	for i := range events {
		events[i].Seq, events[i].Part = first+int64(i)+1, l.part
	}
	return nil
}

// header returns the first record of a part, whose data says which format it has and which
// conversation it belongs to.
func (l *logFile) header(v Session) Event {
	a := attributesOf(v)
	a.Format, a.Conversation = format, l.id
	return sessionEvent(a)
}

func sessionEvent(a attributes) Event {
	data, _ := json.Marshal(a) // strings and numbers cannot fail
	return Event{Time: time.Now(), Kind: eventSession, Data: data}
}

// sync makes the log survive a loss of power. Again says that the last attempt failed, and what is
// between two places may be missing on the disk.
func (l *logFile) sync(from, to int64, again bool) error {
	if again {
		if err := l.rewrite(max(from, to-maxRewrite), to); err != nil {
			return err
		}
	}
	return l.f.Sync()
}

// rewrite writes the bytes between two places of the log again, as they are read back. After a
// failed sync the system may regard pages as written that are not, and would not try again.
func (l *logFile) rewrite(from, to int64) (err error) {
	f, err := l.fs.OpenFile(l.name, os.O_RDWR, 0o600) // in append mode nothing can be written in between
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

// close releases the log.
func (l *logFile) close() error { return l.f.Close() }

// removeLogs deletes all parts of a conversation, the first one last.
func (s *Store) removeLogs(id string) error {
	parts, err := s.parts(id)
	if err != nil {
		return err
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if err := s.files.Remove(filepath.Join(s.dir, logName(id, parts[i].n))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	_ = s.files.SyncDir(s.dir) // where that is possible
	return nil
}
