package backend

import (
	"cmp"
	"context"
	"errors"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/title"
	"github.com/goacp/acp/jsonrpc"
)

// SetOption changes an option of the session. When it returns, the conversation has the new value.
func (s *Session) SetOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	if err := s.Client().SetOption(ctx, id, v); err != nil {
		return s.host.coded("option "+string(id), err)
	}
	s.catchUp()
	s.journal.sync()
	return nil
}

// SetTitle renames the session. If the agent cannot rename sessions, the title is kept here only,
// and the agent's own titles have no effect until the session is resumed.
func (s *Session) SetTitle(ctx context.Context, title string) error {
	var err error = errors.ErrUnsupported
	if c := s.Client(); c != nil {
		_, err = c.SetTitle(ctx, title)
	}
	switch {
	case err == nil:
		s.catchUp()
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, jsonrpc.ErrMethodNotFound):
		s.order.Lock()
		s.mu.Lock()
		s.title, s.named = title, true
		s.mu.Unlock()
		s.put(&acp.SessionInfoUpdate{Title: acp.Set(title)})
		s.order.Unlock()
	default:
		return s.host.coded("title", err)
	}
	s.journal.sync()
	return nil
}

// Title returns the title of the session: the agent's or the user's or, without one, what the user
// said first. It is "" before that.
func (s *Session) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return title.Better(cmp.Or(s.title, s.kept.Title), s.asked)
}
