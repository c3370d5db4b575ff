package main

import (
	"context"
	"encoding/json"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// updates sends one of every update. Failures are kept by the turn.
func (s *script) updates(context.Context) error {
	s.updateMessages()
	terminal, err := s.updateTool()
	if err != nil {
		return err
	}
	_ = s.Plan(acp.PlanEntry{Content: "step", Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending})
	s.updateSession(terminal)
	compaction := s.Compact()
	_ = compaction.Say("sum")
	_ = compaction.Complete(acp.Text("sum"))
	if !s.agent.stable {
		s.updateExperimental()
	}
	if s.version() == 2 {
		_ = s.Send(&acp.UnknownSessionUpdate{Type: "_vendor_update",
			Raw: json.RawMessage(`{"sessionUpdate":"_vendor_update","payload":{"keep":[1,2]},"_meta":{"a":1}}`)})
	}
	return s.Err()
}

// updateMessages sends messages in pieces, as a whole, and one that is emptied.
func (s *script) updateMessages() {
	file := &acp.EmbeddedResource{Resource: &acp.TextResourceContents{URI: "file:///f", Text: "abc", MIMEType: "text/plain"}}
	_ = s.Send(&acp.UserMessageChunk{MessageID: "m0", Content: acp.Text("echo")})
	_ = s.Send(&acp.AgentThoughtChunk{MessageID: "th", Content: acp.Text("think")})
	_ = s.Send(&acp.AgentThought{MessageID: "th", Content: acp.Set([]acp.ContentBlock{acp.Text("thinking")})})
	_ = s.Send(&acp.AgentMessage{MessageID: "am", Content: acp.Set([]acp.ContentBlock{
		&acp.ImageContent{Data: "AAAA", MIMEType: "image/png"},
		&acp.AudioContent{Data: "AAAA", MIMEType: "audio/wav"},
		&acp.ResourceLink{Name: "f", URI: "file:///f", Size: new(uint64(3))},
		file,
		&acp.EmbeddedResource{Resource: &acp.BlobResourceContents{URI: "file:///b", Blob: "AAAA"}},
	})})
	_ = s.Send(&acp.AgentMessage{MessageID: "am", Content: acp.Clear[[]acp.ContentBlock]()})
	_ = s.Show(file)
}

// updateTool takes a tool call through its life, with a diff and the terminal whose id
// it returns.
func (s *script) updateTool() (acp.TerminalID, error) {
	call := s.ToolCall(acp.ToolCall{
		Name: "edit_file", Title: "Edit", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		Locations: []acp.ToolCallLocation{{Path: "/a.txt", Line: new(uint32(1))}},
		Input:     map[string]int{"a": 1},
		Cancel:    func() {}, // it is over in no time
	})
	_ = call.SetStatus(acp.ToolCallStatusInProgress)
	_ = call.Text("p")
	terminal, err := call.Run(acp.Exec{Command: "echo", Args: []string{"hi"}})
	if err != nil {
		return "", err
	}
	_, err = terminal.Wait()
	if err != nil {
		return "", err
	}
	diff := &acp.Diff{
		Changes: []acp.DiffChange{{Operation: &acpv2.DiffAdd{Path: "/a.txt"}}},
		Patch: &acp.DiffPatch{Format: acpv2.DiffPatchFormatGitPatch, Text: "diff --git a/a.txt b/a.txt\n" +
			"new file mode 100644\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"},
	}
	if s.dialect() == 2 { // in version 1 each would be a diff of its own
		diff.Changes = append(diff.Changes,
			acp.DiffChange{Operation: &acpv2.DiffDelete{Path: "/b"}, FileType: acpv2.DiffFileTypeText},
			acp.DiffChange{Operation: &acpv2.DiffModify{Path: "/c"}},
			acp.DiffChange{Operation: &acpv2.DiffMove{OldPath: "/d", Path: "/e"}},
			acp.DiffChange{Operation: &acpv2.DiffCopy{OldPath: "/f", Path: "/g"}},
		)
	}
	_ = call.SetStatus(acp.ToolCallStatusPaused)
	_ = call.Update(acp.ToolCallUpdate{
		Title:  acp.Clear[string](),
		Status: acp.Set(acp.ToolCallStatusCompleted),
		Content: acp.Set([]acp.ToolCallContent{
			&acp.BlockContent{Content: acp.Text("done")}, diff, &acp.TerminalContent{TerminalID: terminal.ID()},
		}),
		RawOutput: json.RawMessage(`{"ok":true}`),
	})
	return terminal.ID(), terminal.Release()
}

// updateSession changes what belongs to the session rather than to the turn.
func (s *script) updateSession(terminal acp.TerminalID) {
	_ = s.Send(&acp.AvailableCommandsUpdate{AvailableCommands: []acp.AvailableCommand{
		&planCommand,
		&acpv2.UnknownAvailableCommand{Type: "_vendor", Name: "v", Description: "d",
			Raw: json.RawMessage(`{"type":"_vendor","name":"v","description":"d","extra":1}`)},
	}})
	session := s.Session()
	options := session.Options()
	for i, o := range options {
		if kind, ok := o.Kind.(*acp.SessionConfigSelect); ok && o.ConfigID == "mode" {
			other := *kind
			other.CurrentValue = map[acp.SessionConfigValueID]acp.SessionConfigValueID{"ask": "code", "code": "ask"}[kind.CurrentValue]
			options[i].Kind = &other
		}
	}
	_ = session.SetOptions(options...)
	_ = s.Send(&acp.SessionInfoUpdate{Title: acp.Set("T"), UpdatedAt: acp.Set("2026-11-01T00:00:00Z")})
	_ = s.Send(&acp.SessionInfoUpdate{Title: acp.Clear[string]()})
	_ = s.Usage(53000, 200000, &acp.Cost{Amount: 0.045, Currency: "USD"})
	_ = s.Notice(acp.NoticeSeverityWarning, "Heads up", "detail")
	_ = session.SetBackground(&acpv2.BackgroundTerminal{TerminalID: terminal},
		&acpv2.UnknownBackgroundWork{Type: "_x", Raw: json.RawMessage(`{"type":"_x","q":1}`)})
	_ = session.SetBackground()
}

// updateExperimental sends what only clients of the unstable protocol know.
func (s *script) updateExperimental() {
	_ = s.UpdatePlan(&acp.PlanMarkdown{PlanID: "p1", Content: "# plan"})
	_ = s.RemovePlan("p1")
	_ = s.Subagent(&acp.SubagentUpdate{SessionID: "child-1", Title: acp.Set("Child"), State: acp.Set[acp.StateUpdate](&acp.RunningStateUpdate{})})
	_ = s.Send(&acp.SessionMessage{MessageID: "sm1", RecipientSessionID: acp.Set(acp.SessionID("child-1")),
		Content: acp.Set([]acp.ContentBlock{acp.Text("go")})})
	_ = s.Send(&acp.SessionMessageChunk{MessageID: "sm1", Content: acp.Text("!")})
	_ = s.Subagent(&acp.SubagentUpdate{SessionID: "child-1", State: acp.Set[acp.StateUpdate](&acp.IdleStateUpdate{
		StopReason: acp.StopError, Error: &acpv2.Error{Code: -32603, Message: "x"},
	})})
}

// notify sends an update as it is written.
func (s *script) notify(ctx context.Context, update string) error {
	return s.conn.Notify(ctx, "session/update", map[string]any{
		"sessionId": s.Session().ID(), "update": json.RawMessage(update),
	})
}

func (s *script) badUpdate(ctx context.Context) error {
	for _, u := range []string{
		`{"sessionUpdate":"future_update","x":1}`,
		`{"sessionUpdate":"agent_message_chunk"}`,
	} {
		if err := s.notify(ctx, u); err != nil {
			return err
		}
	}
	if err := s.conn.Notify(ctx, "session/update", map[string]bool{"nope": true}); err != nil {
		return err
	}
	return s.say("after-bad")
}

func (s *script) lenient(ctx context.Context) error {
	updates := []string{
		`{"sessionUpdate":"tool_call","toolCallId":"len-1","title":"L","kind":"not_a_kind","status":7,"content":[` +
			`{"type":"content","content":{"type":"text","text":"keep"}},{"type":"bogus"},5],"locations":"oops","_meta":"bad"}`,
		`{"sessionUpdate":"plan","entries":[{"content":"keep","priority":"low","status":"completed"},{"content":"drop"}]}`,
	}
	if s.version() == 2 && s.dialect() == 1 {
		updates = []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"len-1","title":"L","kind":5,"status":{"x":1},"content":[` +
				`{"type":"content","content":{"type":"text","text":"keep"}},{"type":5},5],"locations":["oops"],"_meta":"bad"}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[` +
				`{"content":"keep","priority":"low","status":"completed"},{"content":"drop"}]}}`,
		}
	}
	if s.version() == 2 && s.dialect() == 2 {
		updates = []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"len","kind":5,"status":{"x":1},"title":7,"content":[` +
				`{"type":"content","content":{"type":"text","text":"keep"}},{"type":5},9],"locations":"oops","capabilities":"bad","_meta":3}`,
		}
		s.stop = ""
	}
	for _, u := range updates {
		if err := s.notify(ctx, u); err != nil {
			return err
		}
	}
	return s.say("after-lenient")
}
