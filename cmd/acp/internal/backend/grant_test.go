//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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

// TestGrantedStreamed: Kimi streams the input of a call as a text, asks with the begin of the command, and has it run in a
// terminal by a shell that changes into the directory first. That is one act and one question, once or for the session.
func TestGrantedStreamed(t *testing.T) {
	const command = "touch one.txt two.txt three.txt four.txt && echo done"
	dir := t.TempDir()
	input := `{"command":"` + command + `"}`
	text := func(s string) []acp.ToolCallContent {
		return []acp.ToolCallContent{&acp.BlockContent{Content: acp.Text(s)}}
	}
	for _, started := range []bool{false, true} { // before it asks
		for _, always := range []bool{false, true} {
			agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				call := acp.ToolCall{Title: "Bash", Kind: acp.ToolKindExecute, Content: text(input[:12])}
				if started {
					call.Input = json.RawMessage(input)
				}
				h := turn.ToolCall(call)
				h.Update(acp.ToolCallUpdate{Content: acp.Set(text(input))})
				if turn.Text() != "again" { // it has asked once for the session
					options := []acp.PermissionOption{
						{OptionID: "once", Name: "Approve once", Kind: acp.PermissionOptionKindAllowOnce},
						{OptionID: "always", Name: "Approve for this session", Kind: acp.PermissionOptionKindAllowAlways},
					}
					asks := acp.ToolCallUpdate{ToolCallID: h.ID(), Title: acp.Set("Bash"), Content: acp.Set(text("Requesting approval to Running: " + command[:30] + "…"))}
					if _, err := turn.Ask(acp.Permission{Options: options, Subject: &acp.ToolCallPermissionSubject{ToolCall: asks}}); err != nil {
						return "", err
					}
				}
				_, err := h.Exec(acp.Exec{
					Command: "/bin/bash", Args: []string{"-c", "cd '" + dir + "' && " + command},
					Env: []acp.EnvVariable{{Name: "NO_COLOR", Value: "1"}, {Name: "TERM", Value: "dumb"}, {Name: "GIT_TERMINAL_PROMPT", Value: "0"}, {Name: "SHELL", Value: "/bin/bash"}},
				})
				return acp.StopEndTurn, err
			}}
			cfg := config(t, 1, agent)
			cfg.Cwd = dir
			policy, err := acphost.NewPolicy()
			if err != nil {
				t.Fatal(err)
			}
			policy.Commands = shellline.Parser{}
			cfg.Policy = policy
			var asked []string
			cfg.Front.Ask = func(_ context.Context, _ *Session, req acphost.Request) (acp.PermissionOptionID, error) {
				shows, _ := req.Shows()
				asked = append(asked, shows)
				if always {
					return req.AllowAlways(), nil
				}
				return req.Allow(), nil
			}
			h := open(t, cfg)
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []string{command}
			prompts := []string{"go", "again"}
			if !always {
				want, prompts = []string{command, command}, []string{"go", "go"}
			}
			for _, p := range prompts {
				if _, err := s.Prompt(t.Context(), acp.Text(p)); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(asked, want) {
				t.Errorf("started %v, always %v: asked %q, want %q", started, always, asked, want)
			}
		}
	}
}
