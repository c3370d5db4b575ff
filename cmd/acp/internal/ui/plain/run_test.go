package plain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/logtest"
)

// talk holds a conversation with an agent whose input is given, and returns what was printed.
func talk(t *testing.T, agent *acp.Agent, input string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app.App{In: strings.NewReader(input), Out: &out, Err: &out, Cwd: "/project", Flags: map[string]any{"store.off": true, "timeouts.connect": "500ms"},
		Environ: []string{"HOME=" + t.TempDir()}}
	a.UseBuiltIn(agent)
	err := Run(t.Context(), Options{App: a, Agent: roster.Agent{Name: "fake", Builtin: true}})
	if e := a.Close(); e != nil {
		t.Error(e)
	}
	if strings.ContainsAny(out.String(), "\x1b\r\a") {
		t.Errorf("control characters: %q", out.String())
	}
	return out.String(), err
}

func has(t *testing.T, out string, parts ...string) {
	t.Helper()
	rest := out
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is missing, or not in this place, in:\n%s", p, out)
		}
		rest = after
	}
}

func TestConversation(t *testing.T) {
	for _, version := range []int{1, 2} {
		agent := &acp.Agent{MinVersion: version, MaxVersion: version, Logger: logtest.New(t), Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			switch t.Text() {
			case "fail":
				return "", errors.New("out of order")
			case "refuse":
				return acp.StopRefusal, nil
			}
			_ = t.Think("hm\x1b[31m")
			h := t.ToolCall(acp.ToolCall{Title: "Read\x1b]0;x\x07 it", Kind: acp.ToolKindRead})
			_ = h.Complete()
			_ = t.Say("You ")
			return acp.StopEndTurn, t.Say("said:\n" + t.Text())
		}}
		out, err := talk(t, agent, "one\\\ntwo\n\n/nonsense\nfail\nrefuse\n/cancel\n/acp:nope\n/help\n/quit\nnever\n")
		if err != nil {
			t.Fatal(err)
		}
		has(t, out, "Talking to ", "Thinking.\n", "Tool: Read it — done\n", "You said:\none\ntwo\n", "You said:\n/nonsense\n",
			"Error: ", "The agent refused the prompt.\n", "No turn is running.\n", "There is no command /acp:nope; /acp:help lists all commands.\n", "Ctrl-D leaves")
		if strings.Contains(out, "never") {
			t.Error("it went on after /quit")
		}
	}
}

func TestQuestions(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		d, err := t.ToolCall(acp.ToolCall{Title: "Write it", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: "/project/a"}}}).Ask(acp.Permission{})
		if err != nil {
			return "", err
		}
		answer := "no"
		if d.Allowed {
			answer = "yes"
		}
		return acp.StopEndTurn, t.Say("answer: " + answer)
	}}
	for _, tt := range []struct{ input, want string }{
		{"go\n1\n", "answer: yes"}, {"go\ny\n", "answer: yes"}, {"go\n3\n", "answer: no"}, {"go\nn\n", "answer: no"},
		{"go\n\n", "answer: no"}, {"go\n9\nwhat\n1\n", "answer: yes"}, {"go\n", "answer: no"}, // the end of the input dismisses
	} {
		out, err := talk(t, agent, tt.input)
		if err != nil {
			t.Fatal(err)
		}
		has(t, out, "Permission, in the agent's words: Write it\n", "File: /project/a\n", "1. Allow", tt.want)
	}
}

func TestAgentEnds(t *testing.T) {
	agent := &acp.Agent{Initialize: func(context.Context, *acp.AgentConn) (json.RawMessage, error) { return nil, errors.New("no") }}
	_, err := talk(t, agent, "hi\n")
	if err == nil || exitcode.Of(err) == exitcode.Done {
		t.Errorf("error %v", err)
	}
}

// TestHelpFits keeps the lines of the help within a terminal of 80 columns, which would break them
// in the middle of words.
func TestHelpFits(t *testing.T) {
	for l := range strings.Lines(ownHelp) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 79 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}
