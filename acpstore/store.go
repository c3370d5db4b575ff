package acpstore

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
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// MaxBytes bounds the file of one session. What would make it larger is not stored, and
// not sent: the turn fails with [ErrFull].
const MaxBytes = 256 << 20

// ErrFull is wrapped by the error of a turn whose session has reached [MaxBytes].
var ErrFull = errors.New("acpstore: the session is too long: open a new one")

// A Store is a directory of sessions. [Keep] and [Open] make one. It is safe for
// concurrent use. One program at a time should use a directory.
type Store struct {
	root *os.Root

	mu   sync.Mutex
	open map[acp.SessionID]*file // those of sessions that are open
	uses map[acp.SessionID]int   // how many have each
}

// file is the file of a session that is open.
type file struct {
	mu     sync.Mutex
	f      *os.File
	size   int64
	closed bool
}

// Open opens a directory of sessions, which is made if there is none. Close releases it.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("acpstore: %w", err)
	}
	root, err := os.OpenRoot(dir) // ids come from clients and must not lead out of it
	if err != nil {
		return nil, fmt.Errorf("acpstore: %w", err)
	}
	return &Store{root: root, open: map[acp.SessionID]*file{}, uses: map[acp.SessionID]int{}}, nil
}

// Close releases the directory. Call it when the agent has ended. It may be called
// repeatedly.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for id, f := range s.open {
		errs = append(errs, f.close())
		delete(s.open, id)
	}
	return errors.Join(append(errs, s.root.Close())...)
}

const (
	suffix      = ".jsonl"
	titleSuffix = ".title"
	maxName     = 200
	maxTitle    = 1 << 10
)

// name returns the name of a session's file. An id that cannot be one of this store is
// refused: it may have come from anywhere.
func name(id acp.SessionID, suffix string) (string, error) {
	ok := 0 < len(id) && len(id) <= maxName && id[0] != '-' && id[0] != '.'
	for i := range len(id) {
		c := id[i]
		ok = ok && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if !ok {
		return "", acp.SessionNotFound(id)
	}
	return string(id) + suffix, nil
}

// line is anything of the protocol.
type line interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// add writes a line to a session's file. create says that the file begins with it.
func (s *Store) add(id acp.SessionID, l line, create, sync bool) error {
	text, err := l.AppendJSON(nil)
	if err != nil {
		return fmt.Errorf("acpstore: %w", err)
	}
	f, err := s.file(id, create)
	if err != nil {
		return err
	}
	if err := f.add(append(text, '\n'), sync); err != nil {
		return fmt.Errorf("acpstore: session %s: %w", id, err)
	}
	if create {
		s.syncDirectory()
	}
	return nil
}

// syncDirectory makes a new file's name durable, where directories can be synchronized.
func (s *Store) syncDirectory() {
	if d, err := s.root.Open("."); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// file returns the file of a session for writing.
func (s *Store) file(id acp.SessionID, create bool) (*file, error) {
	path, err := name(id, suffix)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.open[id]; f != nil && !create {
		return f, nil
	}
	flags := os.O_RDWR | os.O_APPEND
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := s.root.OpenFile(path, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, acp.SessionNotFound(id)
	case err != nil:
		return nil, fmt.Errorf("acpstore: %w", err)
	}
	whole, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(whole) // lest the next line be added to one that is unfinished
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("acpstore: session %s: %w", id, err)
	}
	opened := &file{f: f, size: whole}
	s.open[id] = opened
	return opened, nil
}

// wholeLines returns how long a file is without a last line that is unfinished.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
		n := min(int64(len(buf)), end)
		if _, err := f.ReadAt(buf[:n], end-n); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// use keeps the file of a session open until the session ends on this connection. Several connections may have the same
// session, each as a session of its own: the last one closes the file.
func (s *Store) use(session *acp.AgentSession) {
	id := session.ID()
	s.mu.Lock()
	s.uses[id]++
	s.mu.Unlock()
	context.AfterFunc(session.Context(), func() {
		s.mu.Lock()
		var f *file
		if s.uses[id]--; s.uses[id] == 0 {
			delete(s.uses, id)
			f = s.take(id) // under the same lock: another connection may open the session now
		}
		s.mu.Unlock()
		_ = f.close()
	})
}

// take forgets the open file of a session and returns it; nil if there is none. The caller holds mu, and closes the file
// without it.
func (s *Store) take(id acp.SessionID) *file {
	f := s.open[id]
	delete(s.open, id)
	return f
}

// add writes a whole line or nothing.
func (f *file) add(text []byte, sync bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	if f.size+int64(len(text)) > MaxBytes {
		return ErrFull
	}
	if _, err := f.f.Write(text); err != nil {
		return errors.Join(err, f.f.Truncate(f.size))
	}
	f.size += int64(len(text))
	if sync {
		return f.f.Sync()
	}
	return nil
}

func (f *file) sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	return f.f.Sync()
}

func (f *file) close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return errors.Join(f.f.Sync(), f.f.Close())
}

// Load returns a session and its history. It fails with [acp.SessionNotFound] if there is
// none. A last line that is unfinished is left out.
func (s *Store) Load(id acp.SessionID) (acp.SessionInfo, []acp.SessionUpdate, error) {
	none := acp.SessionInfo{}
	path, err := name(id, suffix)
	if err != nil {
		return none, nil, err
	}
	f, err := s.root.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil, acp.SessionNotFound(id)
	case err != nil:
		return none, nil, fmt.Errorf("acpstore: %w", err)
	}
	defer f.Close()
	info, history, err := decode(io.LimitReader(f, MaxBytes))
	switch {
	case err != nil:
		return none, nil, fmt.Errorf("acpstore: session %s: %w", id, err)
	case info.SessionID != id: // there is no whole line, or names do not differ in case
		return none, nil, acp.SessionNotFound(id)
	}
	if title, ok := s.title(id); ok {
		info.Title = title
	}
	return info, history, nil
}

// decode reads the file of a session.
func decode(r io.Reader) (info acp.SessionInfo, history []acp.SessionUpdate, err error) {
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return info, history, nil
		}
		if err == nil && number == 1 {
			err = info.UnmarshalJSON(text)
		} else if err == nil {
			var u acp.SessionUpdate
			if u, err = acp.UnmarshalSessionUpdate(text); err == nil {
				history = append(history, u)
			}
		}
		if err != nil {
			return info, nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// title returns the title that a session was given after its first prompt.
func (s *Store) title(id acp.SessionID) (string, bool) {
	path, err := name(id, titleSuffix)
	if err != nil {
		return "", false
	}
	f, err := s.root.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTitle))
	return string(text), err == nil && utf8.Valid(text)
}

// setTitle keeps a session's title.
func (s *Store) setTitle(id acp.SessionID, title string) error {
	path, err := name(id, titleSuffix)
	if err != nil {
		return err
	}
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "")
	}
	if err := s.root.WriteFile(path+".new", []byte(title), 0o600); err != nil {
		return fmt.Errorf("acpstore: %w", err)
	}
	if err := s.root.Rename(path+".new", path); err != nil {
		return fmt.Errorf("acpstore: %w", err)
	}
	return nil
}

// Delete removes a session. It fails with [acp.SessionNotFound] if there is none.
func (s *Store) Delete(id acp.SessionID) error {
	path, err := name(id, suffix)
	if err != nil {
		return err
	}
	s.mu.Lock()
	f := s.take(id)
	s.mu.Unlock()
	_ = f.close()
	err = s.root.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return acp.SessionNotFound(id)
	}
	if err != nil {
		return fmt.Errorf("acpstore: %w", err)
	}
	_ = s.root.Remove(string(id) + titleSuffix) // there may be none
	s.syncDirectory()
	return nil
}

// pageSize is how many sessions a page of the list has.
const pageSize = 100

// List returns a page of the sessions, by their ids, as [acp.Agent.ListSessions] does.
// Files that are not sessions are left out.
func (s *Store) List(q *acp.SessionQuery) (*acp.SessionPage, error) {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("acpstore: %w", err)
	}
	page := new(acp.SessionPage)
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || q.Cursor != nil && e.Name() <= string(*q.Cursor) {
			continue
		}
		info, err := s.info(e)
		if err != nil || string(info.SessionID) != id || q.Cwd != "" && filepath.Clean(q.Cwd) != filepath.Clean(info.Cwd) {
			continue // deleted meanwhile, or never finished
		}
		if len(page.Sessions) == pageSize {
			last := page.Sessions[pageSize-1].SessionID
			page.NextCursor = new(acpv2.SessionListCursor(last + suffix))
			break
		}
		page.Sessions = append(page.Sessions, info)
	}
	return page, nil
}

// info reads the first line of a session's file.
func (s *Store) info(e fs.DirEntry) (info acp.SessionInfo, err error) {
	stat, err := e.Info()
	if err != nil {
		return info, err
	}
	f, err := s.root.Open(e.Name())
	if err != nil {
		return info, err
	}
	defer f.Close()
	first, err := bufio.NewReader(io.LimitReader(f, 1<<20)).ReadBytes('\n')
	if err != nil {
		return info, err
	}
	if err := info.UnmarshalJSON(first); err != nil {
		return info, err
	}
	if title, ok := s.title(info.SessionID); ok {
		info.Title = title
	}
	info.UpdatedAt = stat.ModTime().UTC().Format(time.RFC3339)
	return info, nil
}
