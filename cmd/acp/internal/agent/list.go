package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/jsonrpc"
)

// listed is a session in the list.
type listed struct {
	info    acp.SessionInfo
	updated time.Time
}

// cursor says where in the list an entry is: the latest come first.
func (l listed) cursor() string {
	return fmt.Sprintf("%020d %s", l.updated.UnixNano(), l.info.SessionID)
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
		if !s.describe(&l.info) || q.Cwd != "" && l.info.Cwd != q.Cwd {
			continue // deleted meanwhile, never finished, or somewhere else
		}
		if len(page.Sessions) == size {
			page.NextCursor = new(acpv2.SessionListCursor(last))
			break
		}
		last = l.cursor()
		l.info.UpdatedAt = l.updated.UTC().Format(time.RFC3339)
		page.Sessions = append(page.Sessions, l.info)
	}
	return page, nil
}

// all returns the ids and times of all sessions.
func (s *store) all() ([]listed, error) {
	var all []listed
	if s.dir == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		for id, m := range s.mem {
			all = append(all, listed{acp.SessionInfo{SessionID: id}, m.updated})
		}
		return all, nil
	}
	d, err := os.Open(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(2 * maxListed) // a session has two files
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !validID(acp.SessionID(id)) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			all = append(all, listed{acp.SessionInfo{SessionID: acp.SessionID(id)}, info.ModTime()})
		}
	}
	return all, nil
}

// describe adds what the header and the title say.
func (s *store) describe(info *acp.SessionInfo) bool {
	var first []byte
	if s.dir == "" {
		s.mu.Lock()
		if m := s.mem[info.SessionID]; m != nil {
			first, info.Title = m.data, m.title
		}
		s.mu.Unlock()
	} else {
		f, err := openRegular(s.path(info.SessionID), os.O_RDONLY)
		if err != nil {
			return false
		}
		defer func() { _ = f.Close() }()
		if first, err = io.ReadAll(io.LimitReader(f, 64<<10)); err != nil {
			return false
		}
		info.Title = s.readTitle(info.SessionID)
	}
	line, _, ok := bytes.Cut(first, []byte("\n"))
	if !ok {
		return false
	}
	h, err := parseHeader(line)
	if err != nil || h.ID != info.SessionID {
		return false
	}
	info.Cwd, info.AdditionalDirectories = h.Cwd, h.Roots
	return true
}

// readTitle returns the title of a session, "" if there is none.
func (s *store) readTitle(id acp.SessionID) string {
	f, err := openRegular(strings.TrimSuffix(s.path(id), suffix)+titleSuffix, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	title, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	return prose.OneLine(string(title), maxTitle)
}
