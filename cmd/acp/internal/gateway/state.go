package gateway

import (
	"context"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// setState keeps the state of the session.
func (s *session) setState(ctx context.Context, state string) error {
	err := s.update(ctx, func(info *engine.Session) { info.State = state })
	if err == nil {
		s.mu.Lock()
		s.info.State = state
		s.mu.Unlock()
	}
	return err
}

// stated is called when a record has set the state of the session.
func (s *session) stated(state string) {
	s.mu.Lock()
	s.info.State, s.info.Updated = state, time.Now()
	s.mu.Unlock()
	s.g.changed(s.id)
}
