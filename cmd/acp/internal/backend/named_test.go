package backend

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestNamed: that a prompt begins at a gateway is said once, by whichever comes first: what the gateway says, or the message
// with the name of the prompt. Messages of others say nothing.
func TestNamed(t *testing.T) {
	var said []string
	h := &Host{sessions: map[acp.SessionID]*Session{}, cfg: Config{
		Agent: roster.Agent{Gateway: true}, Returns: true,
		Front: Frontend{Note: func(n Note) {
			if n.Kind == NoteBegun && n.Session == "s" {
				said = append(said, n.Text)
			}
		}},
	}}
	s := &Session{host: h, id: "s"}
	h.sessions["s"] = s
	nameOf := func(r *acpv2.PromptRequest) string {
		var said named
		if !ownmeta.Read(r.Meta, &said) || said.OperationID == "" {
			t.Fatalf("_meta is %s", r.Meta)
		}
		return said.OperationID
	}
	chunk := func(id acp.MessageID, meta json.RawMessage) {
		s.begins(&acp.UserMessageChunk{MessageID: id, Content: acp.Text("x"), Meta: meta})
	}
	first, ended := s.request(nil)
	second, over := s.request(nil)
	s.begins(&acp.UserMessage{MessageID: "m0"})
	chunk("m0", json.RawMessage(`{"`+ownmeta.Key+`":{"operationId":7}}`))
	chunk("m0", ownmeta.Of(named{"another"}))
	chunk("m1", first.Meta)
	chunk("m1", first.Meta) // in pieces
	h.hasBegun(&begun{"s", "m1", named{nameOf(first)}})
	h.hasBegun(&begun{"s", "m2", named{nameOf(second)}})
	s.begins(&acp.UserMessage{MessageID: "m2", Meta: second.Meta})
	ended()
	over()
	h.hasBegun(&begun{"s", "m3", named{}}) // of a prompt without a name
	third, ended := s.request(nil)
	ended()
	s.begins(&acp.UserMessage{MessageID: "m4", Meta: third.Meta})
	if want := []string{"m1", "m2", "m3"}; !slices.Equal(said, want) {
		t.Errorf("said %q, not %q", said, want)
	}
	if nameOf(first) == nameOf(second) {
		t.Error("two prompts have one name")
	}
	h.cfg.Returns = false
	if r, _ := s.request(nil); r.Meta != nil {
		t.Errorf("a prompt that is not sent again has _meta %s", r.Meta)
	}
}
