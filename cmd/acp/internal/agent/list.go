package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/jsonrpc"
)

// listed is a session in the list.
type listed struct {
	id      acp.SessionID
	about   about
	updated time.Time
}

// cursor says where in the list an entry is: the latest come first.
func (l listed) cursor() string {
	return fmt.Sprintf("%020d %s", l.updated.UnixNano(), l.id)
}

// isCursor reports whether a cursor looks like one that was given. The session it
// names may have been deleted meanwhile: the list continues behind it.
func isCursor(c string) bool {
	at, id, ok := strings.Cut(c, " ")
	_, err := strconv.ParseInt(at, 10, 64)
	return ok && len(at) == 20 && err == nil && id != ""
}

// list returns a page of the sessions, the latest first. A session that is used
// while pages are asked for may be on two of them or on none.
func (s *store) list(q *acp.SessionQuery, size int) (*acp.SessionPage, error) {
	if q.Cursor != nil && !isCursor(string(*q.Cursor)) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown cursor"}
	}
	all, err := s.all()
	if err != nil {
		return nil, err
	}
	sort.Slice(all, func(i, j int) bool { return all[j].cursor() < all[i].cursor() })
	page := new(acp.SessionPage)
	last := ""
	for _, l := range all {
		if q.Cursor != nil && l.cursor() >= string(*q.Cursor) {
			continue
		}
		about, ok := s.describe(l.id)
		if !ok || q.Cwd != "" && about.Cwd != q.Cwd {
			continue // deleted meanwhile, never finished, or somewhere else
		}
		if len(page.Sessions) == size {
			page.NextCursor = new(acpv2.SessionListCursor(last))
			break
		}
		last = l.cursor()
		page.Sessions = append(page.Sessions, acp.SessionInfo{
			SessionID: l.id, Cwd: about.Cwd, AdditionalDirectories: about.Roots, Title: prose.OneLine(about.Title, maxTitle),
			UpdatedAt: l.updated.UTC().Format(time.RFC3339),
		})
	}
	return page, nil
}

// all returns the ids and times of all sessions.
func (s *store) all() ([]listed, error) {
	if s.dir != "" {
		return filesIn(s.dir, suffix, oldSuffix)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.mem)), nil
}

// filesIn returns the sessions, and their times, that have files in a directory, whose names end so.
func filesIn(dir string, ends ...string) (all []listed, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(2 * maxListed) // a session has two files while it is open
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	seen := map[acp.SessionID]bool{}
	for _, end := range ends {
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), end)
			id := acp.SessionID(name)
			if !ok || !validID(id) || !e.Type().IsRegular() || seen[id] {
				continue
			}
			if info, err := e.Info(); err == nil {
				seen[id] = true
				all = append(all, listed{id: id, updated: info.ModTime()})
			}
		}
	}
	return all, nil
}

// describe returns what is known of a session, and reports whether that is anything.
func (s *store) describe(id acp.SessionID) (about, bool) {
	a, err := s.newest(id)
	if ok := err == nil && a.Cwd != ""; ok || s.dir == "" {
		return a, ok
	}
	return s.aboutOld(id)
}

// newest returns what is known of a session, which is near the end of its journal: it reads from there on. That is nothing,
// without a Cwd, if there is no journal or it is not finished. If the journal cannot be read wholly, as far as it needs to
// be, newest fails: nobody knows then whether it is finished.
func (s *store) newest(id acp.SessionID) (about, error) {
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mem[id].about, nil
	}
	f, err := openRegular(s.path(id), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return about{}, nil
	}
	if err != nil {
		return about{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return about{}, err
	}
	for _, n := range []int64{2 * nearAfter, 2 * farAfter} {
		rest := make([]byte, min(n, info.Size()))
		if _, err := f.ReadAt(rest, info.Size()-int64(len(rest))); err != nil {
			return about{}, err
		}
		for at := bytes.LastIndexByte(rest, '\n'); at >= 0; at = bytes.LastIndexByte(rest, '\n') {
			rest = rest[:at]
			switch a, ok := aboutIn(rest[bytes.LastIndexByte(rest, '\n')+1:]); {
			case ok && a.Cwd != "":
				return a, nil
			case ok:
				return s.newestIn(id) // so that nothing is missed in what seems not to be finished
			}
		}
	}
	return s.newestIn(id) // the program was killed behind something large
}

// newestIn is newest of a journal that is read from its beginning.
func (s *store) newestIn(id acp.SessionID) (a about, err error) {
	some := false
	err = s.c.Read(context.Background(), string(id)+part, 0, func(r *journal.Record) error {
		some = true
		a.see(journal.Draft{Kind: r.Kind, Data: r.Data})
		return nil
	})
	damaged := errors.As(err, new(*journal.DamageError))
	switch {
	case damaged && !some:
		err = &journal.FormatError{ID: string(id) + part} // nothing in it is a record of this version
	case damaged && a.Cwd != "", errors.Is(err, journal.ErrNotFound): // deleted meanwhile
		err = nil
	}
	return a, err
}

// aboutIn returns what a line says about a session, if it does.
func aboutIn(line []byte) (a about, ok bool) {
	r, err := journal.ParseLine(line)
	begin := r.Body[:min(len(r.Body), 100)]
	if err != nil || !bytes.Contains(begin, []byte(`,"kind":"session",`)) {
		return about{}, false
	}
	var body struct {
		Kind journal.Kind `json:"kind"`
		Data about        `json:"data"`
	}
	err = json.Unmarshal(r.Body, &body)
	return body.Data, err == nil && body.Kind == journal.KindSession
}
