package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	}
	name := agent.Name
	if a.isOwn(ctx, agent) { // which has all of them
		name = ""
	}
	if id != "" {
		with := name
		if IsHandle(id) && name != "" { // they count the sessions of all agents, unless the user names one
			with, _ = a.Flags["agent"].(string)
		}
		found, err := a.Kept(ctx, kept, with, id)
		if errors.Is(err, store.ErrNotFound) && !IsHandle(id) {
			return acp.SessionID(id), nil
		}
		if err != nil {
			return "", exitcode.Errorf(exitcode.Usage, "--session %s: %w", id, err)
		}
		if found.Agent != name && name != "" && IsHandle(id) {
			return "", exitcode.Errorf(exitcode.Usage, "--session %s: that session is with %s, not with %s", id, found.Agent, agent.Name)
		}
		return acp.SessionID(found.Conversation), nil
	}
	list, err := kept.List(ctx, store.Query{Agent: name, Cwd: a.Cwd, Limit: 1})
	if err != nil {
		return "", fmt.Errorf("look for the latest session: %w", err)
	}
	if len(list) == 0 {
		return "", noEarlier{agent.Name, a.Cwd}
	}
	return acp.SessionID(list[0].Conversation), nil
}

// Kept finds a session in the store. Id is as for [store.Store.Find], or one of two handles: "-" is the
// latest session in the working directory, and "@N" the one that acp sessions list has in row N. Agent
// restricts both, unless it is "". If there is no such session, the error is a [store.ErrNotFound].
func (a *App) Kept(ctx context.Context, kept *store.Store, agent, id string) (store.Session, error) {
	q, n := store.Query{Agent: agent}, 1
	switch row, isRow := strings.CutPrefix(id, "@"); {
	case id == "-":
		q.Cwd = a.Cwd
	case isRow:
		var err error
		if n, err = strconv.Atoi(row); err != nil || n < 1 || n > maxHandle {
			return store.Session{}, exitcode.Errorf(exitcode.Usage, "%q: after @ comes the number of a row of acp sessions list, from 1 to %d", id, maxHandle)
		}
	default:
		return kept.Find(ctx, agent, id)
	}
	q.Limit = n
	list, err := kept.List(ctx, q)
	if err != nil {
		return store.Session{}, fmt.Errorf("looking for session %s: %w", id, err)
	}
	if len(list) < n {
		return store.Session{}, fmt.Errorf("there is no session %s: %w", id, store.ErrNotFound)
	}
	return list[n-1].Session, nil
}

// AgentOf returns the agent of a session in the store: the one of that name or, if there is none, what
// was started at that time.
func (a *App) AgentOf(s store.Session) (roster.Agent, error) {
	agent, known, err := a.KnownAgent(s.Agent)
	if err != nil || known {
		return agent, err
	}
	return a.AgentFor(s.Agent, s.Command)
}

// AgentWith returns the agent of the session that id means, for a user who has named the session and no
// agent. ok is false if the store does not have it, or if several agents have used that id.
func (a *App) AgentWith(ctx context.Context, id string) (agent roster.Agent, ok bool, err error) {
	kept, err := a.Store(ctx)
	if err != nil || kept == nil {
		return agent, false, err
	}
	s, err := a.Kept(ctx, kept, "", id)
	switch {
	case errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrNotFound) && !IsHandle(id):
		return agent, false, nil
	case err != nil:
		return agent, false, exitcode.With(exitcode.Usage, fmt.Errorf("--session %s: %w", id, err))
	}
	agent, err = a.AgentOf(s)
	return agent, err == nil, err
}

// maxHandle is the last row that a handle can name.
const maxHandle = 9999

// IsHandle reports whether id is a handle of [App.Kept].
func IsHandle(id string) bool { return id == "-" || strings.HasPrefix(id, "@") }

// A noEarlier is an ErrNoEarlier that says where there is no session.
type noEarlier struct{ agent, cwd string }

func (e noEarlier) Error() string {
	return fmt.Sprintf("there is no session with %s in %s to continue", e.agent, e.cwd)
}

func (noEarlier) Unwrap() error { return ErrNoEarlier }
