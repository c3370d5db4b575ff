package chat

import (
	"cmp"
	"context"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui"
)

// runAt holds the conversation in a gateway.
func (o *Options) runAt(ctx context.Context, screen bool) error {
	a := o.App
	switch {
	case o.At != "" && o.Detach:
		return exitcode.Errorf(exitcode.Usage, "--at and --detach both name a gateway; leave one out")
	case o.At != "" && len(o.Command) > 0:
		return exitcode.Errorf(exitcode.Usage, "--at and the command after -- cannot be combined: a gateway starts its agents itself; name one")
	case o.Resume:
		return exitcode.Errorf(exitcode.Usage, "--resume is for conversations that are stored here; acp attach lists those of a gateway")
	}
	agent, err := o.gateway(ctx)
	if err != nil {
		return err
	}
	var id acp.SessionID // none for a new session
	if o.Session != "" || o.Continue {
		if id, err = o.find(ctx, agent); err != nil {
			return err
		}
	}
	if !screen {
		return plain.Run(ctx, plain.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt})
	}
	return tui.Run(ctx, tui.Options{App: a, Agent: agent, Session: id, Prompt: o.Prompt, NoBell: o.NoBell})
}

// gateway returns the way to the gateway.
func (o *Options) gateway(ctx context.Context) (agent roster.Agent, err error) {
	if o.Detach {
		if agent, err = o.App.AgentFor(o.Agent, o.Command); err != nil {
			return agent, err
		}
		return o.App.StartOwn(ctx, agent)
	}
	agent, err = o.App.At(o.At)
	agent.Hosted = cmp.Or(o.Agent, agent.Hosted)
	return agent, err
}

// find asks the gateway for the session that the user means.
func (o *Options) find(ctx context.Context, agent roster.Agent) (acp.SessionID, error) {
	h, err := o.App.Open(ctx, agent, backend.Frontend{})
	if err != nil {
		return "", err
	}
	defer h.Close()
	s, err := at.Find(ctx, h.Conn(), agent.Name, cmp.Or(o.Session, "-"), o.App.Cwd)
	return s.ID, err
}
