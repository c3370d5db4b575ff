package exec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/transcript"
)

// TestResultVendor: the result has the tokens by model and the limit that agents report in metadata, and is without them
// if what they report is not understood.
func TestResultVendor(t *testing.T) {
	for _, tt := range []struct{ quota, limit, models, want string }{
		{`{"token_count":null,"model_usage":[{"model":"opus","token_count":{"totalTokens":12,"outputTokens":2}}]}`,
			`{"status":"rejected","rateLimitType":"five_hour","utilization":1,"resetsAt":1800000000}`,
			`[{"model":"opus","totalTokens":12,"tokenCount":{"totalTokens":12,"outputTokens":2}}]`,
			`{"status":"rejected","name":"5-hour limit","usedPercent":100,"resets":"2027-01-15T08:00:00Z"}`},
		{`{"model_usage":[]}`, `{"status":"allowed"}`, `null`, `{"status":"allowed"}`},
		{`null`, `{"status":1}`, `null`, `null`},
	} {
		conv := transcript.New(transcript.Config{})
		conv.Apply(&acp.UsageUpdate{Used: 1, Size: 2, Meta: json.RawMessage(`{"_claude/rateLimit":` + tt.limit + `}`)})
		conv.Apply(&acp.UsageUpdate{Used: 2, Size: 2, Meta: json.RawMessage(`{"_claude/model":"opus"}`)}) // which says nothing of the limit
		r := newReport(&Options{App: &app.App{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, JSON: true})
		line := r.resultLine(nil, &acp.Result{Meta: json.RawMessage(`{"quota":` + tt.quota + `}`)}, nil)
		line.Limit = limitOf(conv.Snapshot().Session().Usage)
		models, err := json.Marshal(line.Models)
		if err != nil {
			t.Fatal(err)
		}
		limit, err := json.Marshal(line.Limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tt.models, tt.want}, []string{string(models), string(limit)}); diff != "" {
			t.Error(diff)
		}
	}
}

// TestReportedCommand: a command that codex or Claude runs itself is a terminal in --json, as it runs, which ends; of
// what cannot be understood nothing is lost.
func TestReportedCommand(t *testing.T) {
	conv := transcript.New(transcript.Config{})
	var out bytes.Buffer
	l := &lines{session: "s"}
	for _, text := range []string{
		`{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","content":[{"type":"terminal","terminalId":"c"}],"_meta":{"terminal_info":{"terminal_id":"c","cwd":"/p"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"ok\n"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"terminal_id":"c","data":"more\n"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","_meta":{"terminal_exit":{"terminal_id":"c","exit_code":null,"signal":"SIGKILL"}}}`,
	} {
		u, err := acpv1.UnmarshalSessionUpdate([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		changes := conv.ApplyV1(u)
		data, err := l.appendBatch(nil, conv.Snapshot(), changes)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	text := out.String()
	for _, want := range []string{
		`"op":"created","seq":0,"kind":"terminal","id":"c","entry":{"kind":"terminal","update":{"sessionUpdate":"terminal_update","terminalId":"c","cwd":"/p"`,
		`"op":"appended","seq":0,"kind":"terminal","id":"c","data":"b2sK"`, `"op":"appended","seq":0,"kind":"terminal","id":"c","data":"bW9yZQo="`,
		`"exitStatus":{"signal":"SIGKILL"}`, `"status":"failed","content":[{"type":"terminal","terminalId":"c"}]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
