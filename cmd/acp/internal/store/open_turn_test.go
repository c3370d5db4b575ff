package store

import (
	"encoding/json"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// TestOpen: a conversation is open from what the user says to the end of the last turn, or until the agent
// says that it is idle. What was told as history opens nothing.
func TestOpen(t *testing.T) {
	update := func(u acpv2.SessionUpdate) Event {
		e, err := records.DraftOf(u)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	text := &acpv2.TextContent{Text: "x"}
	asked := update(&acpv2.UserMessageChunk{MessageID: "1", Content: text})
	end := func(data string) Event { return Event{Kind: journal.KindEnd, Data: json.RawMessage(data)} }
	for name, tt := range map[string]struct {
		events []Event
		open   bool
	}{
		"asked":         {[]Event{asked}, true},
		"asked, whole":  {[]Event{update(&acpv2.UserMessage{MessageID: "1", Content: acpv2.Set([]acpv2.ContentBlock{text})})}, true},
		"ended":         {[]Event{asked, end(`{"stopReason":"end_turn"}`)}, false},
		"one ended":     {[]Event{asked, asked, end(`{"others":1}`)}, true},
		"said after it": {[]Event{asked, end(`null`), update(&acpv2.AgentMessageChunk{MessageID: "2", Content: text})}, false},
		"idle":          {[]Event{asked, update(&acpv2.IdleStateUpdate{StopReason: acpv2.StopReasonEndTurn})}, false},
		"running":       {[]Event{asked, update(&acpv2.RunningStateUpdate{})}, true},
		"begun anew":    {[]Event{asked, {Kind: journal.KindReset}}, false},
		"history": {[]Event{update(&acpv2.UserMessageChunk{MessageID: "1", Content: text,
			Meta: json.RawMessage(`{"github.com/goacp/acp":{"history":"0123456789abcdef"}}`)})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, t.TempDir())
			id := write(t, s, Session{Key: Key{"a", "s"}}, tt.events...)
			list, err := s.List(t.Context(), Query{}) // from the index
			if err != nil || len(list) != 1 || (list[0].State == records.StateRunning) != tt.open {
				t.Errorf("listed %+v, %v", list, err)
			}
			if v, err := s.Session(t.Context(), id); err != nil || (v.State == records.StateRunning) != tt.open {
				t.Errorf("read %+v, %v", v, err)
			}
		})
	}
}
