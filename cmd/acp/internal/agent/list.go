package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
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
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(b.cursor(), a.cursor()) })
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
