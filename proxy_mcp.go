package acp

import (
	"context"
	"encoding/json"

	"github.com/goacp/acp/jsonrpc"
)

// proxyServers are the MCP servers of a proxy in one chain.
type proxyServers struct{ node *proxyNode }

// needed reports whether the proxy offers servers.
func (s *proxyServers) needed() bool { return len(s.node.p.MCP) > 0 }

// proxyServer is a server of one session.
type proxyServer struct{}

func (s *proxyServers) own(json.RawMessage) *proxyServer { return nil }

func (s *proxyServers) serve(context.Context, *proxyServer, json.RawMessage) (json.RawMessage, error) {
	return nil, jsonrpc.ErrMethodNotFound
}

func (s *proxyServers) declare(_ context.Context, _ *ProxySession, _ string, params json.RawMessage) (json.RawMessage, error) {
	return params, nil
}

func (s *proxyServers) undeclare(*ProxySession) {}
func (s *proxyServers) opened(*ProxySession)    {}
func (s *proxyServers) closed(string)           {}
func (s *proxyServers) advertise(in *ProxyInit) {}
func (s *proxyServers) close()                  {}
