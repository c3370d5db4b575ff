// Package updatetest holds what draws, keeps or counts session updates to the rule that
// none is forgotten silently. For tests only.
package updatetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// A sample is an update among those it needs to make a difference, as JSON. A line is one
// update; the line that begins with ">" is the update itself.
type sample string

// texts2 has a sample of every update of version 2. An update that the schema adds needs
// one here, and then a decision in every test that calls [Check].
var texts2 = map[string]sample{
	"user_message_chunk":  `>{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"word"}}`,
	"user_message":        `>{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"word"}]}`,
	"agent_message_chunk": `>{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word"}}`,
	"agent_message":       `>{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"word"}]}`,
	"agent_thought_chunk": `>{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"word"}}`,
	"agent_thought":       `>{"sessionUpdate":"agent_thought","messageId":"m","content":[{"type":"text","text":"word"}]}`,
	"state_update":        `>{"sessionUpdate":"state_update","state":"running"}`,
	"tool_call_content_chunk": `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Look"}
>{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":{"type":"text","text":"word"}}}
{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`,
	"tool_call_update": `>{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"word","status":"completed","content":[{"type":"content","content":{"type":"text","text":"word"}}]}`,
	"terminal_update":  `>{"sessionUpdate":"terminal_update","terminalId":"t","command":"word","output":{"data":"d29yZAo="},"exitStatus":{"exitCode":1}}`,
	"terminal_output_chunk": `{"sessionUpdate":"terminal_update","terminalId":"t","command":"print"}
>{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"d29yZAo="}
{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{"exitCode":0}}`,
	"plan_update": `>{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"word","priority":"high","status":"in_progress"}]}}`,
	"plan_removed": `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"step","priority":"high","status":"in_progress"}]}}
>{"sessionUpdate":"plan_removed","planId":"p"}`,
	"available_commands_update": `>{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"word","description":"word"}]}`,
	"config_option_update":      `>{"sessionUpdate":"config_option_update","configOptions":[{"configId":"o","name":"word","type":"select","currentValue":"v","options":[{"value":"v","name":"word"}]}]}`,
	"session_info_update":       `>{"sessionUpdate":"session_info_update","title":"word","updatedAt":"2026-01-02T03:04:05Z"}`,
	"usage_update":              `>{"sessionUpdate":"usage_update","used":7,"size":9,"cost":{"amount":3,"currency":"EUR"}}`,
	"notice":                    `>{"sessionUpdate":"notice","severity":"warning","title":"word"}`,
	"compaction_update":         `>{"sessionUpdate":"compaction_update","compactionId":"k","status":"failed","error":"word"}`,
	"compaction_summary_chunk": `{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}
>{"sessionUpdate":"compaction_summary_chunk","compactionId":"k","content":{"type":"text","text":"word","annotations":{"priority":1}}}
{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}`,
	"subagent_update":           `>{"sessionUpdate":"subagent_update","sessionId":"s","title":"word","state":{"state":"running"}}`,
	"session_message":           `>{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s","content":[{"type":"text","text":"word"}]}`,
	"session_message_chunk":     `>{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"word"}}`,
	"prompt_suggestions_update": `>{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"prompt":[{"type":"text","text":"word"}]}]}`,
	"cursor_update":             `>{"sessionUpdate":"cursor_update","cursorId":"u","capabilities":{"fork":{}},"anchor":{"type":"user_message","messageId":"m","position":"before"}}`,
	"replay_complete":           `>{"sessionUpdate":"replay_complete"}`,
}

// texts1 has a sample of every update of version 1.
var texts1 = map[string]sample{
	"user_message_chunk":  `>{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"word","annotations":{"priority":1}}}`,
	"agent_message_chunk": `>{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word"}}`,
	"agent_thought_chunk": `>{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"word"}}`,
	"tool_call":           `>{"sessionUpdate":"tool_call","toolCallId":"c","title":"word"}`,
	"tool_call_update":    `>{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"word"}`,
	"plan":                `>{"sessionUpdate":"plan","entries":[{"content":"word","priority":"high","status":"pending"}]}`,
	"plan_update":         `>{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"word","priority":"high","status":"pending"}]}}`,
	"plan_removed": `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"step","priority":"high","status":"pending"}]}}
>{"sessionUpdate":"plan_removed","planId":"p"}`,
	"available_commands_update": `>{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"word","description":"word"}]}`,
	"current_mode_update":       `>{"sessionUpdate":"current_mode_update","currentModeId":"word"}`,
	"config_option_update":      `>{"sessionUpdate":"config_option_update","configOptions":[{"id":"o","name":"word","type":"select","currentValue":"v","options":[{"value":"v","name":"word"}]}]}`,
	"session_info_update":       `>{"sessionUpdate":"session_info_update","title":"word","updatedAt":"2026-01-02T03:04:05Z"}`,
	"usage_update":              `>{"sessionUpdate":"usage_update","used":7,"size":9}`,
	"notice":                    `>{"sessionUpdate":"notice","severity":"warning","title":"word"}`,
	"compaction_update":         `>{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}`,
	"compaction_summary_chunk":  `>{"sessionUpdate":"compaction_summary_chunk","compactionId":"k","content":{"type":"text","text":"word"}}`,
	"subagent_update":           `>{"sessionUpdate":"subagent_update","sessionId":"s","title":"word"}`,
	"session_message":           `>{"sessionUpdate":"session_message","messageId":"m","content":[{"type":"text","text":"word"}]}`,
	"session_message_chunk":     `>{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"word"}}`,
	"prompt_suggestions_update": `>{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"prompt":[{"type":"text","text":"word"}]}]}`,
	"cursor_update":             `>{"sessionUpdate":"cursor_update","cursorId":"u","capabilities":{"fork":{}},"anchor":{"type":"user_message","messageId":"m","position":"before"}}`,
}

// decode returns the updates of a sample, and which of them it is a sample of.
func decode[T any](s sample, unmarshal func([]byte) (T, error)) (us []T, at int, err error) {
	at = -1
	for line := range strings.SplitSeq(string(s), "\n") {
		text, here := strings.CutPrefix(line, ">")
		if here {
			at = len(us)
		}
		u, err := unmarshal([]byte(text))
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", text, err)
		}
		us = append(us, u)
	}
	if at < 0 {
		return nil, 0, fmt.Errorf("the sample does not say which update it is: %s", s)
	}
	return us, at, nil
}

// Texts returns, by kind, a sample of each update of a protocol version, 1 or 2, among those that it needs, as JSON.
func Texts(version int) map[string][]string {
	samples := texts2
	if version == 1 {
		samples = texts1
	}
	all := make(map[string][]string, len(samples))
	for kind, s := range samples {
		for line := range strings.SplitSeq(string(s), "\n") {
			all[kind] = append(all[kind], strings.TrimPrefix(line, ">"))
		}
	}
	return all
}

// Check calls effect with every update of version 2, among others that it needs, and with
// those others alone. The results must differ, unless ignored says why they do not: then
// they must be the same. A result that says that the update is unknown fails as well. An
// update that the schema knows and this package does not fails the test.
func Check(t *testing.T, ignored map[string]string, effect func(t *testing.T, updates []acpv2.SessionUpdate) string) {
	t.Helper()
	check(t, acpv2.Updates(), texts2, acpv2.UnmarshalSessionUpdate, ignored, effect)
}

// CheckV1 is [Check] for version 1.
func CheckV1(t *testing.T, ignored map[string]string, effect func(t *testing.T, updates []acpv1.SessionUpdate) string) {
	t.Helper()
	check(t, acpv1.Updates(), texts1, acpv1.UnmarshalSessionUpdate, ignored, effect)
}

func check[T any](t *testing.T, known map[string]bool, samples map[string]sample, unmarshal func([]byte) (T, error),
	ignored map[string]string, effect func(*testing.T, []T) string) {
	t.Helper()
	for kind := range ignored {
		if _, ok := known[kind]; !ok {
			t.Errorf("%s is ignored, and no update", kind)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(known)) {
		t.Run(kind, func(t *testing.T) {
			us, at, err := decode(samples[kind], unmarshal) // none if a new one has no sample yet
			if err != nil {
				t.Fatal("package updatetest: ", err)
			}
			with, without := effect(t, us), effect(t, slices.Delete(slices.Clone(us), at, at+1))
			reason, ignore := ignored[kind]
			if wrong := fault(with, without, reason, ignore); wrong != "" {
				t.Errorf("%s\n%s", wrong, with)
			}
		})
	}
}

// fault says what is wrong with what an update makes of the rest, or returns "".
func fault(with, without, reason string, ignored bool) string {
	switch lower := strings.ToLower(with); {
	case ignored && reason == "":
		return "is ignored without a reason"
	case ignored && with != without:
		return "is listed as ignored (" + reason + "), and makes a difference:"
	case !ignored && with == without:
		return "makes no difference: handle it, or list it as ignored with the reason"
	case strings.Contains(lower, "unknown") || strings.Contains(lower, "not know"):
		return "is taken for an unknown update:"
	}
	return ""
}
