package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// previewTime bounds how long an agent may take that is asked for its options.
const previewTime = 30 * time.Second

// sessionOptions tells what a session would begin with. Of a session that there is, the gateway knows itself what a client
// gets that comes to it. For a new one, an agent is started that is asked, and ends; no session is made in it.
func (g *Gateway) sessionOptions(ctx context.Context, _ *acp.AgentConn, q *acp.OptionsQuery) (*acp.OptionsPreview, error) {
	if q.SessionID != "" {
		_, info, err := g.lookUp(ctx, q.SessionID)
		if err != nil {
			return nil, err
		}
		var known attributes
		if err := known.decode(info.Attributes); err != nil {
			return nil, err
		}
		return &acp.OptionsPreview{ConfigOptions: passable(known.options), AvailableCommands: known.commands}, nil
	}
	m, err := metaOf(q.Meta)
	if err != nil {
		return nil, err
	}
	who := g.who(ctx)
	if !who.Prompt || who.Session != nil { // an agent runs for it
		return nil, who.errRole("begin sessions")
	}
	name, err := g.agentOf(&who, m.Agent)
	if err != nil {
		return nil, err
	}
	if err := g.allowSession(ctx, &who, name, append([]string{q.Cwd}, q.AdditionalDirectories...), nil); err != nil {
		return nil, err
	}
	if !g.suits(q.Cwd) {
		return nil, &jsonrpc.Failure{Message: "this node takes no sessions in " + q.Cwd + ", so it cannot ask an agent what they begin with", Reason: "no_node"}
	}
	return g.preview(ctx, &who, name, q)
}

// preview asks an agent that is started for it.
func (g *Gateway) preview(ctx context.Context, who *Who, agent string, q *acp.OptionsQuery) (p *acp.OptionsPreview, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, &jsonrpc.Failure{
		Message: "the agent " + agent + " has not said within " + previewTime.String() + " what a session begins with", Reason: "timeout"})
	defer cancel()
	if err := g.admitAgent(ctx, who.User, who.Groups, false, g.tenancy.lobby.patience()); err != nil {
		return nil, err
	}
	defer g.dismissAgent(who.User)
	tenant := Tenant{User: who.User, Groups: who.Groups, Directories: append([]string{q.Cwd}, q.AdditionalDirectories...)}
	way, err := g.cfg.Start(withTenant(ctx, tenant), agent, q.Cwd)
	var conn *acp.ClientConn
	if err == nil {
		client := &acp.Client{Info: g.cfg.Info, Logger: g.cfg.Logger, Skills: true}
		conn, err = client.Connect(ctx, way)
	}
	if err != nil {
		return nil, g.startFailed(ctx, agent, err, errors.AsType[*process.ExitError])
	}
	defer func() { _ = conn.Close() }()
	if caps := conn.Capabilities().Session; caps == nil || caps.Options == nil {
		return nil, &jsonrpc.Failure{Message: "the agent " + agent + " does not say what a session begins with before it is open", Reason: "unsupported"}
	}
	p, err = conn.SessionOptions(ctx, acp.OptionsQuery{Cwd: q.Cwd, AdditionalDirectories: q.AdditionalDirectories})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, oneDirectory(agent)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	told := *p
	told.ConfigOptions = passable(p.ConfigOptions)
	return &told, nil
}
