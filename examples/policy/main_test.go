package main

import (
	"context"
	"fmt"
	"io"
	"os"
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

// TestUnasked: what an agent does through the client without asking first is
// decided by the rules too.
func TestUnasked(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(rules, []byte(`{"version":1,"default":"deny","rules":[
		{"effect":"deny","kinds":["read"],"paths":["**/.env"]},
		{"effect":"allow","kinds":["edit"],"paths":["./allowed.txt"]},
		{"effect":"allow","kinds":["execute"],"commands":["go version", "go env *"]}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	t.Chdir(here)
	if err := os.WriteFile(".env", []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := acp.Agent{MaxVersion: 1, Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		for _, name := range []string{"allowed.txt", "denied.txt"} {
			t.Say(fmt.Sprintf("%s %v\n", name, t.WriteFile(filepath.Join(here, name), "x") == nil))
		}
		for _, name := range []string{"allowed.txt", ".env"} {
			_, err := t.ReadFile(filepath.Join(here, name))
			t.Say(fmt.Sprintf("read %s %v\n", name, err == nil))
		}
		for _, e := range []acp.Exec{
			{Command: "go version"},
			{Command: "go", Args: []string{"version"}},
			{Command: "go", Args: []string{"env", "a; b"}},
			{Command: "go version", Env: []acp.EnvVariable{{Name: "PATH", Value: here}}},
			{Command: "go", Args: []string{"help"}},
		} {
			_, err := t.Run(e)
			t.Say(fmt.Sprintf("%s %q %v\n", e.Command, e.Args, err == nil))
		}
		return acp.StopEndTurn, nil
	}}
	agentEnd, clientEnd := acp.Pipe()
	conn, err := agent.Connect(t.Context(), agentEnd)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), rules, "go", clientEnd, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	_ = conn.Wait()
	want := `allowed.txt true
denied.txt false
read allowed.txt true
read .env false
go version [] true
go ["version"] true
go ["env" "a; b"] false
go version [] false
go ["help"] false

`
	if out.String() != want {
		t.Errorf("got %s\nwant %s", &out, want)
	}
}

func TestBadRules(t *testing.T) {
	for _, file := range []string{"main.go", "nothing.json"} {
		if err := run(t.Context(), file, "go", acp.Command("unused"), nil, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
