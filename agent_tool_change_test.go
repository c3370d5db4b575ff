package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

// TestSetChange: a change takes the place of what the call shows, in both versions.
func TestSetChange(t *testing.T) {
	for _, version := range []int{1, 2} {
		agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			call := t.ToolCall(acp.ToolCall{Title: "Edit"})
			_ = call.Text("first")
			for _, after := range []string{"b\n", "b\nc\n"} {
				_ = call.SetChange(acp.FileChange{Path: "/f", Before: "a\n", After: after})
			}
			return acp.StopEndTurn, call.Complete()
		}}
		conn, _ := acptest.Pair(t, agent, &acp.Client{MinVersion: version, MaxVersion: version})
		s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for u, err := range s.Prompt(t.Context(), acp.Text("go")).Updates() {
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := u.Update.(*acp.ToolCallUpdate); ok {
				if content, ok := c.Content.Get(); ok {
					data, err := json.Marshal(content)
					if err != nil {
						t.Fatal(err)
					}
					shown = append(shown, string(data))
				}
			}
		}
		n := len(shown)
		if n < 2 {
			t.Fatalf("v%d: shown %q", version, shown)
		}
		for i, want := range []string{`b\n`, `b\n+c`} {
			got := strings.ReplaceAll(shown[n-2+i], `b\nc`, `b\n+c`)
			if strings.Count(got, `"diff"`) != 1 || strings.Contains(got, "first") || !strings.Contains(got, want) || i == 0 && strings.Contains(got, "+c") {
				t.Errorf("v%d: %s", version, got)
			}
		}
	}
}
