package sessions

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
)

// connect starts the agent of that name, or the default agent if name is "", and connects to it.
func (o *Options) connect(ctx context.Context, name string) (Remote, error) {
	if o.Connect != nil {
		return o.Connect(ctx, name)
	}
	agent, err := o.App.Agent(name)
	if err != nil {
		return nil, err
	}
	h, err := o.App.Open(ctx, agent, backend.Frontend{})
	if err != nil {
		return nil, err
	}
	return &remote{h}, nil
}

// A remote is an agent that was started for a question about its sessions.
type remote struct{ h *backend.Host }

// Sessions implements [Remote]. It returns at most maxRemote of them.
func (r *remote) Sessions(ctx context.Context, cwd string) ([]acp.SessionInfo, error) {
	var all []acp.SessionInfo
	for s, err := range r.h.Conn().ListSessions(ctx, acp.ListOptions{Cwd: cwd}) {
		if err != nil {
			return all, err
		}
		if all = append(all, s); len(all) >= maxRemote {
			break
		}
	}
	return all, nil
}

// Delete has the agent delete a session.
func (r *remote) Delete(ctx context.Context, id acp.SessionID) error {
	return r.h.Conn().Delete(ctx, id)
}

// Close ends the agent.
func (r *remote) Close() error { return r.h.Close() }
