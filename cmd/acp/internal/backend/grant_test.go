//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestGranted: what was allowed is what is done without a question, once, and nothing else is.
func TestGranted(t *testing.T) {
	type step struct {
		ask   acp.ToolCall // what permission is asked for first; no title is none
		run   acp.Exec     // what is run then, or
		write string       // written, in the directory
	}
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.MkdirAll(filepath.Join(dir, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	call := func(kind acp.ToolKind, title, input string, paths ...string) acp.ToolCall {
		c := acp.ToolCall{Title: title, Kind: kind, Input: json.RawMessage(input)}
		for _, p := range paths {
			c.Locations = append(c.Locations, acp.ToolCallLocation{Path: filepath.Join(dir, p)})
		}
		return c
	}
	env := func(name, value string) []acp.EnvVariable { return []acp.EnvVariable{{Name: name, Value: value}} }
	echo := acp.Exec{Command: "echo", Args: []string{"hi"}}
	asksEcho := call(acp.ToolKindExecute, "asks", `{"command":"echo hi"}`)
	allow := func(r acphost.Rule) []acphost.Rule { r.Effect = acphost.EffectAllow; return []acphost.Rule{r} }
	tests := []struct {
		name  string
		rules []acphost.Rule
		steps []step
		asked string // the titles of the questions
	}{
		{"once", nil, []step{{ask: asksEcho, run: echo}}, "asks"},
		{"once is not twice", nil, []step{{ask: asksEcho, run: echo}, {run: echo}}, "asks|echo hi"},
		{"our own question is for once", nil, []step{{run: echo}, {run: echo}}, "echo hi|echo hi"},
		{"for a shell", nil, []step{{ask: asksEcho, run: acp.Exec{Command: "/bin/sh", Args: []string{"-c", "echo hi"}}}}, "asks"},
		{"another shell", nil, []step{{ask: asksEcho, run: acp.Exec{Command: other + "/sh", Args: []string{"-c", "echo hi"}}}}, "asks|" + other + "/sh -c 'echo hi'"},
		{"another directory", nil, []step{{ask: asksEcho, run: acp.Exec{Command: "echo", Args: []string{"hi"}, Dir: other}}}, "asks|echo hi"},
		{"the directory it was asked for", nil, []step{{
			ask: call(acp.ToolKindExecute, "asks", `{"command":"echo hi","cwd":"other"}`),
			run: acp.Exec{Command: "echo", Args: []string{"hi"}, Dir: other},
		}}, "asks"},
		{"variables", nil, []step{{ask: asksEcho, run: acp.Exec{Command: "echo", Args: []string{"hi"}, Env: env("PATH", "/x y")}}}, "asks|export PATH='/x y'; echo hi"},
		{"harmless variables", nil, []step{{ask: asksEcho, run: acp.Exec{Command: "echo", Args: []string{"hi"}, Env: env("CLAUDECODE", "1")}}}, "asks"},
		{"a rule and variables", allow(acphost.Rule{Commands: []string{"echo *"}}), []step{
			{run: echo},
			{run: acp.Exec{Command: "echo", Args: []string{"hi"}, Env: env("LD_PRELOAD", "/x.so")}},
		}, "export LD_PRELOAD=/x.so; echo hi"},
		{"a rule that denies, and variables", append([]acphost.Rule{{Effect: acphost.EffectDeny, Commands: []string{"echo *"}}}, allow(acphost.Rule{})...), []step{
			{run: acp.Exec{Command: "echo", Args: []string{"hi"}, Env: env("X", "1")}},
		}, ""},
		{"a reader does not run", allow(acphost.Rule{Kinds: []string{"read"}}), []step{
			{ask: call(acp.ToolKindRead, "reads", `{"command":"echo hi"}`, "x"), run: echo},
		}, "echo hi"},
		{"read in two ways", nil, []step{
			{ask: call(acp.ToolKindExecute, "asks", `{"command":"ls","command":"echo hi"}`), run: echo},
		}, "asks|echo hi"},
		{"a file", nil, []step{{ask: call(acp.ToolKindEdit, "edits", `{}`, "x"), write: "x"}, {write: "x"}}, "edits|Write " + dir + "/x"},
		{"a link", append([]acphost.Rule{{Effect: acphost.EffectDeny, Paths: []string{"secret/**"}}}, allow(acphost.Rule{Kinds: []string{"edit"}, Paths: []string{"./**"}})...), []step{
			{ask: call(acp.ToolKindEdit, "edits", `{}`, "link/key"), write: "link/key"},
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(t, 1, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				for _, s := range tt.steps {
					if s.ask.Title != "" {
						turn.ToolCall(s.ask).Permit(acp.Permission{Title: s.ask.Title})
					}
					if s.write != "" {
						_ = turn.WriteFile(filepath.Join(dir, s.write), "text")
						continue
					}
					_, _ = turn.ToolCall(acp.ToolCall{Title: "runs", Kind: acp.ToolKindExecute}).Exec(s.run)
				}
				return acp.StopEndTurn, nil
			}})
			cfg.Cwd = dir
			policy, err := acphost.NewPolicy(tt.rules...)
			if err != nil {
				t.Fatal(err)
			}
			policy.Commands = shellline.Parser{}
			cfg.Policy = policy
			var asked []string
			cfg.Front.Ask = func(_ context.Context, _ *Session, req acphost.Request) (acp.PermissionOptionID, error) {
				asked = append(asked, req.Title)
				return req.Allow(), nil
			}
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(asked, "|"); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
			if _, err := os.Stat(filepath.Join(dir, "secret", "key")); err == nil {
				t.Error("what a rule denies was written through a link")
			}
		})
	}
}
