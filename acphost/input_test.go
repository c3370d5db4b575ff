package acphost_test

import (
	"context"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acptest"
)

// TestPermissionCommand: a command that an agent asks about is known for certain if it is in the input of
// the tool call, which it is if the call has no input, and in version 2 in any case.
func TestPermissionCommand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		input  any
		v1, v2 bool // whether the command is certain
	}{
		{"no input", nil, true, true},
		{"a command in it", map[string]any{"command": "ls", "timeout": 3}, true, true},
		{"of its own", map[string]any{"script": "list"}, false, true},
	} {
		for version, want := range map[int]bool{1: tt.v1, 2: tt.v2} {
			t.Run(tt.name, func(t *testing.T) {
				var got acphost.Request
				agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					turn.ToolCall(acp.ToolCall{Title: "runs", Kind: acp.ToolKindExecute, Input: tt.input}).Permit(acp.Permission{Command: "ls"})
					return acp.StopEndTurn, nil
				}}
				client := &acp.Client{
					MinVersion: version, MaxVersion: version,
					RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
						got = acphost.RequestOf(r)
						return r.Allow(), nil
					},
				}
				conn, _ := acptest.Pair(t, agent, client)
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
					t.Fatal(err)
				}
				command, certain := got.Shows()
				if command != "ls" || certain != want {
					t.Errorf("version %d: %q, certain %t; want %t", version, command, certain, want)
				}
			})
		}
	}
}
