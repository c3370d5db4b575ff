package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestUpdateKind holds that every update that the schema knows has its kind, and that
// one it does not know has what the agent wrote.
func TestUpdateKind(t *testing.T) {
	const members = `"messageId":"m","toolCallId":"c","terminalId":"t","planId":"p","compactionId":"k","sessionId":"s","state":"idle",
		"plan":{"type":"items","planId":"p","entries":[]},"availableCommands":[],"configOptions":[],"used":1,"size":2,"message":"n",
		"severity":"info","title":"n","status":"running","data":"eA==","name":"n","noticeId":"n","cursorId":"u","suggestions":[]`
	kinds := acpv2.Updates()
	kinds["_example.com/x"] = false
	for kind := range kinds {
		content := ""
		switch {
		case kind == "tool_call_content_chunk":
			content = `,"content":{"type":"content","content":{"type":"text","text":"x"}}`
		case strings.HasSuffix(kind, "_chunk"):
			content = `,"content":{"type":"text","text":"x"}`
		}
		u, err := acpv2.UnmarshalSessionUpdate(fmt.Appendf(nil, `{"sessionUpdate":%q,%s%s}`, kind, members, content))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if got := (&Update{Update: u}).Kind(); got != kind {
			t.Errorf("the kind of a %s is %q", kind, got)
		}
	}
	if got := new(Update).Kind(); got != "" {
		t.Errorf("the kind of nothing is %q", got)
	}
}

// created returns what a client's Update hook notes, as kinds, with a + for updates
// that are Created.
func created(list *[]string) Client {
	return Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
		word := u.Kind()
		if u.Created {
			word += "+"
		}
		*list = append(*list, word)
	}}
}

// TestUpdateCreated holds that the first update that names something says so, and no
// other.
func TestUpdateCreated(t *testing.T) {
	const text = `"content":{"type":"text","text":"x"}`
	steps := []struct{ kind, fields, want string }{
		{"agent_message_chunk", `"messageId":"1",` + text, "+"},
		{"agent_message_chunk", `"messageId":"1",` + text, ""},
		{"agent_thought_chunk", `"messageId":"1",` + text, "+"}, // ids of its own
		{"agent_message_chunk", `"messageId":"2",` + text, "+"},
		{"agent_message", `"messageId":"1"`, ""},
		{"agent_message_chunk", `"messageId":"1",` + text, ""},
		{"agent_message", `"messageId":"3"`, "+"},
		{"tool_call_update", `"toolCallId":"1","title":"T"`, "+"},
		{"tool_call_content_chunk", `"toolCallId":"1","content":{"type":"terminal","terminalId":"1"}`, ""},
		{"terminal_update", `"terminalId":"1"`, "+"},
		{"tool_call_update", `"toolCallId":"1","status":"completed"`, ""},
		{"plan_update", `"plan":{"type":"items","planId":"1","entries":[]}`, "+"},
		{"plan_update", `"plan":{"type":"markdown","planId":"1","content":"x"}`, ""},
		{"plan_update", `"plan":{"type":"file","planId":"2","uri":"file:///x"}`, "+"},
		{"plan_update", `"plan":{"type":"_x","planId":"3"}`, "+"},
		{"plan_removed", `"planId":"1"`, ""},
		{"plan_removed", `"planId":"4"`, ""},
		{"plan_update", `"plan":{"type":"items","planId":"1","entries":[]}`, "+"},
		{"usage_update", `"used":1,"size":2`, ""},
		{"_x", `"messageId":"9"`, ""},
	}
	var got, want []string
	single(t, created(&got), 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		for _, step := range steps {
			a.update(step.kind, step.fields)
			want = append(want, step.kind+step.want)
		}
		synctest.Wait()
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		// What is remembered is bounded.
		got = nil
		for i := range maxMentioned {
			a.update("tool_call_update", fmt.Sprintf(`"toolCallId":"many%d"`, i))
		}
		a.update("tool_call_update", `"toolCallId":"many0"`)
		a.update("tool_call_update", `"toolCallId":"1"`)
		synctest.Wait()
		if n := len(got); n != maxMentioned+2 || got[n-2] != "tool_call_update" || got[n-1] != "tool_call_update+" {
			t.Error(got)
		}
	})
	got = nil
	single(t, created(&got), 1, func(t *testing.T, s *ClientSession, a *clientScript) {
		r := s.Prompt(t.Context(), Text("hi"))
		f := a.next("session/prompt")
		a.update("agent_message_chunk", text)
		a.update("agent_message_chunk", text)
		a.update("tool_call", `"toolCallId":"1","title":"T"`)
		a.update("tool_call_update", `"toolCallId":"1","status":"completed"`)
		a.update("agent_message_chunk", text)
		a.update("plan", `"entries":[]`)
		a.update("plan", `"entries":[]`)
		a.answer(f, `{"stopReason":"end_turn"}`)
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
		want := []string{"user_message+", "state_update", "agent_message_chunk+", "agent_message_chunk", "tool_call_update+", "tool_call_update",
			"agent_message_chunk+", "plan_update+", "plan_update", "state_update"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// TestUpdateToolCall holds that an update is filled in with what else was said of its
// tool call, and that nothing else is about one.
func TestUpdateToolCall(t *testing.T) {
	var got []*ToolCallUpdate
	hook := Client{Update: func(_ context.Context, _ *ClientSession, u *Update) { got = append(got, u.ToolCall()) }}
	both(t, hook, func(t *testing.T, s *ClientSession, a *clientScript) {
		got = nil
		version := s.Conn().Version()
		a.announce(version, "1", `"title":"Run","kind":"execute","rawInput":{"command":"go test"},"status":"pending"`)
		synctest.Wait()
		a.update("tool_call_update", `"toolCallId":"1","status":"completed","rawOutput":{"exit":0}`)
		synctest.Wait()
		a.update("tool_call_update", `"toolCallId":"2","status":"failed"`)
		a.say("x")
		synctest.Wait()
		if len(got) != 4 || got[3] != nil {
			t.Fatal(got)
		}
		call := got[1]
		if call.Title.Or("") != "Run" || call.Kind.Or("") != ToolKindExecute || call.Status.Or("") != ToolCallStatusCompleted ||
			string(call.RawInput) != `{"command":"go test"}` || string(call.RawOutput) != `{"exit":0}` {
			t.Errorf("filled in: %+v", call)
		}
		if call := got[0]; call.Status.Or("") != "pending" || call.RawOutput != nil {
			t.Errorf("first: %+v", call)
		}
		if call := got[2]; call.ToolCallID != "2" || !call.Title.IsZero() || call.Status.Or("") != ToolCallStatusFailed {
			t.Errorf("alone: %+v", call)
		}
	})
	got = nil
	single(t, hook, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		const piece = `"content":{"type":"content","content":{"type":"text","text":"x"}}`
		a.update("tool_call_update", `"toolCallId":"1","title":"Run"`)
		a.update("tool_call_content_chunk", `"toolCallId":"1",`+piece)
		a.update("tool_call_content_chunk", `"toolCallId":"2",`+piece)
		synctest.Wait()
		if len(got) != 3 || got[1].Title.Or("") != "Run" || len(got[1].Content.Or(nil)) != 1 || got[2].ToolCallID != "2" || len(got[2].Content.Or(nil)) != 1 {
			t.Error(got)
		}
	})
	own := &ToolCallUpdate{ToolCallID: "3"}
	if got := (&Update{Update: own}).ToolCall(); got != own {
		t.Error(got)
	}
	if got := (&Update{Update: &ToolCallContentChunk{ToolCallID: "3"}}).ToolCall(); got.ToolCallID != "3" {
		t.Error(got)
	}
}

// TestReplyText holds what the text of an answer is.
func TestReplyText(t *testing.T) {
	chunk := func(a *clientScript, id, text string) {
		a.update("agent_message_chunk", fmt.Sprintf(`"messageId":%q,"content":{"type":"text","text":%q}`, id, text))
	}
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		version := s.Conn().Version()
		type answer struct {
			text string
			res  *Result
		}
		r := s.Prompt(t.Context(), Text("hi"))
		got := later(func() (answer, error) {
			text, res, err := r.Text()
			return answer{text, res}, err
		})
		f := a.next("session/prompt")
		if version == 2 {
			a.answer(f, `{"messageId":"u"}`)
			a.update("user_message", `"messageId":"u","content":[{"type":"text","text":"hi"}]`)
			a.state("running", "")
		}
		a.update("agent_thought_chunk", `"messageId":"t","content":{"type":"text","text":"hm"}`)
		chunk(a, "1", "Let me ")
		chunk(a, "1", "look.")
		a.announce(version, "c", `"title":"Look"`)
		chunk(a, "2", "It is ")
		a.update("agent_message_chunk", `"messageId":"2","content":{"type":"image","data":"eA==","mimeType":"image/png"}`)
		chunk(a, "2", "4.")
		if version == 2 {
			a.update("agent_message", `"messageId":"2","content":[{"type":"text","text":"It is 4. Sure."}]`)
			a.state("idle", `"stopReason":"max_tokens"`)
		} else {
			chunk(a, "2", " Sure.")
			a.answer(f, `{"stopReason":"max_tokens"}`)
		}
		res, err := got()
		if err != nil || res.text != "Let me look.\n\nIt is 4. Sure." || res.res == nil || res.res.StopReason != "max_tokens" {
			t.Errorf("%q, %v, %v", res.text, res.res, err)
		}
		if text, again, err := r.Text(); text != "" || again != res.res || err != nil {
			t.Errorf("again: %q, %v, %v", text, again, err)
		}
	})
}

// TestReplyTextFails holds what Text returns when the answer is not complete: what
// there is, and why.
func TestReplyTextFails(t *testing.T) {
	single(t, Client{}, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		begin := func() (*Reply, func() (string, error)) {
			r := s.Prompt(t.Context(), Text("hi"))
			a.answer(a.next("session/prompt"), `{"messageId":"u"}`)
			return r, later(func() (string, error) { text, _, err := r.Text(); return text, err })
		}
		_, got := begin()
		synctest.Wait()
		a.say("so far")
		a.state("idle", `"stopReason":"error","error":{"code":-32000,"message":"no"}`)
		text, err := got()
		if said := (*jsonrpc.Error)(nil); text != "so far" || !errors.As(err, &said) || said.Code != -32000 {
			t.Errorf("%q, %v", text, err)
		}
		// Beyond the bound nothing is kept, so that what there is is the beginning.
		_, got = begin()
		synctest.Wait()
		a.say(strings.Repeat("x", maxReplyText-1))
		a.say("yz")
		a.say("z")
		a.state("idle", `"stopReason":"end_turn"`)
		text, err = got()
		if len(text) != maxReplyText-1 || strings.Contains(text, "z") || !errors.Is(err, ErrUpdatesLost) {
			t.Errorf("%d bytes, %v", len(text), err)
		}
		// An update that cannot be read may have been text.
		_, got = begin()
		synctest.Wait()
		a.update("agent_message_chunk", `"messageId":"m","content":`+strings.Repeat("[", 600)+strings.Repeat("]", 600))
		synctest.Wait()
		a.say("the rest")
		a.state("idle", `"stopReason":"end_turn"`)
		if text, err := got(); !strings.Contains(text, "the rest") || !errors.Is(err, ErrUpdatesLost) {
			t.Errorf("%q, %v", text, err)
		}
	})
}
