package transcript

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestFold: what updates make of an entry, shown as the update that makes it.
func TestFold(t *testing.T) {
	const (
		tool = `{"sessionUpdate":"tool_call_update","toolCallId":"t",`
		msg  = `{"sessionUpdate":"agent_message","messageId":"m",`
		ch   = `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":`
		term = `{"sessionUpdate":"terminal_update","terminalId":"t",`
		comp = `{"sessionUpdate":"compaction_update","compactionId":"c","status":`
		sub  = `{"sessionUpdate":"subagent_update","sessionId":"s",`
		sm   = `{"sessionUpdate":"session_message","messageId":"m",`
	)
	tests := []struct {
		name    string
		updates []string
		want    string
	}{
		{"chunks are one text", []string{ch + `{"type":"text","text":"a"}}`, ch + `{"type":"text","text":"b"}}`},
			msg + `"content":[{"type":"text","text":"ab"}]}`},
		{"another block ends a text", []string{ch + `{"type":"text","text":"a"}}`, ch + `{"type":"image","data":"","mimeType":"x/y"}}`, ch + `{"type":"text","text":"b"}}`, ch + `{"type":"text","text":"c"}}`},
			msg + `"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"x/y"},{"type":"text","text":"bc"}]}`},
		{"text with more than text stays apart", []string{ch + `{"type":"text","text":"a"}}`, ch + `{"type":"text","text":"b","_meta":{"k":1}}}`, ch + `{"type":"text","text":"c"}}`},
			msg + `"content":[{"type":"text","text":"a"},{"type":"text","text":"b","_meta":{"k":1}},{"type":"text","text":"c"}]}`},
		{"S81 unknown block", []string{ch + `{"type":"_x","n":1.50}}`}, msg + `"content":[{"type":"_x","n":1.50}]}`},
		{"S78 a message replaces chunks", []string{ch + `{"type":"text","text":"a"}}`, msg + `"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, ch + `{"type":"text","text":"z"}}`},
			msg + `"content":[{"type":"text","text":"x"},{"type":"text","text":"yz"}]}`},
		{"S78 a message without content leaves it", []string{ch + `{"type":"text","text":"a"}}`, msg + `"_meta":{"a":1}}`}, msg + `"content":[{"type":"text","text":"a"}],"_meta":{"a":1}}`},
		{"S78 null clears content", []string{ch + `{"type":"text","text":"a"}}`, msg + `"content":null}`}, msg[:len(msg)-1] + `}`},
		{"S78 an empty list clears content", []string{ch + `{"type":"text","text":"a"}}`, msg + `"content":[]}`}, msg[:len(msg)-1] + `}`},
		{"S78 metadata is merged by key", []string{msg + `"_meta":{"a":{"x":1},"b":2}}`, msg + `"_meta":{"a":{"y":1},"b":null,"c":3.0}}`}, msg + `"_meta":{"a":{"y":1},"c":3.0}}`},
		{"S78 empty metadata changes nothing", []string{msg + `"_meta":{"a":1}}`, msg + `"_meta":{}}`}, msg + `"_meta":{"a":1}}`},
		{"S78 null clears metadata", []string{msg + `"_meta":{"a":1}}`, msg + `"_meta":null}`}, msg[:len(msg)-1] + `}`},
		{"S78 metadata of a chunk is no patch", []string{msg + `"_meta":{"a":1}}`, `{"sessionUpdate":"agent_message_chunk","messageId":"m","_meta":{"a":null,"b":1},"content":{"type":"text","text":"x"}}`},
			msg + `"content":[{"type":"text","text":"x"}],"_meta":{"a":1}}`},

		{"S90 a tool call begins", []string{tool[:len(tool)-1] + `}`}, tool + `"kind":"other","status":"pending"}`},
		{"S90 a chunk makes a tool call", []string{`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"terminal","terminalId":"x"}}`},
			tool + `"kind":"other","status":"pending","content":[{"type":"terminal","terminalId":"x"}]}`},
		{"S78 absent leaves", []string{tool + `"name":"n","title":"T","kind":"edit","status":"in_progress","content":[{"type":"terminal","terminalId":"x"}],"locations":[{"path":"/a"}],"rawInput":{"n":1.0},"rawOutput":null,"capabilities":{"cancel":{}}}`, tool + `"status":"completed","rawOutput":[2]}`},
			tool + `"name":"n","title":"T","kind":"edit","status":"completed","content":[{"type":"terminal","terminalId":"x"}],"locations":[{"path":"/a"}],"rawInput":{"n":1.0},"rawOutput":[2],"capabilities":{"cancel":{}}}`},
		{"S78 null clears", []string{tool + `"name":"n","title":"T","kind":"edit","status":"in_progress","content":[{"type":"terminal","terminalId":"x"}],"locations":[{"path":"/a"}],"rawInput":1,"rawOutput":2,"capabilities":{"cancel":{}},"_meta":{"a":1}}`,
			tool + `"name":null,"title":null,"kind":null,"status":null,"content":null,"locations":null,"rawInput":null,"rawOutput":null,"capabilities":null,"_meta":null}`},
			tool + `"kind":"other","status":"pending"}`},
		{"chunks append", []string{tool + `"content":[{"type":"_a"}]}`, `{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"_b"}}`, `{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"_c"}}`},
			tool + `"kind":"other","status":"pending","content":[{"type":"_a"},{"type":"_b"},{"type":"_c"}]}`},
		{"S90 capabilities are replaced as a whole", []string{tool + `"capabilities":{"cancel":{},"_x":1}}`, tool + `"capabilities":{"_y":2}}`}, tool + `"kind":"other","status":"pending","capabilities":{"_y":2}}`},
		{"S90 malformed capabilities allow nothing", []string{tool + `"capabilities":{"cancel":{}}}`, tool + `"capabilities":{"cancel":5}}`}, tool + `"kind":"other","status":"pending","capabilities":{}}`},

		{"terminal", []string{term + `"command":"ls","cwd":"/a","size":{"cols":80,"rows":24},"capabilities":{"cancel":{}}}`, `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"YQ=="}`, `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"YmM="}`, term + `"exitStatus":{"exitCode":0},"capabilities":null}`},
			term + `"command":"ls","cwd":"/a","output":{"data":"YWJj"},"exitStatus":{"exitCode":0},"size":{"cols":80,"rows":24}}`},
		{"S78 terminal cleared", []string{term + `"command":"ls","cwd":"/a","size":{"cols":80,"rows":24},"output":{"data":"YWJj"},"exitStatus":{}}`, term + `"command":null,"cwd":null,"size":null,"output":null,"exitStatus":null}`}, term[:len(term)-1] + `}`},
		{"output replaces chunks", []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"YWJj"}`, term + `"output":{"data":"eA=="}}`, `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"eQ=="}`}, term + `"output":{"data":"eHk="}}`},
		{"bad base64 ends a chunk", []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"YWJj!!!!YWJj"}`}, term + `"output":{"data":"YWJj"}}`},

		{"compaction", []string{comp + `"in_progress"}`, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"a"}}`, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"b"}}`, comp + `"failed","error":"no"}`},
			comp + `"failed","summary":[{"type":"text","text":"ab"}],"error":"no"}`},
		{"compaction cleared", []string{comp + `"failed","error":"no","summary":[{"type":"text","text":"a"}]}`, comp + `"completed","error":null,"summary":null}`}, comp + `"completed"}`},
		{"a chunk begins a compaction", []string{`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"a"}}`}, comp + `"in_progress","summary":[{"type":"text","text":"a"}]}`},

		{"plan replaced", []string{`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`, `{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"# x"}}`}, `{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"# x"}}`},
		{"plan of an unknown type", []string{`{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"p","k":1.0}}`}, `{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"p","k":1.0}}`},
		{"notice", []string{`{"sessionUpdate":"notice","severity":"_x","title":"a","description":"b","_meta":{"a":1}}`}, `{"sessionUpdate":"notice","severity":"_x","title":"a","description":"b","_meta":{"a":1}}`},
		{"S81 unknown update", []string{`{"k":1.50,"sessionUpdate":"_x"}`}, `{"k":1.50,"sessionUpdate":"_x"}`},

		{"subagent", []string{sub + `"title":"a","description":"b","cwd":"/c","additionalDirectories":["/d"],"capabilities":{"cancel":{}},"state":{"state":"idle","stopReason":"end_turn"}}`, sub + `"state":{"state":"idle"},"title":"z"}`},
			sub + `"title":"z","description":"b","capabilities":{"cancel":{}},"state":{"state":"idle"},"cwd":"/c","additionalDirectories":["/d"]}`},
		{"subagent cleared", []string{sub + `"title":"a","description":"b","cwd":"/c","additionalDirectories":["/d"],"capabilities":{"cancel":{}},"state":{"state":"running"}}`, sub + `"title":null,"description":null,"cwd":null,"additionalDirectories":null,"capabilities":null,"state":null}`}, sub[:len(sub)-1] + `}`},
		{"subagent without directories", []string{sub + `"additionalDirectories":[]}`}, sub + `"additionalDirectories":[]}`},
		{"session message", []string{`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"a"}}`, sm + `"senderSessionId":"p","recipientSessionId":"s","senderMessageId":"x","recipientMessageId":"y"}`, sm + `"senderMessageId":null}`},
			sm + `"senderSessionId":"p","recipientSessionId":"s","recipientMessageId":"y","content":[{"type":"text","text":"a"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := folded(t, tt.updates...)
			if s.Len() != 1 {
				t.Fatalf("%d entries", s.Len())
			}
			for _, s := range []*Snapshot{s, restored(t, s)} {
				for e := range s.Entries() {
					if diff := cmp.Diff(tt.want, updateOf(t, e)); diff != "" {
						t.Error(diff)
					}
				}
			}
			// One by one, each on what a snapshot froze.
			c := New(Config{})
			for _, u := range tt.updates {
				c.Snapshot()
				fold(t, c, u)
			}
			if diff := cmp.Diff(jsonOf(t, s), jsonOf(t, c.Snapshot())); diff != "" {
				t.Error("with snapshots between: " + diff)
			}
		})
	}
}

// TestChanges: a display can follow the changes.
func TestChanges(t *testing.T) {
	c := New(Config{})
	got := fold(t, c,
		`{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"q"}]}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a"}}`,
		`{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"t"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"b"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"_x"}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"m"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"m","status":"completed"}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"m","data":""}`,
		`{"sessionUpdate":"plan_removed","planId":"p"}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`,
		`{"sessionUpdate":"plan_removed","planId":"p"}`,
		`{"sessionUpdate":"state_update","state":"running"}`,
		`{"sessionUpdate":"usage_update","used":1,"size":2}`,
		`{"sessionUpdate":"config_option_update","configOptions":[]}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[]}`,
		`{"sessionUpdate":"session_info_update","title":"x"}`,
	)
	want := []Change{
		{Op: OpCreated, Seq: 0, Kind: KindMessage, ID: "m"},
		{Op: OpCreated, Seq: 1, Kind: KindMessage, ID: "m", Text: "a"},
		{Op: OpCreated, Seq: 2, Kind: KindMessage, ID: "m", Text: "t"}, // ids of each role are its own
		{Op: OpAppended, Seq: 1, Kind: KindMessage, ID: "m", Text: "b"},
		{Op: OpAppended, Seq: 1, Kind: KindMessage, ID: "m"},
		{Op: OpCreated, Seq: 3, Kind: KindToolCall, ID: "m"},
		{Op: OpUpdated, Seq: 3, Kind: KindToolCall, ID: "m"},
		{Op: OpCreated, Seq: 4, Kind: KindTerminal, ID: "m"},
		{},
		{Op: OpCreated, Seq: 5, Kind: KindPlan, ID: "p"},
		{Op: OpUpdated, Seq: 5, Kind: KindPlan, ID: "p"},
		{Op: OpSession, Field: FieldState},
		{Op: OpSession, Field: FieldUsage},
		{Op: OpSession, Field: FieldConfigOptions},
		{Op: OpSession, Field: FieldCommands},
		{Op: OpSession, Field: FieldInfo},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s := c.Snapshot()
	if p := s.Plan("p"); !p.Removed || p.Content == nil {
		t.Errorf("a removed plan is %+v", p)
	}
	fold(t, c, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`)
	if c.Snapshot().Plan("p").Removed || !s.Plan("p").Removed {
		t.Error("a plan that is put back is not there, or was already in the snapshot before")
	}
}

// TestIgnored: what could not be sent either is ignored and counted.
func TestIgnored(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("]", 500))
	long := strings.Repeat("x", idBytes+1)
	tests := map[string]acpv2.SessionUpdate{
		"nil":                 nil,
		"nil pointer":         (*acpv2.AgentMessageChunk)(nil),
		"nil terminal chunk":  (*acpv2.TerminalOutputChunk)(nil),
		"nil state":           (*acpv2.IdleStateUpdate)(nil),
		"nil content":         &acpv2.AgentMessageChunk{MessageID: "m"},
		"nil text":            &acpv2.AgentMessageChunk{MessageID: "m", Content: (*acpv2.TextContent)(nil)},
		"nil in a list":       &acpv2.AgentMessage{MessageID: "m", Content: acpv2.Set([]acpv2.ContentBlock{nil})},
		"broken raw":          &acpv2.ToolCallUpdate{ToolCallID: "t", RawInput: json.RawMessage(`{`)},
		"too deep":            &acpv2.ToolCallUpdate{ToolCallID: "t", RawInput: deep},
		"too deep in a chunk": &acpv2.AgentMessageChunk{MessageID: "m", Content: &acpv2.TextContent{Meta: json.RawMessage(`{"a":` + string(deep) + `}`)}},
		"long id":             &acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(long)},
		"long id of text":     &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(long), Content: acpv2.Text("x")},
		"long id of output":   &acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(long)},
		"long type":           &acpv2.UnknownSessionUpdate{Type: long, Raw: taggedOnly("sessionUpdate", long)},
		"wrong type":          &acpv2.UnknownSessionUpdate{Type: "_a", Raw: taggedOnly("sessionUpdate", "_b")},
	}
	for name, u := range tests {
		t.Run(name, func(t *testing.T) {
			c := New(Config{})
			if ch := c.Apply(u); ch != (Change{}) {
				t.Errorf("change %+v", ch)
			}
			s := c.Snapshot()
			if s.Len() != 0 || s.Loss() != (Loss{Updates: 1}) {
				t.Errorf("%d entries, loss %+v", s.Len(), s.Loss())
			}
		})
	}
	// Nesting within the limit survives the form, which adds to it.
	ok := strings.Repeat("[", nesting-3) + `"\"[["` + strings.Repeat("]", nesting-3)
	c := New(Config{})
	c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: &acpv2.TextContent{Meta: json.RawMessage(`{"a":` + ok + `}`)}})
	s := c.Snapshot()
	if s.Len() != 1 || restored(t, restored(t, s)).Len() != 1 {
		t.Errorf("lost: %+v", s.Loss())
	}
}

// TestOwned: neither the caller's values nor what a snapshot shows can be changed
// from elsewhere.
func TestOwned(t *testing.T) {
	c := New(Config{})
	raw := json.RawMessage(`{"a":1}`)
	u := &acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("x"), RawInput: raw, Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Terminal{TerminalID: "x"}})}
	c.Apply(u)
	s := c.Snapshot()
	want := jsonOf(t, s)
	copy(raw, `{"b":2}`)
	list, _ := u.Content.Get()
	list[0].(*acpv2.Terminal).TerminalID = "y"
	for i := range 5 {
		c.Apply(&acpv2.ToolCallContentChunk{ToolCallID: "t", Content: &acpv2.Terminal{TerminalID: acpv2.TerminalID('0' + rune(i))}})
		_ = append(s.ToolCall("t").Content, &acpv2.Terminal{TerminalID: "evil"})
		_ = append(c.Snapshot().ToolCall("t").Content, &acpv2.Terminal{TerminalID: "evil"})
	}
	for range 3 {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: &acpv2.ImageContent{}})
	}
	var lists [3][]acpv2.ContentBlock
	for i := range lists {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("x")})
		lists[i] = c.Snapshot().Message(RoleAgent, "m").Content()
	}
	for i, l := range lists {
		if got := l[3].(*acpv2.TextContent).Text; len(l) != 4 || got != "xxx"[:i+1] {
			t.Errorf("list %d ends with %q", i, got)
		}
	}
	was := c.Snapshot()
	c.Apply(&acpv2.ToolCallContentChunk{ToolCallID: "t", Content: &acpv2.Terminal{TerminalID: "last"}})
	now := c.Snapshot()
	_ = append(was.ToolCall("t").Content, &acpv2.Terminal{TerminalID: "evil"})
	if got := updateOf(t, now.ToolCall("t")); strings.Contains(got, "evil") {
		t.Error(got)
	}
	if got := jsonOf(t, s); got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if got := updateOf(t, c.Snapshot().ToolCall("t")); strings.Contains(got, "evil") || strings.Contains(got, `"b"`) {
		t.Error(got)
	}
}

// TestContinueApart: two conversations that go on from one snapshot, and the first
// one itself, do not see each other.
func TestContinueApart(t *testing.T) {
	updates := func(word string) []string {
		return []string{
			`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + word + `"}}`,
			`{"sessionUpdate":"agent_message_chunk","messageId":"n","content":{"type":"_` + word + `"}}`,
			`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"_` + word + `"}}`,
			`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"` + word + `"}`,
			`{"sessionUpdate":"notice","severity":"info","title":"` + word + `"}`,
			`{"sessionUpdate":"session_info_update","title":"` + word + `"}`,
		}
	}
	c := New(Config{})
	fold(t, c, updates("base")...)
	fold(t, c, updates("base")...)
	s := c.Snapshot()
	want := jsonOf(t, s)
	conversations := []*Conversation{c, s.Continue(Config{}), s.Continue(Config{}), restored(t, s).Continue(Config{})}
	words := []string{"aaaa", "bbbb", "cccc", "dddd"}
	for range 3 {
		for i, c := range conversations {
			fold(t, c, updates(words[i])...)
		}
	}
	for i, c := range conversations {
		form := jsonOf(t, c.Snapshot())
		for j, w := range words {
			if strings.Contains(form, w) != (i == j) {
				t.Errorf("%q and conversation %d: %s", w, i, form)
			}
		}
		alone := New(Config{})
		for range 2 {
			fold(t, alone, updates("base")...)
		}
		for range 3 {
			fold(t, alone, updates(words[i])...)
		}
		if diff := cmp.Diff(jsonOf(t, alone.Snapshot()), form); diff != "" {
			t.Error(diff)
		}
	}
	if got := jsonOf(t, s); got != want {
		t.Error("the snapshot has changed")
	}
}

// TestConcurrentReaders: snapshots are read while the conversation goes on. The race
// detector is the judge.
func TestConcurrentReaders(t *testing.T) {
	c := New(Config{TotalBytes: 64 << 10, Entries: 40})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := c.Snapshot()
				want := jsonOf(t, s)
				s.Text()
				for e := range s.Entries() {
					if k := e.key(); k.space != spaceNone && s.find(k) != e {
						t.Error("not found")
						return
					}
				}
				if s.ToolCall("none") != nil || jsonOf(t, s) != want {
					t.Error("a snapshot has changed")
					return
				}
			}
		})
	}
	supply := newSupply(t, 11)
	for i := range 1500 {
		c.Apply(supply.v2Update())
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID('a' + rune(i/20%20)), Content: acpv2.Text("words and words ")})
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: "YWJjCg=="})
	}
	close(stop)
	wg.Wait()
}
