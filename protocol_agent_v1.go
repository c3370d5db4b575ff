package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// agentV1 is version 1 for an agent.
type agentV1 struct{ c *AgentConn }

func (p *agentV1) version() int { return 1 }
func (p *agentV1) states() bool { return false }

func (p *agentV1) preempt(c *AgentConn, req *jsonrpc.Request) error {
	switch r := req.Params.(type) {
	case *acpv1.PromptRequest:
		return c.queues(SessionID(r.SessionID), req)
	case *acpv1.CancelNotification:
		c.cancelled(SessionID(r.SessionID), req)
	}
	return nil
}

func (p *agentV1) initialized(meta json.RawMessage) ([]byte, error) {
	a := p.c.agent.Load()
	caps := acpv1.AgentCapabilities{
		LoadSession:        a.ResumeSession != nil,
		PromptCapabilities: acpv1.PromptCapabilities{Image: a.Content.Image, Audio: a.Content.Audio, EmbeddedContext: a.Content.EmbeddedContext},
		MCPCapabilities:    acpv1.MCPCapabilities{HTTP: a.MCP.HTTP, SSE: a.MCP.SSE, ACP: a.MCP.ACP},
	}
	sc := &caps.SessionCapabilities
	mark(&sc.List, a.ListSessions != nil)
	mark(&sc.Resume, a.ResumeSession != nil)
	mark(&sc.Close, a.CloseSession != nil)
	mark(&sc.Delete, a.DeleteSession != nil)
	mark(&sc.AdditionalDirectories, a.AdditionalDirectories)
	mark(&sc.Fork, a.ForkSession != nil)
	mark(&sc.Archive, a.ArchiveSession != nil)
	mark(&sc.Status, a.SessionStatus != nil)
	mark(&sc.Title, a.SetTitle != nil)
	mark(&sc.Options, a.SessionOptions != nil)
	mark(&sc.SystemPrompt, a.SystemPrompt != SystemPromptNone)
	if a.SystemPrompt == SystemPromptOverride {
		sc.SystemPrompt.Mode = &acpv1.SessionSystemPromptModeCapabilities{Override: new(acpv1.SessionSystemPromptOverrideCapabilities)}
	}
	mark(&caps.Auth.Logout, a.Logout != nil)
	mark(&caps.Auth.Status, a.AuthStatus != nil)
	mark(&caps.Providers, a.ListProviders != nil)
	return (&acpv1.InitializeResponse{
		ProtocolVersion:   acpv1.Version,
		AgentInfo:         translate.ImplementationToV1(a.Info),
		AgentCapabilities: caps,
		AuthMethods:       translate.AuthMethodsToV1(p.c.authMethods()),
		Meta:              a.advertiseSteering(meta),
	}).AppendJSON(nil)
}

// mark sets the marker of a capability if it is there.
func mark[T any](m **T, there bool) {
	if there {
		*m = new(T)
	}
}

func (p *agentV1) register(mux *jsonrpc.Mux) {
	acpv1.MethodAuthenticate.Handle(mux, func(ctx context.Context, r *acpv1.AuthenticateRequest) (*acpv1.AuthenticateResponse, error) {
		return nil, p.c.login(ctx, AuthMethodID(r.MethodID))
	})
	acpv1.MethodLogout.Handle(mux, func(ctx context.Context, _ *acpv1.LogoutRequest) (*acpv1.LogoutResponse, error) {
		return nil, p.c.logout(ctx)
	})
	acpv1.MethodAuthStatus.Handle(mux, func(ctx context.Context, _ *acpv1.AuthStatusRequest) (*acpv1.AuthStatusResponse, error) {
		return convert(translate.AuthStatusToV1)(p.c.authStatus(ctx))
	})
	acpv1.MethodProvidersList.Handle(mux, func(ctx context.Context, _ *acpv1.ListProvidersRequest) (*acpv1.ListProvidersResponse, error) {
		return convert(translate.ProvidersToV1)(p.c.listProviders(ctx))
	})
	acpv1.MethodProvidersSet.Handle(mux, func(ctx context.Context, r *acpv1.SetProviderRequest) (*acpv1.SetProviderResponse, error) {
		setting := translate.SetProviderFromV1(*r)
		return nil, p.c.setProvider(ctx, &setting)
	})
	acpv1.MethodProvidersDisable.Handle(mux, func(ctx context.Context, r *acpv1.DisableProviderRequest) (*acpv1.DisableProviderResponse, error) {
		return nil, p.c.disableProvider(ctx, ProviderID(r.ProviderID))
	})
	p.registerSessions(mux)
	p.registerOptions(mux)
	p.registerInSession(mux)
}

// convert applies a conversion to a result, if there is one.
func convert[T, U any](f func(T) U) func(*T, error) (*U, error) {
	return func(v *T, err error) (*U, error) {
		if err != nil {
			return nil, err
		}
		u := f(*v)
		return &u, nil
	}
}

func (p *agentV1) registerSessions(mux *jsonrpc.Mux) {
	acpv1.MethodSessionNew.Handle(mux, func(ctx context.Context, r *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
		o, err := p.request(r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.ConfigOptions, r.Meta)
		if err != nil {
			return nil, err
		}
		s, err := p.c.open(ctx, o, "", "")
		if err != nil {
			return nil, err
		}
		modes, options, meta := p.opened(s)
		return &acpv1.NewSessionResponse{SessionID: acpv1.SessionID(s.id), Modes: modes, ConfigOptions: options, Meta: meta}, nil
	})
	acpv1.MethodSessionFork.Handle(mux, func(ctx context.Context, r *acpv1.ForkSessionRequest) (*acpv1.ForkSessionResponse, error) {
		o, err := p.request(r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.ConfigOptions, r.Meta)
		if err != nil {
			return nil, err
		}
		s, err := p.c.open(ctx, o, SessionID(r.SessionID), acpv2.CursorID(r.CursorID))
		if err != nil {
			return nil, err
		}
		modes, options, meta := p.opened(s)
		return &acpv1.ForkSessionResponse{SessionID: acpv1.SessionID(s.id), Modes: modes, ConfigOptions: options, Meta: meta}, nil
	})
	acpv1.MethodSessionLoad.Handle(mux, func(ctx context.Context, r *acpv1.LoadSessionRequest) (*acpv1.LoadSessionResponse, error) {
		s, err := p.restore(ctx, r.SessionID, true, r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.ConfigOptions, r.Meta)
		if err != nil {
			return nil, err
		}
		modes, options, meta := p.opened(s)
		return &acpv1.LoadSessionResponse{Modes: modes, ConfigOptions: options, Meta: meta}, nil
	})
	acpv1.MethodSessionResume.Handle(mux, func(ctx context.Context, r *acpv1.ResumeSessionRequest) (*acpv1.ResumeSessionResponse, error) {
		s, err := p.restore(ctx, r.SessionID, false, r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.ConfigOptions, r.Meta)
		if err != nil {
			return nil, err
		}
		modes, options, meta := p.opened(s)
		return &acpv1.ResumeSessionResponse{Modes: modes, ConfigOptions: options, Meta: meta}, nil
	})
	acpv1.MethodSessionList.Handle(mux, func(ctx context.Context, r *acpv1.ListSessionsRequest) (*acpv1.ListSessionsResponse, error) {
		if p.c.agent.Load().ListSessions == nil {
			return nil, notFound(ctx)
		}
		q := translate.ListSessionsFromV1(*r)
		return convert(translate.SessionsToV1)(p.c.list(ctx, &q))
	})
	acpv1.MethodSessionClose.Handle(mux, func(ctx context.Context, r *acpv1.CloseSessionRequest) (*acpv1.CloseSessionResponse, error) {
		if p.c.agent.Load().CloseSession == nil {
			return nil, notFound(ctx)
		}
		was, err := p.c.closeSession(ctx, SessionID(r.SessionID))
		if !was && err == nil {
			err = SessionNotFound(SessionID(r.SessionID))
		}
		return nil, err
	})
	acpv1.MethodSessionDelete.Handle(mux, func(ctx context.Context, r *acpv1.DeleteSessionRequest) (*acpv1.DeleteSessionResponse, error) {
		return nil, p.c.deleteSession(ctx, SessionID(r.SessionID))
	})
	acpv1.MethodSessionArchive.Handle(mux, func(ctx context.Context, r *acpv1.ArchiveSessionRequest) (*acpv1.ArchiveSessionResponse, error) {
		return nil, p.c.archiveSession(ctx, SessionID(r.SessionID), true)
	})
	acpv1.MethodSessionUnarchive.Handle(mux, func(ctx context.Context, r *acpv1.UnarchiveSessionRequest) (*acpv1.UnarchiveSessionResponse, error) {
		return nil, p.c.archiveSession(ctx, SessionID(r.SessionID), false)
	})
	acpv1.MethodSessionStatus.Handle(mux, func(ctx context.Context, r *acpv1.SessionStatusRequest) (*acpv1.SessionStatusResponse, error) {
		status, _, err := p.c.status(ctx, SessionID(r.SessionID))
		if err != nil {
			return nil, err
		}
		return &acpv1.SessionStatusResponse{Status: acpv1.SessionStatus(status)}, nil
	})
	acpv1.MethodSessionSetTitle.Handle(mux, func(ctx context.Context, r *acpv1.SetSessionTitleRequest) (*acpv1.SetSessionTitleResponse, error) {
		title, err := p.c.setTitle(ctx, SessionID(r.SessionID), r.Title)
		if err != nil {
			return nil, err
		}
		return &acpv1.SetSessionTitleResponse{Title: title}, nil
	})
}

func (p *agentV1) request(cwd string, dirs []string, servers []acpv1.MCPServer, prompt *acpv1.SystemPrompt,
	options []acpv1.InitialSessionConfigOption, meta json.RawMessage) (*sessionRequest, error) {
	list, err := translate.MCPServersFromV1(servers)
	if err != nil {
		return nil, invalidParams("mcpServers", err.Error())
	}
	return &sessionRequest{cwd, dirs, list, translate.SystemPromptFromV1(prompt), meta, translate.InitialOptionsFromV1(options)}, nil
}

// restore loads or resumes. One hook advertises both.
func (p *agentV1) restore(ctx context.Context, id acpv1.SessionID, replay bool,
	cwd string, dirs []string, servers []acpv1.MCPServer, prompt *acpv1.SystemPrompt,
	options []acpv1.InitialSessionConfigOption, meta json.RawMessage) (*AgentSession, error) {
	if p.c.agent.Load().ResumeSession == nil {
		return nil, notFound(ctx)
	}
	o, err := p.request(cwd, dirs, servers, prompt, options, meta)
	if err != nil {
		return nil, err
	}
	return p.c.resume(ctx, SessionID(id), o, replay)
}

// opened is what the answer tells about a session that was opened. Commands are
// an update of their own here.
func (p *agentV1) opened(s *AgentSession) (modes *acpv1.SessionModeState, options []acpv1.SessionConfigOption, meta json.RawMessage) {
	if s.acquire(s.ctx) != nil {
		return nil, nil, nil
	}
	defer s.releaseSending()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.commands) > 0 {
		u := &AvailableCommandsUpdate{AvailableCommands: s.commands}
		if s.held != nil {
			if !slices.ContainsFunc(s.held.list, saysCommands) { // set meanwhile, they follow
				s.held.list = append([]SessionUpdate{u}, s.held.list...)
			}
		} else {
			_ = p.update(s.ctx, s, u) // if it fails the answer does, too
		}
	}
	options, modes = s.toV1.Options(s.options.list)
	return modes, options, s.meta
}

func saysCommands(u SessionUpdate) bool {
	_, ok := u.(*AvailableCommandsUpdate)
	return ok
}

func (p *agentV1) registerOptions(mux *jsonrpc.Mux) {
	acpv1.MethodSessionOptions.Handle(mux, func(ctx context.Context, r *acpv1.SessionOptionsRequest) (*acpv1.SessionOptionsResponse, error) {
		q := translate.OptionsRequestFromV1(*r)
		res, err := p.c.previewOptions(ctx, &q)
		if err != nil {
			return nil, err
		}
		to := translate.ToV1{Caps: p.c.peer.Load().capsV1} // no booleans for clients without
		options, modes := to.Options(res.ConfigOptions)
		return &acpv1.SessionOptionsResponse{Modes: modes, ConfigOptions: options, Meta: res.Meta}, nil
	})
}

func (p *agentV1) registerInSession(mux *jsonrpc.Mux) {
	acpv1.MethodSessionPrompt.Handle(mux, p.prompt)
	if a := p.c.agent.Load(); a.steers() || a.prepare != nil { // the agent behind a bridge may
		steeringV1.Handle(mux, func(ctx context.Context, r *acpv1.PromptRequest) (*steeringResult, error) {
			return p.c.steering(ctx, SessionID(r.SessionID), translate.BlocksFromV1(r.Prompt), r.Meta)
		})
	}
	acpv1.NotificationSessionCancel.Handle(mux, func(ctx context.Context, r *acpv1.CancelNotification) error {
		return p.c.cancel(ctx, SessionID(r.SessionID))
	})
	acpv1.MethodSessionSetConfigOption.Handle(mux, func(ctx context.Context, r *acpv1.SetSessionConfigOptionRequest) (*acpv1.SetSessionConfigOptionResponse, error) {
		s, options, err := p.c.setOption(ctx, SessionID(r.SessionID), SessionConfigID(r.ConfigID), translate.OptionValueFromV1(r.Value))
		if err != nil {
			return nil, err
		}
		// Before the options of the answer, which would count as having sent the mode.
		if err := p.tellMode(ctx, s); err != nil {
			return nil, err
		}
		return &acpv1.SetSessionConfigOptionResponse{ConfigOptions: p.options(s, options)}, nil
	})
	acpv1.MethodSessionSetMode.Handle(mux, func(ctx context.Context, r *acpv1.SetSessionModeRequest) (*acpv1.SetSessionModeResponse, error) {
		return nil, p.choose(ctx, SessionID(r.SessionID), "modeId", string(r.ModeID), translate.ModeOptionID)
	})
	if !p.c.agent.Load().NoLegacy {
		legacySetModel.Handle(mux, func(ctx context.Context, r *legacySetModelRequest) (*legacySetModelResponse, error) {
			return nil, p.choose(ctx, r.SessionID, "modelId", r.ModelID, translate.ModelOptionID)
		})
	}
	acpv1.NotificationMCPMessage.Handle(mux, func(_ context.Context, n *acpv1.MessageMCPNotification) error {
		note := translate.MCPNotificationFromV1(*n)
		p.c.calls.notify(&note)
		return nil
	})
}

// legacySetModel was a method of its own before models were options.
var legacySetModel = jsonrpc.Method[legacySetModelRequest, legacySetModelResponse]{Name: "session/set_model"}

type legacySetModelRequest struct {
	SessionID SessionID `json:"sessionId"`
	ModelID   string    `json:"modelId"`
}

type legacySetModelResponse struct{}

// choose changes the option that stands for modes or models.
func (p *agentV1) choose(ctx context.Context, id SessionID, field, value string, find func([]SessionConfigOption) (SessionConfigID, bool)) error {
	s, ok := p.c.Session(id)
	if !ok {
		return SessionNotFound(id)
	}
	option, ok := find(s.Options())
	if !ok {
		return invalidParams(field, "there is nothing to choose from")
	}
	if _, _, err := p.c.setOption(ctx, id, option, &SessionConfigOptionValueID{Value: SessionConfigValueID(value)}); err != nil {
		if errors.Is(err, jsonrpc.ErrInvalidParams) {
			return invalidParams(field, "no such value")
		}
		return err
	}
	return s.sendOptionsNow(ctx)
}

// options returns options of a session as the client can show them.
func (p *agentV1) options(s *AgentSession, list []SessionConfigOption) []acpv1.SessionConfigOption {
	if s.acquire(s.ctx) != nil {
		return nil
	}
	defer s.releaseSending()
	options, _ := s.toV1.Options(list)
	return options
}

// tellMode keeps clients that know modes only up to date when an option changed.
func (p *agentV1) tellMode(ctx context.Context, s *AgentSession) error {
	if _, ok := translate.ModeOptionID(s.Options()); !ok {
		return nil
	}
	return s.sendOptionsNow(ctx)
}

func (p *agentV1) prompt(ctx context.Context, r *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
	if p.c.agent.Load().Queue != nil {
		a := p.c.queued(ctx, SessionID(r.SessionID), translate.BlocksFromV1(r.Prompt), r.Meta)
		if errors.Is(a.Err, ErrCancelled) {
			a.TurnEnd = TurnEnd{Stop: StopCancelled} // S40
		}
		if a.Err != nil {
			return nil, a.Err
		}
		return &acpv1.PromptResponse{StopReason: stopV1(a.Stop), Meta: a.Meta}, nil
	}
	t, taken, err := p.c.admit(ctx, SessionID(r.SessionID), translate.BlocksFromV1(r.Prompt), r.Meta)
	if errors.Is(err, ErrCancelled) {
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonCancelled}, nil // S40
	}
	if err != nil {
		return nil, err
	}
	if taken != nil {
		taken.t.parts()
		p.c.known(taken) // its client shows what it has sent, wherever that goes
		return p.steered(ctx, taken.t)
	}
	if len(p.c.agent.Load().Engine.Incoming) > 0 {
		return promptedV1(t, p.c.runApart(t))
	}
	return promptedV1(t, p.c.run(t, func(o outcome) { jsonrpc.RequestFrom(ctx).Answer(promptedV1(t, o)) }))
}

// promptedV1 returns the answer to a prompt whose turn has ended.
func promptedV1(t *Turn, o outcome) (*acpv1.PromptResponse, error) {
	if o.err != nil {
		return nil, o.err
	}
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	return &acpv1.PromptResponse{StopReason: stopV1(o.stop), Usage: translate.UsageToV1(t.usage), Meta: t.answer}, nil
}

// steered answers a prompt that became part of a running turn when that turn
// ends.
func (p *agentV1) steered(ctx context.Context, t *Turn) (*acpv1.PromptResponse, error) {
	select {
	case <-t.settled:
		if t.stopErr != nil {
			return nil, t.stopErr
		}
		return &acpv1.PromptResponse{StopReason: stopV1(t.stop)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stopV1 returns a stop reason for version 1, which requires one, and one that it
// knows.
func stopV1(r StopReason) acpv1.StopReason {
	if v1, ok := translate.StopReasonToV1(r); ok {
		return v1
	}
	return acpv1.StopReasonEndTurn
}

// unheard reports whether a session is a subagent's that the client does not
// understand.
func (s *AgentSession) unheard() bool { return s.child && s.toV1.Caps.Subagents == nil }

// replayed says nothing: the answer to session/load does.
func (p *agentV1) replayed(context.Context, SessionID) error { return nil }

func (p *agentV1) update(ctx context.Context, s *AgentSession, u SessionUpdate) error {
	if s.unheard() {
		return nil
	}
	id := acpv1.SessionID(s.id)
	for _, v1 := range s.toV1.Append(nil, u) {
		err := acpv1.NotificationSessionUpdate.Notify(ctx, p.c.conn, &acpv1.SessionNotification{SessionID: id, Update: v1})
		if err != nil {
			return err
		}
	}
	return nil
}

// v1Text is a text chunk that is used over and over. That is safe because sending
// encodes at once, and the caller has the right to send.
type v1Text struct {
	n     acpv1.SessionNotification
	agent acpv1.AgentMessageChunk
	think acpv1.AgentThoughtChunk
	text  acpv1.TextContent
}

func (p *agentV1) chunk(ctx context.Context, s *AgentSession, kind messageKind, id MessageID, text string) error {
	if s.unheard() {
		return nil
	}
	t := &s.text
	if len(p.c.agent.Load().Engine.Outgoing) > 0 {
		t = new(v1Text) // middleware may keep what it sees
	}
	t.n.SessionID = acpv1.SessionID(s.id)
	t.text.Text = text
	if kind == agentThought {
		t.think.Content, t.think.MessageID = &t.text, acpv1.MessageID(id)
		t.n.Update = &t.think
	} else {
		t.agent.Content, t.agent.MessageID = &t.text, acpv1.MessageID(id)
		t.n.Update = &t.agent
	}
	return acpv1.NotificationSessionUpdate.Notify(ctx, p.c.conn, &t.n)
}

func (p *agentV1) requestPermission(ctx context.Context, s *AgentSession, r *permissionRequest) (*acpv2.RequestPermissionResponse, error) {
	if s.unheard() {
		return nil, clientLacks("subagents")
	}
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	v1, err := s.toV1.Permission(r.RequestPermissionRequest, r.call)
	s.releaseSending()
	if err != nil {
		return nil, err
	}
	res, err := callClient(ctx, acpv1.MethodSessionRequestPermission, p.c.conn, &v1)
	if err != nil {
		return nil, err
	}
	return &acpv2.RequestPermissionResponse{Outcome: translate.PermissionOutcomeFromV1(res.Outcome), Meta: res.Meta}, nil
}

func (p *agentV1) elicit(ctx context.Context, s *AgentSession, r *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error) {
	if s != nil && s.unheard() {
		return nil, clientLacks("subagents")
	}
	if m, ok := r.Mode.(*acpv2.UnknownElicitationMode); ok && !strings.HasPrefix(m.Type, "_") {
		return nil, clientLacks("elicitation in the mode " + m.Type) // the modes of version 1 are closed
	}
	v1 := translate.ElicitationToV1(*r)
	return convert(translate.ElicitationResponseFromV1)(callClient(ctx, acpv1.MethodElicitationCreate, p.c.conn, &v1))
}

func (p *agentV1) elicited(ctx context.Context, id ElicitationID) error {
	return acpv1.NotificationElicitationComplete.Notify(ctx, p.c.conn,
		&acpv1.CompleteElicitationNotification{ElicitationID: acpv1.ElicitationID(id)})
}

func (p *agentV1) callMCP(ctx context.Context, r *acpv2.MessageMCPRequest) (*acpv2.MessageMCPResponse, error) {
	v1 := translate.MCPRequestToV1(*r)
	return convert(translate.MCPResponseFromV1)(callClient(ctx, acpv1.MethodMCPMessage, p.c.conn, &v1))
}

func (p *agentV1) authStatusUpdate(ctx context.Context, n *acpv2.AuthStatusUpdateNotification) error {
	v1 := translate.AuthStatusUpdateToV1(*n)
	return acpv1.NotificationAuthStatusUpdate.Notify(ctx, p.c.conn, &v1)
}

func (p *agentV1) clientFiles() (f clientFiles) {
	caps := p.c.CapabilitiesV1()
	if caps == nil {
		return f
	}
	if caps.FS.ReadTextFile {
		f.read = func(ctx context.Context, s *AgentSession, path string, line, limit uint32) (string, error) {
			r := &acpv1.ReadTextFileRequest{SessionID: acpv1.SessionID(s.id), Path: filepath.Clean(path)}
			if line > 0 {
				r.Line = &line
			}
			if limit > 0 {
				r.Limit = &limit
			}
			res, err := callClient(ctx, acpv1.MethodFSReadTextFile, p.c.conn, r)
			if errors.Is(err, jsonrpc.ErrResourceNotFound) {
				err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
			}
			if err != nil {
				return "", err
			}
			return res.Content, nil
		}
	}
	if caps.FS.WriteTextFile {
		f.write = func(ctx context.Context, s *AgentSession, path, text string) error {
			_, err := callClient(ctx, acpv1.MethodFSWriteTextFile, p.c.conn, &acpv1.WriteTextFileRequest{SessionID: acpv1.SessionID(s.id), Path: filepath.Clean(path), Content: text})
			return err
		}
	}
	return f
}

func (p *agentV1) clientTerminals() clientTerminals {
	if caps := p.c.CapabilitiesV1(); caps != nil && caps.Terminal {
		return terminalsV1{p.c}
	}
	return nil
}
