package translate

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestClosedUnions: the unions of version 1 are closed, apart from extensions: what a
// client of version 1 would not understand is not sent to it (S79). Each row is an
// update of version 2 with TYPE in the place of a discriminator.
func TestClosedUnions(t *testing.T) {
	const said = `"text":"[content of the unknown type chart]"`
	for _, tt := range []struct{ name, in, want string }{
		{"update", `{"sessionUpdate":"TYPE","x":1}`, ""},
		{"chunk", `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"TYPE","x":1}}`, said},
		{"message", `{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"a"},{"type":"TYPE","x":1}]}`, said},
		{"plan", `{"sessionUpdate":"plan_update","plan":{"type":"TYPE","planId":"p","x":1}}`, ""},
		{"tool call", `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T","content":[{"type":"TYPE","x":1},{"type":"content","content":{"type":"TYPE","x":1}}]}`, said},
		{"options", `{"sessionUpdate":"config_option_update","configOptions":[{"configId":"o","name":"O","type":"TYPE","x":1}]}`, "[]"},
		{"summary", `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"TYPE","x":1}}`, said},
		{"message of a session", `{"sessionUpdate":"session_message","messageId":"m","content":[{"type":"TYPE","x":1}]}`, said},
		{"cursor", `{"sessionUpdate":"cursor_update","cursorId":"u","anchor":{"type":"TYPE","x":1}}`, ""},
		{"suggestion", `{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"prompt":[{"type":"TYPE","x":1}]}]}`, `"suggestions":[]`},
		{"chunk of a session", `{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"TYPE","x":1}}`, said},
	} {
		for _, typ := range []string{"chart", "_chart"} {
			u, err := acpv2.UnmarshalSessionUpdate([]byte(strings.ReplaceAll(tt.in, "TYPE", typ)))
			if err != nil {
				t.Fatal(tt.name, err)
			}
			var got []byte
			for _, v := range (&ToV1{Caps: everything}).Append(nil, u) {
				if got, err = v.AppendJSON(got); err != nil {
					t.Fatal(tt.name, err)
				}
			}
			own := typ[0] == '_'
			if strings.Contains(string(got), `"_chart"`) != own || strings.Contains(string(got), `"chart"`) || !own && !strings.Contains(string(got), tt.want) {
				t.Errorf("%s, %s: %s", tt.name, typ, got)
			}
		}
	}
}
