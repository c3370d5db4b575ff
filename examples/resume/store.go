package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// A store keeps each session in a file of JSON lines: what it is, then what
// happened in it. Lines are only ever added, so that what a crash leaves
// unfinished is the last one.
type store struct{ root *os.Root }

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir) // ids come from clients and must not lead out of it
	if err != nil {
		return nil, err
	}
	return &store{root}, nil
}

func (s *store) Close() error { return s.root.Close() }

const suffix = ".jsonl"

// file returns the name of a session's file.
func file(id acp.SessionID) (string, error) {
	if strings.ContainsAny(string(id), `/\:`) {
		return "", acp.SessionNotFound(id)
	}
	return string(id) + suffix, nil
}

// create saves a session in which nothing has happened yet.
func (s *store) create(info acp.SessionInfo) error {
	return s.write(info.SessionID, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, &info)
}

// append adds what has happened in a session.
func (s *store) append(id acp.SessionID, updates ...acp.SessionUpdate) error {
	lines := make([]line, len(updates))
	for i, u := range updates {
		lines[i] = u
	}
	return s.write(id, os.O_APPEND|os.O_WRONLY, lines...)
}

// line is anything of the protocol.
type line interface {
	AppendJSON(dst []byte) ([]byte, error)
}

func (s *store) write(id acp.SessionID, flags int, lines ...line) (err error) {
	name, err := file(id)
	if err != nil {
		return err
	}
	var text []byte
	for _, l := range lines {
		if text, err = l.AppendJSON(text); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	f, err := s.root.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}

// load returns a session and its history. It fails with [acp.SessionNotFound] if
// there is none, or none but an unfinished first line.
func (s *store) load(id acp.SessionID) (info acp.SessionInfo, history []acp.SessionUpdate, err error) {
	name, err := file(id)
	if err != nil {
		return info, nil, err
	}
	text, err := s.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil, acp.SessionNotFound(id)
	}
	if err != nil {
		return info, nil, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(whole) == 0 {
		return info, nil, acp.SessionNotFound(id)
	}
	if len(whole) < len(text) {
		err = s.truncate(name, int64(len(whole)))
	}
	for l := range bytes.Lines(whole) {
		if info.SessionID == "" {
			err = errors.Join(err, info.UnmarshalJSON(l))
			continue
		}
		u, bad := acpv2.UnmarshalSessionUpdate(l)
		err = errors.Join(err, bad)
		history = append(history, u)
	}
	if err != nil {
		return info, nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return info, history, nil
}

// truncate drops an unfinished line, lest the next one be added to it.
func (s *store) truncate(name string, size int64) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func (s *store) remove(id acp.SessionID) error {
	name, err := file(id)
	if err != nil {
		return err
	}
	err = s.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return acp.SessionNotFound(id)
	}
	return err
}

// pageSize is how many sessions a page of the list has.
const pageSize = 100

// list returns the sessions by the names of their files, from the one after the
// cursor on.
func (s *store) list(q *acp.SessionQuery) (*acp.SessionPage, error) {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	page := new(acp.SessionPage)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || q.Cursor != nil && e.Name() <= string(*q.Cursor) {
			continue
		}
		if len(page.Sessions) == pageSize {
			last := page.Sessions[pageSize-1].SessionID
			page.NextCursor = new(acpv2.SessionListCursor(last + suffix))
			break
		}
		info, err := s.info(e)
		if err != nil {
			continue // deleted meanwhile, or never finished
		}
		if q.Cwd == "" || q.Cwd == info.Cwd {
			page.Sessions = append(page.Sessions, info)
		}
	}
	return page, nil
}

// info reads the first line of a session's file.
func (s *store) info(e fs.DirEntry) (info acp.SessionInfo, err error) {
	stat, err := e.Info()
	if err != nil {
		return info, err
	}
	f, err := s.root.Open(e.Name())
	if err != nil {
		return info, err
	}
	defer f.Close()
	first, err := bufio.NewReader(f).ReadBytes('\n')
	if err != nil {
		return info, err
	}
	if err := info.UnmarshalJSON(first); err != nil {
		return info, err
	}
	info.UpdatedAt = stat.ModTime().UTC().Format(time.RFC3339)
	return info, nil
}
