package translate

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
)

// TestTextsBound: the texts told for edits stay within their bounds.
func TestTextsBound(t *testing.T) {
	var to ToV1
	big := strings.Repeat("x", maxTextBytes/4)
	var diffs []*acpv2.Diff
	tell := func(text string) *acpv2.Diff {
		d := &acpv2.Diff{Changes: []acpv2.DiffChange{{Operation: &acpv2.DiffAdd{Path: "/f"}}}}
		to.Texts(d, []patch.File{{NewPath: "/f", New: text}})
		return d
	}
	known := func(d *acpv2.Diff) bool { return to.diff(d)[0].(*acpv1.Diff).NewText != "" }
	for range 6 {
		diffs = append(diffs, tell(big))
		if to.textBytes > maxTextBytes {
			t.Fatalf("%d bytes", to.textBytes)
		}
	}
	if known(diffs[0]) || known(diffs[1]) || !known(diffs[2]) || !known(diffs[5]) {
		t.Error("not the oldest texts were forgotten")
	}
	if d := tell(strings.Repeat("x", maxTextBytes+1)); known(d) || !known(diffs[5]) {
		t.Error("texts beyond the bound were kept")
	}
	for range maxTexts {
		tell("y")
	}
	if known(diffs[5]) || to.textBytes > maxTextBytes || to.texts.order.Len() > maxTexts {
		t.Errorf("%d bytes in %d edits", to.textBytes, to.texts.order.Len())
	}
}

// TestCallBounds: what is known of tool calls stays within its bounds.
func TestCallBounds(t *testing.T) {
	var to ToV1
	chunk := func(id, text string) *acpv2.ToolCallContentChunk {
		return &acpv2.ToolCallContentChunk{ToolCallID: acpv2.ToolCallID(id), Content: &acpv2.Content{Content: acpv2.Text(text)}}
	}
	sent := func(u acpv2.SessionUpdate) []acpv1.ToolCallContent {
		t.Helper()
		switch v := to.Update(u)[0].(type) {
		case *acpv1.ToolCall:
			return v.Content
		case *acpv1.ToolCallUpdate:
			return v.Content.Or(nil)
		}
		t.Fatal("not a tool call")
		return nil
	}
	for i := range maxParts + 10 {
		sent(chunk("a", fmt.Sprint(i)))
	}
	list := sent(chunk("a", "last"))
	if first := list[0].(*acpv1.Content).Content.(*acpv1.TextContent).Text; len(list) != maxParts || first != "11" {
		t.Errorf("%d pieces from %s on", len(list), first)
	}
	big := strings.Repeat("x", maxPartBytes/2)
	for range 3 {
		list = sent(chunk("b", big))
	}
	if len(list) != 1 {
		t.Errorf("%d pieces of half the bound", len(list))
	}
	if list = sent(chunk("b", big+big)); len(list) != 1 {
		t.Errorf("%d pieces, the last beyond the bound", len(list))
	}
	if list = sent(chunk("b", "x")); len(list) != 1 {
		t.Errorf("a piece beyond the bound is kept: %d", len(list))
	}
	many := make([]acpv2.ToolCallContent, maxParts+1)
	for i := range many {
		many[i] = &acpv2.Content{Content: acpv2.Text("x")}
	}
	if list = sent(&acpv2.ToolCallUpdate{ToolCallID: "b", Content: acpv2.Set(many)}); len(list) != maxParts+1 {
		t.Errorf("%d pieces of a whole content were sent", len(list))
	}
	if list = sent(chunk("b", "x")); len(list) != 1 {
		t.Errorf("too many pieces are kept: %d", len(list))
	}
	for i := range 10 {
		sent(chunk(fmt.Sprint("c", i), big))
		if to.partBytes > maxAllParts {
			t.Fatalf("%d bytes", to.partBytes)
		}
	}
	if list = sent(chunk("a", "x")); len(list) != 1 {
		t.Errorf("the oldest call still has %d pieces", len(list))
	}
	sum := 0
	to.calls.oldest(func(c *call) bool { sum += partBytes(c.parts); return true })
	if sum != to.partBytes {
		t.Errorf("%d bytes, counted %d", sum, to.partBytes)
	}
	for i := range maxCalls + 1 {
		to.Update(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(fmt.Sprint("d", i))})
	}
	if n := to.calls.order.Len(); n != maxCalls || len(to.calls.items) != n || to.partBytes != 0 {
		t.Errorf("%d calls, %d bytes", n, to.partBytes)
	}
	if _, again := to.Update(&acpv2.ToolCallUpdate{ToolCallID: "a"})[0].(*acpv1.ToolCall); !again {
		t.Error("a forgotten call is not announced again")
	}
}

// TestMessageBound: a message that was forgotten is sent whole again.
func TestMessageBound(t *testing.T) {
	var to ToV1
	message := func(id string) *acpv2.AgentMessage {
		return &acpv2.AgentMessage{MessageID: acpv2.MessageID(id), Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("x")})}
	}
	to.Update(message("a"))
	for i := range maxMessages {
		if i == maxMessages/2 && len(to.Update(message("a"))) != 0 {
			t.Fatal("forgotten too early")
		}
		to.Update(message(fmt.Sprint(i)))
	}
	if n := to.messages.order.Len(); n != maxMessages {
		t.Errorf("%d messages", n)
	}
	if len(to.Update(message("0"))) != 1 || len(to.Update(message("a"))) != 0 {
		t.Error("not the oldest message was forgotten")
	}
}

// TestTerminalBounds: of a terminal the end is shown, from a whole character
// on, to so many tool calls, and so many terminals are known.
func TestTerminalBounds(t *testing.T) {
	var to ToV1
	show := func(call, term string) []acpv1.SessionUpdate {
		return to.Update(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(call),
			Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Terminal{TerminalID: acpv2.TerminalID(term)}})})
	}
	write := func(term string, out []byte) []acpv1.SessionUpdate {
		return to.Update(&acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(term), Data: base64.StdEncoding.EncodeToString(out)})
	}
	shown := func(u acpv1.SessionUpdate) string {
		return u.(*acpv1.ToolCallUpdate).Content.Or(nil)[0].(*acpv1.Content).Content.(*acpv1.TextContent).Text
	}
	show("c", "t")
	var last []acpv1.SessionUpdate
	for range 40 {
		last = write("t", bytes.Repeat([]byte("é"), 5000)) // 10 kB
		if v := to.terminal("t"); len(v.output) > 2*maxOutput {
			t.Fatalf("%d bytes are kept", len(v.output))
		}
	}
	text := shown(last[0])
	if !strings.HasPrefix(text, "```console\n…\néé") || len(text) > maxOutput+40 || len(text) < maxOutput {
		t.Errorf("%d bytes, %.40q", len(text), text)
	}
	text = shown(write("t", bytes.Repeat([]byte("é"), maxOutput))[0])
	if !strings.HasPrefix(text, "```console\n…\néé") || len(text) > maxOutput+40 {
		t.Errorf("one big piece: %d bytes, %.40q", len(text), text)
	}
	text = shown(write("t", []byte{0xff, 'x', 0xe4, 0xb8})[0])
	if !strings.HasSuffix(text, "\uFFFDx\n```") {
		t.Errorf("%q", text[len(text)-20:])
	}
	for i := range maxShown {
		show(fmt.Sprint("d", i), "t")
	}
	if got := write("t", []byte("x")); len(got) != maxShown {
		t.Errorf("%d tool calls show it", len(got))
	}
	if got := to.Update(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "!"}); len(got) != maxShown {
		t.Errorf("%d updates for malformed output", len(got))
	}
	for i := range maxTerminals {
		write(fmt.Sprint(i), []byte("x"))
	}
	if n := to.terminals.order.Len(); n != maxTerminals {
		t.Errorf("%d terminals", n)
	}
	if got := write("t", []byte("x")); len(got) != 0 {
		t.Error("a forgotten terminal is still shown")
	}
}

// TestClientTerminal: the client's terminals stay terminals, also when it is
// said late, and what the agent says of them is not sent.
func TestClientTerminal(t *testing.T) {
	var to ToV1
	to.ClientTerminal("t")
	u := v2Update(t, `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","content":[{"type":"terminal","terminalId":"t","_meta":{"k":1}}]}`)
	want := `{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","content":[{"type":"terminal","terminalId":"t","_meta":{"k":1}}]}`
	if got := spelled(t, to.Update(u)); got != want {
		t.Error(got)
	}
	if got := to.Update(v2Update(t, `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"b2s="}`)); got != nil {
		t.Error(got)
	}
}

// TestLentTerminal: a terminal that the client knows by another id is shown by that.
func TestLentTerminal(t *testing.T) {
	var to ToV1
	to.LentTerminal("mine", "yours")
	u := v2Update(t, `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","content":[{"type":"terminal","terminalId":"mine"}]}`)
	want := `{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","content":[{"type":"terminal","terminalId":"yours"}]}`
	if got := spelled(t, to.Update(u)); got != want {
		t.Error(got)
	}
}
