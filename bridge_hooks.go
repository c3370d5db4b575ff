package acp

import "context"

// BridgeHooks change what passes a [Bridge], once for both versions and in the words of
// package acp. A [Proxy] does that to messages, and loses nothing of them; hooks are for
// what passes a bridge in any case. Each is optional and is called as the hooks of
// [Agent] and [Client] are: prompts and sessions concurrently, updates of a session in
// order. Errors are what the peer is answered with, as in those hooks.
type BridgeHooks struct {
	// Open may change how the agent opens a session: its directories, MCP servers and
	// instructions. id is empty for new sessions and forks.
	Open func(ctx context.Context, id SessionID, c *SessionConfig) error
	// Prompt returns what the agent gets of a prompt. The client sees its own.
	Prompt func(ctx context.Context, s *AgentSession, blocks []ContentBlock) ([]ContentBlock, error)
	// Update returns what the client gets of an update, or nil to leave it out. States,
	// options and commands are not among the updates: the bridge keeps them itself.
	Update func(ctx context.Context, u *Update) SessionUpdate
	// Permission decides a question of the agent's. ask has the client decide.
	Permission func(ctx context.Context, r *PermissionRequest, ask func(context.Context) (PermissionDecision, error)) (PermissionDecision, error)
}

// configOf is what the client asked for when it opened a session.
func configOf(s *AgentSession) SessionConfig {
	o := s.request()
	return SessionConfig{
		Cwd: o.cwd, AdditionalDirectories: o.directories, MCPServers: o.servers, SystemPrompt: o.prompt, Meta: o.meta,
		Options: o.options, asIs: true,
	}
}

// config is what the agent is asked for when it opens a session.
func (l *bridgeLink) config(ctx context.Context, s *AgentSession, id SessionID) (SessionConfig, error) {
	c := configOf(s)
	if hook := l.b.Hooks.Open; hook != nil {
		if err := hook(ctx, id, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// blocks is what the agent gets of a prompt.
func (l *bridgeLink) blocks(ctx context.Context, t *Turn) ([]ContentBlock, error) {
	blocks := t.Blocks()
	if hook := l.b.Hooks.Prompt; hook != nil {
		var err error
		if blocks, err = hook(ctx, t.session, blocks); err != nil {
			return nil, err
		}
	}
	if len(blocks) == 0 { // which version 1 allows (S74)
		blocks = []ContentBlock{Text("")}
	}
	return blocks, nil
}

// shown is what the client gets of an update.
func (l *bridgeLink) shown(ctx context.Context, u *Update) SessionUpdate {
	if hook := l.b.Hooks.Update; hook != nil {
		return hook(ctx, u)
	}
	return u.Update
}

// permission is the hook of the client towards the agent.
func (l *bridgeLink) permission(ctx context.Context, r *PermissionRequest) (PermissionDecision, error) {
	ask := func(ctx context.Context) (PermissionDecision, error) { return l.askClient(ctx, r) }
	if hook := l.b.Hooks.Permission; hook != nil {
		return hook(ctx, r, ask)
	}
	return ask(ctx)
}
