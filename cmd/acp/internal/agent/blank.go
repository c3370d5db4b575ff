package agent

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goacp/acp"
)

// A blank is a session in which nothing has been said: its options, in the format of a journal. Blanks have
// a directory of their own, since they are not listed, and only the latest are kept. They are not locked. The
// first prompt replaces a blank with a journal.

// Bounds of blanks.
const (
	maxBlanks    = 128
	maxBlankSize = 64 << 10 // bytes
)

// blankDir is the directory of blanks, below that of the journals.
const blankDir = "unused"

func (s *store) blankPath(id acp.SessionID) string {
	return filepath.Join(s.dir, blankDir, string(id)+suffix)
}

// setBlank keeps a session in which nothing has been said, in place of what was kept of it before.
func (s *store) setBlank(h *header, options *acp.ConfigOptionUpdate) error {
	line, err := h.line()
	if err == nil {
		line, err = appendEntry(line, time.Now(), options)
	}
	switch {
	case err != nil:
		return err
	case !validID(h.ID):
		return acp.SessionNotFound(h.ID)
	case len(line) > maxBlankSize:
		return errFull
	}
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blanks = slices.DeleteFunc(s.blanks, func(b blank) bool { return b.id == h.ID })
		s.blanks = append(s.blanks, blank{h.ID, line})
		s.blanks = slices.Delete(s.blanks, 0, max(0, len(s.blanks)-maxBlanks))
		return nil
	}
	dir := filepath.Join(s.dir, blankDir)
	for range 8 {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		err = writeAtomically(s.blankPath(h.ID), line)
		if !errors.Is(err, fs.ErrNotExist) { // as when the directory was empty and is removed
			break
		}
	}
	if err != nil {
		return err
	}
	return pruneBlanks(dir)
}

// A blank is one that is kept in memory.
type blank struct {
	id   acp.SessionID
	data []byte
}

// pruneBlanks removes the oldest blanks of a directory if there are too many.
func pruneBlanks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= maxBlanks {
		return err
	}
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			files = append(files, file{e.Name(), info.ModTime()})
		}
	}
	sort.Slice(files, func(i, j int) bool {
		return cmp.Or(files[i].at.Compare(files[j].at), strings.Compare(files[i].name, files[j].name)) < 0
	})
	for _, f := range files[:max(0, len(files)-maxBlanks)] {
		if e := os.Remove(filepath.Join(dir, f.name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return err
}

// readBlank calls each for what is kept of a session in which nothing has been said. It reports whether
// there is one.
func (s *store) readBlank(id acp.SessionID, each func(entry) error) bool {
	if !validID(id) {
		return false
	}
	var data []byte
	if s.dir == "" {
		s.mu.Lock()
		if i := slices.IndexFunc(s.blanks, func(b blank) bool { return b.id == id }); i >= 0 {
			data = s.blanks[i].data
		}
		s.mu.Unlock()
	} else {
		f, err := openRegular(s.blankPath(id), os.O_RDONLY)
		if err != nil {
			return false
		}
		defer func() { _ = f.Close() }()
		if data, err = io.ReadAll(io.LimitReader(f, maxBlankSize)); err != nil {
			return false
		}
	}
	c, err := readEntries(bytes.NewReader(data), each)
	return err == nil && c.header.ID == id
}

// removeBlank removes a blank, and reports whether there was one.
func (s *store) removeBlank(id acp.SessionID) bool {
	if !validID(id) {
		return false
	}
	if s.dir != "" {
		err := os.Remove(s.blankPath(id))
		_ = os.Remove(filepath.Join(s.dir, blankDir)) // if it is empty
		return err == nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.blanks)
	s.blanks = slices.DeleteFunc(s.blanks, func(b blank) bool { return b.id == id })
	return len(s.blanks) < n
}

// setBlank keeps the session although nothing has been said in it. A failure is logged. The user learns of
// it with the first prompt, if that cannot be kept either.
func (s *session) setBlank() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBlank()
}

// writeBlank is setBlank for callers that hold mu. It does nothing once the session is closed, since it may
// have been deleted then, or when it has a journal.
func (s *session) writeBlank() {
	if s.closed || s.j != nil {
		return
	}
	if err := s.agent.store.setBlank(s.header(), &acp.ConfigOptionUpdate{ConfigOptions: s.values()}); err != nil {
		s.agent.log.Warn("agent: a session without a prompt is not kept", "error", err)
	}
}

func (s *session) header() *header {
	version := firstVersion
	if s.agent.models != nil {
		version = journalVersion
	}
	return &header{Version: version, ID: s.acp.ID(), Cwd: s.acp.Cwd(), Roots: s.acp.AdditionalDirectories(), Created: time.Now().UTC()}
}
