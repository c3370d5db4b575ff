package conformance

import (
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

var (
	ckCapSuggestions  = decides("agent/capability/prompt-suggestions")
	ckSuggestEmpty    = decides("agent/suggestion/empty")
	ckSuggestBlank    = decides("agent/suggestion/blank")
	ckSuggestContent  = decides("agent/suggestion/content")
	ckSuggestReplayed = decides("agent/suggestion/replayed")
)

// suggests looks at a list of prompts that an agent suggests.
func (m *Monitor) suggests(s *session) {
	m.wanted(ckCapSuggestions, m.client.suggestions, "params.update", "session.promptSuggestions")
	if m.breaks(ckSuggestReplayed, s.replay.asked > s.replay.marks && s.openedBy == "") {
		m.add(ckSuggestReplayed, "params.update", "suggested prompts among the history of the session %s", quote(s.id))
	}
}

// suggestion looks at one of them: how many blocks it has, of which kinds these are, and
// whether there is more to them than white space.
func (m *Monitor) suggestion(blocks, kinds int, says bool) {
	const path = "params.update.suggestions"
	if m.breaks(ckSuggestEmpty, blocks == 0) {
		m.add(ckSuggestEmpty, path, "suggested a prompt with nothing in it")
	}
	if m.breaks(ckSuggestBlank, blocks > 0 && !says) {
		m.add(ckSuggestBlank, path, "suggested a prompt of white space")
	}
	if m.client.unknown || m.agent.unknown || !m.ready {
		return
	}
	bad := kinds&image != 0 && !(m.client.suggestImage && m.agent.image) ||
		kinds&audio != 0 && !(m.client.suggestAudio && m.agent.audio) ||
		kinds&embedded != 0 && !(m.client.suggestEmbedded && m.agent.embedded)
	if m.breaks(ckSuggestContent, bad) {
		m.add(ckSuggestContent, path, "suggested content that not both sides have advertised")
	}
}

func (m *Monitor) suggestsV1(s *session, list []acpv1.PromptSuggestion) {
	m.suggests(s)
	for _, p := range list {
		says := false
		for _, b := range p.Prompt {
			t, ok := b.(*acpv1.TextContent)
			says = says || !ok || strings.TrimSpace(t.Text) != ""
		}
		m.suggestion(len(p.Prompt), m.blocksV1("params.update.suggestions", p.Prompt), says)
	}
}

func (m *Monitor) suggestsV2(s *session, list []acpv2.PromptSuggestion) {
	m.suggests(s)
	for _, p := range list {
		says := false
		for _, b := range p.Prompt {
			t, ok := b.(*acpv2.TextContent)
			says = says || !ok || strings.TrimSpace(t.Text) != ""
		}
		m.suggestion(len(p.Prompt), m.blocksV2("params.update.suggestions", p.Prompt), says)
	}
}
