package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
)

const (
	// A page of events is read at once, so that no caller holds a read transaction open.
	pageEvents = 512
	pageBytes  = 4 << 20
	// defaultLimit is how many sessions a query returns that does not say.
	defaultLimit = 100
	// maxCandidates bounds those that an AmbiguousError names.
	maxCandidates = 20
)

// columns are what scanSession reads.
const columns = `session.id, agent, sid, command, cwd, title, protocol, created, updated, turns, events`

func scanSession(scan func(...any) error, more ...any) (id int64, v Session, err error) {
	var command string
	var created, updated int64
	err = scan(append([]any{&id, &v.Agent, &v.ID, &command, &v.Cwd, &v.Title, &v.Protocol, &created, &updated, &v.Turns, &v.Events}, more...)...)
	if err != nil {
		return 0, Session{}, err
	}
	v.Created, v.Updated = instant(created), instant(updated)
	if command != "" {
		_ = json.Unmarshal([]byte(command), &v.Command) // written by Put; else it is not known
	}
	return id, v, nil
}

// Events goes over the events of a session after a number, in their order, replayed ones that have no
// force included. Other calls may be made meanwhile; what is added before the end is reached is gone
// over too. A session that is not there has no events. An error is the last thing it yields.
func (s *Store) Events(ctx context.Context, k Key, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			page, err := s.page(ctx, k, after)
			if err != nil {
				yield(Event{}, s.failed("read session", err))
				return
			}
			if len(page) == 0 {
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			after = page[len(page)-1].Seq
		}
	}
}

// page reads the next events.
func (s *Store) page(ctx context.Context, k Key, after int64) ([]Event, error) {
	rows, err := s.read.QueryContext(ctx, `
SELECT seq, time, kind, data FROM event
WHERE session = (SELECT id FROM session WHERE agent = ? AND sid = ?) AND seq > ? ORDER BY seq LIMIT ?`,
		k.Agent, k.ID, after, pageEvents)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []Event
	for size := 0; size < pageBytes && rows.Next(); {
		e, err := scanEvent(rows)
		if err != nil {
			return nil, err
		}
		size += len(e.Data)
		page = append(page, e)
	}
	return page, rows.Err()
}

func scanEvent(rows *sql.Rows) (e Event, err error) {
	var at int64
	var data []byte
	if err := rows.Scan(&e.Seq, &at, &e.Kind, &data); err != nil {
		return Event{}, err
	}
	e.Time, e.Data = instant(at), data
	return e, nil
}

// Find returns the session whose id is or begins with id, of the agent or, if
// that is "", of any. That there is none is [ErrNotFound]; several are an [*AmbiguousError].
func (s *Store) Find(ctx context.Context, agent, id string) (Session, error) {
	for _, where := range []string{`sid = ?2`, `substr(sid, 1, length(?2)) = ?2`} {
		found, err := s.sessions(ctx, `SELECT `+columns+` FROM session WHERE `+where+` AND (?1 = '' OR agent = ?1)
ORDER BY updated DESC, id DESC LIMIT ?3`, agent, id, maxCandidates+1)
		if err != nil {
			return Session{}, s.failed("find session", err)
		}
		switch {
		case id == "" || len(found) == 0:
		case len(found) == 1:
			return found[0], nil
		default:
			return Session{}, &AmbiguousError{ID: id, Candidates: found[:min(len(found), maxCandidates)], More: len(found) > maxCandidates}
		}
	}
	return Session{}, ErrNotFound
}

// Session returns the session with exactly that key, or [ErrNotFound].
func (s *Store) Session(ctx context.Context, k Key) (Session, error) {
	_, v, err := scanSession(s.read.QueryRowContext(ctx, `SELECT `+columns+` FROM session WHERE agent = ? AND sid = ?`, k.Agent, k.ID).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, ErrNotFound
	}
	return v, s.failed("read session", err)
}

func (s *Store) sessions(ctx context.Context, query string, args ...any) ([]Session, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Session
	for rows.Next() {
		_, v, err := scanSession(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// List returns sessions, the latest first.
func (s *Store) List(ctx context.Context, q Query) ([]Match, error) {
	switch {
	case q.Limit == 0:
		q.Limit = defaultLimit
	case q.Limit < 0:
		q.Limit = -1
	}
	words := searchWords(q.Text)
	if len(words) == 0 && q.Text != "" && !blank(q.Text) {
		return nil, nil // nothing that could be found
	}
	if len(words) > 0 {
		if err := s.indexAll(ctx); err != nil {
			return nil, s.failed("search sessions", err)
		}
	}
	found, err := s.list(ctx, q, words)
	return found, s.failed("list sessions", err)
}

func (s *Store) list(ctx context.Context, q Query, words []string) ([]Match, error) {
	query := `SELECT ` + columns + ` FROM session WHERE (? = '' OR agent = ?) AND (? = '' OR cwd = ?)
AND id NOT IN (SELECT session FROM child)`
	args := []any{q.Agent, q.Agent, q.Cwd, q.Cwd}
	for _, w := range words {
		cond, arg := wordCondition(w)
		query += ` AND id IN (SELECT session FROM message WHERE ` + cond + `)`
		args = append(args, arg)
	}
	rows, err := s.read.QueryContext(ctx, query+` ORDER BY updated DESC, id DESC LIMIT ?`, append(args, q.Limit)...)
	if err != nil {
		return nil, err
	}
	var found []Match
	var ids []int64
	for rows.Next() {
		id, v, err := scanSession(rows.Scan)
		if err != nil {
			rows.Close()
			return nil, err
		}
		found, ids = append(found, Match{Session: v}), append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	if len(words) > 0 {
		for i := range found {
			if found[i].Snippet, err = s.snippet(ctx, ids[i], words); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}
