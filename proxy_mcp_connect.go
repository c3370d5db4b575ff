package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// The methods of MCP over this protocol as the Rust SDK had it in August 2026: an agent connects
// to a server, and its messages name the connection.
const (
	methodMCPConnect    = "mcp/connect"
	methodMCPDisconnect = "mcp/disconnect"
)

// Bounds of that form, for one agent: agents may leave connections open that they have
// forgotten, so the one that was opened first goes when there is no room for another one. Of the
// requests that run at once, one more is refused.
const (
	maxMCPConnections = 1024
	maxMCPCalls       = 1024
)

// mcpConnections answers an agent that speaks MCP in the form with connections, for servers
// that speak the present one.
type mcpConnections struct {
	mu      sync.Mutex
	servers map[string]acpv2.MCPServerACPID // by connection
	opened  []string                        // these connections, the oldest first
	calls   map[acpv2.MCPRequestID]string   // the connections of requests that run
}

// remove forgets a connection. It reports false if there is none of that name. The caller holds mu.
func (c *mcpConnections) remove(id string) bool {
	if _, known := c.servers[id]; !known {
		return false
	}
	delete(c.servers, id)
	c.opened = slices.DeleteFunc(c.opened, func(other string) bool { return other == id })
	return true
}

// mcpParams are the params of its methods.
type mcpParams struct {
	ServerID     acpv2.MCPServerACPID `json:"serverId,omitempty"`
	ConnectionID string               `json:"connectionId,omitempty"`
	Method       string               `json:"method,omitempty"`
	Params       json.RawMessage      `json:"params,omitempty"`
}

// toClient is the way of what the agent sends.
type mcpToClient struct {
	*mcpConnections
	up proxyLink
}

// mcpToAgent is the way of what servers send.
type mcpToAgent struct {
	*mcpConnections
	down proxyLink
}

func (l mcpToClient) notify(ctx context.Context, m proxied) error {
	if m.method == acpv2.NotificationMCPMessage.Name && memberOf(m.raw(), "connectionId") != nil {
		return nil // servers of the present form take none
	}
	return l.up.notify(ctx, m)
}

func (l mcpToClient) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	switch m.method {
	case methodMCPConnect, methodMCPDisconnect, acpv2.MethodMCPMessage.Name:
	default:
		return l.up.request(ctx, m)
	}
	var p mcpParams
	if json.Unmarshal(m.raw(), &p) != nil {
		return nil, jsonrpc.ErrInvalidParams
	}
	switch {
	case m.method == methodMCPConnect:
		return l.connect(p.ServerID)
	case m.method == methodMCPDisconnect:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.remove(p.ConnectionID) {
			return nil, invalidParams("connectionId", "unknown")
		}
		return json.RawMessage("{}"), nil
	case p.ConnectionID == "": // the present form
		return l.up.request(ctx, m)
	}
	return l.message(ctx, m, &p)
}

func (l mcpToClient) connect(server acpv2.MCPServerACPID) (json.RawMessage, error) {
	if server == "" {
		return nil, invalidParams("serverId", "missing")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.opened) >= maxMCPConnections {
		l.remove(l.opened[0])
	}
	if l.servers == nil {
		l.servers = map[string]acpv2.MCPServerACPID{}
	}
	id := rand.Text()
	l.servers[id] = server
	l.opened = append(l.opened, id)
	return json.Marshal(mcpParams{ConnectionID: id})
}

// message asks a server in the present form.
func (l mcpToClient) message(ctx context.Context, m proxied, p *mcpParams) (json.RawMessage, error) {
	m.passedOn()
	id := acpv2.MCPRequestID(rand.Text())
	l.mu.Lock()
	server, known := l.servers[p.ConnectionID]
	busy := len(l.calls) >= maxMCPCalls
	if known && !busy {
		if l.calls == nil {
			l.calls = map[acpv2.MCPRequestID]string{}
		}
		l.calls[id] = p.ConnectionID
	}
	l.mu.Unlock()
	switch {
	case !known:
		return nil, invalidParams("connectionId", "unknown")
	case busy:
		return nil, jsonrpc.Errorf(codeMCPBusy, "too many MCP requests at once")
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, id)
	}()
	if res, ok := mcpHandshake(string(server), p.Method, p.Params); ok {
		return res, nil
	}
	params, err := withMCPMeta(p.Params, nil)
	if err != nil {
		return nil, jsonrpc.ErrInvalidParams
	}
	res, err := askMCP(ctx, l.up, &acpv2.MessageMCPRequest{ServerID: server, RequestID: id, Method: p.Method, Params: params})
	if failure, ok := err.(*MCPFailure); ok {
		return nil, &jsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	}
	return res, err
}

func (l mcpToAgent) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	return l.down.request(ctx, m)
}

// notify names the connection in a notification of a server.
func (l mcpToAgent) notify(ctx context.Context, m proxied) error {
	if m.method != acpv2.NotificationMCPMessage.Name {
		return l.down.notify(ctx, m)
	}
	l.mu.Lock()
	connection, mine := l.calls[acpv2.MCPRequestID(memberOf(m.raw(), "requestId"))]
	l.mu.Unlock()
	if !mine {
		return l.down.notify(ctx, m)
	}
	var p mcpParams
	if err := json.Unmarshal(m.raw(), &p); err != nil {
		return fmt.Errorf("acp: a notification of an MCP server: %w", err)
	}
	raw, err := json.Marshal(mcpParams{ConnectionID: connection, Method: p.Method, Params: p.Params})
	if err != nil {
		return err
	}
	return l.down.notify(ctx, proxied{method: m.method, params: (*json.RawMessage)(&raw)})
}

// askMCP asks an MCP server over this protocol.
func askMCP(ctx context.Context, link proxyLink, req *acpv2.MessageMCPRequest) (json.RawMessage, error) {
	raw := encoded(req)
	res, err := link.request(ctx, proxied{method: acpv2.MethodMCPMessage.Name, params: &raw})
	if err != nil {
		return nil, err
	}
	var r acpv2.MessageMCPResponse
	if err := r.UnmarshalJSON(res); err != nil {
		return nil, err
	}
	if e := r.Error; e != nil && r.Result == nil {
		return nil, &MCPFailure{Code: int(e.Code), Message: e.Message, Data: e.Data}
	}
	return r.Result, nil
}

// mcpHandshake answers what servers over this protocol are not asked, and clients of MCP ask all
// others.
func mcpHandshake(name, method string, params json.RawMessage) (res json.RawMessage, ok bool) {
	switch method {
	case "initialize":
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(params, &p) != nil || p.ProtocolVersion == "" {
			p.ProtocolVersion = "2025-06-18"
		}
		res, err := json.Marshal(map[string]any{
			"protocolVersion": p.ProtocolVersion,
			"capabilities":    map[string]any{"tools": struct{}{}},
			"serverInfo":      map[string]string{"name": name, "version": "1"},
		})
		return res, err == nil
	case "ping":
		return json.RawMessage("{}"), true
	}
	return nil, false
}
