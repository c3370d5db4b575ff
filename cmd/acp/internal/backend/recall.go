package backend

import (
	"context"
	"errors"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// kept returns the session that the store has under an id, or the zero value. The id is the agent's
// or, so that each session can be named, that of the conversation.
func (h *Host) kept(ctx context.Context, id acp.SessionID) (store.Session, error) {
	st := h.cfg.Store
	if st == nil {
		return store.Session{}, nil
	}
	v, err := st.Session(ctx, string(id))
	if err != nil || v.Agent != h.cfg.Agent.Name || v.ID == "" {
		v, err = st.Latest(ctx, store.Key{Agent: h.cfg.Agent.Name, ID: string(id)})
	}
	switch {
	case err == nil:
		return v, nil
	case ctx.Err() != nil:
		return store.Session{}, err
	case !errors.Is(err, store.ErrNotFound):
		h.keeper.unread(store.Session{Key: store.Key{ID: string(id)}}, err)
	}
	return store.Session{}, nil
}

// recall reads what the store has of the session.
func (s *Session) recall(ctx context.Context, kept store.Session) error {
	h := s.host
	if kept.Conversation == "" {
		return nil
	}
	was, err := h.cfg.Store.Resume(ctx, kept.Conversation, h.keeper.options(), history.InTurn)
	if err != nil {
		s.mu.Lock()
		isChild := s.parent != nil
		s.mu.Unlock()
		if owned, ok := errors.AsType[*journal.OwnedError](err); ok && !isChild {
			return &openError{owned}
		}
		if ctx.Err() != nil {
			return err
		}
		// What is written from now on is another conversation.
		var unread error
		if was.Snapshot, was.Damage, unread = h.cfg.Store.Snapshot(ctx, kept.Conversation, store.Bounds()); unread != nil {
			h.keeper.unread(kept, err)
			return nil
		}
		if history.InTurn(was.Snapshot) {
			was.Snapshot = store.Interrupted(was.Snapshot)
		}
		h.keeper.uncontinued(kept, err)
	}
	h.keeper.damaged(kept, was.Damage)
	s.journal.resume(was)
	s.order.Lock()
	defer s.order.Unlock()
	s.ids = newIdentities(was.Snapshot)
	if s.past == nil {
		s.past = newPast(was.Snapshot)
	}
	s.past.kept, s.past.opening = was.Snapshot, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.title = kept, kept.Title
	return nil
}

// family restores the sessions of subagents that a restored conversation mentions: from what the
// agent has replayed of them, or else from the store.
func (h *Host) family(ctx context.Context, parent *Session) {
	for e := range parent.Snapshot().Entries() {
		sub, ok := e.(*transcript.Subagent)
		if !ok {
			continue
		}
		child, isNew := h.expect(sub.ID)
		if child == parent {
			continue
		}
		child.mu.Lock()
		child.parent = parent
		child.mu.Unlock()
		var err error
		if isNew || child.wasTold() {
			err = child.recall(ctx, h.keptChild(ctx, parent, sub.ID))
		}
		if parent.wasPrompted() {
			child.endPast() // a later prompt does so itself
		} else {
			child.settle()
		}
		child.journal.sync()
		if isNew && (err != nil || child.Snapshot().Len() == 0) {
			h.forget(child) // nothing is known of it
		}
	}
}

// keptChild returns what the store has of a subagent's session, or the zero value.
func (h *Host) keptChild(ctx context.Context, parent *Session, id acp.SessionID) store.Session {
	if h.cfg.Store == nil {
		return store.Session{}
	}
	v, err := h.cfg.Store.Child(ctx, parent.journal.conversationID(), string(id))
	if err != nil {
		return store.Session{} // there is none, or the next reader reports why not
	}
	return v
}
