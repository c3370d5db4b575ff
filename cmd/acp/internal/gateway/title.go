package gateway

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/title"
)

// name calls a session after its first prompt, as long as neither its agent nor a user has named it. Lists have that title;
// no update does, so that what was said in the session stays the same.
func (s *session) name(ctx context.Context, content []acp.ContentBlock) error {
	has, asked := s.names(content)
	if asked == "" {
		return nil
	}
	return s.keep(ctx, func(a *attributes) { a.Made = asked }, func(info *engine.Session) {
		if info.Title == has {
			info.Title = asked
		}
	})
}

// names returns the title of a session and, if it is to be called after a prompt, that name.
func (s *session) names(content []acp.ContentBlock) (has, asked string) {
	asked = title.Of(content)
	s.mu.Lock()
	has, made := s.info.Title, s.known.Made
	s.mu.Unlock()
	if len(asked) > maxTitle || has != "" && has != made || title.Better(has, asked) == has {
		asked = ""
	}
	return has, asked
}

// titleGiven returns the title of a session, unless it was made of a prompt.
func (a *attributes) titleGiven(title string) string {
	if title == a.Made {
		return ""
	}
	return title
}
