package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestEcho talks to the agent in memory, in both versions of the protocol.
func TestEcho(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			agentSide, clientSide := acp.Pipe()
			served, err := agent.Connect(t.Context(), agentSide)
			if err != nil {
				t.Fatal(err)
			}
			client := acp.Client{MinVersion: version, MaxVersion: version}
			conn, err := client.Connect(t.Context(), clientSide)
			if err != nil {
				t.Fatal(err)
			}
			if conn.Version() != version || conn.Agent().Name != "echo" {
				t.Errorf("connected with %+v in version %d", conn.Agent(), conn.Version())
			}
			session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for _, prompt := range []string{"hello", "and again"} {
				reply := session.Prompt(t.Context(), acp.Text(prompt))
				if got := said(t, reply); got != prompt {
					t.Errorf("the answer to %q is %q", prompt, got)
				}
				if result, err := reply.Wait(); err != nil || result.StopReason != acp.StopEndTurn {
					t.Errorf("ended with %+v, %v", result, err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if err := served.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// said collects the text of an answer.
func said(t *testing.T, reply *acp.Reply) string {
	t.Helper()
	var text strings.Builder
	for u, err := range reply.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if chunk, ok := u.Update.(*acp.AgentMessageChunk); ok {
			text.WriteString(chunk.Content.(*acp.TextContent).Text)
		}
	}
	return text.String()
}
