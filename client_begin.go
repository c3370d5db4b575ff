package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// SessionOptions asks the agent what a session would begin with, without opening it:
// which options it would have with which values, and which commands, as far as the agent
// knows. q.Cwd is the working directory that it would have, "" for that of this process;
// q.SessionID is the session that would be resumed, or "" for a new one. It fails with an
// error that wraps [errors.ErrUnsupported] unless the agent has advertised that it answers
// this. Experimental.
func (c *ClientConn) SessionOptions(ctx context.Context, q OptionsQuery) (*OptionsPreview, error) {
	if q.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("acp: OptionsQuery.Cwd: %w", err)
		}
		q.Cwd = cwd
	}
	if !filepath.IsAbs(q.Cwd) {
		return nil, fmt.Errorf("acp: OptionsQuery.Cwd must be absolute, not %q", q.Cwd)
	}
	for _, d := range q.AdditionalDirectories {
		if !filepath.IsAbs(d) {
			return nil, fmt.Errorf("acp: OptionsQuery.AdditionalDirectories must be absolute, not %q", d)
		}
	}
	caps := c.Capabilities().Session
	if caps == nil || caps.Options == nil {
		return nil, unsupported("session/options")
	}
	if len(q.AdditionalDirectories) > 0 && caps.AdditionalDirectories == nil {
		return nil, unsupported("additional directories")
	}
	p, err := c.proto().sessionOptions(ctx, &q)
	return p, c.explain(err)
}

// A RejectedOption is an option that a session does not begin with as asked for.
type RejectedOption struct {
	InitialOption
	Err error // why
}

// RejectedOptions returns the options of [SessionConfig.Options] that the session did not get when
// it was last opened. It may be called from any goroutine.
func (s *ClientSession) RejectedOptions() []RejectedOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

// initial returns the values that the request for a session has.
func (c *ClientConn) initial(cfg *SessionConfig) []InitialOption {
	if caps := c.Capabilities().Session; caps == nil || caps.Options == nil {
		return nil
	}
	return cfg.Options
}

// setRest sets the options that the agent has not taken with the request.
func (s *ClientSession) setRest(ctx context.Context, cfg *SessionConfig) {
	var left []RejectedOption
	if !cfg.asIs {
		for _, o := range cfg.Options {
			if hasValue(s.Options(), o.ConfigID, o.Value) {
				continue
			}
			if err := s.SetOption(ctx, o.ConfigID, o.Value); err != nil {
				left = append(left, RejectedOption{o, err})
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected = left
}

// ErrTruncated is wrapped by the error of [ClientConn.Load] if the agent had not sent all
// of the session's history when it failed. What it sent has been delivered. Agents of
// version 1, and those of version 2 that do not know better, do not tell.
var ErrTruncated = errors.New("acp: the session's history is incomplete")

// truncated says that a history is incomplete, if that is known: some of it was
// delivered, and its end was not.
func (s *ClientSession) truncated(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replay.begins || s.replay.complete || s.conn.Version() == 1 {
		return err
	}
	return fmt.Errorf("%w: %w", ErrTruncated, err)
}
