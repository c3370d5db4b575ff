package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Earlier versions kept a session in a file of lines of JSON, and its title in another. The first line is a header; each of
// the others is an entry with its time:
//
//	{"acpSession":2,"id":"sess_…","cwd":"/home/me","created":"2006-01-02T15:04:05Z"}
//	{"at":"2006-01-02T15:04:06.789Z","update":{"sessionUpdate":"user_message",…}}
//
// A session of which there is such a file is taken over when it is used.
const oldSuffix, oldTitleSuffix = ".ndjson", ".title"

// oldVersion is the last version of that format. The lines of the first one are all updates.
const oldVersion = 2

func (s *store) oldPath(id acp.SessionID) string { return filepath.Join(s.dir, string(id)+oldSuffix) }

// A header is the first line of an old file.
type header struct {
	Version int           `json:"acpSession"`
	ID      acp.SessionID `json:"id"`
	Cwd     string        `json:"cwd"`
	Roots   []string      `json:"roots,omitempty"`
	From    acp.SessionID `json:"from,omitempty"`
}

// parseHeader returns what the first line of an old file says about a session.
func parseHeader(id acp.SessionID, line []byte) (about, error) {
	var h header
	err := json.Unmarshal(line, &h)
	switch {
	case err == nil && h.Version > oldVersion:
		return about{}, fmt.Errorf("it was written by a newer version of the program (format %d)", h.Version)
	case err != nil || h.Version < 1 || h.ID != id || h.Cwd == "":
		return about{}, errors.New("the first line is no header")
	}
	return about{Cwd: h.Cwd, Roots: h.Roots, Parent: h.From}, nil
}

// oldKinds are those of the lines of an old file.
var oldKinds = []journal.Kind{
	journal.KindUpdate, journal.KindMessage, journal.KindIntent, journal.KindResult, journal.KindUsage, journal.KindCompacted,
	journal.KindServed, journal.KindMended,
}

// readOld calls each with what an old file holds, as records. It leaves out lines that are damaged, and the last one if that
// is not finished.
func readOld(id acp.SessionID, r io.Reader, each func(journal.Draft) error) error {
	in := bufio.NewReaderSize(io.LimitReader(r, maxJournal), 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return errors.New("it is empty")
	}
	a, err := parseHeader(id, line)
	if err == nil {
		err = each(a.draft())
	}
	for err == nil {
		if line, err = in.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return nil
		}
		if d, ok := parseOld(line); ok && err == nil {
			err = each(d)
		}
	}
	return err
}

// parseOld returns the record that an old line stands for, unless it is damaged.
func parseOld(line []byte) (d journal.Draft, ok bool) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(line, &members) // of what is damaged there are none
	for _, kind := range oldKinds {
		if data := members[string(kind)]; len(data) > 0 {
			d.Kind, d.Data = kind, data
		}
	}
	_ = json.Unmarshal(members["at"], &d.At) // or else it is now
	e, ok := parseEntry(d)
	if info, named := e.update.(*acp.SessionInfoUpdate); named {
		title, _ := info.Title.Get()
		d.Kind = journal.KindSession
		d.Data, _ = json.Marshal(map[string]string{"title": title}) // which strings do not fail
	}
	return d, ok
}

// aboutOld returns what an old file says about a session.
func (s *store) aboutOld(id acp.SessionID) (about, bool) {
	line, _, _ := bytes.Cut(beginOf(s.oldPath(id), 64<<10), []byte{'\n'})
	a, err := parseHeader(id, line)
	a.Title = string(beginOf(s.oldTitle(id), 4096))
	return a, err == nil
}

// beginOf returns what a file begins with, as far as it can be read.
func beginOf(name string, most int64) []byte {
	f, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data, _ := io.ReadAll(io.LimitReader(f, most))
	return data
}

func (s *store) oldTitle(id acp.SessionID) string {
	return filepath.Join(s.dir, string(id)+oldTitleSuffix)
}

// openOld opens the old file of a session.
func (s *store) openOld(id acp.SessionID, flags int) (*os.File, error) {
	if s.dir == "" {
		return nil, fs.ErrNotExist
	}
	return openRegular(s.oldPath(id), flags)
}

// takeOver makes a journal of an old file, and then removes that. If it is interrupted it begins again, unless the journal
// is finished.
func (s *store) takeOver(id acp.SessionID) error {
	if s.dir == "" || !isRegular(s.oldPath(id)) {
		return nil
	}
	f, err := s.openOld(id, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	ok, err := filelock.TryLock(f, true) // an earlier version that has the session open has it
	info, gone := os.Lstat(s.oldPath(id))
	switch {
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return err
	case err == nil && !ok:
		return &journal.OwnedError{ID: string(id) + part}
	case gone != nil:
		return nil // somebody else has taken it over
	}
	a, err := s.newest(id)
	if err == nil {
		err = s.later(id)
	}
	if err != nil {
		return err // the journal may have more than the old file, although this version does not understand it
	}
	if a.Cwd == "" {
		if err := s.drop(id); err != nil {
			return err // what an attempt that was interrupted has left
		}
		k, err := s.createFrom(id, func(add func(journal.Draft)) error {
			return readOld(id, f, func(d journal.Draft) error { add(d); return nil })
		}, func(was about) about { return was })
		if err == nil {
			err = cmp.Or(k.lost, k.close())
		}
		if err != nil {
			return err
		}
		_ = os.Chtimes(s.path(id), time.Time{}, info.ModTime()) // the list is in that order
	}
	if os.Remove(s.oldPath(id)) != nil { // perhaps because it is open
		_ = f.Close()
	}
	return s.removeOld(id)
}

// later fails if a later version has written the journal of a session.
func (s *store) later(id acp.SessionID) error {
	name := string(id) + part
	err := s.c.Read(context.Background(), name, 0, func(r *journal.Record) error {
		if !r.Kind.Known() {
			return &journal.FormatError{ID: name, Kind: r.Kind}
		}
		return nil
	})
	if !errors.As(err, new(*journal.FormatError)) {
		return nil
	}
	return err
}

// removeOld removes the old files of a session.
func (s *store) removeOld(id acp.SessionID) error {
	if s.dir == "" {
		return nil
	}
	var errs []error
	for _, name := range []string{s.oldTitle(id), s.oldPath(id)} {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
