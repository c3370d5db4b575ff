package tui

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// TestVendorStatus: a limit of which the agent warns, the model and the tasks are on the status line, in /jobs and in questions.
func TestVendorStatus(t *testing.T) {
	r := newRig(t, 140, 24, nil).start()
	usage := func(meta string) { r.said(&acpv2.UsageUpdate{Used: 1, Size: 2, Meta: json.RawMessage(meta)}) }
	limit := func(status string) string {
		return fmt.Sprintf(`{"_claude/model":"opus","_claude/rateLimit":{"status":%q,"rateLimitType":"five_hour","utilization":0.9,"resetsAt":%d}}`, status, r.now.Add(time.Hour).Unix())
	}
	usage(limit("allowed"))
	r.wants("50% of context")
	r.lacks("limit")
	usage(limit("allowed_warning"))
	r.wants("opus", "5-hour limit 90% used, resets ")
	usage(`{"_claude/model":"\u001b[31mhaiku"}`)
	r.wants("haiku", "5-hour limit 90% used")
	r.now = r.now.Add(time.Hour)
	usage(`{"_claude/model":"haiku"}`)
	r.lacks("limit")

	r.said(&acpv2.IdleStateUpdate{Background: []acpv2.BackgroundWork{&acpv2.UnknownBackgroundWork{
		Type: "_claude/task", Raw: json.RawMessage(`{"type":"_claude/task","taskId":"t","description":"Watch the build"}`)}}})
	r.wants("1 in the background")
	r.run(r.keys("/jobs", "enter"))
	r.wants("Watch the build", "only the agent can stop it")
	r.run(r.keys("enter"))
	r.wants("ask it to")

	form := someForm()
	form.Meta = json.RawMessage(`{"codex":{"delivery":"async"}}`)
	r.send(formMsg{newForm(form)})
	r.wants("The agent works on meanwhile")
}

// TestReportedTerminal: what a tool call reports of a command in metadata is shown as it runs, and how it ended.
func TestReportedTerminal(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	for _, step := range []struct{ update, want string }{
		{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"c"}],"_meta":{"terminal_info":{"terminal_id":"c"}}}`, "make"},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"first line\n"}}}`, "first line"},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output":{"terminal_id":"c","data":"another line\n"}}}`, "another line"},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","_meta":{"terminal_exit":{"terminal_id":"c","exit_code":null,"signal":"SIGKILL"}}}`, "ended by SIGKILL"},
	} {
		u, err := acpv1.UnmarshalSessionUpdate([]byte(step.update))
		if err != nil {
			t.Fatal(err)
		}
		r.m.front.changed(r.talk.id, r.talk.conv.ApplyV1(u))
		r.send(changedMsg{})
		r.wants(step.want)
	}
	r.lacks("first line")
}
