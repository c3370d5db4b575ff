package translate

import (
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// TestText: the short way for text says what the long one does, and counts
// messages with it.
func TestText(t *testing.T) {
	text := func(id acpv1.MessageID, s string) acpv1.SessionUpdate {
		return &acpv1.AgentMessageChunk{MessageID: id, Meta: []byte(`{"m":1}`), Unknown: []byte(`{"u":1}`), Content: &acpv1.TextContent{
			Text: s, Annotations: &acpv1.Annotations{LastModified: "now"}, Meta: []byte(`{"m":2}`), Unknown: []byte(`{"u":2}`),
		}}
	}
	list := []acpv1.SessionUpdate{
		text("", "a"), text("", "b"), &acpv1.ToolCall{ToolCallID: "c"}, text("", "c"), text("own", "d"), text("", "e"),
		&acpv1.AgentMessageChunk{Content: &acpv1.ImageContent{}}, &acpv1.AgentThoughtChunk{Content: acpv1.Text("f")}, text("", "g"),
	}
	var long, short FromV1
	texts := 0
	for _, u := range list {
		var got acpv2.SessionUpdate
		chunk := new(TextChunk)
		if short.Text(chunk, u) {
			texts++
			got = &chunk.AgentMessageChunk
		} else {
			got = short.Update(u)[0]
		}
		want, _ := long.Update(u)[0].AppendJSON(nil)
		if text, err := got.AppendJSON(nil); err != nil || string(text) != string(want) {
			t.Errorf("%s, want %s, %v", text, want, err)
		}
	}
	if texts != 6 {
		t.Errorf("%d texts", texts)
	}
}
