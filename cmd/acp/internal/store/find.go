package store

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/records"
)

// maxCandidates bounds the sessions that an AmbiguousError names.
const maxCandidates = 20

// hadID is the condition that the agent's id of a session used to be ?2.
const hadID = `earlier <> '' AND EXISTS (SELECT 1 FROM json_each(earlier) WHERE value = ?2)`

// Find returns the session that id means: the agent's id or its beginning, the id of the
// conversation or its beginning, or an earlier id of the agent's. If an agent gave one id several
// times, the latest session counts. Agent is the name of the agent, or "" for any. If there is
// none, the error is [ErrNotFound]; if there are several, an [*AmbiguousError].
func (s *Store) Find(ctx context.Context, agent, id string) (Session, error) {
	return abandon(ctx, s, func() (Session, error) { return s.find(ctx, agent, id) })
}

// find is Find without the bound on calls that wait for the disk.
func (s *Store) find(ctx context.Context, agent, id string) (Session, error) {
	if id == "" {
		return Session{}, ErrNotFound
	}
	for _, where := range []struct {
		cond string
		is   func(Session) bool
	}{
		{`sid = ?2`, func(v Session) bool { return v.ID == id }},
		{`conv = ?2`, func(v Session) bool { return v.Conversation == id }},
		{hadID, func(v Session) bool { return slices.Contains(v.Earlier, id) }},
		{`sid <> '' AND (substr(sid, 1, length(?2)) = ?2 OR substr(conv, 1, length(?2)) = ?2)`,
			func(v Session) bool {
				return v.ID != "" && (strings.HasPrefix(v.ID, id) || strings.HasPrefix(v.Conversation, id))
			}},
	} {
		found, err := s.sessions(ctx, `(?1 = '' OR agent = ?1) AND `+where.cond, []any{agent, id}, func(v Session) bool {
			return (agent == "" || v.Agent == agent) && where.is(v)
		})
		if err != nil {
			return Session{}, wrap("find session", err)
		}
		// The latest, which come first, count among those of one key, unless their own ids are
		// meant.
		latest := slices.Clone(found)
		seen := map[Key]bool{}
		latest = slices.DeleteFunc(latest, func(v Session) bool {
			again := seen[v.Key] && !strings.HasPrefix(v.Conversation, id)
			seen[v.Key] = true
			return again
		})
		switch {
		case len(latest) == 0:
		case len(latest) == 1:
			return latest[0], nil
		default:
			return Session{}, &AmbiguousError{ID: id, Candidates: latest[:min(len(latest), maxCandidates)], More: len(latest) > maxCandidates}
		}
	}
	return Session{}, ErrNotFound
}

// sessions returns the sessions that meet a condition, the latest first.
func (s *Store) sessions(ctx context.Context, cond string, args []any, holds func(Session) bool) (found []Session, err error) {
	err = s.index.use(ctx, indexWait, func(ctx context.Context, x *index) error {
		err := s.refresh(ctx, x)
		if err == nil {
			found, _, err = x.sessions(ctx, `SELECT `+columns+` FROM session WHERE `+s.mine()+` AND (`+cond+`) ORDER BY updated DESC, id DESC`, args...)
		}
		return err
	})
	if err == nil || ctx.Err() != nil {
		return found, err
	}
	s.log.Info("a session is looked for without the index", "error", err)
	found = nil
	err = s.each(ctx, func(v Session) error {
		if s.shows(&v) && holds(v) {
			found = append(found, v)
		}
		return nil
	})
	sort.Slice(found, func(i, j int) bool { return found[j].Updated.Before(found[i].Updated) })
	return found, err
}

// Latest returns the session with exactly that key that changed last, or else the one that had the
// key before the agent gave it another id, or [ErrNotFound].
func (s *Store) Latest(ctx context.Context, k Key) (Session, error) {
	for _, where := range []struct {
		cond string
		is   func(Session) bool
	}{
		{`agent = ?1 AND sid = ?2`, func(v Session) bool { return v.Key == k }},
		{`agent = ?1 AND ` + hadID, func(v Session) bool { return v.Agent == k.Agent && slices.Contains(v.Earlier, k.ID) }},
	} {
		found, err := abandon(ctx, s, func() ([]Session, error) {
			return s.sessions(ctx, where.cond, []any{k.Agent, k.ID}, where.is)
		})
		if err != nil {
			return Session{}, wrap("find session", err)
		}
		// A session of its own precedes one that is part of another.
		for _, v := range found {
			if v.Parent == "" {
				return v, nil
			}
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return Session{}, ErrNotFound
}

// Child returns the session of a subagent in a conversation, by the agent's id, or [ErrNotFound].
func (s *Store) Child(ctx context.Context, parent, id string) (Session, error) {
	found, err := abandon(ctx, s, func() ([]Session, error) { return s.children(ctx, parent) })
	if err != nil {
		return Session{}, wrap("find session", err)
	}
	for _, v := range found {
		if v.ID == id {
			return v, nil
		}
	}
	return Session{}, ErrNotFound
}

func (s *Store) children(ctx context.Context, parent string) ([]Session, error) {
	if parent == "" {
		return nil, nil
	}
	return s.sessions(ctx, `parent = ? AND parent <> ''`, []any{parent}, func(v Session) bool { return v.Parent == parent })
}

// Session returns what is known of a conversation, from its log, or [ErrNotFound].
func (s *Store) Session(ctx context.Context, conversation string) (Session, error) {
	v, err := abandon(ctx, s, func() (Session, error) { return s.state(ctx, conversation) })
	return v, wrap("read session", err)
}

// Delete removes a conversation, with those of its subagents, from the disk and from the index. If
// there is none, the error is [ErrNotFound]. What a recorder still writes to it is lost. When ctx
// is done, Delete returns its error, even while the disk does not answer; the conversation, or some
// of its subagents, may have been deleted then, or be deleted when the disk answers. A further call
// deletes what is left.
func (s *Store) Delete(ctx context.Context, conversation string) error {
	_, err := abandon(ctx, s, func() (struct{}, error) { return struct{}{}, s.delete(ctx, conversation) })
	return wrap("delete session", err)
}

// delete is Delete without that bound: it finds the subagents below, and deletes them first.
func (s *Store) delete(ctx context.Context, conversation string) error {
	doomed := []string{conversation}
	for i := 0; i < len(doomed); i++ {
		below, err := s.children(ctx, doomed[i])
		if err != nil {
			return err
		}
		for _, v := range below {
			if !slices.Contains(doomed, v.Conversation) {
				doomed = append(doomed, v.Conversation)
			}
		}
	}
	// The parent is last, so that a deletion that is cut off can be found and finished.
	for _, id := range slices.Backward(doomed) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := ErrNotFound
		if validID(id) {
			err = known(s.journals.Delete(ctx, id))
		}
		if id != conversation && errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
	}
	err := s.index.use(ctx, indexWait, func(ctx context.Context, x *index) error {
		if err := s.refresh(ctx, x); err != nil {
			return err
		}
		// Returns the space to the disk, and removes the words from the log of the index.
		_, err := x.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what the index has of a deleted conversation is removed with its next use", "error", err)
	}
	return nil
}

// Names are what users call sessions by.
type Names struct {
	latest map[Key]string
	all    []string
}

// Of returns the name of a session: the agent's id or, if a gateway has begun it, or the agent has given it again
// since, the id of the conversation. [Store.Find] finds the session by it.
func (n *Names) Of(v Session) string {
	if !records.ByChat(v.Conversation) && v.Conversation != "" {
		return v.Conversation // by which a gateway knows it, too
	}
	if c, ok := n.latest[v.Key]; ok && c != v.Conversation && v.Conversation != "" {
		return v.Conversation
	}
	return v.ID
}

// All returns all ids by which sessions can be found, in no particular order. Callers must not
// modify it.
func (n *Names) All() []string { return n.all }

// Names returns the names of all sessions.
func (s *Store) Names(ctx context.Context) (*Names, error) {
	found, err := abandon(ctx, s, func() ([]Session, error) { return s.named(ctx) })
	if err != nil {
		return nil, wrap("list sessions", err)
	}
	n := &Names{latest: make(map[Key]string, len(found)), all: make([]string, 0, 2*len(found))}
	for _, v := range found { // the latest first
		if _, ok := n.latest[v.Key]; !ok {
			n.latest[v.Key] = v.Conversation
			n.all = append(n.all, v.ID)
		}
		n.all = append(n.all, v.Conversation)
	}
	return n, nil
}

// named returns all sessions of their own, with their keys and conversations only, the latest
// first.
func (s *Store) named(ctx context.Context) (found []Session, err error) {
	err = s.index.use(ctx, indexWait, func(ctx context.Context, x *index) error {
		found = nil
		if err := s.refresh(ctx, x); err != nil {
			return err
		}
		rows, err := x.db.QueryContext(ctx, `SELECT agent, sid, conv FROM session WHERE parent = '' AND sid <> '' AND `+s.mine()+` ORDER BY updated DESC, id DESC`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var v Session
			if err := rows.Scan(&v.Agent, &v.ID, &v.Conversation); err != nil {
				return errors.Join(errIndexBroken, err)
			}
			found = append(found, v)
		}
		return rows.Err()
	})
	if err == nil || ctx.Err() != nil {
		return found, err
	}
	all, err := s.listLogs(ctx, Query{Limit: -1}, nil)
	found = nil
	for _, m := range all {
		found = append(found, m.Session)
	}
	return found, err
}
