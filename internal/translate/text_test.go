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

// TestSent: what was sent of a message counts the same however it was cut, and differs if a byte does.
func TestSent(t *testing.T) {
	text := "Grüße, this is what was said ÿÿÿÿÿÿÿÿ twice ÿÿÿÿÿÿÿÿ"
	of := func(parts ...string) (s sent) {
		for _, p := range parts {
			s.write(p)
		}
		return s
	}
	whole := of(text)
	for i := range len(text) + 1 {
		for j := i; j <= len(text); j++ {
			if got := of(text[:i], text[i:j], text[j:]); got != whole {
				t.Errorf("cut at %d and %d it is %v, want %v", i, j, got, whole)
			}
		}
	}
	seen := map[sent]string{whole: text}
	for i := range len(text) {
		for j := range i + 1 { // one bit of each of two bytes, or two bits of one
			for bit := range 8 {
				b := []byte(text)
				b[i] ^= 1 << bit
				b[j] ^= 1 << ((bit + 1) % 8)
				if was, ok := seen[of(string(b))]; ok && was != string(b) {
					t.Errorf("%q and %q are the same", was, b)
				}
				seen[of(string(b))] = string(b)
			}
		}
		if _, ok := seen[of(text[:i])]; ok {
			t.Errorf("the first %d bytes are as good as all", i)
		}
	}
}
