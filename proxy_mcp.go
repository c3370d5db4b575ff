package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// proxyServers are the MCP servers of a proxy in one chain, and those that it bridges.
type proxyServers struct {
	node    *proxyNode
	offered clientMCP // the proxy's own, which the agent asks over this protocol
	calls   mcpCalls  // to servers of the client that are bridged

	mu               sync.Mutex
	acp, http, stdio bool // what the successor takes
	servers          map[acpv2.MCPServerACPID]*ProxyMCP
	sessions         map[*ProxySession]*proxyDeclared
}

// proxyDeclared is what a session was opened with.
type proxyDeclared struct {
	own  []MCPServer
	stop []func()
}

// needed reports whether the proxy has to do with MCP servers.
func (s *proxyServers) needed() bool { return len(s.node.p.MCP) > 0 || s.node.p.BridgeMCP != nil }

// advertise notes what the successor takes, and tells the client what the proxy adds to it.
func (s *proxyServers) advertise(in *ProxyInit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acp, s.http, s.stdio = false, false, false
	switch {
	case in.ResultV1 != nil:
		m := &in.ResultV1.AgentCapabilities.MCPCapabilities
		s.acp, s.http, s.stdio = m.ACP, m.HTTP, true
		m.ACP = m.ACP || s.node.p.BridgeMCP != nil
	case in.ResultV2 != nil:
		session := in.ResultV2.Capabilities.Session
		if session == nil || session.MCP == nil {
			return
		}
		m := session.MCP
		s.acp, s.http, s.stdio = m.ACP != nil, m.HTTP != nil, m.Stdio != nil
		if m.ACP == nil && s.node.p.BridgeMCP != nil && (s.http || s.stdio) {
			m.ACP = new(acpv2.MCPACPCapabilities)
		}
	}
}

// declare adds the proxy's servers to what a session is opened with, and puts others in the
// place of those that the agent does not take.
func (s *proxyServers) declare(
	ctx context.Context, session *ProxySession, opening *ProxyOpening, params json.RawMessage,
) (json.RawMessage, error) {
	if !s.needed() {
		return params, nil
	}
	s.undeclare(session)
	s.mu.Lock()
	many := len(s.sessions) >= maxProxySessions
	s.mu.Unlock()
	if many {
		err := fmt.Errorf("%d sessions with MCP servers of a proxy are open, which is the most", maxProxySessions)
		return nil, s.node.internal(opening.Method, err, nil)
	}
	declared := new(proxyDeclared)
	list := slices.Clone(opening.MCPServers)
	changed := false
	if bridge := s.node.p.BridgeMCP; bridge != nil && !s.acp {
		for i, server := range list {
			if acp, ok := server.(*MCPServerACP); ok {
				list[i] = s.bridge(ctx, declared, acp.Name, func(
					ctx context.Context, method string, params json.RawMessage, note func(string, json.RawMessage),
				) (json.RawMessage, error) {
					return s.callClient(ctx, acp.ServerID, method, params, note)
				})
				changed = true
			}
		}
		list = slices.DeleteFunc(list, func(v MCPServer) bool { return v == nil })
	}
	for i := range s.node.p.MCP {
		own := &s.node.p.MCP[i]
		acp := &MCPServerACP{Name: own.Name, ServerID: MCPServerACPID("proxy-" + rand.Text())}
		var server MCPServer = acp
		if s.acp {
			declared.own = append(declared.own, acp)
			s.mu.Lock()
			if s.servers == nil {
				s.servers = map[acpv2.MCPServerACPID]*ProxyMCP{}
			}
			s.servers[acp.ServerID] = own
			s.mu.Unlock()
		} else if server = s.bridge(ctx, declared, own.Name, s.callOwn(own)); server == nil {
			continue
		}
		list = append(list, server)
		changed = true
	}
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = map[*ProxySession]*proxyDeclared{}
	}
	s.sessions[session] = declared
	s.mu.Unlock()
	if err := s.offered.offer(declared.own); err != nil {
		return nil, s.node.internal(opening.Method, err, nil)
	}
	if !changed {
		return params, nil
	}
	raw, err := s.node.encodeServers(list)
	if err != nil {
		return nil, s.node.internal(opening.Method, err, nil)
	}
	return withMember(params, "mcpServers", raw)
}

// proxyMCPCall is the function Call of an [MCPBridgeRequest].
type proxyMCPCall = func(
	ctx context.Context, method string, params json.RawMessage, note func(string, json.RawMessage),
) (json.RawMessage, error)

// bridge makes a server reachable in another way, or returns nil.
func (s *proxyServers) bridge(ctx context.Context, declared *proxyDeclared, name string,
	call proxyMCPCall) MCPServer {
	n := s.node
	if n.p.BridgeMCP == nil {
		n.log.Warn("acp: the agent does not take the MCP server of a proxy", "proxy", n.p.name(), "server", name)
		return nil
	}
	whole := func(ctx context.Context, method string, params json.RawMessage, note func(string, json.RawMessage)) (json.RawMessage, error) {
		if res, ok := mcpHandshake(name, method, params); ok {
			return res, nil
		}
		params, err := withMCPMeta(params, nil)
		if err != nil {
			return nil, jsonrpc.ErrInvalidParams
		}
		return call(ctx, method, params, note)
	}
	server, stop, err := n.p.BridgeMCP(ctx, &MCPBridgeRequest{Name: name, HTTP: s.http, Stdio: s.stdio, Call: whole})
	if stop != nil {
		declared.stop = append(declared.stop, stop)
	}
	if err != nil || server == nil {
		n.log.Warn("acp: an MCP server cannot be bridged for the agent", "proxy", n.p.name(), "server", name, "error", err)
		return nil
	}
	return server
}

// callOwn asks a server of the proxy's.
func (s *proxyServers) callOwn(own *ProxyMCP) proxyMCPCall {
	return func(
		ctx context.Context, method string, params json.RawMessage, note func(string, json.RawMessage),
	) (json.RawMessage, error) {
		call := &MCPCall{RequestID: acpv2.MCPRequestID(rand.Text()), Method: method, Params: params,
			notify: func(_ context.Context, m *acpv2.MessageMCPNotification) error {
				if note != nil {
					note(m.Method, m.Params)
				}
				return nil
			}}
		res, err := s.handle(ctx, own, call)
		call.mu.Lock()
		call.done = true
		call.mu.Unlock()
		return res, err
	}
}

// handle runs a server's function.
func (s *proxyServers) handle(ctx context.Context, own *ProxyMCP, call *MCPCall) (res json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.node.internal(call.Method, fmt.Errorf("panic: %v", p), debug.Stack())
		}
	}()
	if own.Handle == nil {
		return nil, errors.New("acp: an MCP server of a proxy has no Handle")
	}
	return own.Handle(ctx, call)
}

// callClient asks a server that the client, or a proxy before this one, has declared.
func (s *proxyServers) callClient(ctx context.Context, server acpv2.MCPServerACPID, method string, params json.RawMessage,
	note func(string, json.RawMessage)) (json.RawMessage, error) {
	id := acpv2.MCPRequestID(rand.Text())
	if note == nil {
		note = func(string, json.RawMessage) {}
	}
	s.calls.add(id, note)
	defer s.calls.remove(id)
	return askMCP(ctx, s.node.up, &acpv2.MessageMCPRequest{ServerID: server, RequestID: id, Method: method, Params: params})
}

// noted takes a notification of a server that is bridged. It reports false for others.
func (s *proxyServers) noted(params json.RawMessage) bool {
	if s.node.p.BridgeMCP == nil {
		return false
	}
	var n acpv2.MessageMCPNotification
	if n.UnmarshalJSON(params) != nil {
		return false
	}
	s.calls.mu.Lock()
	_, mine := s.calls.note[n.RequestID]
	s.calls.mu.Unlock()
	if mine {
		s.calls.notify(&n)
	}
	return mine
}

// own returns the proxy's server that a request is for, or nil.
func (s *proxyServers) own(params json.RawMessage) *ProxyMCP {
	if len(s.node.p.MCP) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[acpv2.MCPServerACPID(memberOf(params, "serverId"))]
}

// serve answers a request of the agent's over this protocol.
func (s *proxyServers) serve(ctx context.Context, own *ProxyMCP, params json.RawMessage) (json.RawMessage, error) {
	p := new(acpv2.MessageMCPRequest)
	if err := p.UnmarshalJSON(params); err != nil {
		return nil, decodeError(err)
	}
	call := &MCPCall{notify: func(ctx context.Context, n *acpv2.MessageMCPNotification) error {
		raw := encoded(n)
		return s.node.down.notify(ctx, proxied{method: acpv2.NotificationMCPMessage.Name, params: &raw})
	}}
	res, err := s.offered.answer(ctx, p, call, s.node.log, func() (json.RawMessage, error) { return s.handle(ctx, own, call) })
	if err != nil {
		return nil, err
	}
	if s.node.version.Load() == 1 {
		v1 := translate.MCPResponseToV1(*res)
		return (&v1).AppendJSON(nil)
	}
	return res.AppendJSON(nil)
}

// undeclare ends the servers of a session that was closed, or is opened again.
func (s *proxyServers) undeclare(session *ProxySession) {
	s.mu.Lock()
	declared := s.sessions[session]
	delete(s.sessions, session)
	if declared != nil {
		for _, server := range declared.own {
			delete(s.servers, server.(*MCPServerACP).ServerID)
		}
	}
	s.mu.Unlock()
	if declared == nil {
		return
	}
	s.offered.retract(declared.own)
	for _, stop := range declared.stop {
		stop()
	}
}

// close ends the servers of all sessions.
func (s *proxyServers) close() {
	s.mu.Lock()
	var all []*ProxySession
	for session := range s.sessions {
		all = append(all, session)
	}
	s.mu.Unlock()
	for _, session := range all {
		s.undeclare(session)
	}
}
