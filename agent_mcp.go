package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/goacp/acp/acpv2"
)

// mcpVersion is the version of the Model Context Protocol that this connection
// carries (S107).
const mcpVersion = "2026-07-28"

// An MCPFailure is the error of an MCP server. It is not an error of the Agent
// Client Protocol.
type MCPFailure struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the message and the code.
func (e *MCPFailure) Error() string { return fmt.Sprintf("mcp: %s (code %d)", e.Message, e.Code) }

// mcpCalls are the calls to the client's MCP servers that wait for an answer.
type mcpCalls struct {
	mu   sync.Mutex
	note map[acpv2.MCPRequestID]func(method string, params json.RawMessage)
}

func (m *mcpCalls) add(id acpv2.MCPRequestID, note func(string, json.RawMessage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.note == nil {
		m.note = map[acpv2.MCPRequestID]func(string, json.RawMessage){}
	}
	m.note[id] = note
}

func (m *mcpCalls) remove(id acpv2.MCPRequestID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.note, id)
}

// notify passes a server's notification on to the call it belongs to. A late one,
// which belongs to none, is ignored (S104).
func (m *mcpCalls) notify(n *acpv2.MessageMCPNotification) {
	m.mu.Lock()
	note := m.note[n.RequestID]
	m.mu.Unlock()
	if note != nil {
		note(n.Method, n.Params)
	}
}

// CallMCP calls an MCP server that the client offered over this connection, as an
// [*MCPServerACP] among the session's servers. params is encoded by encoding/json
// and must be an object or nil; the _meta that every MCP request must have is
// added. Until the answer arrives, note, which may be nil, is called with the
// server's notifications, in order. A server's error is an [*MCPFailure].
// Experimental.
func (s *AgentSession) CallMCP(ctx context.Context, server MCPServerACPID, method string, params any, note func(method string, params json.RawMessage)) (json.RawMessage, error) {
	if !s.c.agent.Load().MCP.ACP {
		return nil, clientLacks("mcp/message")
	}
	raw, err := s.mcpParams(params)
	if err != nil {
		return nil, fmt.Errorf("acp: params of mcp method %s: %w", method, err)
	}
	id := acpv2.MCPRequestID(rand.Text())
	if note == nil {
		note = func(string, json.RawMessage) {}
	}
	s.c.calls.add(id, note)
	defer s.c.calls.remove(id)
	res, err := s.c.peer.Load().proto.callMCP(ctx, &acpv2.MessageMCPRequest{
		ServerID: server, RequestID: id, Method: method, Params: raw,
	})
	switch {
	case err != nil:
		return nil, err
	case res.Result != nil:
		return res.Result, nil
	case res.Error != nil:
		return nil, &MCPFailure{Code: int(res.Error.Code), Message: res.Error.Message, Data: res.Error.Data}
	}
	return nil, errors.New("acp: the answer to an mcp message has neither result nor error")
}

// mcpParams adds what _meta of an MCP request has to hold (S107).
func (s *AgentSession) mcpParams(params any) (raw json.RawMessage, err error) {
	if params != nil {
		if raw, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	return withMCPMeta(raw, &s.c.agent.Load().Info)
}

// withMCPMeta adds to the params of an MCP request what their _meta has to hold, unless
// that is there. The name of the client is left out if info is nil.
func withMCPMeta(params json.RawMessage, info *Implementation) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &fields); err != nil {
			return nil, err
		}
		if fields == nil {
			fields = map[string]json.RawMessage{} // it was null
		}
	}
	meta := map[string]json.RawMessage{}
	if m := fields["_meta"]; m != nil {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
	}
	set := func(name string, v any) {
		if _, ok := meta[name]; !ok {
			meta[name], _ = json.Marshal(v) // plain values always encode
		}
	}
	set("io.modelcontextprotocol/protocolVersion", mcpVersion)
	if info != nil {
		set("io.modelcontextprotocol/clientInfo", map[string]string{"name": info.Name, "version": info.Version})
	}
	set("io.modelcontextprotocol/clientCapabilities", struct{}{})
	var err error
	if fields["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
