package exec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares output with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), string(got)); diff != "" {
		t.Errorf("%s; what scripts read must not change but for additions (-update writes it anew):\n%s", file, diff)
	}
}

// updates are at least one for every kind of entry, every operation and every field.
const updates = `
{"sessionUpdate":"user_message","messageId":"m1","content":[{"type":"text","text":"Fix the test"}]}
{"sessionUpdate":"state_update","state":"running"}
{"sessionUpdate":"agent_thought_chunk","messageId":"m2","content":{"type":"text","text":"Hm"}}
{"sessionUpdate":"agent_thought_chunk","messageId":"m2","content":{"type":"text","text":", well."}}
{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"text","text":"I <b>will</b> & \u001b[31m"}}
{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"text","text":"read."}}
{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}
{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Edit main.go","kind":"edit","status":"pending","locations":[{"path":"/p/main.go","line":3}],"rawInput":{"path":"main.go"}}
{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c1","content":{"type":"content","content":{"type":"text","text":"part"}}}
{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","changes":[{"operation":"modify","path":"/p/main.go"}],"patch":{"format":"git_patch","text":"--- a/main.go\n+++ b/main.go\n@@ -1 +1 @@\n-a\n+b\n"}}],"rawOutput":"done"}
{"sessionUpdate":"terminal_update","terminalId":"t1","command":"go test","cwd":"/p"}
{"sessionUpdate":"terminal_output_chunk","terminalId":"t1","data":"b2sK"}
{"sessionUpdate":"terminal_output_chunk","terminalId":"t1","data":"G1szMW1yZWQbWzBtCg=="}
{"sessionUpdate":"terminal_update","terminalId":"t1","exitStatus":{"exitCode":0}}
{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p1","entries":[{"content":"Read","priority":"high","status":"completed"},{"content":"Fix","priority":"medium","status":"in_progress"}]}}
{"sessionUpdate":"plan_removed","planId":"p1"}
{"sessionUpdate":"usage_update","used":5200,"size":200000,"cost":{"amount":0.03,"currency":"USD"}}
{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"review","description":"Review the changes"}]}
{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"ask","options":[{"value":"ask","name":"Ask"}]}]}
{"sessionUpdate":"session_info_update","title":"A test"}
{"sessionUpdate":"notice","severity":"warning","title":"Slow","description":"The model is slow."}
{"sessionUpdate":"compaction_update","compactionId":"k1","status":"in_progress"}
{"sessionUpdate":"compaction_summary_chunk","compactionId":"k1","content":{"type":"text","text":"It was"}}
{"sessionUpdate":"compaction_summary_chunk","compactionId":"k1","content":{"type":"text","text":" about tests."}}
{"sessionUpdate":"compaction_update","compactionId":"k1","status":"completed"}
{"sessionUpdate":"subagent_update","sessionId":"s2","title":"Helper","capabilities":{"cancel":{}}}
{"sessionUpdate":"session_message","messageId":"x1","senderSessionId":"s2","content":[{"type":"text","text":"Done"}]}
{"sessionUpdate":"_mine","x":1}
{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}
`

// TestJSONGolden holds the form of every line.
func TestJSONGolden(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&Options{App: &app.App{Out: &out, Err: new(bytes.Buffer)}, JSON: true})
	r.note(backend.Note{Kind: backend.NoteSlow, Text: "it takes long"})
	r.begin("s1", sessionLine{
		Type: "session", Version: formVersion, Session: "s1", Agent: agentInfo{Name: "claude", Program: "claude-agent-acp", Version: "0.9.1"},
		Protocol: 2, Cwd: "/p", Restored: acp.RestoredNew.String(), Untrusted: []string{"/p/.mcp.json is not trusted"},
	})
	conv := transcript.New(transcript.Config{})
	l := &lines{session: "s1"}
	tell := func(changes []transcript.Change) {
		t.Helper()
		data, err := l.appendBatch(nil, conv.Snapshot(), changes)
		if err != nil {
			t.Fatal(err)
		}
		r.write(data)
		r.follow("s1", conv.Snapshot(), changes)
	}
	for line := range bytes.Lines([]byte(updates)) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		u, err := acpv2.UnmarshalSessionUpdate(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		tell([]transcript.Change{conv.Apply(u)})
	}
	var req acpv2.RequestPermissionRequest
	if err := json.Unmarshal([]byte(`{"sessionId":"s1","title":"Run it?","subject":{"type":"command","command":"go test","cwd":"/p"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}`), &req); err != nil {
		t.Fatal(err)
	}
	seq, asked := conv.Asked(&req)
	tell(asked)
	r.suggest = func(acphost.Request) string { return "command:go test" }
	r.decided(nil, acphost.Record{
		Session: "s1", ToolCallID: "c1", Title: "Run it?", Kind: "execute", Command: "go test", Paths: []string{"/p"},
		Effect: acphost.EffectDeny, By: acphost.ByNobody, Rule: "a rule", OptionID: "n", OptionKind: "reject_once",
	}, acphost.Request{})
	r.decided(nil, acphost.Record{Session: "s1", Effect: acphost.EffectAllow, By: acphost.ByUser}, acphost.Request{})
	tell([]transcript.Change{conv.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "n"})})
	r.note(backend.Note{Kind: backend.NoteStderr, Text: "a warning"})
	tell(nil) // told anew
	r.writeLine(r.resultLine(nil, &acp.Result{StopReason: acp.StopEndTurn, Usage: &acp.Usage{TotalTokens: 3, InputTokens: 2, OutputTokens: 1}}, nil))
	r.writeLine(r.resultLine(nil, &acp.Result{StopReason: acp.StopRefusal}, exitcode.Errorf(exitcode.Refused, "the agent refused the prompt")))
	r.writeLine(r.resultLine(nil, nil, exitcode.With(exitcode.Protocol, jsonrpc.Errorf(-32050, "overloaded").WithData(map[string]string{"reason": "rate_limit"}))))
	r.writeLine(r.resultLine(nil, nil, errors.New("no disk")))
	if r.err != nil {
		t.Fatal(r.err)
	}
	golden(t, "lines.jsonl", out.Bytes())
	// What docs/exec-json.md lists.
	for member, values := range map[string][]string{
		"type":  {"session", "update", "permission", "note", "result"},
		"op":    {"created", "updated", "appended", "session", "reset"},
		"field": {"state", "usage", "configOptions", "commands", "info"},
		"kind":  {"message", "tool_call", "plan", "terminal", "notice", "compaction", "subagent", "session_message", "permission", "unknown"},
	} {
		for _, v := range values {
			if !bytes.Contains(out.Bytes(), fmt.Appendf(nil, "%q:%q", member, v)) {
				t.Errorf("no line has %s %s", member, v)
			}
		}
	}
	for line := range bytes.Lines(out.Bytes()) {
		if bytes.ContainsAny(line, "\x1b\x7f") || !json.Valid(line) {
			t.Errorf("unsafe, or no JSON: %q", line)
		}
	}
}

// TestShow has what tool calls show with and without what the agent says.
func TestShow(t *testing.T) {
	for _, tt := range []struct {
		show Show
		want string
	}{
		{"", "I <b>will</b> & read.\n"},
		{ShowText, "I <b>will</b> & read.\n"},
		{ShowTools, "--- a/main.go\n+++ b/main.go\n@@ -1 +1 @@\n-a\n+b\nok\nred\n"},
		{ShowAll, "Thought: Hm, well.\nI <b>will</b> & read.\n--- a/main.go\n+++ b/main.go\n@@ -1 +1 @@\n-a\n+b\nok\nred\n"},
	} {
		t.Run(string(tt.show), func(t *testing.T) {
			var out, errs bytes.Buffer
			r := newReport(&Options{App: &app.App{Out: &out, Err: &errs}, Show: tt.show})
			conv := transcript.New(transcript.Config{})
			for line := range bytes.Lines([]byte(updates)) {
				if line = bytes.TrimSpace(line); len(line) == 0 {
					continue
				}
				u, err := acpv2.UnmarshalSessionUpdate(line)
				if err != nil {
					t.Fatal(err)
				}
				changes := []transcript.Change{conv.Apply(u)}
				r.follow(r.main, conv.Snapshot(), changes)
			}
			if err := r.finish(nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want || errs.Len() > 0 {
				t.Errorf("%q, want %q; stderr %q", out.String(), tt.want, errs.String())
			}
		})
	}
}

// TestOrder: what came first is written first, also when it is told of in one batch, and whichever
// of the two streams it goes to.
func TestOrder(t *testing.T) {
	said := func(id, text string) acpv2.SessionUpdate {
		return &acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(id), Content: acp.Text(text)}
	}
	call := func(status acpv2.ToolCallStatus, content ...acpv2.ToolCallContent) acpv2.SessionUpdate {
		u := &acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("look"), Status: acpv2.Set(status)}
		if content != nil {
			u.Content = acpv2.Set(content)
		}
		return u
	}
	batch := []acpv2.SessionUpdate{
		said("a", "before"), call(acpv2.ToolCallStatusPending), said("b", "meanwhile"),
		call(acpv2.ToolCallStatusCompleted, &acpv2.Content{Content: acp.Text("found")}), said("d", "after"),
	}
	for _, tt := range []struct {
		show Show
		want string
	}{
		{ShowText, "before\nmeanwhile\nTool: look\nafter\n"},
		{ShowTools, "found\nTool: look\n"},
		{ShowAll, "before\nmeanwhile\nfound\nTool: look\nafter\n"},
	} {
		var screen bytes.Buffer // both streams
		r := newReport(&Options{App: &app.App{Out: &screen, Err: &screen, OutTerminal: true, ErrTerminal: true}, Show: tt.show})
		conv := transcript.New(transcript.Config{})
		var changes []transcript.Change
		for _, u := range batch {
			changes = append(changes, conv.Apply(u))
		}
		r.follow(r.main, conv.Snapshot(), changes)
		if err := r.finish(nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		got := regexp.MustCompile(`(?m)^Tool: look.*$`).ReplaceAllString(screen.String(), "Tool: look")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.show, diff)
		}
	}
}

// TestCut: what the bounds of conversations have taken is told.
func TestCut(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out, errs bytes.Buffer
		show := ShowAll
		if asJSON {
			show = ShowText
		}
		r := newReport(&Options{App: &app.App{Out: &out, Err: &errs}, JSON: asJSON, Show: show})
		conv := transcript.New(transcript.Config{TotalBytes: 64 << 10, EntryBytes: 8 << 10, TerminalBytes: 4 << 10})
		apply := func(us ...acpv2.SessionUpdate) {
			var changes []transcript.Change
			for _, u := range us {
				changes = append(changes, conv.Apply(u))
			}
			r.follow(r.main, conv.Snapshot(), changes)
		}
		piece := string(bytes.Repeat([]byte("x"), 3000))
		for range 4 {
			apply(&acpv2.AgentMessageChunk{MessageID: "m", Content: acp.Text(piece)})
		}
		chunk := &acpv2.TerminalOutputChunk{TerminalID: "t", Data: base64.StdEncoding.EncodeToString([]byte(piece))}
		apply(chunk)
		apply(chunk, chunk)
		if err := r.finish(nil, nil, nil); exitcode.Of(err) != exitcode.Failed || err.Error() != "the text is cut: at most 32 MiB of a message are retained" {
			t.Errorf("finish: %v", err)
		}
		if asJSON && !bytes.Contains(out.Bytes(), []byte(`"truncated":true`)) {
			t.Errorf("%s", out.Bytes())
		}
		if !asJSON && !bytes.Contains(errs.Bytes(), []byte("acp: 1904 bytes of command output are missing: they arrived too fast\n")) {
			t.Errorf("stderr %q", errs.String())
		}
	}
}

func TestUnfenced(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"```go\na\nb\n```", "a\nb\n"},
		{"\n````\n```\nx\n```\n````\n", "```\nx\n```\n"},
		{"```\n```", ""},
		{"```go\na\n```\n\n(more)", "```go\na\n```\n\n(more)"},
		{"```a\n1\n```\n```b\n2\n```", "```a\n1\n```\n```b\n2\n```"},
		{"```one line```", "```one line```"},
		{"plain", "plain"},
		{"``x\ny\n``", "``x\ny\n``"},
		{"```", "```"},
		{"", ""},
	} {
		if got := unfenced(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestDenials(t *testing.T) {
	for n, silent := range map[denials]bool{1: true, maxDenials: true, maxDenials + 1: false} {
		if n.Silent() != silent || n.Error() == "" {
			t.Errorf("%d: %v, %q", n, n.Silent(), n.Error())
		}
	}
}
