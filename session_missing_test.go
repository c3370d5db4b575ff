package acp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// TestIsSessionNotFound has what agents answer to session/load and
// session/resume of a session they do not have, and what they answer in other
// cases.
func TestIsSessionNotFound(t *testing.T) {
	tests := []struct {
		code    int
		message string
		data    string
		want    bool
	}{
		// The protocol's own way.
		{-32002, "Resource not found", `{"sessionId":"nosuchid"}`, true},
		{-32002, "", "", true},
		// Seen with real agents.
		{-32602, "Invalid params: Unknown sessionId: nosuchid", "", true},
		{-32602, "Invalid params", `"Unknown sessionId: nosuchid"`, true},
		{-32602, "Invalid params", `{"message":"Session not found: nosuchid"}`, true},
		{-32603, "Internal error", `{"details":"Invalid session identifier \"nosuchid\". Searched for sessions in /home/u/.gemini"}`, true},
		{-32603, "Internal error", `{"details":"No conversation found with session ID: nosuchid"}`, true},
		{-32603, "Internal error: no rollout found for thread id nosuchid", "", true},
		{-32603, "Internal error", `{"details":"no rollout found for conversation id nosuchid"}`, true},
		// The same in other words.
		{-32603, "Session nosuchid not found", "", true},
		{-32603, "session with id \"nosuchid\" does not exist", "", true},
		{-32603, "Session ID 'nosuchid' was not found", "", true},
		{-32000 - 50, "SessionNotFound", "", true},
		{-32600, "session_not_found", "", true},
		{-32603, "Could not find session nosuchid", "", true},
		{-32603, "Internal error", `{"error":{"message":"No session with id nosuchid"}}`, true},
		{-32603, "Not found: session nosuchid", "", true},
		{-32603, "Internal error", `{"message":"thread nosuchid has expired","session":"conversation x no longer exists"}`, true},
		// Data that names the field.
		{-32602, "Invalid params", `{"path":"params.sessionId","reason":"invalid"}`, true},
		{-32602, "Invalid params", `{"_errors":[],"sessionId":{"_errors":["Invalid uuid"]}}`, true},
		{-32603, "Internal error", `{"sessionId":"nosuchid"}`, false},
		{-32602, "Invalid params", `{"sessionId":"s","cwd":{"_errors":["not absolute"]}}`, false},
		// The session is there, or nothing is known about it.
		{-32602, "Invalid params", "", false},
		{-32603, "Internal error", "", false},
		{-32603, "Internal error", `{"correlationId":"abc"}`, false},
		{-32602, "Invalid params", `{"path":"params.cwd","reason":"must be absolute"}`, false},
		{-32602, "Session s is already loaded", "", false},
		{-32602, "Invalid params", `{"sessionId":"s","reason":"Session s is already open"}`, false},
		{-32603, "session s is locked by another process, lock file not found", "", false},
		{-32603, "Error loading session s: MCP server foo not found", "", false},
		{-32603, "Invalid session configuration", "", false},
		{-32603, "Failed to load session s: spawn node ENOENT", "", false},
		{-32603, "No API key found", "", false},
		{-32000, "Authentication required", `"no session found"`, false},
		{-32601, "Method not found", `{"method":"session/load"}`, false},
		{-32601, "session/load not found", "", false},
		{-32800, "Request cancelled", "", false},
		// Bounds.
		{-32603, strings.Repeat("x", maxErrorText) + " unknown session", "", false},
		{-32603, "Internal error", `[[[[[["unknown session"`, true},
	}
	for _, tt := range tests {
		e := &jsonrpc.Error{Code: tt.code, Message: tt.message, Data: []byte(tt.data)}
		if got := IsSessionNotFound(fmt.Errorf("restore: %w", e)); got != tt.want {
			t.Errorf("%d %.60s %s: %v", tt.code, tt.message, tt.data, got)
		}
	}
	for _, err := range []error{nil, errors.New("session not found"), jsonrpc.ErrClosed, ErrSessionClosed} {
		if IsSessionNotFound(err) {
			t.Errorf("%v: is one, though no peer said it", err)
		}
	}
	if !IsSessionNotFound(SessionNotFound("s")) {
		t.Error("SessionNotFound is none")
	}
}

func FuzzIsSessionNotFound(f *testing.F) {
	f.Add(-32603, "Internal error", []byte(`{"details":"unknown session"}`))
	f.Fuzz(func(t *testing.T, code int, message string, data []byte) {
		_ = IsSessionNotFound(&jsonrpc.Error{Code: code, Message: message, Data: data})
	})
}
