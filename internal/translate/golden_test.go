package translate

import (
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/patch"
	"github.com/google/go-cmp/cmp"
)

func v1Update(t testing.TB, s string) acpv1.SessionUpdate {
	t.Helper()
	u, err := acpv1.UnmarshalSessionUpdate([]byte(s))
	if err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return u
}

func v2Update(t testing.TB, s string) acpv2.SessionUpdate {
	t.Helper()
	u, err := acpv2.UnmarshalSessionUpdate([]byte(s))
	if err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return u
}

type appender interface {
	AppendJSON([]byte) ([]byte, error)
}

// spelled encodes updates, one a line.
func spelled[T appender](t testing.TB, list []T) string {
	t.Helper()
	var lines []string
	for _, u := range list {
		raw, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatalf("%v: %+v", err, u)
		}
		lines = append(lines, string(raw))
	}
	return strings.Join(lines, "\n")
}

const (
	v1Text  = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"T"}}`
	v1Think = `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"T"}}`
	v1User  = `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"T"}}`
)

func v2Chunk(kind, id string) string {
	return `{"sessionUpdate":"` + kind + `","messageId":"` + id + `","content":{"type":"text","text":"T"}}`
}

// modeOption is an option list with the choices a and b.
func modeOption(current string) string {
	return `[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"` + current +
		`","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]`
}

func TestFromV1(t *testing.T) {
	modes := &acpv1.SessionModeState{CurrentModeID: "a", AvailableModes: []acpv1.SessionMode{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}}}
	const boundary = "boundary"
	tests := []struct {
		name  string
		modes *acpv1.SessionModeState
		steps []string // an update, or "boundary", and what it becomes
	}{
		{"chunks share a message", nil, []string{
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			v1Think, v2Chunk("agent_thought_chunk", "v1-2"),
			v1Text, v2Chunk("agent_message_chunk", "v1-3"),
			v1User, v2Chunk("user_message_chunk", "v1-4"),
		}},
		{"a boundary ends a message", nil, []string{
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			boundary, "",
			v1Text, v2Chunk("agent_message_chunk", "v1-2"),
		}},
		{"a tool call ends a message, its update does not", nil, []string{
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			`{"sessionUpdate":"tool_call_update","toolCallId":"c"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"c"}`,
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"C"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","name":null,"title":"C","kind":"other","status":"pending","content":[],"locations":[]}`,
			v1Text, v2Chunk("agent_message_chunk", "v1-2"),
		}},
		{"ids of the agent", nil, []string{
			`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`, v2Chunk("agent_message_chunk", "m"),
			v1Text, v2Chunk("agent_message_chunk", "v1-1"),
			`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`, v2Chunk("agent_message_chunk", "m"),
			v1Text, v2Chunk("agent_message_chunk", "v1-2"),
		}},
		{"tool call with all", nil, []string{
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","name":"edit","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/f","oldText":"a\n","newText":"b\n"},{"type":"diff","path":"/n","newText":"x"},{"type":"terminal","terminalId":"t"}],"locations":[{"path":"/f","line":0},{"path":"/f","line":3}],"rawInput":null,"_meta":{"k":1},"future":2}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","name":"edit","title":"C","kind":"edit","status":"in_progress","content":[` +
				`{"type":"diff","changes":[{"fileType":"text","operation":"modify","path":"/f"}],"patch":{"format":"git_patch","text":"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"}},` +
				`{"type":"diff","changes":[{"fileType":"text","operation":"add","path":"/n"}],"patch":{"format":"git_patch","text":"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"}},` +
				`{"type":"terminal","terminalId":"t"}],"locations":[{"path":"/f"},{"path":"/f","line":3}],"rawInput":null,"_meta":{"k":1},"future":2}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":null,"status":"completed","content":[],"name":"n","kind":"_x"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","name":"n","title":null,"kind":"_x","status":"completed","content":[]}`,
		}},
		{"plans", nil, []string{
			`{"sessionUpdate":"plan","entries":[{"content":"x","priority":"high","status":"pending"}],"_meta":{"k":1}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[{"content":"x","priority":"high","status":"pending"}]},"_meta":{"k":1}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"# x"}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"# x"}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"p"}}`, `{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"p"}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"_x"}}`, "",
			`{"sessionUpdate":"plan_removed","planId":"p"}`, `{"sessionUpdate":"plan_removed","planId":"p"}`,
		}},
		{"modes are an option", modes, []string{
			`{"sessionUpdate":"current_mode_update","currentModeId":"b","_meta":{"k":1}}`,
			`{"sessionUpdate":"config_option_update","configOptions":` + modeOption("b") + `,"_meta":{"k":1}}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"id":"x","name":"X","type":"boolean","currentValue":true}]}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"x","name":"X","type":"boolean","currentValue":true},` + modeOption("b")[1:] + `}`,
			`{"sessionUpdate":"current_mode_update","currentModeId":"a"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"x","name":"X","type":"boolean","currentValue":true},` + modeOption("a")[1:] + `}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"id":"y","name":"Y","category":"mode","type":"select","currentValue":"q","options":[]}]}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"y","name":"Y","category":"mode","type":"select","currentValue":"q","options":[{"value":"q","name":"q"}]}]}`,
		}},
		{"a mode nobody spoke of", nil, []string{
			`{"sessionUpdate":"current_mode_update","currentModeId":"b"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"b","options":[{"value":"b","name":"b"}]}]}`,
			`{"sessionUpdate":"config_option_update","configOptions":[]}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"b","options":[{"value":"b","name":"b"}]}]}`,
		}},
		{"one to one", nil, []string{
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"hint":"h"}}]}`,
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"n","description":"d","input":{"type":"text","hint":"h"}}]}`,
			`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"EUR"}}`,
			`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"EUR"}}`,
			`{"sessionUpdate":"usage_update","used":1,"size":2}`, `{"sessionUpdate":"usage_update","used":1,"size":2}`,
			`{"sessionUpdate":"session_info_update","title":null,"updatedAt":"u"}`, `{"sessionUpdate":"session_info_update","title":null,"updatedAt":"u"}`,
			`{"sessionUpdate":"notice","severity":"info","title":"t"}`, `{"sessionUpdate":"notice","severity":"info","title":"t"}`,
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":null}`,
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":null}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"subagent_update","sessionId":"s","state":{"state":"idle","stopReason":"error","error":{"code":1,"message":"m"}}}`,
			`{"sessionUpdate":"subagent_update","sessionId":"s","state":{"state":"idle","stopReason":"error","error":{"code":1,"message":"m"}}}`,
			`{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s"}`, `{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s"}`,
			`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`,
		}},
		{"unknown updates", nil, []string{ // S79
			`{"sessionUpdate":"_x","n":1.0}`, `{"sessionUpdate":"_x","n":1.0}`,
			`{"sessionUpdate":"state_update","state":"idle"}`, "",
			`{"sessionUpdate":"terminal_update","terminalId":"t"}`, "",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f FromV1
			if tt.modes != nil {
				f.SetOptions(SessionOptionsFromV1(nil, tt.modes, nil))
			}
			for i := 0; i < len(tt.steps); i += 2 {
				if tt.steps[i] == boundary {
					f.Boundary()
					continue
				}
				got := spelled(t, f.Update(v1Update(t, tt.steps[i])))
				if diff := cmp.Diff(tt.steps[i+1], got); diff != "" {
					t.Fatalf("step %d, %s: %s", i/2, tt.steps[i], diff)
				}
				if options := spell1(t, acpv2.ConfigOptionUpdate{ConfigOptions: f.Options()}); strings.Contains(got, "configOptions") &&
					cmp.Diff(options, strings.Replace(got, `,"_meta":{"k":1}`, "", 1)) != "" {
					t.Errorf("step %d: the options are %s", i/2, options)
				}
			}
		})
	}
	if got := new(FromV1).Update(nil); got != nil {
		t.Errorf("nil became %v", got)
	}
}

// everything is what a client of version 2 is told to advertise.
var everything = func() acpv1.ClientCapabilities {
	c := ClientCapabilitiesToV1(acpv2.ClientCapabilities{})
	c.Session.PromptSuggestions, c.Session.Cursors = &acpv1.PromptSuggestionsCapabilities{}, &acpv1.SessionCursorsCapabilities{}
	return c
}()

func v1Chunk(kind, id, text string) string {
	return `{"sessionUpdate":"` + kind + `","content":{"type":"text","text":"` + text + `"},"messageId":"` + id + `"}`
}

func upsert(kind, id string, texts ...string) string {
	return `{"sessionUpdate":"` + kind + `","messageId":"` + id + `","content":` + blocks(texts...) + `}`
}

func blocks(texts ...string) string {
	var list []string
	for _, s := range texts {
		list = append(list, `{"type":"text","text":"`+s+`"}`)
	}
	return `[` + strings.Join(list, ",") + `]`
}

// showing is the content of a tool call that is this text.
func showing(texts ...string) string {
	var list []string
	for _, s := range texts {
		list = append(list, `{"type":"content","content":{"type":"text","text":"`+s+`"}}`)
	}
	return `[` + strings.Join(list, ",") + `]`
}

func TestToV1(t *testing.T) {
	const (
		none  = ""
		image = `{"type":"image","data":"AA==","mimeType":"image/png"}`
	)
	tests := []struct {
		name  string
		caps  acpv1.ClientCapabilities
		steps []string // an update and what it becomes
	}{
		{"chunks", acpv1.ClientCapabilities{}, []string{
			v2Chunk("agent_message_chunk", "m"), v1Chunk("agent_message_chunk", "m", "T"),
			v2Chunk("agent_thought_chunk", "m"), v1Chunk("agent_thought_chunk", "m", "T"),
			v2Chunk("user_message_chunk", "m"), v1Chunk("user_message_chunk", "m", "T"),
		}},
		{"whole messages", acpv1.ClientCapabilities{}, []string{
			upsert("agent_message", "m", "one ", "two"), v1Chunk("agent_message_chunk", "m", "one ") + "\n" + v1Chunk("agent_message_chunk", "m", "two"),
			upsert("agent_message", "m", "one two"), none,
			upsert("agent_message", "m", "one two three", "four"), v1Chunk("agent_message_chunk", "m", " three") + "\n" + v1Chunk("agent_message_chunk", "m", "four"),
			upsert("agent_message", "m", "one two thre", "efour", "five"), v1Chunk("agent_message_chunk", "m", "five"),
			upsert("agent_message", "m", "one two"), none,
			upsert("agent_message", "m", "another of the same length?"), none,
			upsert("agent_message", "m", "a longer one with nothing of the other in it"), none,
			`{"sessionUpdate":"agent_message","messageId":"m","content":null}`, none,
			`{"sessionUpdate":"agent_message","messageId":"m","_meta":{"k":1}}`, none,
			v2Chunk("agent_message_chunk", "m"), v1Chunk("agent_message_chunk", "m", "T"),
			upsert("agent_message", "m", "one two threefourfiveT!"), v1Chunk("agent_message_chunk", "m", "!"),
			upsert("agent_thought", "m", "x"), v1Chunk("agent_thought_chunk", "m", "x"),
			upsert("user_message", "m", "x"), v1Chunk("user_message_chunk", "m", "x"),
		}},
		{"messages of more than text", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"agent_message","messageId":"m","content":[` + image + `],"_meta":{"k":1},"future":2}`,
			`{"sessionUpdate":"agent_message_chunk","content":` + image + `,"messageId":"m","_meta":{"k":1},"future":2}`,
			`{"sessionUpdate":"agent_message","messageId":"m","content":[` + image + `,{"type":"text","text":"x"}],"_meta":null}`, v1Chunk("agent_message_chunk", "m", "x"),
			`{"sessionUpdate":"agent_message","messageId":"m","content":[` + image + `,` + image + `]}`, none,
			upsert("agent_message", "n", "x"), v1Chunk("agent_message_chunk", "n", "x"),
			`{"sessionUpdate":"agent_message","messageId":"n","content":[` + image + `]}`, none,
		}},
		{"tool calls", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c"}`, `{"sessionUpdate":"tool_call","toolCallId":"c","title":"c"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c"}`, none,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","capabilities":{"cancel":{}},"name":null,"_meta":null}`, none,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","status":"paused","kind":"edit","name":"n"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"edit","status":"in_progress","title":"C","name":"n"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"_odd","content":null}`, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","content":null}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"cancelled","locations":[]}`, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","locations":[]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"d","name":"edit","status":"completed","rawOutput":1.0,"_meta":{"k":1}}`,
			`{"sessionUpdate":"tool_call","toolCallId":"d","title":"edit","name":"edit","status":"completed","rawOutput":1.0,"_meta":{"k":1}}`,
		}},
		{"pieces of content", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","content":` + showing("a") + `}`, `{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","content":` + showing("a") + `}`,
			`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":{"type":"text","text":"b"}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("a", "b") + `}`,
			`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"_x"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + strings.TrimSuffix(showing("a", "b"), "]") + `,{"type":"_x"}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[]}`, `{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[]}`,
			`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"d","content":{"type":"content","content":{"type":"text","text":"b"}},"title":"no title"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"d","title":"d","content":` + showing("b") + `}`,
		}},
		{"a terminal of the agent", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"terminal_update","terminalId":"t","command":"go test"}`, none,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","content":[{"type":"terminal","terminalId":"t"}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","content":` + showing("```console\\n$ go test\\n```") + `}`,
			`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"b2vD"}`, // "ok" and half of a character
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("```console\\n$ go test\\nok\\n```") + `}`,
			`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"qQo="}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("```console\\n$ go test\\noké\\n```") + `}`,
			`{"sessionUpdate":"terminal_update","terminalId":"t","size":{"cols":80,"rows":24},"cwd":"/x"}`, none,
			`{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{"exitCode":-2}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("```console\\n$ go test\\noké\\n[exit code -2]\\n```") + `}`,
			`{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":{"signal":"SIGKILL"},"output":{"data":"G1szMW1gYGA="}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("````console\\n$ go test\\n\\u001b[31m```\\n[signal SIGKILL]\\n````") + `}`,
			`{"sessionUpdate":"terminal_update","terminalId":"t","exitStatus":null,"output":null,"command":null}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":` + showing("```console\\n```") + `}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[]}`, `{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[]}`,
			`{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"b2s="}`, none,
		}},
		{"edits", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"C","content":[{"type":"diff","_meta":{"k":1},"changes":[` +
				`{"operation":"add","path":"/n"},{"operation":"delete","path":"/o"},{"operation":"modify","path":"/m"},{"operation":"move","oldPath":"/a","path":"/b"},` +
				`{"operation":"copy","oldPath":"/a","path":"/c"},{"operation":"modify","path":"/none"},{"operation":"_x"}],"patch":{"format":"git_patch","text":"` +
				strings.ReplaceAll(patch.Git(
					patch.File{NewPath: "/n", New: "new\n"}, patch.File{OldPath: "/o", Old: "old\n"}, patch.File{OldPath: "/m", NewPath: "/m", Old: "1\n", New: "2\n"},
					patch.File{OldPath: "/a", NewPath: "/b", Old: "x\ny\n", New: "x\nz\n"}, patch.File{OldPath: "/a", NewPath: "/c", Old: "x\n", New: "z\n"}), "\n", `\n`) + `"}}]}`,
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"C","content":[{"type":"diff","path":"/n","newText":"new\n","_meta":{"k":1}},` +
				`{"type":"diff","path":"/o","oldText":"old\n","newText":""},{"type":"diff","path":"/m","oldText":"1\n","newText":"2\n"},` +
				`{"type":"diff","path":"/b","oldText":"x\ny\n","newText":"x\nz\n"},{"type":"diff","path":"/c","newText":"z\n"},{"type":"diff","path":"/none","oldText":"","newText":""}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","changes":[{"operation":"add","path":"/n"}],"patch":{"format":"git_patch","text":"@@"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"/n","newText":""}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","changes":[{"operation":"add","path":"/n"}],"patch":{"format":"_x","text":""}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"diff","path":"/n","newText":""}]}`,
		}},
		{"plans without ids", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"x","priority":"_x","status":"_x"},{"content":"y","priority":"low","status":"cancelled"}]},"_meta":{"k":1}}`,
			`{"sessionUpdate":"plan","entries":[{"content":"x","priority":"medium","status":"pending"}],"_meta":{"k":1}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"q","content":"# x"}}`, `{"sessionUpdate":"plan","entries":[{"content":"# x","priority":"medium","status":"in_progress"}]}`,
			`{"sessionUpdate":"plan_removed","planId":"p"}`, none,
			`{"sessionUpdate":"plan_removed","planId":"q"}`, `{"sessionUpdate":"plan","entries":[]}`,
			`{"sessionUpdate":"plan_removed","planId":"q"}`, none,
			`{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"q","uri":"file:///x"}}`, `{"sessionUpdate":"plan","entries":[{"content":"file:///x","priority":"medium","status":"in_progress"}]}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"q"}}`, none,
		}},
		{"plans with ids", everything, []string{
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[]}}`, `{"sessionUpdate":"plan","entries":[]}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"q","content":"# x"}}`, `{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"q","content":"# x"}}`,
			`{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"q"}}`, `{"sessionUpdate":"plan_update","plan":{"type":"_x","planId":"q"}}`,
			`{"sessionUpdate":"plan_removed","planId":"p"}`, `{"sessionUpdate":"plan_removed","planId":"p"}`,
			`{"sessionUpdate":"plan_removed","planId":"plan"}`, `{"sessionUpdate":"plan","entries":[]}`,
		}},
		{"options", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"config_option_update","configOptions":` + modeOption("a") + `}`,
			`{"sessionUpdate":"config_option_update","configOptions":` + strings.ReplaceAll(modeOption("a"), "configId", "id") + "}\n" + `{"sessionUpdate":"current_mode_update","currentModeId":"a"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"x","name":"X","type":"boolean","currentValue":true},` + modeOption("a")[1:] + `}`,
			`{"sessionUpdate":"config_option_update","configOptions":` + strings.ReplaceAll(modeOption("a"), "configId", "id") + "}",
		}},
		{"boolean options", everything, []string{
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"x","name":"X","type":"boolean","currentValue":true}]}`,
			`{"sessionUpdate":"config_option_update","configOptions":[{"id":"x","name":"X","type":"boolean","currentValue":true}]}`,
		}},
		{"not advertised", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"notice","severity":"info","title":"t"}`, none,
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`, none,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"T"}}`, none,
			`{"sessionUpdate":"subagent_update","sessionId":"s"}`, none,
			`{"sessionUpdate":"session_message","messageId":"m"}`, none,
			`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`, none,
		}},
		{"advertised", everything, []string{
			`{"sessionUpdate":"notice","severity":"info","title":"t"}`, `{"sessionUpdate":"notice","severity":"info","title":"t"}`,
			`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"subagent_update","sessionId":"s","state":{"state":"running","background":[]}}`, `{"sessionUpdate":"subagent_update","sessionId":"s","state":{"state":"running"}}`,
			`{"sessionUpdate":"session_message","messageId":"m"}`, `{"sessionUpdate":"session_message","messageId":"m"}`,
			`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`,
			`{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"T"}}`,
		}},
		{"the rest", acpv1.ClientCapabilities{}, []string{
			`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`, none,
			`{"sessionUpdate":"state_update","state":"_x"}`, none,
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"_x","name":"n","description":"d","k":1},{"type":"command","name":"m","description":"d","input":{"type":"_x"}}]}`,
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d"},{"name":"m","description":"d"}]}`,
			`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":null}`, `{"sessionUpdate":"usage_update","used":1,"size":2}`,
			`{"sessionUpdate":"session_info_update","title":"t","_meta":null}`, `{"sessionUpdate":"session_info_update","title":"t"}`,
			`{"sessionUpdate":"_x","n":1.0}`, `{"sessionUpdate":"_x","n":1.0}`,
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"C"}`, none, // means nothing in version 2
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := ToV1{Caps: tt.caps}
			for i := 0; i < len(tt.steps); i += 2 {
				got := spelled(t, to.Update(v2Update(t, tt.steps[i])))
				if diff := cmp.Diff(tt.steps[i+1], got); diff != "" {
					t.Fatalf("step %d, %s: %s", i/2, tt.steps[i], diff)
				}
			}
		})
	}
	if got := new(ToV1).Update(nil); got != nil {
		t.Errorf("nil became %v", got)
	}
}
