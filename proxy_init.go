package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// versionOf returns the protocol version in the params or the result of initialize, or 0.
func versionOf(raw json.RawMessage) int {
	var v struct {
		ProtocolVersion uint16 `json:"protocolVersion"`
	}
	if json.Unmarshal(raw, &v) != nil {
		return 0
	}
	return int(v.ProtocolVersion)
}

// initializeV1 returns what a client of a later version would have asked in version 1.
func initializeV1(raw json.RawMessage) (json.RawMessage, error) {
	var v1 acpv1.InitializeRequest
	if err := v1.UnmarshalJSON(raw); err != nil {
		return nil, decodeError(err)
	}
	fromNewerClient(&v1, raw)
	v1.ProtocolVersion = 1
	v1.Unknown = nil // it is in the words of another version
	return v1.AppendJSON(nil)
}

// initialize handles the handshake on its way to the agent.
func (n *proxyNode) initialize(ctx context.Context, m proxied) (json.RawMessage, error) {
	lo, hi := n.p.versions()
	asked := versionOf(m.raw())
	version := selectVersion(asked, lo, hi)
	if version == 0 || lo > hi {
		return nil, unsupportedVersion(asked, lo, hi)
	}
	params := m.raw()
	if version == 1 && asked > 1 {
		var err error
		if params, err = initializeV1(params); err != nil {
			return nil, err
		}
	}
	n.version.Store(int32(version))
	in := &ProxyInit{Version: version}
	result, err := n.handshake(ctx, m, in, params)
	if err != nil {
		return nil, err
	}
	answered := versionOf(result)
	if answered < lo || answered > hi {
		return nil, unsupportedVersion(answered, lo, hi)
	}
	n.version.Store(int32(answered))
	return result, nil
}

// handshake runs the Initialize hook around the question to the successor.
func (n *proxyNode) handshake(ctx context.Context, m proxied, in *ProxyInit, params json.RawMessage) (json.RawMessage, error) {
	state := newProxyState(n)
	n.readRequest(in, params)
	before := in.encodedRequest()
	var result json.RawMessage
	var asked bool
	in.next = func(ctx context.Context) error {
		if asked {
			return errNextTwice
		}
		asked = true
		if after := in.encodedRequest(); !bytes.Equal(before, after) {
			params = after
		}
		m.params, m.checked = &params, false
		if in.RequestV1 != nil {
			state.caps = in.RequestV1.ClientCapabilities
		}
		n.state.Store(state)
		var err error
		if result, err = n.down.request(ctx, m); err != nil {
			return err
		}
		err = n.readResult(in, result)
		info, _ := in.Agent()
		state.appends.Store(info.Name == clientAppendsV1)
		return err
	}
	if n.p.Initialize != nil {
		if err := n.protected(ctx, m.method, func() error { return n.p.Initialize(ctx, in) }); err != nil {
			return nil, err
		}
	}
	if !asked {
		if err := in.next(ctx); err != nil {
			return nil, err
		}
	}
	if n.p.Initialize == nil && !n.mcp.needed() {
		return result, nil
	}
	return n.answerOf(in, result)
}

// readRequest decodes what the client asks, for the hook. What cannot be read is
// passed on as it is.
func (n *proxyNode) readRequest(in *ProxyInit, params json.RawMessage) {
	if in.Version == 1 {
		v1 := new(acpv1.InitializeRequest)
		if v1.UnmarshalJSON(params) == nil {
			in.RequestV1 = v1
		}
		return
	}
	v2 := new(acpv2.InitializeRequest)
	if v2.UnmarshalJSON(params) == nil {
		in.RequestV2 = v2
	}
}

func (in *ProxyInit) encodedRequest() []byte {
	switch {
	case in.RequestV1 != nil:
		in.RequestV1.ProtocolVersion = uint16(in.Version)
		return encoded(in.RequestV1)
	case in.RequestV2 != nil:
		in.RequestV2.ProtocolVersion = uint16(in.Version)
		return encoded(in.RequestV2)
	}
	return nil
}

func (in *ProxyInit) encodedResult() []byte {
	switch {
	case in.ResultV1 != nil:
		in.ResultV1.ProtocolVersion = uint16(in.Version)
		return encoded(in.ResultV1)
	case in.ResultV2 != nil:
		in.ResultV2.ProtocolVersion = uint16(in.Version)
		return encoded(in.ResultV2)
	}
	return nil
}

// readResult decodes the answer, whose version may be lower than what was asked.
func (n *proxyNode) readResult(in *ProxyInit, result json.RawMessage) error {
	in.Version = versionOf(result)
	var err error
	switch in.Version {
	case 1:
		in.ResultV1 = new(acpv1.InitializeResponse)
		err = in.ResultV1.UnmarshalJSON(result)
	case 2:
		in.ResultV2 = new(acpv2.InitializeResponse)
		err = in.ResultV2.UnmarshalJSON(result)
	default:
		err = errors.New("acp: the answer to initialize names no version that is known")
	}
	if err != nil && (n.p.Initialize != nil || n.mcp.needed()) {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: the answer to initialize cannot be read")
	}
	return nil
}

// answerOf returns the answer for the client: as it came, unless it was changed.
func (n *proxyNode) answerOf(in *ProxyInit, result json.RawMessage) (json.RawMessage, error) {
	fresh := &ProxyInit{Version: in.Version}
	if err := n.readResult(fresh, result); err != nil {
		return nil, err
	}
	n.mcp.advertise(in)
	after := in.encodedResult()
	if after == nil {
		return nil, n.internal(methodInitialize, errors.New("the changed answer cannot be encoded"), nil)
	}
	if bytes.Equal(fresh.encodedResult(), after) {
		return result, nil
	}
	return after, nil
}

// open handles a request that opens a session.
func (n *proxyNode) open(ctx context.Context, m proxied) (_ json.RawMessage, err error) {
	m.holds()
	s := &ProxySession{node: n, of: n.state.Load()}
	params := m.raw()
	opening, err := n.readOpening(m.method, params)
	if err != nil {
		return nil, err
	}
	if m.method != acpv2.MethodSessionNew.Name && m.method != acpv2.MethodSessionFork.Name {
		s = n.session(m.session)
		if s == nil {
			return nil, invalidParams("sessionId", "missing")
		}
	} else if m.method == acpv2.MethodSessionFork.Name {
		opening.From = SessionID(m.session)
	}
	s.mu.Lock()
	s.opening = opening
	s.mu.Unlock()
	before := *opening
	var called, passed bool
	var result json.RawMessage
	pass := func(ctx context.Context) error {
		passed = true
		changed, err := n.writeOpening(params, &before, opening)
		if err == nil {
			changed, err = n.mcp.declare(ctx, s, opening, changed)
		}
		if err != nil {
			return err
		}
		m.params, m.checked = &changed, false
		if result, err = n.down.request(ctx, m); err != nil {
			return err
		}
		if s.ID() == "" {
			id := SessionID(memberOf(result, "sessionId"))
			s.mu.Lock()
			s.id = id
			s.mu.Unlock()
			s.of.session(id, s)
			s.updates.hold(m.req, s)
		}
		return nil
	}
	defer func() {
		if err != nil && passed { // the client does not know the session
			n.mcp.undeclare(s)
			s.updates.drop()
		}
	}()
	if n.p.Session == nil {
		err = pass(ctx)
		return result, err
	}
	called, err = n.hooked(ctx, m.method, pass, func(ctx context.Context, next func(context.Context) error) error {
		return n.p.Session(ctx, s, next)
	})
	if err == nil && !called {
		err = n.internal(m.method, errors.New("the Session hook neither called next nor failed"), nil)
	}
	return result, err
}

// readOpening decodes what the client asks for in the words of version 2.
func (n *proxyNode) readOpening(method string, raw json.RawMessage) (*ProxyOpening, error) {
	o := &ProxyOpening{Method: method, raw: raw}
	// The requests differ in their ids only, which are known.
	if n.version.Load() == 1 {
		var r acpv1.NewSessionRequest
		if err := r.UnmarshalJSON(withDefault(raw, "mcpServers", "[]")); err != nil {
			return nil, decodeError(err)
		}
		servers, err := translate.MCPServersFromV1(r.MCPServers)
		if err != nil {
			return nil, invalidParams("mcpServers", err.Error())
		}
		o.Cwd, o.AdditionalDirectories, o.MCPServers, o.Meta = r.Cwd, r.AdditionalDirectories, servers, r.Meta
		o.SystemPrompt = translate.SystemPromptFromV1(r.SystemPrompt)
		return o, nil
	}
	var r acpv2.NewSessionRequest
	if err := r.UnmarshalJSON(raw); err != nil {
		return nil, decodeError(err)
	}
	o.Cwd, o.AdditionalDirectories, o.MCPServers, o.SystemPrompt, o.Meta = r.Cwd, r.AdditionalDirectories, r.MCPServers, r.SystemPrompt, r.Meta
	return o, nil
}

// withDefault returns an object in which a member that is missing has a value.
func withDefault(raw json.RawMessage, name, value string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || all[name] != nil {
		return raw
	}
	if out, err := withMember(raw, name, json.RawMessage(value)); err == nil {
		return out
	}
	return raw
}

// writeOpening returns the params with what was changed.
func (n *proxyNode) writeOpening(raw json.RawMessage, before, after *ProxyOpening) (_ json.RawMessage, err error) {
	set := func(name string, was, is json.RawMessage) {
		if err == nil && !bytes.Equal(was, is) {
			raw, err = withMember(raw, name, is)
		}
	}
	text := func(v any) json.RawMessage {
		b, e := json.Marshal(v)
		if err == nil {
			err = e
		}
		return b
	}
	set("cwd", text(before.Cwd), text(after.Cwd))
	set("additionalDirectories", text(before.AdditionalDirectories), text(after.AdditionalDirectories))
	set("_meta", before.Meta, after.Meta)
	was, e := n.encodeServers(before.MCPServers)
	is, e2 := n.encodeServers(after.MCPServers)
	err = errors.Join(err, e, e2)
	set("mcpServers", was, is)
	set("systemPrompt", n.encodeSystemPrompt(before.SystemPrompt), n.encodeSystemPrompt(after.SystemPrompt))
	return raw, err
}

func (n *proxyNode) encodeSystemPrompt(p *SystemPrompt) json.RawMessage {
	switch {
	case p == nil:
		return nil
	case n.version.Load() == 1:
		return encoded(translate.SystemPromptToV1(p))
	}
	return encoded(p)
}

// encodeServers encodes MCP servers in the version of the chain.
func (n *proxyNode) encodeServers(list []MCPServer) (json.RawMessage, error) {
	if n.version.Load() != 1 {
		return appendAll(list)
	}
	v1, err := translate.MCPServersToV1(list)
	if err != nil {
		return nil, err
	}
	return appendAll(v1)
}
