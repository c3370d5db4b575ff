package transcript

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

func id(i int) string { return fmt.Sprint("id", i) }

// TestMetadataBound: metadata that keeps growing is given up.
func TestMetadataBound(t *testing.T) {
	c := New(Config{})
	for i := range 30 {
		c.Apply(&acpv2.UserMessage{MessageID: "m", Meta: json.RawMessage(`{"` + id(i) + `":"` + strings.Repeat("x", metaBytes/20) + `"}`)})
	}
	if m := c.Snapshot().Message(RoleUser, "m"); len(m.Meta) > metaBytes || len(m.Meta) == 0 || m.Dropped() < metaBytes {
		t.Errorf("%d bytes of metadata, %d dropped", len(m.Meta), m.Dropped())
	}
}

// TestOldestFirst: when everything together is too much, the oldest content goes,
// is counted, and the entries stay; the newest keeps its content.
func TestOldestFirst(t *testing.T) {
	c := New(Config{TotalBytes: 1 << 20})
	text := strings.Repeat("x", 10_000)
	var sent uint64
	trimmed := 0
	for i := range 300 {
		ch := c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id(i)), Content: acpv2.Text(text)})
		sent += uint64(len(text))
		if ch.Trimmed {
			trimmed++
		}
	}
	s := c.Snapshot()
	check(t, c, s)
	full, kept := false, uint64(0)
	for e := range s.Entries() {
		m := e.(*Message)
		if full && m.Dropped() > 0 {
			t.Errorf("%s lost its content, an older one has it", m.ID)
		}
		full = full || m.Dropped() == 0
		kept += uint64(len(m.Text()))
		if (m.Text() == "") != (m.Dropped() > 0) {
			t.Errorf("%s: %d bytes of text, %d dropped", m.ID, len(m.Text()), m.Dropped())
		}
	}
	if s.Len() != 300 || s.Text() != text || s.Loss().Entries != 0 {
		t.Errorf("%d entries, last %.10q, loss %+v", s.Len(), s.Text(), s.Loss())
	}
	if kept < 700_000 || s.Loss().Bytes < sent-kept || trimmed == 0 || trimmed > 100 {
		t.Errorf("%d of %d bytes kept, loss %+v, trimmed %d times", kept, sent, s.Loss(), trimmed)
	}
	// An old entry that grows again is the first to lose again.
	c.Apply(&acpv2.AgentMessageChunk{MessageID: "id0", Content: acpv2.Text(text)})
	if c.Snapshot().Message(RoleAgent, "id0").Text() != text {
		t.Error("an old message cannot grow again")
	}
	for i := range 30 {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id(1000 + i)), Content: acpv2.Text(text)})
	}
	if c.Snapshot().Message(RoleAgent, "id0").Text() != "" {
		t.Error("the oldest content stayed")
	}
}

// TestEveryKindGivesUp: each kind of entry loses its bulk and stays an entry, in the
// JSON form too.
func TestEveryKindGivesUp(t *testing.T) {
	big := strings.Repeat("x", 3000)
	meta := json.RawMessage(`{"m":"` + big + `"}`)
	c := New(Config{TotalBytes: 96 << 10})
	blocks := []acpv2.ContentBlock{acpv2.Text(big)}
	for _, u := range []acpv2.SessionUpdate{
		&acpv2.UserMessage{MessageID: "m", Content: acpv2.Set(blocks), Meta: meta},
		&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("kept"), RawInput: meta, RawOutput: meta, Meta: meta, Locations: acpv2.Set([]acpv2.ToolCallLocation{{Path: "/a"}})},
		&acpv2.PlanUpdate{Plan: &acpv2.PlanMarkdown{PlanID: "p", Content: big}},
		&acpv2.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: "q", Entries: []acpv2.PlanEntry{{Content: big}}}},
		&acpv2.PlanUpdate{Plan: &acpv2.PlanFile{PlanID: "r", URI: big}},
		&acpv2.PlanUpdate{Plan: &acpv2.UnknownPlanUpdateContent{Type: "_x", PlanID: "s", Raw: json.RawMessage(`{"type":"_x","planId":"s","k":"` + big + `"}`)}},
		&acpv2.TerminalUpdate{TerminalID: "t", Command: acpv2.Set("kept"), Output: acpv2.Set(acpv2.TerminalOutput{Data: base64.StdEncoding.EncodeToString([]byte(big))}), Meta: meta},
		&acpv2.Notice{Severity: "info", Title: "kept", Description: big, Meta: meta},
		&acpv2.CompactionUpdate{CompactionID: "c", Status: "completed", Summary: acpv2.Set(blocks), Meta: meta},
		&acpv2.SubagentUpdate{SessionID: "s", Title: acpv2.Set("kept"), AdditionalDirectories: acpv2.Set([]string{"/" + big}), Meta: meta},
		&acpv2.SessionMessage{MessageID: "m", SenderSessionID: acpv2.Set[acpv2.SessionID]("kept"), Content: acpv2.Set(blocks), Meta: meta},
		&acpv2.UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`{"sessionUpdate":"_x","k":"` + big + `"}`)},
	} {
		if ch := c.Apply(u); ch.Op != OpCreated || ch.Trimmed {
			t.Fatalf("%T: %+v", u, ch)
		}
	}
	seq, _ := c.Asked(&acpv2.RequestPermissionRequest{Title: "kept", Description: big, Meta: meta,
		Options: []acpv2.PermissionOption{{OptionID: "y"}}, Subject: &acpv2.CommandPermissionSubject{Command: big}})
	c.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "y"})
	before := c.Snapshot()
	n := before.Len()
	for i := range 12 {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id(i)), Content: acpv2.Text(strings.Repeat("y", 7000))})
	}
	s := c.Snapshot()
	check(t, c, s)
	for e := range before.Entries() {
		now := s.Entry(e.Seq())
		if now == nil {
			t.Errorf("%s was taken out", e.EntryKind())
			continue
		}
		if now.Dropped() < 3000 || now.base().bulk() != 0 || e.Dropped() != 0 {
			t.Errorf("%s: %d dropped, %d left; %d dropped in the snapshot before", e.EntryKind(), now.Dropped(), now.base().bulk(), e.Dropped())
		}
		if out, _ := AppendEntry(nil, now); len(out) > 300 {
			t.Errorf("%s is still %s", e.EntryKind(), out)
		}
	}
	if n != 13 || s.ToolCall("t").Title != "kept" || s.Terminal("t").Command != "kept" || s.Subagent("s").Title != "kept" || s.Terminal("t").Skipped != 3000 {
		t.Errorf("%d entries before; what is short has gone", n)
	}
	if o, ok := s.Entry(seq).(*Permission).Selected(); !ok || o.OptionID != "y" {
		t.Error("what was allowed is not known any more")
	}
	if jsonOf(t, restored(t, s)) != jsonOf(t, s) {
		t.Error("the JSON form makes something else")
	}
}

// TestEntryBytes: one entry, and what is known of the session, keep what fits.
func TestEntryBytes(t *testing.T) {
	cfg := Config{EntryBytes: 10_001}
	big := strings.Repeat("é", 20_000)
	raw := json.RawMessage(`{"k":"` + big + `"}`)
	item := func(i int) acpv2.ToolCallContent {
		return &acpv2.Content{Content: acpv2.Text(strings.Repeat("x", 900) + id(i))}
	}
	var items []acpv2.ToolCallContent
	var blocks []acpv2.ContentBlock
	var steps []acpv2.PlanEntry
	var options []acpv2.SessionConfigOption
	var commands []acpv2.AvailableCommand
	var dirs []string
	for i := range 50 {
		items = append(items, item(i))
		blocks = append(blocks, acpv2.Text(strings.Repeat("x", 900)))
		steps = append(steps, acpv2.PlanEntry{Content: strings.Repeat("x", 900)})
		options = append(options, acpv2.SessionConfigOption{ConfigID: acpv2.SessionConfigID(id(i)), Name: strings.Repeat("x", 900), Kind: &acpv2.SessionConfigBoolean{}})
		commands = append(commands, &acpv2.Command{Name: id(i), Description: strings.Repeat("x", 900)})
		dirs = append(dirs, "/"+strings.Repeat("x", 900))
	}
	tests := map[string]func(c *Conversation){
		"chunks": func(c *Conversation) {
			for range 40 {
				c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(strings.Repeat("é", 500))})
			}
		},
		"one chunk": func(c *Conversation) {
			if ch := c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(big)}); !ch.Trimmed || len(ch.Text) >= len(big) || c.Snapshot().Text() != ch.Text {
				t.Errorf("trimmed %v, %d bytes appended", ch.Trimmed, len(ch.Text))
			}
		},
		"tiny chunks": func(c *Conversation) { emptyBlocks(c, 500) },
		"message":     func(c *Conversation) { c.Apply(&acpv2.AgentMessage{MessageID: "m", Content: acpv2.Set(blocks)}) },
		"image": func(c *Conversation) {
			c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: &acpv2.ImageContent{Data: big}})
		},
		"tool content": func(c *Conversation) { c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Content: acpv2.Set(items)}) },
		"tool chunks": func(c *Conversation) {
			for i := range 50 {
				c.Apply(&acpv2.ToolCallContentChunk{ToolCallID: "t", Content: item(i)})
			}
		},
		"raw":   func(c *Conversation) { c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", RawInput: raw, RawOutput: raw}) },
		"title": func(c *Conversation) { c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set(big)}) },
		"capabilities": func(c *Conversation) {
			c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Capabilities: acpv2.Set(acpv2.ToolCallCapabilities{Meta: raw, Cancel: &acpv2.ToolCallCancelCapabilities{}})})
		},
		"metadata":   func(c *Conversation) { c.Apply(&acpv2.UserMessage{MessageID: "m", Meta: raw}) },
		"plan items": func(c *Conversation) { c.Apply(&acpv2.PlanUpdate{Plan: &acpv2.PlanItems{PlanID: "p", Entries: steps}}) },
		"plan text": func(c *Conversation) {
			c.Apply(&acpv2.PlanUpdate{Plan: &acpv2.PlanMarkdown{PlanID: "p", Content: big}})
		},
		"plan file": func(c *Conversation) { c.Apply(&acpv2.PlanUpdate{Plan: &acpv2.PlanFile{PlanID: "p", URI: big}}) },
		"unknown plan": func(c *Conversation) {
			c.Apply(&acpv2.PlanUpdate{Plan: &acpv2.UnknownPlanUpdateContent{Type: big, PlanID: "p", Raw: taggedOnly("type", big, "planId", "p")}})
		},
		"unknown": func(c *Conversation) {
			c.Apply(&acpv2.UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`{"sessionUpdate":"_x","k":"` + big + `"}`)})
		},
		"exit status": func(c *Conversation) {
			c.Apply(&acpv2.TerminalUpdate{TerminalID: "t", ExitStatus: acpv2.Set(acpv2.TerminalExitStatus{ExitCode: new(int64(3)), Signal: big})})
			if x := c.Snapshot().Terminal("t").ExitStatus; *x.ExitCode != 3 || x.Signal == "" {
				t.Errorf("%+v", x)
			}
		},
		"size": func(c *Conversation) {
			c.Apply(&acpv2.TerminalUpdate{TerminalID: "t", Size: acpv2.Set(acpv2.TerminalSize{Cols: 80, Rows: 24, Meta: raw})})
			if x := c.Snapshot().Terminal("t").Size; x.Cols != 80 || x.Rows != 24 {
				t.Errorf("%+v", x)
			}
		},
		"notice": func(c *Conversation) { c.Apply(&acpv2.Notice{Title: big, Description: big}) },
		"directories": func(c *Conversation) {
			c.Apply(&acpv2.SubagentUpdate{SessionID: "s", AdditionalDirectories: acpv2.Set(dirs)})
		},
		"child state": func(c *Conversation) {
			c.Apply(&acpv2.SubagentUpdate{SessionID: "s", State: acpv2.Set[acpv2.StateUpdate](&acpv2.RequiresActionStateUpdate{Meta: raw})})
			if s := c.Snapshot().Subagent("s").State; s.Foreground != ForegroundRequiresAction {
				t.Errorf("%+v", s)
			}
		},
		"permission": func(c *Conversation) {
			c.Asked(&acpv2.RequestPermissionRequest{Title: big, Description: big, Meta: raw, Subject: &acpv2.CommandPermissionSubject{Command: big},
				Options: []acpv2.PermissionOption{{OptionID: "y"}, {OptionID: acpv2.PermissionOptionID(big)}}})
		},
		"session options":  func(c *Conversation) { c.Apply(&acpv2.ConfigOptionUpdate{ConfigOptions: options}) },
		"session commands": func(c *Conversation) { c.Apply(&acpv2.AvailableCommandsUpdate{AvailableCommands: commands}) },
		"session title":    func(c *Conversation) { c.Apply(&acpv2.SessionInfoUpdate{Title: acpv2.Set(big)}) },
		"session meta":     func(c *Conversation) { c.Apply(&acpv2.SessionInfoUpdate{Meta: raw}) },
		"session usage": func(c *Conversation) {
			c.Apply(&acpv2.UsageUpdate{Used: 5, Size: 6, Cost: acpv2.Set(acpv2.Cost{Amount: 1, Currency: big})})
			if u := c.Snapshot().Session().Usage; u.Used != 5 || u.Size != 6 || u.Cost != nil {
				t.Errorf("%+v", u)
			}
		},
		"session idle": func(c *Conversation) {
			bigState(t, c, &acpv2.IdleStateUpdate{StopReason: "end_turn", Meta: raw}, ForegroundIdle)
		},
		"session running": func(c *Conversation) { bigState(t, c, &acpv2.RunningStateUpdate{Meta: raw}, ForegroundRunning) },
		"session unclear": func(c *Conversation) { bigState(t, c, &acpv2.StateUnknownUpdate{Meta: raw}, ForegroundUnknown) },
		"session state": func(c *Conversation) {
			bigState(t, c, &acpv2.UnknownStateUpdate{Type: "_x", Raw: json.RawMessage(`{"state":"_x","k":"` + big + `"}`)}, "_x")
		},
		"session words": func(c *Conversation) {
			bigState(t, c, &acpv2.UnknownStateUpdate{Type: big, Raw: taggedOnly("state", big)}, ForegroundUnknown)
		},
	}
	for name, apply := range tests {
		t.Run(name, func(t *testing.T) {
			c := New(cfg)
			apply(c)
			s := c.Snapshot()
			check(t, c, s)
			bulk, dropped := s.Session().core.bulk(), s.Session().Dropped()
			for e := range s.Entries() {
				bulk, dropped = e.base().bulk(), e.Dropped()
			}
			if s.Len() > 1 || bulk > cfg.EntryBytes+itemCost || dropped < 1000 || s.Loss().Bytes != uint64(dropped) {
				t.Errorf("%d entries, %d bytes, %d dropped, loss %+v", s.Len(), bulk, dropped, s.Loss())
			}
			form := jsonOf(t, s)
			if len(form) > 3*cfg.EntryBytes || strings.Contains(form, "\ufffd") || jsonOf(t, restored(t, s)) != form {
				t.Errorf("%d bytes: %.300s", len(form), form)
			}
		})
	}
}

func emptyBlocks(c *Conversation, n int) {
	for range n {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("")})
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: &acpv2.ImageContent{}})
	}
}

func bigState(t *testing.T, c *Conversation, u acpv2.StateUpdate, want Foreground) {
	c.Apply(u)
	if s := c.Snapshot().Session().State; s.Foreground != want || s.Idle() != (want == ForegroundIdle) {
		t.Errorf("%+v", s)
	}
}

// TestCounts: there are never more entries, nor more unknown ones, than the bounds
// allow; the oldest go, and an id that went begins anew.
func TestCounts(t *testing.T) {
	c := New(Config{Entries: 100, Unknown: 10})
	for i := range 1000 {
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id(i)), Content: acpv2.Text("x")})
		c.Apply(&acpv2.UnknownSessionUpdate{Type: "_x", Raw: json.RawMessage(`{"sessionUpdate":"_x","n":` + fmt.Sprint(i) + `}`)})
	}
	s := c.Snapshot()
	check(t, c, s)
	var messages, unknown []string
	for e := range s.Entries() {
		switch e := e.(type) {
		case *Message:
			messages = append(messages, string(e.ID))
		case *Unknown:
			unknown = append(unknown, string(e.Raw))
		}
	}
	if len(messages) != 90 || messages[89] != "id999" || len(unknown) != 10 || !strings.Contains(unknown[9], "999") {
		t.Errorf("%d messages to %s, %d unknown to %s", len(messages), messages[len(messages)-1], len(unknown), unknown[len(unknown)-1])
	}
	if s.Loss().Entries != 1900 {
		t.Errorf("loss %+v", s.Loss())
	}
	ch := c.Apply(&acpv2.AgentMessageChunk{MessageID: "id0", Content: acpv2.Text("y")})
	if ch.Op != OpCreated || !ch.Trimmed || c.Snapshot().Text() != "y" {
		t.Errorf("%+v", ch)
	}
	// An old snapshot still finds what has gone since, and does not find what came.
	for i := range 200 {
		c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id(i))})
	}
	if m := s.Message(RoleAgent, "id999"); m == nil || m.Text() != "x" {
		t.Errorf("%v", m)
	}
	if s.ToolCall("id199") != nil || s.Message(RoleAgent, "id0") != nil {
		t.Error("found what is not in the snapshot")
	}
	if c.Snapshot().Text() != "" {
		t.Error("there is a last message though all have gone")
	}
	if got := s.Continue(Config{Entries: 5}); got.Snapshot().Len() != 5 || s.Len() != 100 {
		t.Errorf("%d entries go on", got.Snapshot().Len())
	}
}

// TestWithoutEnd: a peer that never stops, in any way it can, does not make us grow.
func TestWithoutEnd(t *testing.T) {
	c := New(Config{TotalBytes: 1 << 20, TerminalBytes: 16 << 10})
	word := strings.Repeat("word ", 200)
	data := base64.StdEncoding.EncodeToString([]byte(word))
	raw := json.RawMessage(`{"k":"` + word + `"}`)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for i := range 4000 {
		one := id(i)
		c.Apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(word)})
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(one), Content: acpv2.Text(word)})
		c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(one), Title: acpv2.Set(word), RawInput: raw})
		c.Apply(&acpv2.ToolCallContentChunk{ToolCallID: "t", Content: &acpv2.Terminal{TerminalID: "x"}})
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: data})
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(one), Data: data})
		if i%8 == 0 {
			c.Apply(&acpv2.UserMessage{MessageID: "m", Meta: json.RawMessage(`{"` + one + `":"` + word + `"}`)})
		}
	}
	check(t, c, c.Snapshot())
	if grown := int64(live()) - int64(before); grown > 8<<20 {
		t.Errorf("%d bytes for a bound of %d", grown, 1<<20)
	}
	runtime.KeepAlive(c)
}

// TestNotPinned: a small value does not keep the big frame in memory from which it
// was decoded.
func TestNotPinned(t *testing.T) {
	c := New(Config{})
	var m runtime.MemStats
	live := func() uint64 { runtime.GC(); runtime.ReadMemStats(&m); return m.HeapAlloc }
	before := live()
	for i := range 50 {
		frame := strings.Repeat("x", 1<<20)
		c.Apply(&acpv2.ToolCallUpdate{ToolCallID: acpv2.ToolCallID(id(i) + frame[:10]), Title: acpv2.Set(frame[:2000])})
		c.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(frame[:1000+i]), Content: acpv2.Text(frame[:1000])})
		c.Apply(&acpv2.TerminalOutputChunk{TerminalID: acpv2.TerminalID(frame[:2000+i])})
		c.Asked(&acpv2.RequestPermissionRequest{Title: frame[:1000], Description: frame[:1000]})
	}
	if grown := int64(live()) - int64(before); grown > 10<<20 {
		t.Errorf("%d MB are kept", grown>>20)
	}
	runtime.KeepAlive(c)
}
