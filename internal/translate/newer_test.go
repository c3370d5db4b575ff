package translate

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// TestNewer: clients of version 1 are sent of what is newer only what they have advertised and
// version 1 has a form for.
func TestNewer(t *testing.T) {
	suggesting := acpv1.ClientCapabilities{Session: &acpv1.ClientSessionCapabilities{PromptSuggestions: &acpv1.PromptSuggestionsCapabilities{}}}
	pointing := acpv1.ClientCapabilities{Session: &acpv1.ClientSessionCapabilities{Cursors: &acpv1.SessionCursorsCapabilities{}}}
	const (
		suggestion = `{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"prompt":[{"type":"text","text":"go"}]}]}`
		cursor     = `{"sessionUpdate":"cursor_update","cursorId":"u","capabilities":{"fork":{}},"anchor":{"type":"tool_call","toolCallId":"c","position":"after"}}`
	)
	for _, tt := range []struct {
		name, in, want string
		caps           acpv1.ClientCapabilities
	}{
		{"suggestion unasked", suggestion, "", pointing},
		{"suggestion", suggestion, suggestion, suggesting},
		{"suggestion withdrawn", `{"sessionUpdate":"prompt_suggestions_update","suggestions":[]}`,
			`{"sessionUpdate":"prompt_suggestions_update","suggestions":[]}`, suggesting},
		{"suggested skill", `{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"prompt":[{"type":"skill","name":"x"}]}]}`,
			`{"sessionUpdate":"prompt_suggestions_update","suggestions":[]}`, suggesting},
		{"cursor unasked", cursor, "", suggesting},
		{"cursor", cursor, cursor, pointing},
		{"end of a replay", `{"sessionUpdate":"replay_complete"}`, "", everything},
		{"session of a tool call", `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T","content":[{"type":"session","sessionId":"s"}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T"}`, everything},
		{"skill among commands", `{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"skill","name":"x","description":"d","path":"/x"}]}`,
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x","description":"d"}]}`, everything},
		{"skill in a message", `{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"skill","name":"x"}]}`,
			`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"/x"},"messageId":"m"}`, everything},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := acpv2.UnmarshalSessionUpdate([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range (&ToV1{Caps: tt.caps}).Update(u) {
				raw, err := v.AppendJSON(nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(raw))
			}
			if strings.Join(got, "\n") != tt.want {
				t.Errorf("%s\nwant %s", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}
