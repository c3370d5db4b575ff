package gateway

import (
	"context"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// setState keeps the state of the session.
func (s *session) setState(ctx context.Context, state string) error {
	return s.update(ctx, func(info *engine.Session) { info.State = state })
}

// insist is setState that tries again what may pass, as the writer does, until the session is given up.
func (s *session) insist(state string) error {
	for noted := false; ; noted = true {
		err := s.setState(s.ctx, state)
		if err == nil || isFinal(err) || s.ctx.Err() != nil {
			return err
		}
		if !noted {
			s.logger().Warn("gateway: the state of a session cannot be kept, and is tried again", "state", state, "error", err)
		}
		if !triesAgain(s.ctx, s.g.ending.Done()) {
			return err
		}
	}
}

// pause waits until the session may try again what it could not keep. It reports false if ctx ends before, or the
// session is given up.
func (s *session) pause(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return triesAgain(ctx, s.g.ending.Done())
}
