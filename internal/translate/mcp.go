package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// typeSSE is the transport of MCP servers that only version 1 knows.
const typeSSE = "sse"

// MCPServersFromV1 converts the MCP servers of a session. One with the
// transport sse becomes an unknown server of that type. The error is not nil
// only if such a server cannot be encoded.
func MCPServersFromV1(list []acpv1.MCPServer) ([]acpv2.MCPServer, error) {
	var failed error
	out := each(list, func(s acpv1.MCPServer) acpv2.MCPServer {
		switch s := s.(type) {
		case *acpv1.MCPServerStdio:
			return &acpv2.MCPServerStdio{Name: s.Name, Command: s.Command, Args: s.Args, Env: each(s.Env, envFromV1),
				Meta: s.Meta, Unknown: without(s.Unknown, "type")}
		case *acpv1.MCPServerHTTP:
			return &acpv2.MCPServerHTTP{Name: s.Name, URL: s.URL, Headers: each(s.Headers, headerFromV1), Meta: s.Meta, Unknown: s.Unknown}
		case *acpv1.MCPServerACP:
			return &acpv2.MCPServerACP{Name: s.Name, ServerID: acpv2.MCPServerACPID(s.ServerID), Meta: s.Meta, Unknown: s.Unknown}
		case *acpv1.MCPServerSSE:
			raw, err := s.AppendJSON(nil)
			if err != nil {
				failed = err
			}
			return &acpv2.UnknownMCPServer{Type: typeSSE, Raw: raw}
		case *acpv1.UnknownMCPServer:
			return &acpv2.UnknownMCPServer{Type: s.Type, Raw: s.Raw}
		}
		return nil
	})
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// MCPServersToV1 converts the MCP servers of a session. An unknown server of
// type sse becomes what version 1 has for it; the error is not nil if it is
// malformed.
func MCPServersToV1(list []acpv2.MCPServer) ([]acpv1.MCPServer, error) {
	var failed error
	out := each(list, func(s acpv2.MCPServer) acpv1.MCPServer {
		switch s := s.(type) {
		case *acpv2.MCPServerStdio:
			return &acpv1.MCPServerStdio{Name: s.Name, Command: s.Command, Args: s.Args, Env: each(s.Env, envToV1),
				Meta: s.Meta, Unknown: s.Unknown}
		case *acpv2.MCPServerHTTP:
			return &acpv1.MCPServerHTTP{Name: s.Name, URL: s.URL, Headers: each(s.Headers, headerToV1), Meta: s.Meta, Unknown: s.Unknown}
		case *acpv2.MCPServerACP:
			return &acpv1.MCPServerACP{Name: s.Name, ServerID: acpv1.MCPServerACPID(s.ServerID), Meta: s.Meta, Unknown: s.Unknown}
		case *acpv2.UnknownMCPServer:
			if s.Type != typeSSE {
				return &acpv1.UnknownMCPServer{Type: s.Type, Raw: s.Raw}
			}
			v, err := acpv1.UnmarshalMCPServer(s.Raw)
			if err != nil {
				failed = err
			}
			return v
		}
		return nil
	})
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

func envFromV1(e acpv1.EnvVariable) acpv2.EnvVariable { return acpv2.EnvVariable(e) }

func envToV1(e acpv2.EnvVariable) acpv1.EnvVariable { return acpv1.EnvVariable(e) }

func headerFromV1(h acpv1.HTTPHeader) acpv2.HTTPHeader { return acpv2.HTTPHeader(h) }

func headerToV1(h acpv2.HTTPHeader) acpv1.HTTPHeader { return acpv1.HTTPHeader(h) }

// MCPRequestFromV1 converts the request mcp/message.
func MCPRequestFromV1(r acpv1.MessageMCPRequest) acpv2.MessageMCPRequest {
	return acpv2.MessageMCPRequest{ServerID: acpv2.MCPServerACPID(r.ServerID), RequestID: acpv2.MCPRequestID(r.RequestID),
		Method: r.Method, Params: r.Params, Meta: r.Meta, Unknown: r.Unknown}
}

// MCPRequestToV1 converts the request mcp/message.
func MCPRequestToV1(r acpv2.MessageMCPRequest) acpv1.MessageMCPRequest {
	return acpv1.MessageMCPRequest{ServerID: acpv1.MCPServerACPID(r.ServerID), RequestID: acpv1.MCPRequestID(r.RequestID),
		Method: r.Method, Params: r.Params, Meta: r.Meta, Unknown: r.Unknown}
}

// MCPResponseFromV1 converts the answer to mcp/message.
func MCPResponseFromV1(r acpv1.MessageMCPResponse) acpv2.MessageMCPResponse {
	return acpv2.MessageMCPResponse{Result: r.Result, Error: (*acpv2.MCPError)(r.Error), Meta: r.Meta, Unknown: r.Unknown}
}

// MCPResponseToV1 converts the answer to mcp/message.
func MCPResponseToV1(r acpv2.MessageMCPResponse) acpv1.MessageMCPResponse {
	return acpv1.MessageMCPResponse{Result: r.Result, Error: (*acpv1.MCPError)(r.Error), Meta: r.Meta, Unknown: r.Unknown}
}

// MCPNotificationFromV1 converts the notification mcp/message.
func MCPNotificationFromV1(n acpv1.MessageMCPNotification) acpv2.MessageMCPNotification {
	return acpv2.MessageMCPNotification{ServerID: acpv2.MCPServerACPID(n.ServerID), RequestID: acpv2.MCPRequestID(n.RequestID),
		Method: n.Method, Params: n.Params, Meta: n.Meta, Unknown: n.Unknown}
}

// MCPNotificationToV1 converts the notification mcp/message.
func MCPNotificationToV1(n acpv2.MessageMCPNotification) acpv1.MessageMCPNotification {
	return acpv1.MessageMCPNotification{ServerID: acpv1.MCPServerACPID(n.ServerID), RequestID: acpv1.MCPRequestID(n.RequestID),
		Method: n.Method, Params: n.Params, Meta: n.Meta, Unknown: n.Unknown}
}
