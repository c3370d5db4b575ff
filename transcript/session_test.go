package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestSession: what updates make of the session, shown as its JSON form.
func TestSession(t *testing.T) {
	const (
		state = `{"sessionUpdate":"state_update","state":`
		usage = `{"sessionUpdate":"usage_update",`
		info  = `{"sessionUpdate":"session_info_update",`
	)
	tests := []struct {
		name    string
		updates []string
		want    string
	}{
		{"nothing", nil, `{}`},
		{"running", []string{state + `"running"}`}, `{"state":` + state + `"running"}}`},
		{"background", []string{state + `"running","background":[{"type":"terminal","terminalId":"t"},{"type":"_x"}]}`}, `{"state":` + state + `"running","background":[{"type":"terminal","terminalId":"t"},{"type":"_x"}]}}`},
		{"background not reported", []string{state + `"running","background":[]}`, state + `"running"}`}, `{"state":` + state + `"running"}}`},
		{"requires action", []string{state + `"requires_action"}`}, `{"state":` + state + `"requires_action"}}`},
		{"not known", []string{state + `"unknown"}`}, `{"state":` + state + `"unknown"}}`},
		{"S85 unknown", []string{state + `"_x","k":1.50}`}, `{"state":` + state + `"_x","k":1.50}}`},
		{"S88 idle again is no other end", []string{state + `"idle","stopReason":"error","error":{"code":1,"message":"m"},"usage":{"totalTokens":1,"inputTokens":1,"outputTokens":0}}`, state + `"idle","background":[]}`},
			`{"state":` + state + `"idle","usage":{"totalTokens":1,"inputTokens":1,"outputTokens":0},"background":[],"stopReason":"error","error":{"code":1,"message":"m"}}}`},
		{"idle after work", []string{state + `"idle","stopReason":"end_turn"}`, state + `"running"}`, state + `"idle"}`}, `{"state":` + state + `"idle"}}`},
		{"S78 cost stays", []string{usage + `"used":1,"size":2,"cost":{"amount":1.5,"currency":"EUR"}}`, usage + `"used":3,"size":4}`}, `{"usage":` + usage + `"used":3,"size":4,"cost":{"amount":1.5,"currency":"EUR"}}}`},
		{"what metadata of the usage leaves out stays", []string{usage + `"used":1,"size":2,"_meta":{"limit":1,"k":2}}`, usage + `"used":3,"size":4,"_meta":{"k":3,"m":4}}`},
			`{"usage":` + usage + `"used":3,"size":4,"_meta":{"limit":1,"k":3,"m":4}}}`},
		{"S78 cost cleared", []string{usage + `"used":1,"size":2,"cost":{"amount":1.5,"currency":"EUR"}}`, usage + `"used":3,"size":4,"cost":null}`}, `{"usage":` + usage + `"used":3,"size":4}}`},
		{"S78 info", []string{info + `"title":"a","updatedAt":"2026-01-01T00:00:00Z","_meta":{"a":1}}`, info + `"title":null,"_meta":{"b":2}}`}, `{"info":` + info + `"updatedAt":"2026-01-01T00:00:00Z","_meta":{"a":1,"b":2}}}`},
		{"options", []string{`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"m","name":"M","type":"boolean","currentValue":true}]}`}, `{"configOptions":{"sessionUpdate":"config_option_update","configOptions":[{"configId":"m","name":"M","type":"boolean","currentValue":true}]}}`},
		{"no options", []string{`{"sessionUpdate":"config_option_update","configOptions":[]}`}, `{"configOptions":{"sessionUpdate":"config_option_update","configOptions":[]}}`},
		{"commands", []string{`{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"a","description":"b"},{"type":"_x","name":"c","description":""}]}`},
			`{"commands":{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"a","description":"b"},{"type":"_x","name":"c","description":""}]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := folded(t, tt.updates...)
			var form struct{ Session json.RawMessage }
			if err := json.Unmarshal([]byte(jsonOf(t, restored(t, s))), &form); err != nil {
				t.Fatal(err)
			}
			if canonical(t, string(form.Session)) != canonical(t, tt.want) {
				t.Errorf("\n got %s\nwant %s", form.Session, tt.want)
			}
			if jsonOf(t, s) != jsonOf(t, restored(t, s)) {
				t.Error("the JSON form makes another session")
			}
		})
	}
}

// canonical brings JSON into one order of keys.
func canonical(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v\n%s", err, s)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestState: what is made of states (S85, S88).
func TestState(t *testing.T) {
	for _, tt := range []struct {
		update string
		want   Foreground
		idle   bool
	}{
		{"", "", true},
		{"idle", ForegroundIdle, true},
		{"running", ForegroundRunning, false},
		{"requires_action", ForegroundRequiresAction, false},
		{"unknown", ForegroundUnknown, false},
		{"_resting", "_resting", false},
	} {
		c := New(Config{})
		if tt.update != "" {
			fold(t, c, `{"sessionUpdate":"state_update","state":"`+tt.update+`"}`)
		}
		s := c.Snapshot().Session().State
		if s.Foreground != tt.want || s.Idle() != tt.idle || (s.Update() == nil) != (tt.update == "") {
			t.Errorf("%s: %+v", tt.update, s)
		}
	}
	c := New(Config{})
	fold(t, c, `{"sessionUpdate":"state_update","state":"idle","stopReason":"max_tokens","background":[{"type":"subagent","sessionId":"s"}],"usage":{"totalTokens":7,"inputTokens":3,"outputTokens":4}}`)
	s := c.Snapshot().Session().State
	if s.StopReason != acpv2.StopReasonMaxTokens || s.Tokens.TotalTokens != 7 || len(s.Background) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAccess: a snapshot answers by type and id.
func TestAccess(t *testing.T) {
	c := New(Config{})
	fold(t, c,
		`{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"q"}]}`,
		`{"sessionUpdate":"agent_thought","messageId":"m","content":[{"type":"text","text":"hm"}]}`,
		`{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"first "},{"type":"_x"},{"type":"text","text":"and "},{"type":"text","text":"last"}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"_resting","capabilities":{"cancel":{}}}`,
		`{"sessionUpdate":"terminal_update","terminalId":"t","capabilities":{"cancel":{}}}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`,
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"text","text":"s"}]}`,
		`{"sessionUpdate":"subagent_update","sessionId":"s","capabilities":{"cancel":{}}}`,
		`{"sessionUpdate":"session_message","messageId":"1","senderSessionId":"s","content":[{"type":"text","text":"hi"}]}`,
		`{"sessionUpdate":"session_message","messageId":"2","recipientSessionId":"s"}`,
		`{"sessionUpdate":"session_message","messageId":"3","recipientSessionId":"other"}`,
	)
	for name, s := range map[string]*Snapshot{"live": c.Snapshot(), "read": restored(t, c.Snapshot())} {
		if got := s.Text(); got != "first and last" {
			t.Errorf("%s: text %q", name, got)
		}
		if u, th := s.Message(RoleUser, "m"), s.Message(RoleThought, "m"); u.Text() != "q" || th.Text() != "hm" || u.Role != RoleUser {
			t.Errorf("%s: messages %q and %q", name, u.Text(), th.Text())
		}
		if n := len(s.Message(RoleAgent, "m").Content()); n != 4 {
			t.Errorf("%s: %d blocks", name, n)
		}
		if x := s.ToolCall("t"); x.Ended() || !x.Cancellable() { // S85: an unknown status is no end
			t.Errorf("%s: tool call %+v", name, x)
		}
		if x := s.Terminal("t"); x.Exited() || !x.Cancellable() {
			t.Errorf("%s: terminal %+v", name, x)
		}
		if !s.Subagent("s").Cancellable() || len(s.Compaction("c").Summary()) != 1 || s.Plan("p") == nil {
			t.Errorf("%s: something is missing", name)
		}
		var exchange []string
		for m := range s.Exchange("s") {
			exchange = append(exchange, string(m.ID)+m.Text())
		}
		if diff := cmp.Diff([]string{"1hi", "2"}, exchange); diff != "" {
			t.Error(diff)
		}
		for m := range s.Exchange("s") {
			if len(m.Content()) != 1 || s.SessionMessage("1") != m {
				t.Errorf("%s: %v", name, m)
			}
			break
		}
		if s.Message(RoleAgent, "x") != nil || s.ToolCall("m") != nil || s.Entry(999) != nil {
			t.Errorf("%s: found what is not there", name)
		}
	}
	fold(t, c, `{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}`, `{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{}}`)
	s := c.Snapshot()
	if !s.ToolCall("t").Ended() || s.ToolCall("t").Cancellable() || !s.Terminal("t").Exited() || s.Terminal("t").Cancellable() {
		t.Error("what has ended can still be stopped")
	}
	var zero Snapshot
	if zero.Len() != 0 || zero.Text() != "" || zero.ToolCall("t") != nil || !zero.Session().State.Idle() || jsonOf(t, &zero) != `{"version":1,"entries":[],"session":{},"dropped":{}}` {
		t.Errorf("the zero snapshot is %s", jsonOf(t, &zero))
	}
	next := zero.Continue(Config{})
	fold(t, next, `{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"q"}]}`)
	if got := next.Snapshot(); got.Text() != "" || got.Len() != 1 {
		t.Errorf("the user's words are the agent's: %q", got.Text())
	}
}

// TestPermissionTakesNothing: a question about an empty tool, as some agents ask, leaves the call that it is
// about as it was announced.
func TestPermissionTakesNothing(t *testing.T) {
	c := New(Config{})
	c.Apply(&acpv2.ToolCallUpdate{ToolCallID: "t", Kind: acpv2.Set(acpv2.ToolKindExecute), RawInput: json.RawMessage(`{"command":"ls"}`)})
	c.Asked(&acpv2.RequestPermissionRequest{Title: "bash", Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{
		ToolCallID: "t", Kind: acpv2.Set(acpv2.ToolKindOther), RawInput: json.RawMessage(` {}`), Status: acpv2.Set(acpv2.ToolCallStatusPending),
	}}})
	if call := c.Snapshot().ToolCall("t"); call.Kind != acpv2.ToolKindExecute || string(call.RawInput) != `{"command":"ls"}` || call.Status != acpv2.ToolCallStatusPending {
		t.Errorf("%s %s %s", call.Kind, call.RawInput, call.Status)
	}
}

// TestPermission: questions and answers are entries; a tool call that is asked about
// is created or updated.
func TestPermission(t *testing.T) {
	options := []acpv2.PermissionOption{
		{OptionID: "y", Name: "Yes", Kind: acpv2.PermissionOptionKindAllowOnce},
		{OptionID: "n", Name: "No", Kind: acpv2.PermissionOptionKindRejectOnce},
	}
	c := New(Config{})
	seq, changes := c.Asked(&acpv2.RequestPermissionRequest{
		Title: "Write?", Description: "to disk", Options: options, Meta: json.RawMessage(`{"a":1}`),
		Subject: &acpv2.ToolCallPermissionSubject{ToolCall: acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("Write")}},
	})
	want := []Change{{Op: OpCreated, Seq: 0, Kind: KindToolCall, ID: "t"}, {Op: OpCreated, Seq: 1, Kind: KindPermission}}
	if diff := cmp.Diff(want, changes); diff != "" || seq != 1 {
		t.Errorf("%d %s", seq, diff)
	}
	open := c.Snapshot()
	p := open.Entry(seq).(*Permission)
	if _, ok := p.Selected(); ok || p.Outcome != nil || open.ToolCall("t").Title != "Write" {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff(options, p.Options); diff != "" {
		t.Error(diff)
	}
	if sub := p.Subject.(*acpv2.ToolCallPermissionSubject); sub.ToolCall.ToolCallID != "t" || !sub.ToolCall.Title.IsZero() {
		t.Errorf("subject %+v", sub)
	}
	if ch := c.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "y"}); ch != (Change{Op: OpUpdated, Seq: 1, Kind: KindPermission}) {
		t.Errorf("%+v", ch)
	}
	for _, s := range []*Snapshot{c.Snapshot(), restored(t, c.Snapshot())} {
		p := s.Entry(seq).(*Permission)
		if o, ok := p.Selected(); !ok || o.Kind != acpv2.PermissionOptionKindAllowOnce || p.Title != "Write?" || p.Description != "to disk" || string(p.Meta) != `{"a":1}` {
			t.Errorf("%+v", p)
		}
	}
	if _, ok := open.Entry(seq).(*Permission).Selected(); ok {
		t.Error("the answer is in the snapshot before it")
	}
	for name, o := range map[string]acpv2.RequestPermissionOutcome{
		"S85 not offered": &acpv2.SelectedPermissionOutcome{OptionID: "z"},
		"cancelled":       &acpv2.CancelledPermissionOutcome{},
		"S85 unknown":     &acpv2.UnknownRequestPermissionOutcome{Type: "_y", Raw: json.RawMessage(`{"outcome":"_y","optionId":"y"}`)},
		"too big":         &acpv2.SelectedPermissionOutcome{OptionID: "y", Meta: json.RawMessage(`{"a":"` + strings.Repeat("x", 2*shortBytes) + `"}`)},
	} {
		c.Answered(seq, o)
		s := c.Snapshot()
		p := s.Entry(seq).(*Permission)
		if _, ok := p.Selected(); ok || p.Outcome == nil {
			t.Errorf("%s: approved, or not answered: %+v", name, p.Outcome)
		}
		check(t, c, s)
	}
	for _, o := range []acpv2.RequestPermissionOutcome{nil, (*acpv2.SelectedPermissionOutcome)(nil)} {
		if ch := c.Answered(seq, o); ch != (Change{}) {
			t.Errorf("no outcome: %+v", ch)
		}
	}
	if ch := c.Answered(0, &acpv2.CancelledPermissionOutcome{}); ch != (Change{}) {
		t.Errorf("a tool call was answered: %+v", ch)
	}
	// What could not be sent is left out; the rest is noted.
	seq, changes = c.Asked(&acpv2.RequestPermissionRequest{Title: "x", Subject: (*acpv2.ToolCallPermissionSubject)(nil), Meta: json.RawMessage(`5`),
		Options: []acpv2.PermissionOption{{OptionID: "y", Meta: json.RawMessage(`5`)}, options[1]}})
	p = c.Snapshot().Entry(seq).(*Permission)
	if len(changes) != 1 || p.Subject != nil || len(p.Options) != 1 || p.Meta != nil {
		t.Errorf("%+v %+v", changes, p)
	}
	seq, _ = c.Asked(&acpv2.RequestPermissionRequest{Subject: &acpv2.CommandPermissionSubject{Command: "ls", ToolCallID: "none"}})
	s := c.Snapshot()
	if s.ToolCall("none") != nil || s.Entry(seq).(*Permission).Subject.(*acpv2.CommandPermissionSubject).Command != "ls" {
		t.Errorf("%s", jsonOf(t, s))
	}
}

// TestUnmarshalRefuses: the form is read strictly where it is known, and leniently
// where it may grow. On an error the snapshot stays.
func TestUnmarshalRefuses(t *testing.T) {
	entry := func(s string) string { return `{"version":1,"entries":[` + s + `]}` }
	const msg = `{"kind":"message","update":{"sessionUpdate":"agent_message","messageId":"m"}}`
	for _, tt := range []struct{ in, want string }{
		{``, "expected a value"},
		{`[]`, "object"},
		{`{}`, "version"},
		{`{"version":2}`, "version"},
		{`{"version":1,"version":1}`, "duplicate"},
		{`{"version":1,"entries":{}}`, "entries"},
		{`{"version":1,"entries":[5]}`, "entry 0"},
		{entry(`{"kind":5}`), "entry 0"},
		{entry(`{"kind":"message"}`), "entry 0: update"},
		{entry(`{"kind":"message","update":{"sessionUpdate":"agent_message"}}`), "messageId"},
		{entry(`{"kind":"notice","update":{"sessionUpdate":"agent_message","messageId":"m"}}`), "make a new notice"},
		{entry(`{"kind":"message","update":{"sessionUpdate":"usage_update","used":1,"size":1}}`), "make a new message"},
		{entry(msg + "," + msg), "entry 1"},
		{entry(`{"kind":"message","dropped":-1}`), "entry 0"},
		{entry(`{"kind":"terminal","skipped":1.5}`), "entry 0"},
		{entry(`{"kind":"permission","options":{}}`), "entry 0"},
		{entry(`{"kind":"permission","title":1}`), "entry 0"},
		{entry(`{"kind":"permission","title":"","title":""}`), "duplicate"},
		{entry(`{"kind":"permission","subject":5}`), "entry 0"},
		{entry(`{"kind":"permission","outcome":{"outcome":"selected"}}`), "optionId"},
		{`{"version":1,"session":5}`, "session"},
		{`{"version":1,"session":{"state":{"sessionUpdate":"usage_update","used":1,"size":1}}}`, "state: it is another update"},
		{`{"version":1,"session":{"usage":{"sessionUpdate":"agent_message","messageId":"m"}}}`, "usage: it is another update"},
		{`{"version":1,"session":{"state":5}}`, "session: state"},
		{`{"version":1,"session":{"dropped":"x"}}`, "session"},
		{`{"version":1,"dropped":5}`, "dropped"},
		{`{"version":1,"dropped":{"bytes":-1}}`, "dropped"},
	} {
		s := folded(t, `{"sessionUpdate":"notice","severity":"info","title":"here"}`)
		before := jsonOf(t, s)
		err := s.UnmarshalJSON([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "transcript: ") {
			t.Errorf("%s: error %v, want %q", tt.in, err, tt.want)
		}
		if jsonOf(t, s) != before {
			t.Errorf("%s: the snapshot has changed", tt.in)
		}
	}
	err := new(Snapshot).UnmarshalJSON([]byte(`{"version":7}`))
	if !errors.Is(err, ErrVersion) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a later version: %v", err)
	}
	var s Snapshot
	later := `{"new":1,"version":1,"entries":[{"kind":"hologram","x":1},{"new":2,"kind":"message","update":{"sessionUpdate":"agent_message","messageId":"m"}}],"session":{"new":[]},"dropped":{"new":5,"entries":3,"bytes":4,"updates":5}}`
	if err := json.Unmarshal([]byte(later), &s); err != nil {
		t.Fatal(err)
	}
	if s.Len() != 1 || s.Message(RoleAgent, "m") == nil || s.Loss() != (Loss{Entries: 4, Bytes: 4, Updates: 5}) {
		t.Errorf("%s", jsonOf(t, &s))
	}
	if got := fmt.Sprint(s.Message(RoleAgent, "m").Seq()); got != "0" {
		t.Errorf("numbered %s", got)
	}
}
