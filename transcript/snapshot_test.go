package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

var update = flag.Bool("update", false, "write the golden files")

// long returns a conversation of n entries, the last of them a message.
func long(n int) *Conversation {
	c := New(Config{})
	for i := range n {
		c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id(i)), Title: acpv2.Set("title")})
	}
	c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("first")})
	return c
}

// cost returns the bytes and allocations of a chunk and a snapshot after it, in a
// conversation of n entries.
func cost(n int) (bytes, mallocs float64) {
	const times = 1000
	c := long(n)
	chunk := &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("a few words ")}
	step := func() { c.Apply(chunk); c.Snapshot() }
	step()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		step()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / times, float64(after.Mallocs-before.Mallocs) / times
}

// TestSnapshotCost: a snapshot after each chunk copies a few nodes of a tree, not
// the conversation.
func TestSnapshotCost(t *testing.T) {
	small, _ := cost(10)
	big, mallocs := cost(10_000)
	t.Logf("%.0f bytes with 10 entries, %.0f bytes and %.1f allocations with 10000", small, big, mallocs)
	if big > small+3000 || big > 5000 || mallocs > 8 {
		t.Errorf("%.0f bytes and %.1f allocations for a chunk and a snapshot of 10000 entries, %.0f bytes of 10", big, mallocs, small)
	}
	c := long(10_000)
	if n := testing.AllocsPerRun(100, func() { c.Snapshot() }); n > 1 {
		t.Errorf("%.1f allocations for a snapshot alone", n)
	}
	chunk := &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("w")}
	if n := testing.AllocsPerRun(1000, func() { c.Apply(chunk) }); n > 0 {
		t.Errorf("%.1f allocations for a chunk alone", n)
	}
}

// TestTextCost: a message that arrives in many pieces is not copied for each.
func TestTextCost(t *testing.T) {
	const pieces = 50_000
	c := New(Config{})
	chunk := &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("twenty bytes of text")}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		c.Apply(chunk)
		if len(c.Snapshot().Text())%20 != 0 {
			t.Fatal("a piece is not whole")
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > pieces*2500+20*pieces*10 {
		t.Errorf("%d bytes allocated for a text of %d", n, 20*pieces)
	}
	if got := c.Snapshot().Text(); got != strings.Repeat("twenty bytes of text", pieces) {
		t.Errorf("%d bytes of text", len(got))
	}
}

func BenchmarkChunkAndSnapshot(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(id(n), func(b *testing.B) {
			c := long(n)
			chunk := &acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("a few words ")}
			b.ReportAllocs()
			for b.Loop() {
				c.Apply(chunk)
				c.Snapshot()
			}
		})
	}
}

func BenchmarkTerminal(b *testing.B) {
	c := New(Config{})
	chunk := &acpv2.TerminalOutputChunk{TerminalID: "t", Data: strings.Repeat("bGluZSBvZiBvdXRwdXQK", 200)}
	b.SetBytes(int64(len(chunk.Data) / 4 * 3))
	b.ReportAllocs()
	for b.Loop() {
		c.Apply(chunk)
	}
}

// TestList: the tree is a list, whatever was copied, replaced and removed.
func TestList(t *testing.T) {
	const n = 3000
	var l list
	gen := uint64(1)
	var copies []list
	var want [][]uint64
	var live []uint64
	for i := range uint64(n) {
		e := &Notice{}
		e.seq = l.push(gen, e)
		if e.seq != i {
			t.Fatalf("number %d, want %d", e.seq, i)
		}
		live = append(live, i)
		switch {
		case i%3 == 0:
			l.remove(gen, live[0])
			l.remove(gen, live[0]) // again: nothing
			live = live[1:]
		case i%100 == 1:
			copies, want = append(copies, l), append(want, slices.Clone(live))
			gen++
		}
	}
	copies, want = append(copies, l), append(want, live)
	for i, c := range copies {
		var got []uint64
		for e := range c.all() {
			got = append(got, e.Seq())
			if c.get(e.Seq()) != e {
				t.Fatalf("entry %d is not found", e.Seq())
			}
		}
		if !slices.Equal(got, want[i]) || c.count != len(got) {
			t.Errorf("copy %d has %d entries, want %d", i, len(got), len(want[i]))
		}
		for range c.backward() {
			break
		}
	}
	for _, seq := range live {
		gen++
		l.remove(gen, seq)
	}
	if l.root.used != 0 || l.count != 0 || l.get(n-1) != nil || l.get(n) != nil {
		t.Errorf("%d slots in use", l.root.used)
	}
}

// golden is one conversation that has everything, as updates of version 2.
var golden = []string{
	`{"sessionUpdate":"state_update","state":"running","background":[]}`,
	`{"sessionUpdate":"user_message","messageId":"u1","content":[{"type":"text","text":"fix the test"}]}`,
	`{"sessionUpdate":"agent_thought_chunk","messageId":"t1","content":{"type":"text","text":"Let me "}}`,
	`{"sessionUpdate":"agent_thought_chunk","messageId":"t1","content":{"type":"text","text":"look."}}`,
	`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p1","entries":[{"content":"run it","priority":"high","status":"in_progress"}]}}`,
	`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"go test","kind":"execute","status":"in_progress","capabilities":{"cancel":{}},"rawInput":{"n":1.50},"content":[{"type":"terminal","terminalId":"x1"}]}`,
	`{"sessionUpdate":"terminal_update","terminalId":"x1","command":"go test","cwd":"/src","size":{"cols":80,"rows":24}}`,
	`{"sessionUpdate":"terminal_output_chunk","terminalId":"x1","data":"G1szMW1GQUlMG1swbQo="}`,
	`{"sessionUpdate":"terminal_update","terminalId":"x1","exitStatus":{"exitCode":1}}`,
	`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed","capabilities":null,"_meta":{"vendor":"<x>"}}`,
	`{"sessionUpdate":"notice","severity":"warning","title":"slow"}`,
	`{"sessionUpdate":"compaction_update","compactionId":"k1","status":"completed","summary":[{"type":"text","text":"so far"}]}`,
	`{"sessionUpdate":"subagent_update","sessionId":"s2","title":"helper","state":{"state":"running"}}`,
	`{"sessionUpdate":"session_message","messageId":"b1","recipientSessionId":"s2","content":[{"type":"text","text":"go on"}]}`,
	`{"sessionUpdate":"_vendor","k":[1.50]}`,
	`{"sessionUpdate":"agent_message_chunk","messageId":"a1","content":{"type":"text","text":"It "}}`,
	`{"sessionUpdate":"agent_message_chunk","messageId":"a1","content":{"type":"text","text":"fails."}}`,
	`{"sessionUpdate":"agent_message_chunk","messageId":"a1","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
	`{"sessionUpdate":"plan_removed","planId":"p1"}`,
	`{"sessionUpdate":"usage_update","used":100,"size":1000,"cost":{"amount":0.5,"currency":"USD"}}`,
	`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"}]}]}`,
	`{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"test","description":"run tests"}]}`,
	`{"sessionUpdate":"session_info_update","title":"Tests","updatedAt":"2026-11-21T00:00:00Z"}`,
	`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","background":[{"type":"subagent","sessionId":"s2"}]}`,
}

func compare(t *testing.T, file string, s *Snapshot) {
	t.Helper()
	// One entry a line, so that differences can be read.
	form := strings.ReplaceAll(jsonOf(t, s), `{"kind":`, "\n"+`{"kind":`)
	form = strings.Replace(form, `],"session"`, "\n"+`],"session"`, 1) + "\n"
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(form), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), form); diff != "" {
		t.Error(diff)
	}
	var read Snapshot
	if err := read.UnmarshalJSON(want); err != nil || jsonOf(t, &read) != jsonOf(t, s) {
		t.Errorf("the golden file makes something else: %v", err)
	}
}

// TestGolden holds the JSON form.
func TestGolden(t *testing.T) {
	c := New(Config{})
	fold(t, c, golden...)
	seq, _ := c.Asked(&acpv2.RequestPermissionRequest{
		Title:   "Edit?",
		Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "c2", Title: acpv2.Set("Edit")}},
		Options: []acpv2.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: acpv2.PermissionOptionKindAllowOnce}},
	})
	c.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "yes"})
	c.TurnEnded(&TurnEnd{StopReason: acpv2.StopReasonEndTurn, By: EndedByAgent, Others: 1})
	c.TurnEnded(&TurnEnd{StopReason: "error", By: EndedByCrash, Said: "no more", Error: "it has ended"})
	c.OutputAt("x2", 0, []byte("one\n"))
	c.OutputAt("x2", 9, []byte("two\n"))
	s := c.Snapshot()
	compare(t, "everything.json", s)

	replay := New(Config{})
	for e := range s.Entries() {
		if u := e.Update(); u != nil {
			replay.Apply(u)
		}
	}
	for e := range s.Entries() {
		if e.Update() != nil && e.EntryKind() != KindTerminal && updateOf(t, e) != updateOf(t, replay.Snapshot().Entry(e.Seq())) {
			t.Errorf("replayed %s", updateOf(t, e))
		}
	}
}

// TestV1 folds a conversation of version 1.
func TestV1(t *testing.T) {
	updates := func(c *Conversation, list ...string) (all []Change) {
		for _, s := range list {
			u, err := acpv1.UnmarshalSessionUpdate([]byte(s))
			if err != nil {
				t.Fatalf("%v\n%s", err, s)
			}
			all = append(all, c.ApplyV1(u)...)
		}
		return all
	}
	c := New(Config{})
	c.OpenedV1(&acpv1.SessionModeState{CurrentModeID: "ask", AvailableModes: []acpv1.SessionMode{{ID: "ask", Name: "Ask"}, {ID: "code", Name: "Code"}}}, nil, nil)
	if got := c.PromptedV1([]acpv1.ContentBlock{acpv1.Text("fix it")}); len(got) != 2 || got[0].Kind != KindMessage || got[1].Field != FieldState {
		t.Errorf("%+v", got)
	}
	got := updates(c,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"look"}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"early","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit","kind":"edit","content":[{"type":"diff","path":"/a","oldText":"x\n","newText":"y\n"}]}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done"}}`,
		`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"low","status":"pending"}]}`,
		`{"sessionUpdate":"plan","entries":[]}`,
		`{"sessionUpdate":"current_mode_update","currentModeId":"code"}`,
		`{"sessionUpdate":"usage_update","used":1,"size":2}`,
		`{"sessionUpdate":"_x","k":1}`,
	)
	if len(got) != 11 || got[2].Op != OpAppended || got[2].Text != "look" || got[3].Op != OpCreated || got[7].Op != OpUpdated {
		t.Errorf("%+v", got)
	}
	c.EndedV1(&acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn, Usage: &acpv1.Usage{TotalTokens: 9}})
	s := c.Snapshot()
	compare(t, "v1.json", s)
	if s.Text() != "Done" || s.Session().State.StopReason != acpv2.StopReasonEndTurn || s.Session().State.Tokens.TotalTokens != 9 {
		t.Errorf("%+v", s.Session().State)
	}

	// Made-up ids do not meet those made up before, however often it goes on.
	for range 3 {
		before := s.Len()
		c = restored(t, s).Continue(Config{})
		c.PromptedV1([]acpv1.ContentBlock{acpv1.Text("again")})
		updates(c, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Yes"}}`, `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"u"}}`,
			`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"t"}}`, `{"sessionUpdate":"agent_message_chunk","messageId":"named","content":{"type":"text","text":"n"}}`)
		if s = c.Snapshot(); s.Len() < before+4 || s.Message(RoleAgent, "named") == nil {
			t.Fatalf("%d entries were added\n%s", s.Len()-before, jsonOf(t, s))
		}
	}
	updates(c, `{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`)
	if o := c.Snapshot().Session().ConfigOptions; len(o) != 1 || len(o[0].Kind.(*acpv2.SessionConfigSelect).Options.(acpv2.SessionConfigSelectOptionList)) != 2 {
		t.Errorf("the modes are forgotten: %+v", o)
	}
	// A prompt ends what was being said.
	updates(c, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one"}}`)
	c.PromptedV1(nil)
	updates(c, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}`)
	if got := c.Snapshot().Text(); got != "two" {
		t.Errorf("after a prompt the message goes on: %q", got)
	}
	for _, u := range []acpv1.SessionUpdate{nil, (*acpv1.ToolCall)(nil), (*acpv1.AgentMessageChunk)(nil)} {
		if ch := c.ApplyV1(u); len(ch) != 0 {
			t.Errorf("%+v", ch)
		}
	}
	if n := c.Snapshot().Loss().Updates; n != 3 {
		t.Errorf("%d ignored", n)
	}
}
