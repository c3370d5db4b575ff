package loop

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// TestEmptiness: answers that are no end of a turn, and many that are one.
func TestEmptiness(t *testing.T) {
	tools := []model.Tool{{Name: "read"}, {Name: "run"}, {Name: "mcp__far__send"}}
	for _, tt := range []struct {
		text, asked string
		used        bool
		want        string
	}{
		{"", "go", false, SaidNothing},
		{" \n", "go", true, SaidNothing},
		{"<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>", "go", false, WroteCall},
		{"I read it.\n<tool_call>\n{\"name\":\"run\"", "go", true, WroteCall},
		{"<function=read>\n<parameter=path>a</parameter>\n</function>", "go", false, WroteCall},
		{"<function_calls>\n<invoke name=\"mcp__far__send\">", "go", false, WroteCall},
		{"[TOOL_CALLS]run{\"command\":\"ls\"}", "go", false, WroteCall},
		{"{\"name\":\"read\",\"parameters\":{\"path\":\"a\"}}", "go", false, WroteCall},
		{"```json\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n```", "go", false, WroteCall},
		{"Let me look at the file first.", "Fix it.", false, Announced},
		{"The test fails. Let me check the parser:", "Fix it.", true, Announced},
		{"That is it. Now I'll run the tests.", "Fix it.", true, Announced},
		{"Done so far:\n- a\n\nNext, let me update the docs", "Fix it.", true, Announced},
		// These end a turn.
		{"Done.", "Fix it.", true, ""},
		{"ok", "hi", false, ""},
		{"42", "What is 6 times 7?", false, ""},
		{"Hello! How can I help you?", "hi", false, ""},
		{"Let me know if you need anything else.", "Fix it.", true, ""},
		{"I'll wait for your decision.", "Fix it.", true, ""},
		{"I will read the file once you have saved it.", "Fix it.", true, ""},
		{"I'll read the file first.", "What will you do first?", false, ""},
		{"Let me look at the file first?", "Fix it.", true, ""},
		{"It works. If the test fails again, I will look at it.", "Fix it.", true, ""},
		{"I will not change that file.", "Fix it.", true, ""},
		{"The function now checks the file, runs the tests and writes the log.", "Fix it.", true, ""},
		{"I looked at the file. I'll explain: it opens a socket.", "Fix it.", true, ""},
		{"Let me summarize: two tests fail.", "Fix it.", true, ""},
		{"Qwen writes `<tool_call>{\"name\":\"read\"}` in such a case.", "How?", true, ""},
		{"An example:\n```\n<tool_call>{\"name\":\"read\"}</tool_call>\n```", "How?", true, ""},
		{"<tool_call>{\"name\":\"unknown\"}</tool_call>", "go", false, ""},
		{"{\"name\":\"read\",\"version\":1}", "Write a package.json.", false, ""},
		{"{\"name\":\"Ann\",\"arguments\":{}}", "go", false, ""},
		{"Added `let me look` to the list.", "Fix it.", true, ""},
		{"Run it with:\n```\nI'll run the tests\n```", "Fix it.", true, ""},
	} {
		r := &run{Turn: &Turn{Prefix: &model.Prefix{Tools: tools}}, used: tt.used, all: []*model.Message{{Role: model.User, Parts: said(tt.asked)}}}
		if got := r.emptiness(&model.Message{Role: model.Assistant, Parts: said(tt.text)}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
