package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

// TestSupportsMCP: what SupportsMCP leaves is what a session can be opened with, and nothing else can.
func TestSupportsMCP(t *testing.T) {
	all := []acp.MCPServer{
		&acp.MCPServerStdio{Name: "a", Command: "/a"}, &acp.MCPServerHTTP{Name: "b", URL: "http://b"},
		&acp.MCPServerACP{Name: "c", ServerID: "c"}, nil,
	}
	for _, version := range []int{1, 2} {
		for _, tt := range []struct {
			can  acp.MCPTransports
			hook bool
			want []string // of version 1, in which every agent can use standard streams
			v2   []string
		}{
			{acp.MCPTransports{}, true, []string{"a"}, nil},
			{acp.MCPTransports{Stdio: true}, true, []string{"a"}, []string{"a"}},
			{acp.MCPTransports{HTTP: true}, true, []string{"a", "b"}, []string{"b"}},
			{acp.MCPTransports{ACP: true}, true, []string{"a", "c"}, []string{"c"}},
			{acp.MCPTransports{ACP: true}, false, []string{"a"}, nil},
		} {
			t.Run(fmt.Sprintf("v%d %+v %t", version, tt.can, tt.hook), func(t *testing.T) {
				client := &acp.Client{MinVersion: version, MaxVersion: version}
				if tt.hook {
					client.MCP = func(context.Context, *acp.MCPCall) (json.RawMessage, error) { return nil, nil }
				}
				agent := &acp.Agent{MCP: tt.can, Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return "", nil }}
				conn, _ := acptest.Pair(t, agent, client)
				var names []string
				for i, m := range all {
					supports := conn.SupportsMCP(m)
					_, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir(), MCPServers: []acp.MCPServer{m}})
					if supports != (err == nil) {
						t.Errorf("%d: supports %t, %v", i, supports, err)
					}
					if supports {
						names = append(names, string(rune('a'+i)))
					}
				}
				want := tt.want
				if version == 2 {
					want = tt.v2
				}
				if !slices.Equal(names, want) {
					t.Errorf("supports %q, want %q", names, want)
				}
			})
		}
	}
}
