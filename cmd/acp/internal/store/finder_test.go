package store

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestFinder: words are found as in what is stored here, whatever pieces they came in, and only in messages and titles.
func TestFinder(t *testing.T) {
	said := func(kind, id, text string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"sessionUpdate":%q,"messageId":%q,"content":{"type":"text","text":%q}}`, kind, id, text))
	}
	updates := []json.RawMessage{
		said("user_message_chunk", "u", "What is a Dachs"), said("agent_message_chunk", "a", "It is a bad"), said("agent_message_chunk", "a", "ger, naïvely said."),
		json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"hedgehog"}`),
		json.RawMessage(`{"sessionUpdate":"agent_message_chunk"`), json.RawMessage(`null`), nil,
	}
	for _, tt := range []struct {
		words, snippet string
		ok             bool
	}{
		{"badger", "It is a badger, naïvely said.", true},
		{"BADG dachs", "What is a Dachs", true},
		{"naively", "It is a badger, naïvely said.", true},
		{"forest", "A walk in the forest", true},
		{"adger", "", false},
		{"hedgehog", "", false},
		{"badger zebra", "It is a badger, naïvely said.", false},
		{"", "", false},
		{" .", "", false},
	} {
		f := NewFinder(tt.words)
		for _, u := range updates {
			f.Update(u)
		}
		if snippet, ok := f.Find("A walk in the forest"); ok != tt.ok || snippet != tt.snippet {
			t.Errorf("%q: %q, %v", tt.words, snippet, ok)
		}
	}
}
