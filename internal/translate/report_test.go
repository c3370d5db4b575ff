package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/google/go-cmp/cmp"
)

// What agents send of a command that they run themselves.
const (
	codexBegins = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"go test","kind":"execute","status":"in_progress",` +
		`"content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"go test","cwd":"/w"},"_meta":{"terminal_info":{"cwd":"/w","terminal_id":"c"}}}`
	codexWrites    = `{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"data":"ok\n","terminal_id":"c"}}}`
	codexEnds      = `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","_meta":{"terminal_exit":{"exit_code":1,"signal":null,"terminal_id":"c"}}}`
	claudeBegins   = `{"sessionUpdate":"tool_call","toolCallId":"b","title":"Terminal","content":[{"type":"terminal","terminalId":"b"}],"_meta":{"claudeCode":{"toolName":"Bash"},"terminal_info":{"terminal_id":"b"}}}`
	claudeRuns     = `{"sessionUpdate":"tool_call_update","toolCallId":"b","title":"make","rawInput":{"command":"make"},"_meta":{"claudeCode":{"toolName":"Bash"}}}`
	claudeReplaces = `{"sessionUpdate":"tool_call_update","toolCallId":"b","_meta":{"claudeCode":{"parentToolUseId":"p"},"terminal_output":{"terminal_id":"b","data":"é"}}}`
)

var reportSeeds = [][3]string{{codexBegins, codexWrites, codexEnds}, {claudeBegins, claudeRuns, claudeReplaces},
	{`{"sessionUpdate":"tool_call","toolCallId":"r","title":"Read"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"r","_meta":{"terminal_output_delta":{"data":"x","terminal_id":"r"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"r","status":"completed","rawOutput":{"exit_code":0}}`}}

// called is what the announcement of a tool call becomes.
func called(id, title, more string) string {
	return fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"%s","name":null,"title":"%s",%s}`, id, title, more)
}

// named is an update of a tool call with the name that its metadata gives.
func named(u string) string {
	return strings.Replace(u, `"toolCallId":"b"`, `"toolCallId":"b","name":"Bash"`, 1)
}

// TestTerminalReports: a terminal that the metadata of a tool call reports is one of the agent's, which ends.
func TestTerminalReports(t *testing.T) {
	const update = `{"sessionUpdate":"tool_call_update","toolCallId":"c"`
	tests := []struct {
		name  string
		old   bool
		steps []string
	}{
		{"codex", false, []string{
			codexBegins, `{"sessionUpdate":"terminal_update","terminalId":"c","command":"go test","cwd":"/w"}` + "\n" +
				called("c", "go test", `"kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"c"}],"locations":[],"rawInput":{"command":"go test","cwd":"/w"}`),
			codexWrites, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"b2sK"}`,
			codexWrites, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"b2sK"}`,
			codexEnds, `{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{"exitCode":1}}` + "\n" + update + `,"status":"failed"}`,
		}},
		{"claude", false, []string{
			claudeBegins, `{"sessionUpdate":"terminal_update","terminalId":"b"}` + "\n" +
				strings.Replace(called("b", "Terminal", `"kind":"other","status":"pending","content":[{"type":"terminal","terminalId":"b"}],"locations":[],"_meta":{"claudeCode":{"toolName":"Bash"}}`), "null", `"Bash"`, 1),
			claudeRuns, `{"sessionUpdate":"terminal_update","terminalId":"b","command":"make"}` + "\n" + named(claudeRuns),
			claudeRuns, named(claudeRuns), // the command is known
			claudeReplaces, `{"sessionUpdate":"terminal_update","terminalId":"b","output":{"data":"w6k="}}` + "\n" +
				`{"sessionUpdate":"tool_call_update","toolCallId":"b","_meta":{"claudeCode":{"parentToolUseId":"p"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"b","_meta":{"terminal_exit":{"terminal_id":"b","exit_code":null,"signal":"SIGKILL"}}}`,
			`{"sessionUpdate":"terminal_update","terminalId":"b","exitStatus":{"signal":"SIGKILL"}}`,
		}},
		{"all in one", false, []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[{"type":"terminal","terminalId":"c"}],"_meta":{"k":1,"terminal_info":{"terminal_id":"c","cwd":"rel"},"terminal_output_delta":{"terminal_id":"c","data":"x"},"terminal_exit":{"terminal_id":"c","exit_code":0}}}`,
			`{"sessionUpdate":"terminal_update","terminalId":"c"}` + "\n" + `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"eA=="}` + "\n" +
				`{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{"exitCode":0}}` + "\n" +
				called("c", "T", `"kind":"other","status":"pending","content":[{"type":"terminal","terminalId":"c"}],"locations":[],"_meta":{"k":1}`),
		}},
		{"a call that does not show it", false, []string{ // as codex reads files
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T"}`, called("c", "T", `"kind":"other","status":"pending","content":[],"locations":[]`),
			codexWrites, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"b2sK"}` + "\n" +
				`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"terminal","terminalId":"c"}}`,
			codexWrites, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"b2sK"}`,
			update + `,"status":"completed","content":[],"rawOutput":{"exit_code":0}}`,
			update + `,"status":"completed","content":[{"type":"terminal","terminalId":"c"}],"rawOutput":{"exit_code":0}}` + "\n" +
				`{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{"exitCode":0}}`,
			update + `,"status":"completed"}`, update + `,"status":"completed"}`,
		}},
		{"a call that showed it before", false, []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"x"}}`,
			called("c", "T", `"kind":"other","status":"pending","content":[{"type":"terminal","terminalId":"c"}],"locations":[],"rawInput":{"command":"x"}`),
			codexWrites, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"b2sK"}`,
			update + `,"status":"completed"}`, update + `,"status":"completed"}`, // it runs in the background
		}},
		{"again", false, []string{
			codexEnds, `{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{"exitCode":1}}` + "\n" + update + `,"status":"failed"}`, // somebody else knows the call
			codexBegins, `{"sessionUpdate":"terminal_update","terminalId":"c","command":"go test","cwd":"/w","output":null,"exitStatus":null}` + "\n" +
				called("c", "go test", `"kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"c"}],"locations":[],"rawInput":{"command":"go test","cwd":"/w"}`),
		}},
		{"pieces called output", true, []string{
			update + `,"_meta":{"terminal_info":{"terminal_id":"c"}}}`, `{"sessionUpdate":"terminal_update","terminalId":"c"}`,
			update + `,"_meta":{"terminal_output":{"terminal_id":"c","data":"x"}}}`, `{"sessionUpdate":"terminal_output_chunk","terminalId":"c","data":"eA=="}`,
		}},
		{"what is not understood stays", false, []string{
			update + `,"_meta":{"terminal_output":{"terminal_id":1,"data":"x"}}}`, update + `,"_meta":{"terminal_output":{"terminal_id":1,"data":"x"}}}`,
			update + `,"_meta":{"terminal_output":"x"}}`, update + `,"_meta":{"terminal_output":"x"}}`,
			update + `,"_meta":{"terminal_output":{"terminal_id":"c"}}}`, update + `,"_meta":{"terminal_output":{"terminal_id":"c"}}}`,
			update + `,"_meta":{"terminal_info":{"terminal_id":"c","cwd":7},"terminal_exit":{"terminal_id":"d"}}}`,
			`{"sessionUpdate":"terminal_update","terminalId":"c"}` + "\n" + update + `,"_meta":{"terminal_exit":{"terminal_id":"d"}}}`,
			update + `,"_meta":{"terminal_exit":{"terminal_id":"c","exit_code":1.5,"signal":9}}}`, `{"sessionUpdate":"terminal_update","terminalId":"c","exitStatus":{}}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := FromV1{OutputAppends: tt.old}
			for i := 0; i < len(tt.steps); i += 2 {
				if diff := cmp.Diff(tt.steps[i+1], spelled(t, f.Update(v1Update(t, tt.steps[i])))); diff != "" {
					t.Fatalf("step %d, %s: %s", i/2, tt.steps[i], diff)
				}
			}
		})
	}
}

// TestTerminalReportsBound: so many tool calls are remembered.
func TestTerminalReportsBound(t *testing.T) {
	var f FromV1
	for i := range maxReported + 9 {
		f.Update(v1Update(t, strings.ReplaceAll(codexBegins, `"c"`, fmt.Sprintf("%q", fmt.Sprint(i)))))
	}
	if n := f.reported.order.Len(); n != maxReported {
		t.Errorf("%d tool calls are known", n)
	}
}

// TestReportsTerminals: a client that declares it gets the terminals of an agent in the metadata of tool calls; what one
// agent of version 1 reports, such a client gets again.
func TestReportsTerminals(t *testing.T) {
	const (
		one, both = `{"terminal_output":true}`, `{"terminal_output":true,"terminal_output_delta":true}`
		shows     = `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T","content":[{"type":"terminal","terminalId":"t"}]}`
		announced = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[{"type":"terminal","terminalId":"t"}],"_meta":{"terminal_info":{"terminal_id":"t"`
		update    = `{"sessionUpdate":"tool_call_update","toolCallId":"c"`
	)
	chunk := func(data string) string { // in base64
		return `{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"` + data + `"}`
	}
	says := func(name, data string) string {
		return update + `,"_meta":{"` + name + `":{"terminal_id":"t","data":"` + data + `"}}}`
	}
	tests := []struct {
		name, meta string
		steps      []string
	}{
		{"pieces", both, []string{
			`{"sessionUpdate":"terminal_update","terminalId":"t","command":"x","cwd":"/w"}`, "",
			chunk("YQ=="), "",
			shows, announced + `,"cwd":"/w"}}}` + "\n" + says("terminal_output_delta", "a"),
			chunk("YuI="), says("terminal_output_delta", "b"), // and the beginning of a character
			chunk("gqw="), says("terminal_output_delta", "€"),
			`{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"YWLigqwK"}}`, says("terminal_output_delta", `\n`),
			`{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"eA=="}}`, says("terminal_output", "x"),
			`{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{"exitCode":3}}`,
			update + `,"_meta":{"terminal_exit":{"terminal_id":"t","exit_code":3,"signal":null}}}`,
		}},
		{"one flag", one, []string{
			shows, announced + `}}}`,
			chunk("YQ=="), says("terminal_output", "a"),
			`{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"eA=="},"exitStatus":{"signal":"SIGTERM"}}`,
			says("terminal_output", "x") + "\n" + update + `,"_meta":{"terminal_exit":{"terminal_id":"t","exit_code":null,"signal":"SIGTERM"}}}`,
		}},
		{"a terminal that a known call begins to show", both, []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T"}`, `{"sessionUpdate":"tool_call","toolCallId":"c","title":"T"}`,
			`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"terminal","terminalId":"t"}}`,
			update + `,"content":` + showing("```console\\n```") + `}`,
		}},
		{"not declared", `{"terminal_output":1}`, []string{
			shows, `{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":` + showing("```console\\n```") + `}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := ToV1{Caps: acpv1.ClientCapabilities{Meta: json.RawMessage(tt.meta)}}
			for i := 0; i < len(tt.steps); i += 2 {
				if diff := cmp.Diff(tt.steps[i+1], spelled(t, to.Update(v2Update(t, tt.steps[i])))); diff != "" {
					t.Fatalf("step %d, %s: %s", i/2, tt.steps[i], diff)
				}
			}
		})
	}
	var f FromV1
	to := ToV1{Caps: acpv1.ClientCapabilities{Meta: json.RawMessage(both)}}
	var got []string
	for _, s := range []string{codexBegins, codexWrites, codexEnds} {
		for _, u := range f.Update(v1Update(t, s)) {
			if out := spelled(t, to.Update(u)); out != "" {
				got = append(got, out)
			}
		}
	}
	want := []string{
		strings.Replace(codexBegins, `"rawInput"`, `"locations":[],"rawInput"`, 1),
		codexWrites,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_exit":{"terminal_id":"c","exit_code":1,"signal":null}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}`,
	}
	sorted := strings.NewReplacer(`{"cwd":"/w","terminal_id":"c"}`, `{"terminal_id":"c","cwd":"/w"}`, `{"data":"ok\n","terminal_id":"c"}`, `{"terminal_id":"c","data":"ok\n"}`)
	for i := range want {
		want[i] = sorted.Replace(want[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
