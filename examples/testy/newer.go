package main

import (
	"context"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// cursor answers, and says that the session can be forked behind the answer.
func (s *script) cursor(context.Context) error {
	id := s.arg(0, "c")
	text := "cursor:" + id
	s.said.WriteString(text)
	if err := s.Send(&acp.AgentMessage{MessageID: answerID(s.Turn), Content: acp.Set([]acp.ContentBlock{acp.Text(text)})}); err != nil {
		return err
	}
	s.at = &acpv2.CursorUpdate{
		CursorID:     acpv2.CursorID(id),
		Capabilities: acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)}),
		Anchor:       &acpv2.CursorAgentMessageAnchor{MessageID: answerID(s.Turn), Position: acpv2.CursorAnchorPositionAfter},
	}
	return s.Send(s.at)
}

// suggest suggests a prompt, or withdraws what was suggested.
func (s *script) suggest(context.Context) error {
	list := []acpv2.PromptSuggestion{}
	if s.rest != "" {
		list = append(list, acpv2.PromptSuggestion{Prompt: []acp.ContentBlock{acp.Text(s.rest)}})
	}
	if err := s.Send(&acpv2.PromptSuggestionsUpdate{Suggestions: list}); err != nil {
		return err
	}
	return s.say("suggested")
}

// skill says which skill the prompt uses, and what follows it.
func (s *script) skill(context.Context) error {
	blocks := s.Blocks()
	text := "skill:" + blocks[0].(*acpv2.SkillReference).Name
	for _, b := range blocks[1:] {
		if t, ok := b.(*acp.TextContent); ok {
			text += " " + strings.TrimSpace(t.Text)
		}
	}
	return s.say(text)
}
