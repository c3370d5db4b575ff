package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// quote makes a JSON string.
func quote(s string) string { return string(marshal(s)) }

// said makes a record of a line: its time in milliseconds, who it is for, and what it is.
func said(ms int, line string) *trace.Record {
	r := &trace.Record{At: time.Duration(ms) * time.Millisecond}
	switch line[0] {
	case '>', '<':
		r.Dir, r.Data = trace.Direction(line[0]), []byte(line[1:])
		if !strings.HasPrefix(line[1:], "{") {
			r.Kind = trace.Text
		}
	case '!':
		r.Kind, r.Data = trace.Stderr, []byte(line[1:])
	case '*':
		r.Kind, r.Name = trace.Event, line[1:]
	}
	return r
}

func update(session, u string) string {
	return `<{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":` + u + `}}`
}

func chunk(session, kind, text string) string {
	return update(session, `{"sessionUpdate":"`+kind+`","content":{"type":"text","text":`+quote(text)+`}}`)
}

// demo is a conversation as people have them.
func demo() []*trace.Record {
	const s = "sess_8f2c41d07be6"
	var out []*trace.Record
	ms := 0
	add := func(wait int, line string) {
		ms += wait
		out = append(out, said(ms, line))
	}
	add(0, "*start")
	out[0].Detail = trace.Detail{PID: 48213, Text: "claude-code-acp"}
	add(12, `>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"zed","title":"Zed","version":"0.214.3"}}}`)
	add(181, `!(node:48213) ExperimentalWarning: SQLite is an experimental feature and might change at any time`)
	add(88, `<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true}},"agentInfo":{"name":"claude-code-acp","version":"0.12.4"},"authMethods":[{"id":"login","name":"Log in with Claude Code","description":null}]}}`)
	add(9, `>{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/ada/src/ledger","mcpServers":[{"name":"db","command":"db-mcp","args":["--read-only"],"env":[{"name":"DB_TOKEN","value":"«redacted 1»"}]}]}}`)
	add(640, `<{"jsonrpc":"2.0","id":1,"result":{"sessionId":"`+s+`","modes":{"currentModeId":"default","availableModes":[{"id":"default","name":"Always Ask"},{"id":"acceptEdits","name":"Accept Edits"},{"id":"plan","name":"Plan"}]}}}`)
	add(2, update(s, `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review","description":"Review a change"},{"name":"init","description":"Write CLAUDE.md"}]}`))
	add(5210, `>{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"`+s+`","prompt":[{"type":"text","text":"Amounts with thousands separators are parsed wrong. Find out why, fix it, and run the tests."},{"type":"resource_link","name":"parse.go","uri":"file:///home/ada/src/ledger/parse.go"}]}}`)
	for i, w := range strings.SplitAfter("The user says that amounts such as 1,204.50 are misread. I should look at how parse.go splits fields before it trims the separators.", " ") {
		if i%3 == 0 {
			add(31, chunk(s, "agent_thought_chunk", w))
		} else {
			out[len(out)-1] = said(ms, strings.Replace("<"+string(out[len(out)-1].Data), `"}}}}`, quote(w)[1:]+`}}}}`, 1))
		}
	}
	add(420, update(s, `{"sessionUpdate":"plan","entries":[{"content":"Read how amounts are parsed","priority":"high","status":"in_progress"},{"content":"Fix the separator","priority":"high","status":"pending"},{"content":"Run the tests","priority":"medium","status":"pending"}]}`))
	add(60, update(s, `{"sessionUpdate":"tool_call","toolCallId":"toolu_01A","title":"Read parse.go","kind":"read","status":"pending","locations":[{"path":"/home/ada/src/ledger/parse.go"}],"rawInput":{"file_path":"/home/ada/src/ledger/parse.go"}}`))
	add(4, `<{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"`+s+`","path":"/home/ada/src/ledger/parse.go"}}`)
	add(3, `>{"jsonrpc":"2.0","id":0,"result":{"content":"package ledger\n\nfunc parseAmount(s string) (int64, error) {\n\ts = strings.ReplaceAll(s, \".\", \"\")\n\treturn strconv.ParseInt(s, 10, 64)\n}\n"}}`)
	add(2, update(s, `{"sessionUpdate":"tool_call_update","toolCallId":"toolu_01A","status":"completed"}`))
	for _, w := range []string{"Found it: ", "`parseAmount` removes the point ", "but never the thousands separator, ", "so `1,204.50` fails. ", "I'll change it."} {
		add(38, chunk(s, "agent_message_chunk", w))
	}
	add(800, update(s, `{"sessionUpdate":"tool_call","toolCallId":"toolu_01B","title":"Edit parse.go","kind":"edit","status":"pending","locations":[{"path":"/home/ada/src/ledger/parse.go","line":4}],"content":[{"type":"diff","path":"/home/ada/src/ledger/parse.go","oldText":"func parseAmount(s string) (int64, error) {\n\ts = strings.ReplaceAll(s, \".\", \"\")\n\treturn strconv.ParseInt(s, 10, 64)\n}\n","newText":"func parseAmount(s string) (int64, error) {\n\ts = strings.NewReplacer(\",\", \"\", \".\", \"\").Replace(s)\n\treturn strconv.ParseInt(s, 10, 64)\n}\n"}]}`))
	add(1, `<{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"`+s+`","toolCall":{"toolCallId":"toolu_01B","title":"Edit parse.go"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"always","name":"Always allow","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}`)
	add(3890, `>{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`)
	add(3, `<{"jsonrpc":"2.0","id":2,"method":"fs/write_text_file","params":{"sessionId":"`+s+`","path":"/home/ada/src/ledger/parse.go","content":"package ledger\n…"}}`)
	add(2, `>{"jsonrpc":"2.0","id":2,"result":{}}`)
	add(1, update(s, `{"sessionUpdate":"tool_call_update","toolCallId":"toolu_01B","status":"completed"}`))
	add(2, update(s, `{"sessionUpdate":"tool_call_update","toolCallId":"toolu_0XX","status":"completed"}`))
	add(310, `<{"jsonrpc":"2.0","id":3,"method":"terminal/create","params":{"sessionId":"`+s+`","command":"go","args":["test","./..."],"cwd":"/home/ada/src/ledger"}}`)
	add(2, `>{"jsonrpc":"2.0","id":3,"result":{"terminalId":"term_1"}}`)
	add(1, update(s, `{"sessionUpdate":"tool_call","toolCallId":"toolu_01C","title":"go test ./...","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"term_1"}]}`))
	add(1, `<{"jsonrpc":"2.0","id":4,"method":"terminal/wait_for_exit","params":{"sessionId":"`+s+`","terminalId":"term_1"}}`)
	add(2140, `>{"jsonrpc":"2.0","id":4,"result":{"exitCode":0,"signal":null}}`)
	add(1, `<{"jsonrpc":"2.0","id":5,"method":"session/set_title","params":{"sessionId":"`+s+`","title":"Thousands separators"}}`)
	add(1, `>{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Method not found","data":{"method":"session/set_title"}}}`)
	add(1, update(s, `{"sessionUpdate":"tool_call_update","toolCallId":"toolu_01C","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok  \tledger\t0.412s\nok  \tledger/report\t0.087s"}}]}`))
	add(20, update(s, `{"sessionUpdate":"plan","entries":[{"content":"Read how amounts are parsed","priority":"high","status":"completed"},{"content":"Fix the separator","priority":"high","status":"completed"},{"content":"Run the tests","priority":"medium","status":"completed"}]}`))
	for _, w := range []string{"Fixed. ", "`parseAmount` now removes both, ", "and all tests pass."} {
		add(35, chunk(s, "agent_message_chunk", w))
	}
	add(12, `<Warning: telemetry endpoint unreachable`)
	add(30, `<{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
	return out
}

// broken finds fault with what the demo does wrong.
type broken struct{ conformance.Recording }

func (b *broken) Add(rec *trace.Record) []conformance.Finding {
	b.Recording.Add(rec)
	rule := func(id string, l conformance.Level, text, why, path string) []conformance.Finding {
		return []conformance.Finding{{Frame: b.Frames(), Why: why, Path: path, Rule: &conformance.Rule{ID: id, Level: l, Text: text, Cites: []string{"S84"}}}}
	}
	switch s := string(rec.Data); {
	case strings.Contains(s, "toolu_0XX"):
		return rule("agent/tools/announced", conformance.Should, "A tool call is announced before it is updated.", "there is no tool call toolu_0XX", "params.update.toolCallId")
	case strings.Contains(s, "session/set_title") && rec.Dir == trace.ToClient:
		return rule("agent/methods/known", conformance.Must, "Methods of one's own begin with an underscore.", "the protocol has no method session/set_title", "method")
	case strings.HasPrefix(s, "Warning"):
		return rule("agent/stream/json", conformance.Must, "Everything an agent writes to its standard output is a message.", "this line is not JSON", "")
	}
	return nil
}

func (b *broken) End() []conformance.Finding {
	b.Recording.End()
	return nil
}

// many makes a long recording.
func many(n int, feed func(*trace.Record)) {
	for i := range n {
		switch i % 10 {
		case 0:
			feed(said(i, fmt.Sprintf(`>{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"prompt %d"}]}}`, i, i)))
		case 9:
			feed(said(i, fmt.Sprintf(`<{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, i-9)))
		default:
			feed(said(i, chunk("s", "agent_message_chunk", fmt.Sprintf("word %d ", i))))
		}
	}
}
