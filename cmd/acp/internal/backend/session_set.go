package backend

import (
	"context"

	"github.com/goacp/acp"
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

// SetTitle renames the session.
func (s *Session) SetTitle(ctx context.Context, title string) error {
	if _, err := s.Client().SetTitle(ctx, title); err != nil {
		return s.host.coded("title", err)
	}
	s.catchUp()
	s.journal.sync()
	return nil
}
