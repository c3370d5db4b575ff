package conformance

import (
	"strings"
	"testing"

	"github.com/goacp/acp/trace"
)

// TestAdvice holds that what the protocol only advises does not make a check fail.
func TestAdvice(t *testing.T) {
	for _, id := range []string{
		"agent/option/category",        // the schema takes any text, and clients have to
		"agent/schema/members",         // a way to sign in of another type in version 1 (S80)
		"client/answer/unknown-method", // the documentation says should
		"client/dispatch/unknown-request",
		"agent/answer/malformed", "agent/answer/malformed-code", "agent/session/relative", "agent/error/range", "agent/turn/empty",
	} {
		if r := builtin().byID[id]; r == nil || r.Level == Must {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestLateWords holds that a message out of turn is told with what it came after.
func TestLateWords(t *testing.T) {
	for opened, want := range map[string]string{
		`"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}`: "before any prompt, after it had answered session/load",
		`"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`:                  "before any prompt, after it had answered session/new",
		"": "after the prompt was answered",
	} {
		m := NewMonitor(MonitorConfig{})
		frame := func(dir trace.Direction, text string) []Finding {
			return m.Frame(0, dir, []byte(`{"jsonrpc":"2.0",`+text+`}`))
		}
		frame(trace.ToAgent, `"id":0,"method":"initialize","params":{"protocolVersion":1}`)
		frame(trace.ToClient, `"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)
		prompted := opened == ""
		if prompted {
			opened = `"method":"session/new","params":{"cwd":"/w","mcpServers":[]}`
		}
		frame(trace.ToAgent, `"id":1,`+opened)
		frame(trace.ToClient, `"id":1,"result":{"sessionId":"s"}`)
		if prompted {
			frame(trace.ToAgent, `"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}`)
			frame(trace.ToClient, `"id":2,"result":{"stopReason":"end_turn"}`)
		}
		why := ""
		for _, f := range frame(trace.ToClient, `"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`) {
			if f.Rule.ID == "agent/turn/late" {
				why = f.Why
			}
		}
		if !strings.HasSuffix(why, want) {
			t.Errorf("%s: %q, want %q", opened, why, want)
		}
	}
}

// TestStable: what the protocol has completed is checked without [Options.Experimental].
func TestStable(t *testing.T) {
	for _, id := range []string{
		"client/capability/system-prompt", "agent/draft/system-prompt", "agent/draft/system-prompt-mode", "agent/draft/system-prompt-content",
		"agent/capability/subagents", "agent/subagent/itself", "agent/subagent/directories", "client/subagent/cancel",
		"agent/replay/complete", "agent/option/category",
	} {
		if r := builtin().byID[id]; r == nil || r.Experimental {
			t.Errorf("%s is not checked, or is experimental", id)
		}
	}
}
