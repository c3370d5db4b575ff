package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// agentV2 is version 2 for an agent.
type agentV2 struct{ c *AgentConn }

func (p *agentV2) version() int { return 2 }
func (p *agentV2) states() bool { return true }

func (p *agentV2) preempt(c *AgentConn, req *jsonrpc.Request) error {
	switch r := req.Params.(type) {
	case *acpv2.PromptRequest:
		return c.queues(r.SessionID, req)
	case *acpv2.CancelSessionNotification:
		c.cancelled(r.SessionID, req)
	}
	return nil
}

func (p *agentV2) initialized(meta json.RawMessage) ([]byte, error) {
	a := p.c.agent.Load()
	session := &acpv2.SessionCapabilities{}
	prompt := new(acpv2.PromptCapabilities)
	mark(&prompt.Image, a.Content.Image)
	mark(&prompt.Audio, a.Content.Audio)
	mark(&prompt.EmbeddedContext, a.Content.EmbeddedContext)
	mark(&prompt.Skill, a.Content.Skill || a.Content.SkillInline)
	if a.Content.SkillInline {
		prompt.Skill.Inline = new(acpv2.PromptSkillInlineCapabilities)
	}
	if a.Content != (PromptContent{}) {
		session.Prompt = prompt
	}
	mcp := new(acpv2.MCPCapabilities)
	mark(&mcp.Stdio, a.MCP.Stdio)
	mark(&mcp.HTTP, a.MCP.HTTP)
	mark(&mcp.ACP, a.MCP.ACP)
	if a.MCP.Stdio || a.MCP.HTTP || a.MCP.ACP {
		session.MCP = mcp
	}
	mark(&session.Delete, a.DeleteSession != nil)
	mark(&session.AdditionalDirectories, a.AdditionalDirectories)
	mark(&session.Fork, a.ForkSession != nil)
	mark(&session.Archive, a.ArchiveSession != nil)
	mark(&session.Status, a.SessionStatus != nil)
	mark(&session.Title, a.SetTitle != nil)
	mark(&session.Options, a.SessionOptions != nil)
	mark(&session.SystemPrompt, a.SystemPrompt != SystemPromptNone)
	if a.SystemPrompt == SystemPromptOverride {
		session.SystemPrompt.Mode = &acpv2.SessionSystemPromptModeCapabilities{Override: new(acpv2.SessionSystemPromptOverrideCapabilities)}
	}
	caps := AgentCapabilities{Session: session}
	if a.AuthStatus != nil {
		caps.Auth = &acpv2.AgentAuthCapabilities{Status: new(acpv2.AuthStatusCapabilities)}
	}
	mark(&caps.Providers, a.ListProviders != nil)
	return (&acpv2.InitializeResponse{
		ProtocolVersion: acpv2.Version, Info: a.Info, Capabilities: caps, AuthMethods: p.c.authMethods(),
		Meta: a.advertiseSteering(meta),
	}).AppendJSON(nil)
}

func (p *agentV2) register(mux *jsonrpc.Mux) {
	acpv2.MethodAuthLogin.Handle(mux, p.login)
	acpv2.MethodAuthLogout.Handle(mux, p.logout)
	acpv2.MethodAuthStatus.Handle(mux, func(ctx context.Context, _ *acpv2.AuthStatusRequest) (*acpv2.AuthStatusResponse, error) {
		return p.c.authStatus(ctx)
	})
	acpv2.MethodProvidersList.Handle(mux, func(ctx context.Context, _ *acpv2.ListProvidersRequest) (*acpv2.ListProvidersResponse, error) {
		return p.c.listProviders(ctx)
	})
	acpv2.MethodProvidersSet.Handle(mux, func(ctx context.Context, r *acpv2.SetProviderRequest) (*acpv2.SetProviderResponse, error) {
		return nil, p.c.setProvider(ctx, r)
	})
	acpv2.MethodProvidersDisable.Handle(mux, func(ctx context.Context, r *acpv2.DisableProviderRequest) (*acpv2.DisableProviderResponse, error) {
		return nil, p.c.disableProvider(ctx, r.ProviderID)
	})
	p.registerSessions(mux)
	p.registerOptions(mux)
	p.registerInSession(mux)
	if !p.c.agent.Load().NoLegacy {
		p.registerLegacy(mux)
	}
}

func (p *agentV2) login(ctx context.Context, r *acpv2.LoginAuthRequest) (*acpv2.LoginAuthResponse, error) {
	return nil, p.c.login(ctx, r.MethodID)
}

func (p *agentV2) logout(ctx context.Context, _ *acpv2.LogoutAuthRequest) (*acpv2.LogoutAuthResponse, error) {
	return nil, p.c.logout(ctx)
}

// registerLegacy adds the names some methods had in older drafts.
func (p *agentV2) registerLegacy(mux *jsonrpc.Mux) {
	jsonrpc.Method[acpv2.LoginAuthRequest, acpv2.LoginAuthResponse]{Name: "authenticate"}.Handle(mux, p.login)
	jsonrpc.Method[acpv2.LogoutAuthRequest, acpv2.LogoutAuthResponse]{Name: "logout"}.Handle(mux, p.logout)
	jsonrpc.Method[acpv2.ResumeSessionRequest, acpv2.ResumeSessionResponse]{Name: "session/load"}.Handle(mux,
		func(ctx context.Context, r *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
			r.ReplayFrom = new(acpv2.ReplayFromStart)
			return p.resume(ctx, r)
		})
}

func (p *agentV2) registerSessions(mux *jsonrpc.Mux) {
	acpv2.MethodSessionNew.Handle(mux, func(ctx context.Context, r *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		s, err := p.c.open(ctx, &sessionRequest{r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.Meta, r.ConfigOptions}, "", "")
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return &acpv2.NewSessionResponse{SessionID: s.id, ConfigOptions: s.options.list, AvailableCommands: p.commands(s.commands), Meta: s.meta}, nil
	})
	acpv2.MethodSessionFork.Handle(mux, func(ctx context.Context, r *acpv2.ForkSessionRequest) (*acpv2.ForkSessionResponse, error) {
		s, err := p.c.open(ctx, &sessionRequest{r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.Meta, r.ConfigOptions}, r.SessionID, r.CursorID)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return &acpv2.ForkSessionResponse{SessionID: s.id, ConfigOptions: s.options.list, AvailableCommands: p.commands(s.commands), Meta: s.meta}, nil
	})
	acpv2.MethodSessionResume.Handle(mux, p.resume)
	acpv2.MethodSessionList.Handle(mux, func(ctx context.Context, r *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
		return p.c.list(ctx, r)
	})
	acpv2.MethodSessionClose.Handle(mux, func(ctx context.Context, r *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
		_, err := p.c.closeSession(ctx, r.SessionID) // an unknown session is as good as closed (S43)
		return nil, err
	})
	acpv2.MethodSessionDelete.Handle(mux, func(ctx context.Context, r *acpv2.DeleteSessionRequest) (*acpv2.DeleteSessionResponse, error) {
		return nil, p.c.deleteSession(ctx, r.SessionID)
	})
	acpv2.MethodSessionArchive.Handle(mux, func(ctx context.Context, r *acpv2.ArchiveSessionRequest) (*acpv2.ArchiveSessionResponse, error) {
		return nil, p.c.archiveSession(ctx, r.SessionID, true)
	})
	acpv2.MethodSessionUnarchive.Handle(mux, func(ctx context.Context, r *acpv2.UnarchiveSessionRequest) (*acpv2.UnarchiveSessionResponse, error) {
		return nil, p.c.archiveSession(ctx, r.SessionID, false)
	})
	acpv2.MethodSessionStatus.Handle(mux, func(ctx context.Context, r *acpv2.SessionStatusRequest) (*acpv2.SessionStatusResponse, error) {
		status, state, err := p.c.status(ctx, r.SessionID)
		if err != nil {
			return nil, err
		}
		return &acpv2.SessionStatusResponse{Status: status, State: state}, nil
	})
	acpv2.MethodSessionSetTitle.Handle(mux, func(ctx context.Context, r *acpv2.SetSessionTitleRequest) (*acpv2.SetSessionTitleResponse, error) {
		title, err := p.c.setTitle(ctx, r.SessionID, r.Title)
		if err != nil {
			return nil, err
		}
		return &acpv2.SetSessionTitleResponse{Title: title}, nil
	})
}

func (p *agentV2) resume(ctx context.Context, r *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
	replay := false
	switch r.ReplayFrom.(type) {
	case nil:
	case *acpv2.ReplayFromStart:
		replay = true
	default:
		return nil, invalidParams("replayFrom.type", "unknown place to replay from") // S85
	}
	s, err := p.c.resume(ctx, r.SessionID, &sessionRequest{r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.Meta, r.ConfigOptions}, replay)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &acpv2.ResumeSessionResponse{ConfigOptions: s.options.list, AvailableCommands: p.commands(s.commands), Meta: s.meta}, nil
}

func (p *agentV2) registerOptions(mux *jsonrpc.Mux) {
	acpv2.MethodSessionOptions.Handle(mux, func(ctx context.Context, r *acpv2.SessionOptionsRequest) (*acpv2.SessionOptionsResponse, error) {
		res, err := p.c.previewOptions(ctx, r)
		if err != nil {
			return nil, err
		}
		told := *res
		told.AvailableCommands = p.commands(res.AvailableCommands)
		return &told, nil
	})
}

func (p *agentV2) registerInSession(mux *jsonrpc.Mux) {
	acpv2.MethodSessionPrompt.Handle(mux, p.prompt)
	if a := p.c.agent.Load(); a.steers() || a.prepare != nil { // the agent behind a bridge may
		steeringV2.Handle(mux, func(ctx context.Context, r *acpv2.PromptRequest) (*steeringResult, error) {
			return p.c.steering(ctx, r.SessionID, r.Prompt, r.Meta)
		})
	}
	acpv2.NotificationSessionCancel.Handle(mux, func(ctx context.Context, r *acpv2.CancelSessionNotification) error {
		return p.c.cancel(ctx, r.SessionID)
	})
	acpv2.MethodSessionSetConfigOption.Handle(mux, func(ctx context.Context, r *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
		_, options, err := p.c.setOption(ctx, r.SessionID, r.ConfigID, r.Value)
		if err != nil {
			return nil, err
		}
		return &acpv2.SetSessionConfigOptionResponse{ConfigOptions: options}, nil
	})
	acpv2.MethodToolCallCancel.Handle(mux, func(_ context.Context, r *acpv2.CancelToolCallRequest) (*acpv2.CancelToolCallResponse, error) {
		return nil, p.cancelEntity(r.SessionID, "toolCallId", string(r.ToolCallID), toolCancelKey(r.ToolCallID))
	})
	acpv2.MethodTerminalCancel.Handle(mux, func(_ context.Context, r *acpv2.CancelTerminalRequest) (*acpv2.CancelTerminalResponse, error) {
		return nil, p.cancelEntity(r.SessionID, "terminalId", string(r.TerminalID), terminalCancelKey(r.TerminalID))
	})
	acpv2.NotificationMCPMessage.Handle(mux, func(_ context.Context, n *acpv2.MessageMCPNotification) error {
		p.c.calls.notify(n)
		return nil
	})
}

// cancelEntity cancels a tool call or terminal that allows it (S22, S90).
func (p *agentV2) cancelEntity(id SessionID, field, value, key string) error {
	s, ok := p.c.Session(id)
	if !ok {
		return SessionNotFound(id)
	}
	if !s.cancelEntity(key) {
		e := jsonrpc.ErrInvalidParams.WithData(map[string]string{
			field: value, "path": "params." + field, "reason": "unknown or not cancellable",
		})
		return e
	}
	return nil
}

// prompt answers when the prompt has become part of the conversation; the turn
// begins behind the answer (S87).
func (p *agentV2) prompt(ctx context.Context, r *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
	if p.c.agent.Load().Queue != nil {
		a := p.c.queued(ctx, r.SessionID, r.Prompt, r.Meta)
		switch {
		case a.begun:
			return &acpv2.PromptResponse{MessageID: a.message}, nil
		case a.Err == nil || errors.Is(a.Err, ErrCancelled):
			return nil, jsonrpc.ErrRequestCancelled // S42
		}
		return nil, a.Err
	}
	t, taken, err := p.c.admit(ctx, r.SessionID, r.Prompt, r.Meta)
	if errors.Is(err, ErrCancelled) {
		return nil, jsonrpc.ErrRequestCancelled // S42
	}
	if err != nil {
		return nil, err
	}
	if taken != nil {
		id, err := p.c.taken(ctx, taken)
		return &acpv2.PromptResponse{MessageID: id}, err
	}
	if err := p.c.runLater(ctx, t); err != nil {
		return nil, err
	}
	return &acpv2.PromptResponse{MessageID: t.message}, nil
}

func (p *agentV2) replayed(ctx context.Context, id SessionID) error {
	return acpv2.NotificationSessionUpdate.Notify(ctx, p.c.conn,
		&acpv2.UpdateSessionNotification{SessionID: id, Update: new(acpv2.ReplayComplete)})
}

func (p *agentV2) knowsSkills() bool {
	s := p.c.Capabilities().Session
	return s != nil && s.Commands != nil && s.Commands.Skill != nil
}

// commands returns commands as the client understands them: a skill is a command to those
// that have not said that they know skills.
func (p *agentV2) commands(list []AvailableCommand) []AvailableCommand {
	if p.knowsSkills() {
		return list
	}
	isSkill := func(c AvailableCommand) bool { _, ok := c.(*acpv2.Skill); return ok }
	if !slices.ContainsFunc(list, isSkill) {
		return list
	}
	list = slices.Clone(list)
	for i, c := range list {
		if skill, ok := c.(*acpv2.Skill); ok {
			list[i] = &SlashCommand{Name: skill.Name, Description: skill.Description, Meta: skill.Meta}
		}
	}
	return list
}

func (p *agentV2) update(ctx context.Context, s *AgentSession, u SessionUpdate) error {
	switch v := u.(type) {
	case *AvailableCommandsUpdate:
		told := *v
		told.AvailableCommands = p.commands(v.AvailableCommands)
		u = &told
	case *UserMessage, *UserMessageChunk:
		if !p.knowsSkills() { // it could not have sent one, and somebody else has
			u = skills.PlainUpdate(u)
		}
	case *acpv2.PromptSuggestionsUpdate:
		if s := p.c.Capabilities().Session; s == nil || s.PromptSuggestions == nil {
			return nil // it has not said that it wants them
		}
	}
	return acpv2.NotificationSessionUpdate.Notify(ctx, p.c.conn, &acpv2.UpdateSessionNotification{SessionID: s.id, Update: u})
}

// v2Text is what v1Text is.
type v2Text struct {
	n     acpv2.UpdateSessionNotification
	agent AgentMessageChunk
	think AgentThoughtChunk
	text  TextContent
}

func (p *agentV2) chunk(ctx context.Context, s *AgentSession, kind messageKind, id MessageID, text string) error {
	t := &s.text2
	if len(p.c.agent.Load().Engine.Outgoing) > 0 {
		t = new(v2Text) // middleware may keep what it sees
	}
	t.n.SessionID = s.id
	t.text.Text = text
	if kind == agentThought {
		t.think.Content, t.think.MessageID = &t.text, id
		t.n.Update = &t.think
	} else {
		t.agent.Content, t.agent.MessageID = &t.text, id
		t.n.Update = &t.agent
	}
	return acpv2.NotificationSessionUpdate.Notify(ctx, p.c.conn, &t.n)
}

func (p *agentV2) requestPermission(ctx context.Context, _ *AgentSession, r *permissionRequest) (*acpv2.RequestPermissionResponse, error) {
	return callClient(ctx, acpv2.MethodSessionRequestPermission, p.c.conn, &r.RequestPermissionRequest)
}

func (p *agentV2) elicit(ctx context.Context, _ *AgentSession, r *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error) {
	return callClient(ctx, acpv2.MethodElicitationCreate, p.c.conn, r)
}

func (p *agentV2) elicited(ctx context.Context, id ElicitationID) error {
	return acpv2.NotificationElicitationComplete.Notify(ctx, p.c.conn, &acpv2.CompleteElicitationNotification{ElicitationID: id})
}

func (p *agentV2) callMCP(ctx context.Context, r *acpv2.MessageMCPRequest) (*acpv2.MessageMCPResponse, error) {
	return callClient(ctx, acpv2.MethodMCPMessage, p.c.conn, r)
}

func (p *agentV2) authStatusUpdate(ctx context.Context, n *acpv2.AuthStatusUpdateNotification) error {
	return acpv2.NotificationAuthStatusUpdate.Notify(ctx, p.c.conn, n)
}

// Files and terminals are the agent's own here.
func (p *agentV2) clientFiles() clientFiles         { return clientFiles{} }
func (p *agentV2) clientTerminals() clientTerminals { return nil }
