package backend

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/transcript"
)

// replaceWait bounds the wait for the words of a replaced session to be safe in the log of the
// other.
const replaceWait = 2 * time.Second

// replace continues with a new session of the agent's in place of one that the agent has forgotten.
// The conversation stays in its log, which gets the new id. What the agent has said in the new
// session so far follows the earlier conversation.
func (s *Session) replace(ctx context.Context, cs *acp.ClientSession) {
	other := s.succeed(cs)
	if other == nil {
		return
	}
	id := other.journal.conversationID()
	if id == "" || other.Snapshot().Len() == 0 {
		return
	}
	// The log of the new session is removed only if that can lose nothing: its words must be safe
	// in the other log, and a subagent's conversation must keep its parent. Keeping them twice is
	// better.
	err := errHasChildren
	if !s.host.hasChildren(other) {
		err = s.journal.safe(ctx, replaceWait)
	}
	if err == nil {
		err = s.host.cfg.Store.Delete(ctx, id)
	}
	if err != nil {
		s.host.cfg.Logger.Warn("the beginning of a session stays in the store as a session of its own", "conversation", id, "error", err)
	}
}

var errHasChildren = errors.New("it has subagents")

// hasChildren reports whether a session has subagents.
func (h *Host) hasChildren(s *Session) bool {
	h.mu.Lock()
	all := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	return slices.ContainsFunc(all, func(x *Session) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.parent == s
	})
}

// succeed puts the session in place of the one that the host has for a session of the agent's, adds
// what was said there, and returns that one, or nil if there is none.
func (s *Session) succeed(cs *acp.ClientSession) (other *Session) {
	h := s.host
	s.order.Lock()
	defer s.order.Unlock()
	s.dropPast() // the agent has none to replay
	s.journal.forgetCursors()
	h.mu.Lock()
	other = h.sessions[cs.ID()]
	if h.sessions[s.ID()] == s {
		delete(h.sessions, s.ID())
	}
	h.sessions[cs.ID()] = s
	h.mu.Unlock()
	s.mu.Lock()
	s.id, s.client = cs.ID(), cs
	s.mu.Unlock()
	if s.Snapshot().Len() > 0 {
		s.put(history.Unseen())
	}
	if other == nil || other == s {
		return nil
	}
	other.order.Lock()
	other.dropPast()
	other.successor = s
	other.order.Unlock()
	other.journal.close()
	s.takeOver(other.Snapshot(), other.Cursors())
	return other
}

// takeOver adds what was said in another session, and what is known of it: the commands, the usage,
// and the title if this session has none. catchUp adds the options. The caller holds order.
func (s *Session) takeOver(now *transcript.Snapshot, cursors []acpv2.CursorUpdate) {
	put := func(u acp.SessionUpdate) { s.put(s.ids.update(u)) }
	for e := range now.Entries() {
		if p, ok := e.(*transcript.Permission); ok && p.Outcome != nil {
			s.putAnswered(p)
		} else if u := e.Update(); u != nil {
			put(u)
		}
	}
	for _, c := range cursors {
		put(&c)
	}
	is := now.Session()
	if is.Commands != nil {
		put(is.Update(transcript.FieldCommands))
	}
	s.mu.Lock()
	isNew := s.title == "" && is.Title != ""
	if isNew {
		s.title = is.Title
	}
	s.mu.Unlock()
	info := &acp.SessionInfoUpdate{Meta: is.Meta}
	if isNew {
		info.Title = acp.Set(is.Title)
	}
	if isNew || is.Meta != nil {
		put(info)
	}
	if is.Usage != nil {
		put(is.Update(transcript.FieldUsage))
	}
}

// putAnswered adds a question with its answer. An open question follows with its answer: see
// decide.
func (s *Session) putAnswered(p *transcript.Permission) {
	q := &question{
		req: &acpv2.RequestPermissionRequest{Title: p.Title, Description: p.Description, Subject: p.Subject, Options: p.Options, Meta: p.Meta},
		ref: rand.Text()[:12],
	}
	s.journal.put(askedItem(q, time.Now()))
	s.journal.put(answerItem(q, p.Outcome))
}

// actual locks the order of the session, or of the one that has replaced it, and returns that.
func (s *Session) actual() *Session {
	s.order.Lock()
	for s.successor != nil {
		next := s.successor
		s.order.Unlock()
		s = next
		s.order.Lock()
	}
	return s
}

// retitle gives the agent's new session the title of the conversation, which the first words in it would replace.
func (s *Session) retitle(ctx context.Context) {
	s.mu.Lock()
	title := s.kept.Title
	s.mu.Unlock()
	if title == "" {
		return
	}
	if err := s.SetTitle(ctx, title); err != nil {
		s.host.cfg.Logger.Info("the new session does not get the title of the conversation", "error", err)
	}
}
