package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
)

const coder = "github.com/coder/acp-go-sdk/example/"

// Our client and the example agent of coder/acp-go-sdk, which speaks version 1,
// has no names for its messages and takes its time.
func TestClientAgainstCoder(t *testing.T) {
	agent := build(t, ".", coder+"agent")
	const greeting = "say ACP Go Example Agent — demo only (no AI model)."
	begin := []string{
		greeting,
		"say I'll help you with that. Let me start by reading some files to understand the current situation.",
		"tool name=null title=Reading project files kind=read status=pending content=0 locations=1",
		"tool status=completed content=1",
		"say  Now I understand the project structure. I need to make some changes to improve it.",
		"tool name=null title=Modifying critical configuration file kind=edit status=pending content=0 locations=1",
	}
	for _, tt := range []struct {
		name   string
		decide func(*acp.PermissionRequest) acp.PermissionDecision
		end    []string
	}{
		{"allowed", (*acp.PermissionRequest).Allow, []string{
			"tool title=Modifying critical configuration file status=completed",
			"say  Perfect! I've successfully updated the configuration. The changes have been applied.",
		}},
		{"rejected", (*acp.PermissionRequest).Reject, []string{
			"say  I understand you prefer not to make that change. I'll skip the configuration update.",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := dial(t, 0, agent)
			p.decide(t, func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
				return tt.decide(r), nil
			})
			ends(t, say(t, p.open(t), "hi"), acp.StopEndTurn, framed(1, "hi", "idle end_turn", append(begin, tt.end...)...))
			if r := p.lastAsked(t); r.Title != "Modifying critical configuration file" || r.ToolCall == nil || r.ToolCall.ToolCallID != "call_2" {
				t.Errorf("asked %+v", r)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		p := dial(t, 0, agent)
		s := p.open(t)
		reply := s.Prompt(limited(t), acp.Text("hi"))
		p.await(t, s, greeting)
		if err := s.Cancel(limited(t)); err != nil {
			t.Fatal(err)
		}
		ends(t, read(reply), acp.StopCancelled, framed(1, "hi", "idle cancelled", greeting))
	})
}

// The example client of coder/acp-go-sdk and our agents.
func TestAgentsAgainstCoder(t *testing.T) {
	client := build(t, ".", coder+"client")
	play := func(t *testing.T, stdin string, agent ...string) (dir, out string) {
		t.Helper()
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("first\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), processLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, client, agent...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(stdin)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			t.Errorf("%v\n%s", err, &stderr)
		}
		return dir, string(text)
	}
	// has reports what is not there. The client does many things at once, so the
	// order says nothing.
	has := func(t *testing.T, out string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in\n%s", text, out)
			}
		}
	}
	t.Run("echo", func(t *testing.T) {
		t.Parallel()
		_, out := play(t, "", example(t, "echo"))
		has(t, out, "Connected to agent (protocol v1)", "Created session: ", "User: Hello, agent!", "Hello, agent!\n", "Agent completed")
	})
	t.Run("testy", func(t *testing.T) {
		t.Parallel()
		_, out := play(t, "", example(t, "testy"))
		has(t, out, "Connected to agent (protocol v1)", "Created session: sess-1", "echo:Hello, agent!\n", "Agent completed")
	})
	t.Run("tools", func(t *testing.T) {
		t.Parallel()
		dir, out := play(t, "1\n", example(t, "tools"))
		// Its files and permissions work; its terminals are a dummy without an exit code.
		has(t, out, "[ plan ]", "Write notes.txt", "Permission requested: Write notes.txt", "1. ", "(allow_once)",
			"[Client] Wrote", "[Client] CreateTerminal", "[Client] ReleaseTerminal", "I could not sort the notes: sort failed", "Agent completed")
		if text, err := os.ReadFile(filepath.Join(dir, "notes.txt")); string(text) != "first\nHello, agent!\n" || err != nil {
			t.Errorf("the notes are %q, %v", text, err)
		}
	})
}
