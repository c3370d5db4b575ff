package engine

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A Session is what is known of a session aside from its log.
type Session struct {
	// ID never changes: see [journal.CheckID]. It must be unique for ever, also after the session is deleted.
	ID string
	// Agent names the agent that serves the session.
	Agent string
	// AgentSession is the id by which the agent knows it.
	AgentSession string
	Cwd          string
	Title        string
	// Owner is the principal the session belongs to.
	Owner string
	// State is whatever the caller keeps there, such as "idle".
	State string
	// Parent is the id of the session that this one was forked from or works for; empty means none.
	Parent string
	// Attributes is a JSON object that the engine does not look into; nil means none. The order of its members, and those
	// that are null, need not be kept.
	Attributes json.RawMessage
	// Created and Updated are in UTC. Create sets both, and Update sets Updated, if they are zero or
	// unchanged.
	Created, Updated time.Time

	// Epoch and Head are those of the log, read only. Where rows are made of records they are 0, but for Head in what [Engine.Session] returns.
	Epoch uint32
	Head  Head

	// Version counts updates; a Database compares it. Read only.
	Version int64
}

// check refuses attributes that cannot be stored, and normalizes the times.
func (s *Session) check() error {
	if err := checkName("session id", s.ID, true); err != nil {
		return err
	}
	for _, f := range [...]struct{ what, text string }{
		{"agent", s.Agent}, {"agent session", s.AgentSession}, {"cwd", s.Cwd}, {"title", s.Title},
		{"owner", s.Owner}, {"state", s.State}, {"parent", s.Parent},
	} {
		if err := checkText(f.what, f.text, MaxText); err != nil {
			return err
		}
	}
	for _, t := range []*time.Time{&s.Created, &s.Updated} {
		if t.Before(minTime) || t.After(maxTime) {
			return fmt.Errorf("%w: time %v", ErrInvalid, *t)
		}
		*t = time.Unix(0, t.UnixNano()).UTC()
	}
	if _, err := members(s.Attributes); err != nil {
		return err
	}
	return checkJSON("attributes", s.Attributes)
}

// Create stores a new session with an empty log and returns it. It fails with [ErrExists], with [ErrInvalid], or, where nodes
// share a database, with [ErrDeleted] if the id was used before.
func (e *Engine) Create(ctx context.Context, s Session) (Session, error) {
	if s.Created.IsZero() {
		s.Created = time.Now()
	}
	if s.Updated.IsZero() {
		s.Updated = s.Created
	}
	s.Epoch, s.Head, s.Version = 0, Head{}, 0
	if err := errors.Join(journal.CheckID(s.ID), s.check()); err != nil {
		return Session{}, err
	}
	create := e.db.CreateSession
	if e.files != nil {
		create = e.create
	}
	if err := create(ctx, s); err != nil {
		return Session{}, fmt.Errorf("create session %q: %w", s.ID, known(err))
	}
	return s, nil
}

// Session returns a session. It fails with [ErrNotFound] or [ErrDeleted].
func (e *Engine) Session(ctx context.Context, id string) (Session, error) {
	if err := e.written(ctx, id); err != nil {
		return Session{}, err
	}
	s, err := e.db.Session(ctx, id)
	if err != nil {
		return Session{}, fmt.Errorf("session %q: %w", id, err)
	}
	if e.files != nil {
		if s.Head, err = e.Head(ctx, id); err != nil {
			return Session{}, err
		}
	}
	return s, nil
}

// updateTries bounds how often Update begins anew because somebody else was faster.
const updateTries = 10

// Update has change modify the attributes of a session and stores them; it returns what was stored.
// No update of others is overwritten: if one comes between, change is called again with the new
// state, up to ten times. An error of change is returned as it is. The id, Created and the fields
// of the log cannot be changed.
func (e *Engine) Update(ctx context.Context, id string, change func(*Session) error) (Session, error) {
	if e.files != nil {
		var foreign error
		s, err := e.update(ctx, id, func(old *Session) (Session, error) {
			return old.changed(func(s *Session) error { foreign = change(s); return foreign })
		})
		if foreign != nil {
			return Session{}, foreign
		}
		if err != nil {
			return Session{}, fmt.Errorf("update session %q: %w", id, err)
		}
		return s, nil
	}
	for range updateTries {
		old, err := e.Session(ctx, id)
		if err != nil {
			return Session{}, err
		}
		s, err := old.changed(change)
		if err != nil {
			return Session{}, err
		}
		ok, err := e.db.UpdateSession(ctx, s)
		if err != nil {
			return Session{}, fmt.Errorf("update session %q: %w", id, err)
		}
		if ok {
			s.Version++
			return s, nil
		}
	}
	return Session{}, fmt.Errorf("update session %q: %w", id, ErrConflict)
}

// changed returns the session after a change.
func (s *Session) changed(change func(*Session) error) (Session, error) {
	now := *s
	now.Attributes = append(json.RawMessage(nil), s.Attributes...)
	if err := change(&now); err != nil {
		return Session{}, err
	}
	if now.Updated.IsZero() || now.Updated.Equal(s.Updated) {
		now.Updated = time.Now()
	}
	now.ID, now.Created, now.Version, now.Epoch, now.Head = s.ID, s.Created, s.Version, s.Epoch, s.Head
	return now, now.check()
}

// A Query selects sessions. Empty fields select all.
type Query struct {
	Owner  string
	Agent  string
	State  string
	Parent string
	// Reader selects sessions that belong to a user or are shared with that user.
	Reader string
	// Limit is how many sessions a page has at most: 100 if it is 0, never more than 500.
	Limit int
	// Cursor is Page.Next of the page before; empty means the first page.
	Cursor string
}

// A Page is a part of a list of sessions.
type Page struct {
	Sessions []Session
	// Next is the cursor of the next page; it is empty on the last one.
	Next string
}

// A Position is where a page of a list ended; the zero value is the beginning.
type Position struct {
	Updated time.Time
	ID      string
}

// List returns a page of sessions, those that were updated last first. A session that is updated
// while somebody turns pages moves to the front, so that it may be missing in the pages that follow;
// no session is in two pages unless
// its Updated was set back. A cursor that List did not return fails with [ErrInvalid].
func (e *Engine) List(ctx context.Context, q Query) (Page, error) {
	if err := e.fresh(ctx); err != nil {
		return Page{}, err
	}
	return e.Listed(ctx, q)
}

// Listed is List as of when the journals were looked at last, if they are in files: what other programs have written
// since may be missing.
func (e *Engine) Listed(ctx context.Context, q Query) (Page, error) {
	after, err := decodeCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	n := q.Limit
	if n <= 0 {
		n = 100
	}
	n = min(n, 500)
	all, err := e.db.ListSessions(ctx, q, after, n+1)
	if err != nil {
		return Page{}, fmt.Errorf("list sessions: %w", err)
	}
	if len(all) <= n {
		return Page{Sessions: all}, nil
	}
	last := all[n-1]
	return Page{Sessions: all[:n], Next: encodeCursor(Position{last.Updated, last.ID})}, nil
}

// encodeCursor writes a position: eight bytes of nanoseconds and the id, in base64.
func encodeCursor(p Position) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.Updated.UnixNano()))
	return base64.RawURLEncoding.EncodeToString(append(b, p.ID...))
}

// decodeCursor is the reverse. An empty cursor is the beginning.
func decodeCursor(s string) (Position, error) {
	if s == "" {
		return Position{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 9 || strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return Position{}, fmt.Errorf("%w: cursor %.40q", ErrInvalid, s)
	}
	p := Position{time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), string(b[8:])}
	if err := checkName("session id", p.ID, true); err != nil {
		return Position{}, fmt.Errorf("cursor: %w", err)
	}
	return p, nil
}

// Delete removes a session and its log, whoever owns it. Appends that come later fail with [ErrDeleted], and so do followers.
// A session that never was is [ErrNotFound]. Where nodes share a database a tombstone is left, so that the id cannot be used
// again, and to delete a session that was deleted is not an error; of files nothing is left.
//
// It returns the node that owned the session until then, or owned it last, as [Engine.Owner] does; the name is empty
// if the session had been deleted before. Nobody claims it after that node. So it does with [ErrUnpurged].
func (e *Engine) Delete(ctx context.Context, id string) (owner string, err error) {
	there := false
	if e.files != nil {
		parts, err := e.partsOf(ctx, id)
		if err != nil {
			return "", fmt.Errorf("delete session %q: %w", id, err)
		}
		for _, part := range parts {
			if err := e.journals.Delete(ctx, part); err != nil && !errors.Is(err, ErrNotFound) {
				return "", fmt.Errorf("delete session %q, the part %q: %w", id, part, known(err))
			}
		}
		err = e.journals.Delete(ctx, id)
		if there = err == nil; err != nil && !errors.Is(err, ErrNotFound) {
			return "", fmt.Errorf("delete session %q: %w", id, known(err))
		}
	}
	owner, err = e.db.DeleteSession(ctx, id)
	if there && errors.Is(err, ErrNotFound) {
		err = nil // only the index has missed it
	}
	if err != nil && !errors.Is(err, ErrUnpurged) {
		return "", fmt.Errorf("delete session %q: %w", id, err)
	}
	if e.files != nil {
		owner = ""
	}
	forget, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.CommitTimeout)
	defer cancel()
	if e.files == nil {
		err = errors.Join(err, e.journals.Deleted(forget, id))
	}
	e.mu.Lock()
	delete(e.told, id)
	e.mu.Unlock()
	if ferr := e.marks.forget(forget, id); ferr != nil {
		err = errors.Join(err, fmt.Errorf("witness: %w", ferr))
	}
	if err != nil {
		return owner, fmt.Errorf("delete session %q: %w", id, err)
	}
	return owner, nil
}
