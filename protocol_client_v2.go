package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// clientV2 is the client's side of the draft of version 2.
type clientV2 struct {
	c    *ClientConn
	caps acpv2.AgentCapabilities
	auth []AuthMethod
}

func (p *clientV2) version() int { return 2 }

func (p *clientV2) register(mux *jsonrpc.Mux) {
	c := p.c
	acpv2.NotificationSessionUpdate.Handle(mux, func(ctx context.Context, n *acpv2.UpdateSessionNotification) error {
		c.handleUpdate(ctx, n.SessionID, clientItem{v2: n})
		return nil
	})
	acpv2.MethodSessionRequestPermission.Handle(mux, func(ctx context.Context, r *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
		return c.requestPermission(ctx, r, nil)
	})
	if c.client.Elicit != nil {
		acpv2.MethodElicitationCreate.Handle(mux, func(ctx context.Context, r *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error) {
			return c.elicit(ctx, r, nil)
		})
	}
	if f := c.client.ElicitationComplete; f != nil {
		acpv2.NotificationElicitationComplete.Handle(mux, func(ctx context.Context, n *acpv2.CompleteElicitationNotification) error {
			f(ctx, n.ElicitationID)
			return nil
		})
	}
	if f := c.client.AuthStatus; f != nil {
		acpv2.NotificationAuthStatusUpdate.Handle(mux, func(ctx context.Context, n *acpv2.AuthStatusUpdateNotification) error {
			f(ctx, &AuthStatus{State: n.State, Accounts: n.Accounts, Meta: n.Meta, Unknown: n.Unknown})
			return nil
		})
	}
	if c.client.MCP != nil {
		acpv2.MethodMCPMessage.Handle(mux, c.callMCP)
	}
}

func (p *clientV2) initialized(peer *clientPeer, raw json.RawMessage) error {
	var r acpv2.InitializeResponse
	if err := r.UnmarshalJSON(raw); err != nil {
		return err
	}
	peer.info, peer.caps, peer.authMethods, peer.meta = r.Info, r.Capabilities, r.AuthMethods, r.Meta
	p.caps, p.auth = r.Capabilities, r.AuthMethods
	return nil
}

// session returns the capabilities of sessions.
func (p *clientV2) session() *acpv2.SessionCapabilities {
	if p.caps.Session == nil {
		return new(acpv2.SessionCapabilities)
	}
	return p.caps.Session
}

// offered returns nil if the agent has something, or an error that names it
// otherwise.
func offered(ok bool, what string) error {
	if ok {
		return nil
	}
	return unsupported(what)
}

func (p *clientV2) canOpen(how clientOpening) error {
	if p.caps.Session == nil {
		return unsupported("sessions")
	}
	return offered(how != clientOpenFork || p.caps.Session.Fork != nil, "session/fork")
}

func (p *clientV2) servers() MCPTransports {
	m := p.session().MCP
	if m == nil {
		return MCPTransports{}
	}
	return MCPTransports{Stdio: m.Stdio != nil, HTTP: m.HTTP != nil, ACP: m.ACP != nil}
}

func (p *clientV2) open(ctx context.Context, how clientOpening, id SessionID, cfg *SessionConfig, opts ...jsonrpc.CallOption) (*clientOpened, error) {
	if err := p.canOpen(how); err != nil {
		return nil, err
	}
	conn := p.c.conn
	switch how {
	case clientOpenNew:
		r, err := call(ctx, acpv2.MethodSessionNew, conn, &acpv2.NewSessionRequest{
			Cwd: cfg.Cwd, AdditionalDirectories: cfg.AdditionalDirectories, MCPServers: cfg.MCPServers, SystemPrompt: cfg.SystemPrompt,
			ConfigOptions: p.c.initial(cfg), Meta: cfg.Meta,
		}, opts...)
		if err != nil {
			return nil, err
		}
		return &clientOpened{id: r.SessionID, options: r.ConfigOptions, commands: r.AvailableCommands, meta: r.Meta}, nil
	case clientOpenFork:
		r, err := call(ctx, acpv2.MethodSessionFork, conn, &acpv2.ForkSessionRequest{
			SessionID: id, CursorID: cfg.at, Cwd: cfg.Cwd, AdditionalDirectories: cfg.AdditionalDirectories, MCPServers: cfg.MCPServers, SystemPrompt: cfg.SystemPrompt,
			ConfigOptions: p.c.initial(cfg), Meta: cfg.Meta,
		}, opts...)
		if err != nil {
			return nil, err
		}
		return &clientOpened{id: r.SessionID, options: r.ConfigOptions, commands: r.AvailableCommands, meta: r.Meta}, nil
	}
	req := &acpv2.ResumeSessionRequest{
		SessionID: id, Cwd: cfg.Cwd, AdditionalDirectories: cfg.AdditionalDirectories, MCPServers: cfg.MCPServers, SystemPrompt: cfg.SystemPrompt,
		ConfigOptions: p.c.initial(cfg), Meta: cfg.Meta,
	}
	if how == clientOpenLoad {
		req.ReplayFrom = &acpv2.ReplayFromStart{}
	}
	r, err := call(ctx, acpv2.MethodSessionResume, conn, req, opts...)
	if err != nil {
		return nil, err
	}
	return &clientOpened{id: id, options: r.ConfigOptions, commands: r.AvailableCommands, meta: r.Meta}, nil
}

func (p *clientV2) listSessions(ctx context.Context, q *SessionQuery) (*SessionPage, error) {
	if p.caps.Session == nil {
		return nil, unsupported("session/list")
	}
	return call(ctx, acpv2.MethodSessionList, p.c.conn, q)
}

func (p *clientV2) deleteSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error {
	if err := offered(p.session().Delete != nil, "session/delete"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodSessionDelete, p.c.conn, &acpv2.DeleteSessionRequest{SessionID: id}, opt))
}

func (p *clientV2) canClose() bool { return p.caps.Session != nil }

func (p *clientV2) closeSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error {
	if err := offered(p.canClose(), "session/close"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodSessionClose, p.c.conn, &acpv2.CloseSessionRequest{SessionID: id}, opt))
}

func (p *clientV2) archiveSession(ctx context.Context, id SessionID, archive bool, opt jsonrpc.CallOption) error {
	if err := offered(p.session().Archive != nil, "session/archive"); err != nil {
		return err
	}
	if archive {
		return clientUnit(call(ctx, acpv2.MethodSessionArchive, p.c.conn, &acpv2.ArchiveSessionRequest{SessionID: id}, opt))
	}
	return clientUnit(call(ctx, acpv2.MethodSessionUnarchive, p.c.conn, &acpv2.UnarchiveSessionRequest{SessionID: id}, opt))
}

func (p *clientV2) sessionStatus(ctx context.Context, id SessionID) (*acpv2.SessionStatusResponse, error) {
	if err := offered(p.session().Status != nil, "session/status"); err != nil {
		return nil, err
	}
	return call(ctx, acpv2.MethodSessionStatus, p.c.conn, &acpv2.SessionStatusRequest{SessionID: id})
}

func (p *clientV2) sessionOptions(ctx context.Context, q *OptionsQuery) (*OptionsPreview, error) {
	return call(ctx, acpv2.MethodSessionOptions, p.c.conn, q)
}

func (p *clientV2) setTitle(ctx context.Context, id SessionID, title string, opt jsonrpc.CallOption) (string, error) {
	if err := offered(p.session().Title != nil, "session/set_title"); err != nil {
		return "", err
	}
	r, err := call(ctx, acpv2.MethodSessionSetTitle, p.c.conn, &acpv2.SetSessionTitleRequest{SessionID: id, Title: title}, opt)
	if err != nil {
		return "", err
	}
	return r.Title, nil
}

// prompt waits for the agent's answer even when ctx is done: the agent may have
// accepted the prompt before it was asked to withdraw it (S42). The reply ends
// when half of the time has passed; a later answer only serves to cancel the
// prompt.
func (p *clientV2) prompt(ctx context.Context, r *acpv2.PromptRequest, opts ...jsonrpc.CallOption) (clientAnswer, error) {
	opts = append(opts, jsonrpc.AwaitAnswerFor(2*p.c.client.CancelGrace))
	pending, err := start(ctx, acpv2.MethodSessionPrompt, p.c.conn, r, opts...)
	return func() (clientPrompted, error) {
		res, err := pending.Wait()
		if clientOldReceipt(err) {
			return clientPrompted{}, nil
		}
		if err != nil {
			return clientPrompted{}, err
		}
		return clientPrompted{messageID: res.MessageID, meta: res.Meta}, nil
	}, err
}

func (p *clientV2) cancelSession(ctx context.Context, id SessionID, still func() bool) error {
	return acpv2.NotificationSessionCancel.NotifyIf(ctx, p.c.conn, &acpv2.CancelSessionNotification{SessionID: id}, still)
}

func (p *clientV2) setOption(ctx context.Context, s *ClientSession, id SessionConfigID, v SessionConfigOptionValue, opt jsonrpc.CallOption) (clientOptions, error) {
	r, err := call(ctx, acpv2.MethodSessionSetConfigOption, p.c.conn, &acpv2.SetSessionConfigOptionRequest{SessionID: s.id, ConfigID: id, Value: v}, opt)
	if err != nil {
		return nil, err
	}
	return func([]SessionConfigOption) []SessionConfigOption { return r.ConfigOptions }, nil
}

func (p *clientV2) cancelToolCall(ctx context.Context, id SessionID, tool ToolCallID) error {
	return clientUnit(call(ctx, acpv2.MethodToolCallCancel, p.c.conn, &acpv2.CancelToolCallRequest{SessionID: id, ToolCallID: tool}))
}

func (p *clientV2) cancelTerminal(ctx context.Context, id SessionID, terminal TerminalID) error {
	return clientUnit(call(ctx, acpv2.MethodTerminalCancel, p.c.conn, &acpv2.CancelTerminalRequest{SessionID: id, TerminalID: terminal}))
}

func (p *clientV2) login(ctx context.Context, id AuthMethodID) error {
	if err := clientCheckLogin(p.auth, id); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodAuthLogin, p.c.conn, &acpv2.LoginAuthRequest{MethodID: id}))
}

func (p *clientV2) logout(ctx context.Context) error {
	if err := offered(len(p.auth) > 0, "auth/logout"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodAuthLogout, p.c.conn, nil))
}

func (p *clientV2) authStatus(ctx context.Context) (*AuthStatus, error) {
	if err := offered(p.caps.Auth != nil && p.caps.Auth.Status != nil, "auth/status"); err != nil {
		return nil, err
	}
	return call(ctx, acpv2.MethodAuthStatus, p.c.conn, nil)
}

func (p *clientV2) providers(ctx context.Context) ([]ProviderInfo, error) {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return nil, err
	}
	r, err := call(ctx, acpv2.MethodProvidersList, p.c.conn, nil)
	if err != nil {
		return nil, err
	}
	return r.Providers, nil
}

func (p *clientV2) setProvider(ctx context.Context, s *ProviderSetting) error {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodProvidersSet, p.c.conn, s))
}

func (p *clientV2) disableProvider(ctx context.Context, id ProviderID) error {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv2.MethodProvidersDisable, p.c.conn, &acpv2.DisableProviderRequest{ProviderID: id}))
}

func (p *clientV2) mcpNotify(ctx context.Context, n *acpv2.MessageMCPNotification) error {
	return acpv2.NotificationMCPMessage.Notify(ctx, p.c.conn, n)
}

// clientOldReceipt reports whether an answer to a prompt is invalid only because
// it has no message id: drafts of version 2 had that in the update only.
func clientOldReceipt(err error) bool {
	var field *wire.FieldError
	return errors.Is(err, jsonrpc.ErrInvalidResponse) && errors.As(err, &field) &&
		strings.HasSuffix(field.Path, "messageId") && field.Reason == "missing"
}

// clientCheckLogin refuses ways to log in that the agent did not list, and those
// that the user has to run.
func clientCheckLogin(methods []AuthMethod, id AuthMethodID) error {
	for _, m := range methods {
		switch m := m.(type) {
		case *AuthMethodAgent:
			if m.MethodID == id {
				return nil
			}
		case *AuthMethodTerminal:
			if m.MethodID == id {
				return errors.New("acp: login method " + string(id) + " is a command for the user to run")
			}
		case *acpv2.UnknownAuthMethod:
			if m.MethodID == id {
				return nil
			}
		}
	}
	return unsupported("login method " + string(id))
}
