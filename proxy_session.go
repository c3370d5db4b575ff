package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/internal/translate"
)

// A ProxyInit is the handshake of a chain, as a proxy sees it: see
// [Proxy.Initialize].
type ProxyInit struct {
	// Version is the protocol version that the successor is asked for, and after Next
	// the one it has answered. It cannot be changed.
	Version int

	// RequestV1 or RequestV2, according to Version, is what the successor is asked; the
	// other is nil. It may be changed before Next. Its protocol version is ignored.
	RequestV1 *acpv1.InitializeRequest
	RequestV2 *acpv2.InitializeRequest

	// ResultV1 or ResultV2, according to Version, is the successor's answer once Next has
	// returned nil. It may be changed. Its protocol version is ignored.
	ResultV1 *acpv1.InitializeResponse
	ResultV2 *acpv2.InitializeResponse

	next func(ctx context.Context) error
}

// Next asks the successor, which starts the rest of the chain. Its error is the
// successor's, or that of the component which could not be started. Next may be called once.
func (in *ProxyInit) Next(ctx context.Context) error { return in.next(ctx) }

// Client returns the name of the client and what it can do, in the vocabulary of version 2.
// Changes are made in RequestV1 and RequestV2.
func (in *ProxyInit) Client() (Implementation, ClientCapabilities) {
	if in.RequestV1 != nil {
		return translate.ImplementationFromV1(in.RequestV1.ClientInfo), translate.ClientCapabilitiesFromV1(in.RequestV1.ClientCapabilities)
	}
	if in.RequestV2 != nil {
		return in.RequestV2.Info, in.RequestV2.Capabilities
	}
	return Implementation{}, ClientCapabilities{}
}

// Agent returns the name of the agent and what it can do, in the vocabulary of version 2.
// It is nothing before Next. Changes are made in ResultV1 and ResultV2.
func (in *ProxyInit) Agent() (Implementation, AgentCapabilities) {
	if in.ResultV1 != nil {
		return translate.ImplementationFromV1(in.ResultV1.AgentInfo), translate.AgentCapabilitiesFromV1(in.ResultV1.AgentCapabilities)
	}
	if in.ResultV2 != nil {
		return in.ResultV2.Info, in.ResultV2.Capabilities
	}
	return Implementation{}, AgentCapabilities{}
}

// A ProxySession is a session that passes a proxy. Its methods may be called from any
// goroutine, in hooks and outside of them, as long as the chain lasts; in hooks they
// must be given the hook's context. A proxy knows up to 4096 sessions: of those beyond,
// the one that was not opened or used for longest loses its Value and Opening.
type ProxySession struct {
	node *proxyNode
	of   *proxyState // the chain's that it belongs to

	mu      sync.Mutex
	id      SessionID
	opening *ProxyOpening
	value   any

	updates proxyUpdates
	calls   told.Calls // what the agent has said, for those who decide
}

// ID returns the session's id. It is empty in the Session hook of a new session, until
// next has returned.
func (s *ProxySession) ID() SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Version returns the protocol version of the chain.
func (s *ProxySession) Version() int { return int(s.node.version.Load()) }

// Opening returns how the client has opened the session, or nil if it did not: sessions
// of subagents are opened by the agent. In the Session hook it may be changed before
// next is called, and must not be changed afterwards.
func (s *ProxySession) Opening() *ProxyOpening {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opening
}

// Value returns what SetValue was last given, or nil: a place for what the proxy keeps
// of a session.
func (s *ProxySession) Value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// SetValue sets what Value returns.
func (s *ProxySession) SetValue(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = v
}

// A ProxyOpening is what the client asks for when it opens a session, in the vocabulary of
// version 2. What is changed in it, the agent gets in place of what the client has sent;
// everything else of the request passes unchanged.
type ProxyOpening struct {
	// Method is the request: session/new, session/load (in version 1 only),
	// session/resume or session/fork.
	Method string
	// From is the session that a fork is made of.
	From                  SessionID
	Cwd                   string
	AdditionalDirectories []string
	MCPServers            []MCPServer
	SystemPrompt          *SystemPrompt
	Meta                  json.RawMessage // _meta of the request, or nil

	raw json.RawMessage
}

// Raw returns the params of the request in the version of the chain, as the client has sent
// them.
func (o *ProxyOpening) Raw() json.RawMessage { return o.raw }

// A ProxyPrompt is a prompt of the client: see [Proxy.Prompt].
type ProxyPrompt struct {
	Session *ProxySession
	// Blocks are the prompt. They may be replaced before next is called.
	Blocks []ContentBlock
	// Meta is _meta of the request, or nil. It may be replaced before next is called.
	Meta json.RawMessage
	// StopReason is why the turn ended, in version 1 once next has returned nil. It may
	// be replaced. If next is not called, it is why the turn that the hook has answered
	// ends, by default [StopEndTurn], in both versions.
	StopReason StopReason

	raw, answer json.RawMessage
}

// Raw returns the params of the request in the version of the chain, as the client has sent
// them.
func (p *ProxyPrompt) Raw() json.RawMessage { return p.raw }

// Answer returns the agent's answer in the version of the chain, as it was sent. It is nil before
// next has returned nil.
func (p *ProxyPrompt) Answer() json.RawMessage { return p.answer }

// Say sends the client a piece of an answer, as [ProxySession.Update] does.
func (p *ProxyPrompt) Say(ctx context.Context, text string) error {
	return p.Session.Update(ctx, &AgentMessageChunk{MessageID: p.Session.ownMessage(), Content: Text(text)})
}

// A ProxyPermission is a question of the agent's: see [Proxy.Permission].
type ProxyPermission struct {
	Session *ProxySession
	// Request is the question. Its Session is nil. It must not be changed.
	Request *PermissionRequest
	// Decision is the client's, once next has returned nil. It may be replaced, or set in
	// place of calling next: see [PermissionRequest.Allow] and its like. The zero value
	// does not permit anything.
	Decision PermissionDecision

	raw json.RawMessage
}

// Raw returns the params of the request in the version of the chain, as the agent has sent
// them.
func (q *ProxyPermission) Raw() json.RawMessage { return q.raw }

// ProxyMetaKey is the member of _meta that marks what a proxy has sent of its own: its value
// is an object with the member proxy, the name of the proxy.
const ProxyMetaKey = "github.com/goacp/acp/proxy"

// Update sends the client an update of the proxy's own, behind those of the agent that
// the proxy has passed on. Its _meta says so: see [ProxyMetaKey]. In version 1 an update
// that has no form there is left out. If it is called while a proxy of this process that
// is nearer to the client handles an update of this one, and ctx is that of its hook, what
// it sends comes behind that update, and Update does not wait. Behind one update of the
// agent up to 256 are sent in this way, those that such hooks send for each other included.
func (s *ProxySession) Update(ctx context.Context, u SessionUpdate) error {
	return s.updates.send(ctx, s, u)
}

// Prompt sends the agent a prompt of the proxy's own, whose _meta says so: see
// [ProxyMetaKey]. The client sees the updates of its turn, as the Update hook lets it. In
// version 1 Prompt returns at the end of the turn, and returns why it ended. In version
// 2 it returns when the agent has taken the prompt, without a reason; states tell the
// rest. Called in a Prompt hook before next, its turn comes before the client's.
func (s *ProxySession) Prompt(ctx context.Context, blocks ...ContentBlock) (StopReason, error) {
	prompt, err := s.node.encodeBlocks(blocks)
	if err != nil {
		return "", err
	}
	var res acpv1.PromptResponse
	if err := s.Call(ctx, ToAgent, acpv2.MethodSessionPrompt.Name, map[string]any{
		"sessionId": s.ID(), "prompt": prompt, "_meta": s.node.mark(nil),
	}, &res); err != nil || s.Version() != 1 {
		return "", err
	}
	return StopReason(res.StopReason), nil
}

// Cancel asks the agent to end the turn of the session, as the client does.
func (s *ProxySession) Cancel(ctx context.Context) error {
	return s.Notify(ctx, ToAgent, acpv2.NotificationSessionCancel.Name, map[string]any{"sessionId": s.ID(), "_meta": s.node.mark(nil)})
}

// Call sends a request of the proxy's own and waits for its answer. params and result are
// encoded and decoded as package jsonrpc does, in the version of the chain; a nil result
// is not decoded. If ctx is done, the peer is asked to cancel and Call waits for its
// answer. Nothing is marked: see [ProxyMetaKey].
func (s *ProxySession) Call(ctx context.Context, to ProxyDirection, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	s.node.fresh(s.ID())
	res, err := s.node.link(to).request(ctx, proxied{method: method, params: (*json.RawMessage)(&raw), session: string(s.ID())})
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(res, result)
}

// Notify sends a notification of the proxy's own: see Call.
func (s *ProxySession) Notify(ctx context.Context, to ProxyDirection, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	s.node.fresh(s.ID())
	return s.node.link(to).notify(ctx, proxied{method: method, params: (*json.RawMessage)(&raw), session: string(s.ID())})
}
