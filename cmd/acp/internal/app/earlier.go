package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// ErrNoEarlier is what errors of [App.Earlier] wrap if there is no latest session.
var ErrNoEarlier = errors.New("there is no session to continue")

// Earlier finds the session to continue, for the flags --session and --continue: the one that id
// means, which may be the beginning of an id or the name of a conversation, or, if id is empty, the latest
// with the agent in the working directory. An id that is not in the records is returned as it is, since
// the agent may know it all the same.
func (a *App) Earlier(ctx context.Context, agent roster.Agent, id string) (acp.SessionID, error) {
	kept, err := a.Store(ctx)
	switch {
	case err != nil:
		return "", err
	case kept == nil && id == "":
		return "", exitcode.Errorf(exitcode.Usage, "--continue: conversations are not kept, so there is no latest one; use --session ID")
	case kept == nil:
		return acp.SessionID(id), nil
	case id != "":
		found, err := kept.Find(ctx, agent.Name, id)
		if errors.Is(err, store.ErrNotFound) {
			return acp.SessionID(id), nil
		}
		if err != nil {
			return "", exitcode.Errorf(exitcode.Usage, "--session %s: %w", id, err)
		}
		return acp.SessionID(found.Conversation), nil
	}
	list, err := kept.List(ctx, store.Query{Agent: agent.Name, Cwd: a.Cwd, Limit: 1})
	if err != nil {
		return "", fmt.Errorf("look for the latest session: %w", err)
	}
	if len(list) == 0 {
		return "", noEarlier{agent.Name, a.Cwd}
	}
	return acp.SessionID(list[0].Conversation), nil
}

// A noEarlier is an ErrNoEarlier that says where there is no session.
type noEarlier struct{ agent, cwd string }

func (e noEarlier) Error() string {
	return fmt.Sprintf("there is no session with %s in %s to continue", e.agent, e.cwd)
}

func (noEarlier) Unwrap() error { return ErrNoEarlier }
