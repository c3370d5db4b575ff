package host

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// replace goes on with a session of the agent's in the place of the one that the agent has forgotten.
// The conversation stays in its log, which gets the new id. What the agent has said in the new session so
// far follows what was said before.
func (s *Session) replace(ctx context.Context, cs *acp.ClientSession) {
	h := s.host
	s.order.Lock()
	defer s.order.Unlock()
	s.dropPast() // the agent has none to tell
	h.mu.Lock()
	other := h.sessions[cs.ID()]
	if h.sessions[s.ID()] == s {
		delete(h.sessions, s.ID())
	}
	h.sessions[cs.ID()] = s
	h.mu.Unlock()
	s.mu.Lock()
	s.id, s.client = cs.ID(), cs
	s.mu.Unlock()
	if other == nil || other == s {
		return
	}
	other.order.Lock()
	other.dropPast()
	other.successor = s
	other.order.Unlock()
	other.journal.close()
	now := other.Snapshot()
	s.takeOver(now)
	if id := other.journal.conversationID(); id != "" && now.Len() > 0 {
		if err := h.cfg.Store.Delete(ctx, id); err != nil {
			h.cfg.Logger.Warn("the beginning of a session stays in the store as a session of its own", "conversation", id, "error", err)
		}
	}
}

// takeOver adds what was said in another session, and what is known of it besides its options, which
// catchUp adds, and a title, if there is one already. It is called with order held.
func (s *Session) takeOver(now *transcript.Snapshot) {
	put := func(u acp.SessionUpdate) { s.put(s.ids.update(u)) }
	for e := range now.Entries() {
		if u := e.Update(); u != nil {
			put(u)
		}
	}
	is := now.Session()
	if is.Commands != nil {
		put(&acp.AvailableCommandsUpdate{AvailableCommands: is.Commands})
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
		put(usageUpdate(is.Usage))
	}
}

// actual locks the order of the session, or of the one that has taken its place, and returns that.
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
