package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// clientV1 is the client's side of version 1. It translates in both directions.
type clientV1 struct {
	c    *ClientConn
	caps acpv1.AgentCapabilities
	auth []AuthMethod
}

// clientSetModelV1 is a method that drafts of version 1 had.
var clientSetModelV1 = jsonrpc.Method[clientModelV1, struct{}]{Name: "session/set_model"}

type clientModelV1 struct {
	SessionID acpv1.SessionID `json:"sessionId"`
	ModelID   string          `json:"modelId"`
}

// clientAppendsV1 is the name of the agent with which reports of terminals began: codex, up to 0.16,
// which called a piece terminal_output. Its successor has another name.
const clientAppendsV1 = "codex-acp"

func (p *clientV1) version() int { return 1 }

func (p *clientV1) register(mux *jsonrpc.Mux) {
	c := p.c
	acpv1.NotificationSessionUpdate.Handle(mux, func(ctx context.Context, n *acpv1.SessionNotification) error {
		c.handleUpdate(ctx, SessionID(n.SessionID), clientItem{v1: n})
		return nil
	})
	acpv1.MethodSessionRequestPermission.Handle(mux, func(ctx context.Context, r *acpv1.RequestPermissionRequest) (*acpv1.RequestPermissionResponse, error) {
		req := translate.PermissionFromV1(*r)
		res, err := c.requestPermission(ctx, &req, r)
		if err != nil {
			return nil, err
		}
		return &acpv1.RequestPermissionResponse{Outcome: translate.PermissionOutcomeToV1(res.Outcome), Meta: res.Meta}, nil
	})
	if c.client.Elicit != nil {
		acpv1.MethodElicitationCreate.Handle(mux, p.elicit)
	}
	if f := c.client.ElicitationComplete; f != nil {
		acpv1.NotificationElicitationComplete.Handle(mux, func(ctx context.Context, n *acpv1.CompleteElicitationNotification) error {
			f(ctx, ElicitationID(n.ElicitationID))
			return nil
		})
	}
	if f := c.client.AuthStatus; f != nil {
		acpv1.NotificationAuthStatusUpdate.Handle(mux, func(ctx context.Context, n *acpv1.AuthStatusUpdateNotification) error {
			u := translate.AuthStatusUpdateFromV1(*n)
			f(ctx, &AuthStatus{State: u.State, Accounts: u.Accounts, Meta: u.Meta, Unknown: u.Unknown})
			return nil
		})
	}
	if c.client.MCP != nil {
		acpv1.MethodMCPMessage.Handle(mux, func(ctx context.Context, r *acpv1.MessageMCPRequest) (*acpv1.MessageMCPResponse, error) {
			req := translate.MCPRequestFromV1(*r)
			res, err := c.callMCP(ctx, &req)
			if err != nil {
				return nil, err
			}
			v1 := translate.MCPResponseToV1(*res)
			return &v1, nil
		})
	}
	p.registerHost(mux)
}

func (p *clientV1) initialized(peer *clientPeer, raw json.RawMessage) error {
	var r acpv1.InitializeResponse
	if err := r.UnmarshalJSON(raw); err != nil {
		return err
	}
	peer.info, peer.meta = translate.ImplementationFromV1(r.AgentInfo), r.Meta
	peer.caps, peer.capsV1 = translate.AgentCapabilitiesFromV1(r.AgentCapabilities), &r.AgentCapabilities
	peer.authMethods = translate.AuthMethodsFromV1(r.AuthMethods)
	p.caps, p.auth = r.AgentCapabilities, peer.authMethods
	return nil
}

func (p *clientV1) elicit(ctx context.Context, r *acpv1.CreateElicitationRequest) (*acpv1.CreateElicitationResponse, error) {
	req, err := translate.ElicitationFromV1(*r)
	if err != nil {
		return nil, invalidParams("requestedSchema", err.Error())
	}
	res, err := p.c.elicit(ctx, &req, r)
	if err != nil {
		return nil, err
	}
	v1 := translate.ElicitationResponseToV1(*res)
	return &v1, nil
}

func (p *clientV1) canOpen(how clientOpening) error {
	caps := p.caps.SessionCapabilities
	switch how {
	case clientOpenFork:
		return offered(caps.Fork != nil, "session/fork")
	case clientOpenResume:
		return offered(caps.Resume != nil, "session/resume")
	case clientOpenLoad:
		return offered(p.caps.LoadSession, "session/load")
	}
	return nil
}

func (p *clientV1) servers() MCPTransports {
	m := p.caps.MCPCapabilities
	return MCPTransports{Stdio: true, HTTP: m.HTTP, SSE: m.SSE, ACP: m.ACP}
}

func (p *clientV1) open(ctx context.Context, how clientOpening, id SessionID, cfg *SessionConfig, opts ...jsonrpc.CallOption) (*clientOpened, error) {
	if err := p.canOpen(how); err != nil {
		return nil, err
	}
	servers, err := translate.MCPServersToV1(cfg.MCPServers)
	if err != nil {
		return nil, err
	}
	if servers == nil {
		servers = []acpv1.MCPServer{} // required
	}
	prompt := translate.SystemPromptToV1(cfg.SystemPrompt)
	initial := translate.InitialOptionsToV1(p.c.initial(cfg))
	conn, sid, dirs := p.c.conn, acpv1.SessionID(id), cfg.AdditionalDirectories
	switch how {
	case clientOpenNew:
		r, err := call(ctx, acpv1.MethodSessionNew, conn, &acpv1.NewSessionRequest{
			Cwd: cfg.Cwd, AdditionalDirectories: dirs, MCPServers: servers, SystemPrompt: prompt, ConfigOptions: initial, Meta: cfg.Meta}, opts...)
		if err != nil {
			return nil, err
		}
		return openedV1(SessionID(r.SessionID), r.ConfigOptions, r.Modes, r.Meta, r.Unknown), nil
	case clientOpenFork:
		r, err := call(ctx, acpv1.MethodSessionFork, conn, &acpv1.ForkSessionRequest{
			SessionID: sid, CursorID: acpv1.CursorID(cfg.at), Cwd: cfg.Cwd, AdditionalDirectories: dirs, MCPServers: servers,
			SystemPrompt: prompt, ConfigOptions: initial, Meta: cfg.Meta}, opts...)
		if err != nil {
			return nil, err
		}
		return openedV1(SessionID(r.SessionID), r.ConfigOptions, r.Modes, r.Meta, r.Unknown), nil
	case clientOpenLoad:
		r, err := call(ctx, acpv1.MethodSessionLoad, conn, &acpv1.LoadSessionRequest{
			SessionID: sid, Cwd: cfg.Cwd, AdditionalDirectories: dirs, MCPServers: servers, SystemPrompt: prompt, ConfigOptions: initial, Meta: cfg.Meta}, opts...)
		if err != nil {
			return nil, err
		}
		return openedV1(id, r.ConfigOptions, r.Modes, r.Meta, r.Unknown), nil
	}
	r, err := call(ctx, acpv1.MethodSessionResume, conn, &acpv1.ResumeSessionRequest{
		SessionID: sid, Cwd: cfg.Cwd, AdditionalDirectories: dirs, MCPServers: servers, SystemPrompt: prompt, ConfigOptions: initial, Meta: cfg.Meta}, opts...)
	if err != nil {
		return nil, err
	}
	return openedV1(id, r.ConfigOptions, r.Modes, r.Meta, r.Unknown), nil
}

func openedV1(id SessionID, options []acpv1.SessionConfigOption, modes *acpv1.SessionModeState, meta, unknown []byte) *clientOpened {
	o := &clientOpened{id: id, options: translate.SessionOptionsFromV1(options, modes, unknown), meta: meta}
	own := func(id SessionConfigID) bool {
		return findOption(o.options, id) != nil &&
			!slices.ContainsFunc(options, func(o acpv1.SessionConfigOption) bool { return SessionConfigID(o.ID) == id })
	}
	o.modes = clientModesV1{modes: own(translate.ModeOption), models: own(translate.ModelOption)}
	return o
}

func (p *clientV1) listSessions(ctx context.Context, q *SessionQuery) (*SessionPage, error) {
	if err := offered(p.caps.SessionCapabilities.List != nil, "session/list"); err != nil {
		return nil, err
	}
	v1 := translate.ListSessionsToV1(*q)
	r, err := call(ctx, acpv1.MethodSessionList, p.c.conn, &v1)
	if err != nil {
		return nil, err
	}
	page := translate.SessionsFromV1(*r)
	return &page, nil
}

func (p *clientV1) deleteSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error {
	if err := offered(p.caps.SessionCapabilities.Delete != nil, "session/delete"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv1.MethodSessionDelete, p.c.conn, &acpv1.DeleteSessionRequest{SessionID: acpv1.SessionID(id)}, opt))
}

func (p *clientV1) canClose() bool { return p.caps.SessionCapabilities.Close != nil }

func (p *clientV1) closeSession(ctx context.Context, id SessionID, opt jsonrpc.CallOption) error {
	if err := offered(p.canClose(), "session/close"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv1.MethodSessionClose, p.c.conn, &acpv1.CloseSessionRequest{SessionID: acpv1.SessionID(id)}, opt))
}

func (p *clientV1) archiveSession(ctx context.Context, id SessionID, archive bool, opt jsonrpc.CallOption) error {
	caps, sid := p.caps.SessionCapabilities, acpv1.SessionID(id)
	if err := offered(caps.Archive != nil && caps.List != nil, "session/archive"); err != nil {
		return err
	}
	if archive {
		return clientUnit(call(ctx, acpv1.MethodSessionArchive, p.c.conn, &acpv1.ArchiveSessionRequest{SessionID: sid}, opt))
	}
	return clientUnit(call(ctx, acpv1.MethodSessionUnarchive, p.c.conn, &acpv1.UnarchiveSessionRequest{SessionID: sid}, opt))
}

func (p *clientV1) sessionStatus(ctx context.Context, id SessionID) (*acpv2.SessionStatusResponse, error) {
	if err := offered(p.caps.SessionCapabilities.Status != nil, "session/status"); err != nil {
		return nil, err
	}
	r, err := call(ctx, acpv1.MethodSessionStatus, p.c.conn, &acpv1.SessionStatusRequest{SessionID: acpv1.SessionID(id)})
	if err != nil {
		return nil, err
	}
	res := translate.SessionStatusFromV1(*r)
	return &res, nil
}

func (p *clientV1) sessionOptions(ctx context.Context, q *OptionsQuery) (*OptionsPreview, error) {
	v1 := translate.OptionsRequestToV1(*q)
	r, err := call(ctx, acpv1.MethodSessionOptions, p.c.conn, &v1)
	if err != nil {
		return nil, err
	}
	return &OptionsPreview{ConfigOptions: translate.SessionOptionsFromV1(r.ConfigOptions, r.Modes, nil), Meta: r.Meta}, nil
}

func (p *clientV1) setTitle(ctx context.Context, id SessionID, title string, opt jsonrpc.CallOption) (string, error) {
	if err := offered(p.caps.SessionCapabilities.Title != nil, "session/set_title"); err != nil {
		return "", err
	}
	r, err := call(ctx, acpv1.MethodSessionSetTitle, p.c.conn, &acpv1.SetSessionTitleRequest{SessionID: acpv1.SessionID(id), Title: title}, opt)
	if err != nil {
		return "", err
	}
	return r.Title, nil
}

func (p *clientV1) prompt(ctx context.Context, r *acpv2.PromptRequest, opts ...jsonrpc.CallOption) (clientAnswer, error) {
	pending, err := start(ctx, acpv1.MethodSessionPrompt, p.c.conn, &acpv1.PromptRequest{
		SessionID: acpv1.SessionID(r.SessionID), Prompt: translate.BlocksToV1(r.Prompt), Meta: r.Meta, Unknown: r.Unknown,
	}, opts...)
	return func() (clientPrompted, error) {
		res, err := pending.Wait()
		if err != nil {
			return clientPrompted{}, err
		}
		return clientPrompted{stopReason: translate.StopReasonFromV1(res.StopReason), usage: translate.UsageFromV1(res.Usage), meta: res.Meta}, nil
	}, err
}

func (p *clientV1) cancelSession(ctx context.Context, id SessionID, still func() bool) error {
	return acpv1.NotificationSessionCancel.NotifyIf(ctx, p.c.conn, &acpv1.CancelNotification{SessionID: acpv1.SessionID(id)}, still)
}

func (p *clientV1) setOption(ctx context.Context, s *ClientSession, id SessionConfigID, v SessionConfigOptionValue, opt jsonrpc.CallOption) (clientOptions, error) {
	s.mu.Lock()
	own := s.modesV1
	s.mu.Unlock()
	conn, sid := p.c.conn, acpv1.SessionID(s.id)
	if own.modes && id == translate.ModeOption || own.models && id == translate.ModelOption {
		value, ok := v.(*SessionConfigOptionValueID)
		if !ok {
			return nil, errors.New("acp: option " + string(id) + " takes an id")
		}
		var err error
		if id == translate.ModeOption {
			_, err = call(ctx, acpv1.MethodSessionSetMode, conn, &acpv1.SetSessionModeRequest{SessionID: sid, ModeID: acpv1.SessionModeID(value.Value)}, opt)
		} else {
			_, err = call(ctx, clientSetModelV1, conn, &clientModelV1{sid, string(value.Value)}, opt)
		}
		return func(before []SessionConfigOption) []SessionConfigOption {
			return translate.WithValue(before, id, value.Value)
		}, err
	}
	value, err := translate.OptionValueToV1(v)
	if err != nil {
		return nil, err
	}
	r, err := call(ctx, acpv1.MethodSessionSetConfigOption, conn, &acpv1.SetSessionConfigOptionRequest{
		SessionID: sid, ConfigID: acpv1.SessionConfigID(id), Value: value}, opt)
	if err != nil {
		return nil, err
	}
	return func(before []SessionConfigOption) []SessionConfigOption {
		after := translate.OptionsFromV1(r.ConfigOptions)
		for _, kept := range []struct {
			own bool
			id  SessionConfigID
		}{{own.modes, translate.ModeOption}, {own.models, translate.ModelOption}} {
			if o := findOption(before, kept.id); kept.own && o != nil && findOption(after, kept.id) == nil {
				after = append(after, *o)
			}
		}
		return after
	}, nil
}

func (p *clientV1) cancelToolCall(context.Context, SessionID, ToolCallID) error {
	return unsupported("tool_call/cancel")
}

func (p *clientV1) cancelTerminal(context.Context, SessionID, TerminalID) error {
	return unsupported("terminal/cancel")
}

func (p *clientV1) login(ctx context.Context, id AuthMethodID) error {
	if err := clientCheckLogin(p.auth, id); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv1.MethodAuthenticate, p.c.conn, &acpv1.AuthenticateRequest{MethodID: acpv1.AuthMethodID(id)}))
}

func (p *clientV1) logout(ctx context.Context) error {
	if err := offered(p.caps.Auth.Logout != nil, "logout"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv1.MethodLogout, p.c.conn, nil))
}

func (p *clientV1) authStatus(ctx context.Context) (*AuthStatus, error) {
	if err := offered(p.caps.Auth.Status != nil, "auth/status"); err != nil {
		return nil, err
	}
	r, err := call(ctx, acpv1.MethodAuthStatus, p.c.conn, nil)
	if err != nil {
		return nil, err
	}
	status := translate.AuthStatusFromV1(*r)
	return &status, nil
}

func (p *clientV1) providers(ctx context.Context) ([]ProviderInfo, error) {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return nil, err
	}
	r, err := call(ctx, acpv1.MethodProvidersList, p.c.conn, nil)
	if err != nil {
		return nil, err
	}
	return translate.ProvidersFromV1(*r).Providers, nil
}

func (p *clientV1) setProvider(ctx context.Context, s *ProviderSetting) error {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return err
	}
	v1 := translate.SetProviderToV1(*s)
	return clientUnit(call(ctx, acpv1.MethodProvidersSet, p.c.conn, &v1))
}

func (p *clientV1) disableProvider(ctx context.Context, id ProviderID) error {
	if err := offered(p.caps.Providers != nil, "providers"); err != nil {
		return err
	}
	return clientUnit(call(ctx, acpv1.MethodProvidersDisable, p.c.conn, &acpv1.DisableProviderRequest{ProviderID: acpv1.ProviderID(id)}))
}

func (p *clientV1) mcpNotify(ctx context.Context, n *acpv2.MessageMCPNotification) error {
	v1 := translate.MCPNotificationToV1(*n)
	return acpv1.NotificationMCPMessage.Notify(ctx, p.c.conn, &v1)
}
