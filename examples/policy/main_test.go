package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestPolicy lets an agent ask for what the rules of the example allow and deny,
// in both versions.
func TestPolicy(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(t *acp.Turn, kind acp.ToolKind, path, command string) string {
		call := acp.ToolCall{Title: "Tool", Kind: kind}
		if path != "" {
			call.Locations = []acp.ToolCallLocation{{Path: path}}
		}
		if command != "" {
			call.Input = map[string]string{"command": command}
		}
		return fmt.Sprintf("%s %v\n", kind, t.ToolCall(call).Permit(acp.Permission{}))
	}
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			agent := acp.Agent{MinVersion: v, MaxVersion: v, Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
				t.Say(ask(t, acp.ToolKindRead, filepath.Join(here, "main.go"), ""))
				t.Say(ask(t, acp.ToolKindRead, filepath.Join(here, ".env"), ""))
				t.Say(ask(t, acp.ToolKindEdit, filepath.Join(here, "main.go"), ""))
				t.Say(ask(t, acp.ToolKindExecute, "", "go test ./..."))
				t.Say(ask(t, acp.ToolKindExecute, "", "go test ./... && rm -rf /"))
				return acp.StopEndTurn, nil
			}}
			agentEnd, clientEnd := acp.Pipe()
			conn, err := agent.Connect(t.Context(), agentEnd)
			if err != nil {
				t.Fatal(err)
			}
			var out, audit strings.Builder
			if err := run(t.Context(), "rules.json", "go", clientEnd, &out, &audit); err != nil {
				t.Fatal(err)
			}
			_ = conn.Wait()
			want := "read true\nread false\nedit false\nexecute true\nexecute false\n\n"
			if out.String() != want {
				t.Errorf("got %q, want %q", &out, want)
			}
			if lines := strings.Count(audit.String(), "\n"); lines != 5 || !strings.Contains(audit.String(), "no secrets") {
				t.Errorf("audit:\n%s", &audit)
			}
		})
	}
}

func TestBadRules(t *testing.T) {
	for _, file := range []string{"main.go", "nothing.json"} {
		if err := run(t.Context(), file, "go", acp.Command("unused"), nil, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
