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

// mcpVersion is the version of the Model Context Protocol that messages over
// this connection have (S107).
const mcpVersion = "2026-07-28"

// An MCPFailure is the error an MCP server answered with. It is not an error of
// this protocol (S105).
type MCPFailure struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the message and the code.
func (e *MCPFailure) Error() string { return fmt.Sprintf("mcp: %s (code %d)", e.Message, e.Code) }

// mcpCalls are the calls to MCP servers of the client that wait for an answer.
type mcpCalls struct {
	mu   sync.Mutex
	note map[MCPRequestID]func(method string, params json.RawMessage)
}

func (m *mcpCalls) add(id MCPRequestID, note func(string, json.RawMessage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.note == nil {
		m.note = map[MCPRequestID]func(string, json.RawMessage){}
	}
	m.note[id] = note
}

func (m *mcpCalls) remove(id MCPRequestID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.note, id)
}

// notify passes a notification of a server on to the call it belongs to. What
// belongs to none is late, and ignored (S104).
func (m *mcpCalls) notify(n *acpv2.MessageMCPNotification) {
	m.mu.Lock()
	note := m.note[n.RequestID]
	m.mu.Unlock()
	if note != nil {
		note(n.Method, n.Params)
	}
}

// CallMCP calls an MCP server that the client offered over this connection, as
// an [*MCPServerACP] among the session's servers. params is encoded by
// encoding/json and has to be an object, or nil; what every MCP request must say
// in its _meta is added. Until the answer note, which may be nil, gets the
// server's notifications in order. A server's error is an [*MCPFailure].
// Experimental.
func (s *AgentSession) CallMCP(ctx context.Context, server MCPServerACPID, method string, params any, note func(method string, params json.RawMessage)) (json.RawMessage, error) {
	if !s.c.agent.Load().MCP.ACP {
		return nil, clientLacks("mcp/message")
	}
	raw, err := s.mcpParams(params)
	if err != nil {
		return nil, fmt.Errorf("acp: params of mcp method %s: %w", method, err)
	}
	id := MCPRequestID(rand.Text())
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
func (s *AgentSession) mcpParams(params any) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if params != nil {
		data, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &fields); err != nil {
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
	info := s.c.agent.Load().Info
	set("io.modelcontextprotocol/protocolVersion", mcpVersion)
	set("io.modelcontextprotocol/clientInfo", map[string]string{"name": info.Name, "version": info.Version})
	set("io.modelcontextprotocol/clientCapabilities", struct{}{})
	var err error
	if fields["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
