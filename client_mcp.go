package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// Codes of the binding of MCP to this protocol (S106).
const (
	codeMCPBusy     = -33000 // too many requests at once
	codeMCPNoServer = -33001
	codeMCPFailed   = -33002
)

const (
	// maxMCPRequests bounds the requests to one MCP server that run at once;
	// more are refused (S106).
	maxMCPRequests = 64
	// maxMCPServers bounds the servers that the open sessions of a connection offer.
	maxMCPServers = 4096
)

// An MCPCall is a request of the agent to an MCP server that this client
// provides: one of those that sessions were opened with as [MCPServerACP]. The
// hook's result is MCP's result; nil is sent as null. An [*MCPFailure] is sent as
// the server's error. Any other error is reported to the agent as a failure of
// the server, without its text. ctx is done when the agent cancels the request.
// At most 64 requests to one server run at once. Experimental.
type MCPCall struct {
	Server    acpv2.MCPServerACPID // the one that is asked, of [SessionConfig.MCPServers]
	RequestID acpv2.MCPRequestID   // the agent's, which Notify repeats
	Method    string               // of MCP, such as tools/call
	Params    json.RawMessage      // an object; its _meta says who calls

	notify func(ctx context.Context, n *acpv2.MessageMCPNotification) error
	mu     sync.Mutex
	done   bool
}

var errMCPAnswered = errors.New("acp: the mcp request has been answered")

// Notify sends a notification that belongs to the request, such as progress. It
// fails once the request has been answered. It may be called from any goroutine.
func (m *MCPCall) Notify(ctx context.Context, method string, params json.RawMessage) error {
	// Held while sending, so that nothing is sent after the answer.
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return errMCPAnswered
	}
	return m.notify(ctx, &acpv2.MessageMCPNotification{
		ServerID: m.Server, RequestID: m.RequestID, Method: method, Params: params,
	})
}

// clientMCP are the MCP servers that a connection has offered, with the requests
// that run.
type clientMCP struct {
	mu      sync.Mutex
	servers map[acpv2.MCPServerACPID]*clientMCPServer
}

// clientMCPServer is a server that sessions were opened with.
type clientMCPServer struct {
	sessions int // that offer it, or are being opened with it
	active   map[acpv2.MCPRequestID]struct{}
}

// offer records the servers that a session is opened with. An id names the same server
// for all sessions that are open at a time.
func (m *clientMCP) offer(list []MCPServer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	added := 0
	for _, s := range list {
		if acp, ok := s.(*MCPServerACP); ok && m.servers[acp.ServerID] == nil {
			added++
		}
	}
	if len(m.servers)+added > maxMCPServers {
		return fmt.Errorf("acp: the open sessions offer %d mcp servers of this client, which is the most: close some", len(m.servers))
	}
	if m.servers == nil {
		m.servers = map[acpv2.MCPServerACPID]*clientMCPServer{}
	}
	for _, s := range list {
		if acp, ok := s.(*MCPServerACP); ok {
			server := m.servers[acp.ServerID]
			if server == nil {
				server = &clientMCPServer{active: map[acpv2.MCPRequestID]struct{}{}}
				m.servers[acp.ServerID] = server
			}
			server.sessions++
		}
	}
	return nil
}

// retract undoes offer, when the session has ended or is opened with other servers.
func (m *clientMCP) retract(list []MCPServer) {
	if len(list) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range list {
		acp, ok := s.(*MCPServerACP)
		if !ok || m.servers[acp.ServerID] == nil {
			continue
		}
		if server := m.servers[acp.ServerID]; server.sessions > 1 {
			server.sessions--
		} else {
			delete(m.servers, acp.ServerID)
		}
	}
}

// begin enters a request, or returns why it is refused (S106).
func (m *clientMCP) begin(server acpv2.MCPServerACPID, id acpv2.MCPRequestID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.servers[server]
	if known == nil {
		return jsonrpc.Errorf(codeMCPNoServer, "MCP server is not available").WithData(map[string]any{"serverId": server})
	}
	active := known.active
	if _, ok := active[id]; ok {
		return jsonrpc.ErrInvalidParams.WithData(map[string]any{"serverId": server, "requestId": id, "reason": "request id is in use"})
	}
	if len(active) >= maxMCPRequests {
		return jsonrpc.Errorf(codeMCPBusy, "too many MCP requests at once").WithData(map[string]any{"serverId": server})
	}
	active[id] = struct{}{}
	return nil
}

func (m *clientMCP) end(server acpv2.MCPServerACPID, id acpv2.MCPRequestID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.servers[server]; s != nil {
		delete(s.active, id)
	}
}

// callMCP is the handler of the request mcp/message.
func (c *ClientConn) callMCP(ctx context.Context, p *acpv2.MessageMCPRequest) (*acpv2.MessageMCPResponse, error) {
	call := &MCPCall{notify: func(ctx context.Context, n *acpv2.MessageMCPNotification) error {
		return c.explain(c.proto().mcpNotify(ctx, n))
	}}
	return c.mcp.answer(ctx, p, call, c.client.Logger, func() (result json.RawMessage, err error) {
		err = errHookPanicked
		c.hook("MCP", func() { result, err = c.client.MCP(ctx, call) })
		return result, err
	})
}

// answer has a server's function answer a request.
func (m *clientMCP) answer(
	ctx context.Context, p *acpv2.MessageMCPRequest, call *MCPCall, log *slog.Logger, run func() (json.RawMessage, error),
) (*acpv2.MessageMCPResponse, error) {
	if err := m.begin(p.ServerID, p.RequestID); err != nil {
		return nil, err
	}
	defer m.end(p.ServerID, p.RequestID)
	if refused := clientCheckMCP(p.Params); refused != nil {
		return &acpv2.MessageMCPResponse{Error: refused}, nil
	}
	call.Server, call.RequestID, call.Method, call.Params = p.ServerID, p.RequestID, p.Method, p.Params
	result, err := run()
	call.mu.Lock()
	call.done = true
	call.mu.Unlock()
	if err == nil && result == nil {
		result = json.RawMessage("null")
	}
	if err == nil && !json.Valid(result) {
		err = errors.New("the result is not JSON")
	}
	var failure *MCPFailure
	var binding *mcpBindingError
	switch {
	case err == nil:
		return &acpv2.MessageMCPResponse{Result: result}, nil
	case errors.As(err, &binding):
		return nil, binding.said
	case errors.As(err, &failure):
		return &acpv2.MessageMCPResponse{Error: &acpv2.MCPError{Code: int32(failure.Code), Message: failure.Message, Data: failure.Data}}, nil
	case ctx.Err() != nil:
		return nil, jsonrpc.ErrRequestCancelled
	}
	// An error of the hook is never one of the binding, and its text is withheld
	// from the agent.
	log.Error("acp: mcp server failed", "method", p.Method, "error", err)
	return nil, jsonrpc.Errorf(codeMCPFailed, "MCP server failed")
}

// mcpBindingError is the error of a hook that has passed the request on and was
// answered with an error of the binding.
type mcpBindingError struct{ said *jsonrpc.Error }

// Error returns what was said.
func (e *mcpBindingError) Error() string { return e.said.Error() }

// clientCheckMCP looks for what every MCP request must have in its _meta (S107).
func clientCheckMCP(params json.RawMessage) *acpv2.MCPError {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		p.Meta = nil
	}
	missing := func(name string) *acpv2.MCPError {
		return &acpv2.MCPError{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: params._meta lacks " + name}
	}
	var version string
	if json.Unmarshal(p.Meta[mcpMetaVersion], &version) != nil || version == "" {
		return missing(mcpMetaVersion)
	}
	if version != mcpVersion {
		data, _ := json.Marshal(map[string]any{"supported": []string{mcpVersion}, "requested": version})
		return &acpv2.MCPError{Code: jsonrpc.CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: data}
	}
	if caps := bytes.TrimSpace(p.Meta[mcpMetaCapabilities]); len(caps) == 0 || caps[0] != '{' {
		return missing(mcpMetaCapabilities)
	}
	return nil
}

const (
	mcpMetaVersion      = "io.modelcontextprotocol/protocolVersion"
	mcpMetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)
