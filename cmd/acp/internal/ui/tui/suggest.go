package tui

import (
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxSuggestion bounds a suggested prompt, in bytes; a longer one is not offered.
const maxSuggestion = 16 << 10

// suggestion returns the prompt that the empty input offers, which the agent has suggested, or "". of is what it was made of,
// by which the list that has it is known.
func (m *model) suggestion() (text string, of *acp.ContentBlock) {
	if m.talk == nil || m.phase != ready || m.child != "" || m.browsing || len(m.queue) > 0 || m.input.value() != "" || m.busy() || m.watches() {
		return "", nil
	}
	if text, of = offered(m.talk.Suggestions()); of == m.unwanted {
		return "", nil
	}
	return text, of
}

// offered returns the first of the suggested prompts that can be typed: text that stays what it is when it is made safe to
// print.
func offered(list []acpv2.PromptSuggestion) (string, *acp.ContentBlock) {
	for _, s := range list {
		var all []string
		size := 0
		for _, block := range s.Prompt {
			text, ok := block.(*acp.TextContent)
			if !ok || size+len(text.Text) > maxSuggestion {
				all = nil
				break
			}
			size += len(text.Text)
			all = append(all, text.Text)
		}
		if text := strings.TrimSpace(safetext.Text(strings.Join(all, "\n"))); text != "" {
			return text, &s.Prompt[0]
		}
	}
	return "", nil
}

// suggests reports whether the input offers a prompt, and takes it, or has it hidden until the agent suggests others.
func (m *model) suggests(take bool) bool {
	text, of := m.suggestion()
	if of == nil {
		return false
	}
	if take {
		m.input.set(text)
		m.input.resize(m.w, m.inputLimit())
		return true
	}
	m.unwanted = of
	return true
}

// suggestionsPass has what is suggested not be offered any more, since a prompt is sent.
func (m *model) suggestionsPass() {
	if m.talk != nil {
		_, m.unwanted = offered(m.talk.Suggestions())
	}
}

// inEmpty returns what the empty input shows: a prompt that the agent suggests, or the keys that are useful at the moment.
func (m *model) inEmpty() string {
	text, of := m.suggestion()
	if of == nil {
		return fitHint(m.hint(), m.w-3)
	}
	const tail = " · Tab takes it"
	line := one(text)
	if room := m.w - 3 - len([]rune(tail)); room >= 20 {
		return cut(line, room) + tail
	}
	return cut(line, m.w-3)
}
