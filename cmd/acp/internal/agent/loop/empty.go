package loop

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// Why a turn is [Empty].
const (
	SaidNothing = "nothing"  // neither a text nor a call
	WroteCall   = "call"     // a call that is written as text
	Announced   = "announce" // a step that was announced, without a call
)

// nudges are what the model is sent, once in a turn.
var nudges = map[string]string{
	SaidNothing: "(This is not from the user. Your last answer has no text and no call of a tool. If the task is not done, continue with it now. If it is, say in a sentence what came of it.)",
	WroteCall:   "(This is not from the user. Your last answer has a call of a tool as text, so nothing was run. Make the call as a call of a tool.)",
	Announced:   "(This is not from the user. You have announced a step, and made no call. If the task is not done, make the call now. If it is, say so in a sentence.)",
}

// emptiness returns why an answer without calls is no end of a turn; "" if it is one.
func (r *run) emptiness(m *model.Message) string {
	text := textOf(m)
	switch {
	case text == "":
		return SaidNothing
	case r.writesCall(text):
		return WroteCall
	case r.announces(text):
		return Announced
	}
	return ""
}

func textOf(m *model.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(*model.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// markers are what calls begin with that models write as text.
var markers = []string{
	"<tool_call>", "<function_call>", "<function=", "<invoke name=", "<tool_use>", "[TOOL_CALLS]", "<|tool_call", "<｜tool▁call", "<|python_tag|>",
}

var code = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)```.*?(```|$)|`[^`\n]*`") })

// writesCall reports whether a text has a call of one of the tools. What is in code is an example.
func (r *run) writesCall(text string) bool {
	if r.isCall(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "```json"), "```"), "```"))) {
		return true
	}
	text = code().ReplaceAllString(text, "")
	for _, marker := range markers {
		_, rest, ok := strings.Cut(text, marker)
		rest = rest[:min(len(rest), 300)]
		if ok && slices.ContainsFunc(r.Prefix.Tools, func(t model.Tool) bool { return names(rest, t.Name) }) {
			return true
		}
	}
	return false
}

// names reports whether a text has a name as a word.
func names(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if (before == "" || !isWord(before[len(before)-1])) && (after == "" || !isWord(after[0])) {
			return true
		}
		rest = after
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isCall reports whether a text is a call as JSON, and nothing else.
func (r *run) isCall(text string) bool {
	var call struct {
		Name                         string
		Arguments, Parameters, Input map[string]any
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &call) != nil {
		return false
	}
	return (call.Arguments != nil || call.Parameters != nil || call.Input != nil) &&
		slices.ContainsFunc(r.Prefix.Tools, func(t model.Tool) bool { return t.Name == call.Name })
}

var (
	sentences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?:…]+(\s+|$)`) })
	announced = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^((ok|okay|alright|great|good|now|next|first|then|so|and)[,!]? )*(let me|let’s|let's|i'll|i’ll|i will|i'm going to|i’m going to|i am going to) ` +
			`((now|first|also|then|quickly|just|start by|begin by|take a|have a) )*` +
			`(look|looking|read|reading|check|checking|open|run|search|searching|find|examine|examining|inspect|explore|list|edit|change|fix|update|write|create|add|implement|apply|test|verify|investigate|modify|remove|replace|rerun|view)\b`)
	})
	conditions = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(you|your|if|when|once|unless|until|later|tomorrow|would|could|should|not)\b`)
	})
)

// maxAnnounced bounds a sentence that announces a step, in bytes.
const maxAnnounced = 200

// announces reports whether a text ends with a step that the model is about to take. Before any tool was used the text
// must be nothing else, and no answer to a question.
func (r *run) announces(text string) bool {
	if len(r.Prefix.Tools) == 0 {
		return false
	}
	var all []string
	for _, s := range sentences().Split(strings.ReplaceAll(text, "**", ""), -1) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	if len(all) == 0 || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "```") {
		return false
	}
	last := all[len(all)-1]
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		last = strings.TrimSpace(last[i+1:])
	}
	if len(last) > maxAnnounced || !announced().MatchString(last) || conditions().MatchString(last) {
		return false
	}
	return r.used || len(all) == 1 && !strings.Contains(r.asked(), "?")
}

// asked returns the last text of the user.
func (r *run) asked() string {
	for _, m := range slices.Backward(r.all) {
		if m.Role == model.User {
			return textOf(m)
		}
	}
	return ""
}
