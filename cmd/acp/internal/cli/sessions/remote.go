package sessions

import (
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
)

// connect connects to the agent of that name; "" is the default one.
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

// A remote is an agent that was started to be asked.
type remote struct{ h *backend.Host }

// Sessions returns the sessions the agent knows.
func (r *remote) Sessions(ctx context.Context) ([]acp.SessionInfo, error) {
	var all []acp.SessionInfo
	for s, err := range r.h.Conn().ListSessions(ctx, acp.ListOptions{}) {
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
