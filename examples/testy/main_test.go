package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// versions runs a test in each version of the protocol.
func versions(t *testing.T, f func(t *testing.T, version int)) {
	for _, v := range []int{1, 2} {
		t.Run("v"+strconv.Itoa(v), func(t *testing.T) { f(t, v) })
	}
}

// TestWords tells the agent to say things.
func TestWords(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.txt")
	if err := os.WriteFile(file, []byte("on disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	type want struct{ v1, v2, stop string }
	same := func(text string) want { return want{text, text, "end_turn"} }
	tests := []struct {
		prompt string
		want   want
	}{
		{"hello there", same("echo:hello there")},
		{"!chunks 12", want{"01234567891011", "0,1,2,3,4,5,6,7,8,9,10,11", "end_turn"}},
		{"!burst 3", want{"012", "0,1,2", "end_turn"}},
		{"!big 70000", same(strings.Repeat("x", 70000))},
		{"!unicode", same("h\u00e9llo \u4e16\u754c \U0001f600 \u2028\u2029 \x00 \"quoted\" \\n")},
		{"!stop max_tokens", want{"", "", "max_tokens"}},
		{"!stop cancelled", want{"", "", "cancelled"}},
		{"!order", same("last")},
		{"!badupdate", same("after-bad")},
		{"!perm", same("perm:selected:allow")},
		{"!permtool", same("perm:selected")},
		{"!read " + file, want{"read:read from the client", "read:on disk", "end_turn"}},
		{"!write " + filepath.Join(dir, "g.txt") + " a  b", same("written")},
		{"!elicit", same(`elicit:accept:{"name":"Ada","ok":true}`)},
		{"!eliciturl", same("eliciturl:accept")},
		{"!ext a b", same(`ext:{"echoed":{"v":"a b"}}`)},
		{"!extnote a", same("noted")},
		{"!unknown", same("unknown:-32601")},
		{"!parallel 20", same("parallel:true")},
		{"!blocks", same("text")},
		{"!meta", same(`{"k":1}`)},
		{"!mcp toy tools/list", same(`{"out":{"result":{"tools":[]}},"seen":["progress","progress"]}`)},
		{"!mcp toy nope", same(`{"out":{"error":{"code":-32601,"message":"no"}},"seen":[]}`)},
		{"!mcp who tools/list", same(`{"out":{"outer":-33001,"data":{"serverId":"who"}},"seen":[]}`)},
		{"!mcpcancel toy", same("mcpcancel:-32800")},
		{`!raw {"jsonrpc":"2.0","method":"_tspeer/client_note","params":"raw"}`, same("after-raw")},
		{"echo a  b", same("a  b")},
		{"sleep 1", same("")},
		{"read " + file, want{"read from the client", "on disk", "end_turn"}},
		{"inspect-prompt", same(`[{"text":"inspect-prompt","type":"text"}]`)},
	}
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		for _, test := range tests {
			want := test.want.v1
			if v == 2 {
				want = test.want.v2
			}
			name, _, _ := strings.Cut(test.prompt, " ")
			t.Run(name, func(t *testing.T) {
				text, stop, err := p.say(test.prompt)
				if name == "inspect-prompt" {
					text = sorted(t, text)
				}
				if text != want || stop != test.want.stop || err != nil {
					t.Errorf("said %.80q, stopped with %s, %v; want %.80q, %s", text, stop, err, want, test.want.stop)
				}
			})
		}
		_, err := os.Stat(filepath.Join(dir, "g.txt"))
		if exists := err == nil; exists != (v == 2) {
			t.Errorf("written on disk: %v", exists)
		}
	})
}

// sorted returns a JSON text with the members of its objects in order.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestBlocks(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		const image = `{"type":"image","data":"AAAA","mimeType":"image/png"}`
		text, _, err := p.prompt(`{"type":"text","text":"!blocks"},` + image + `,{"type":"resource_link","name":"n","uri":"file:///x"}`)
		if text != "text,image,resource_link" || err != nil {
			t.Errorf("said %q, %v", text, err)
		}
		if text, _, err := p.prompt(image); text != "echo:<image>" || err != nil {
			t.Errorf("said %q, %v", text, err)
		}
		const vendor = `{"type":"_vendor","deep":{"a":[1]}}`
		text, _, err = p.prompt(`{"type":"text","text":"!customblock"},` + vendor)
		if text != vendor || err != nil {
			t.Errorf("said %q, %v", text, err)
		}
	})
}

// TestRefused: these never become part of the conversation.
func TestRefused(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		if _, _, err := p.say("hello"); err != nil { // what a new session sends is over
			t.Fatal(err)
		}
		for prompt, want := range map[string]int{"!reject": -32602, "!fail": -32603, "!rpcerror": -32042, "!auth": -32000} {
			_, _, err := p.say(prompt)
			if code(err) != want || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", prompt, err)
			}
			if len(p.updates) > 0 {
				t.Errorf("%s: sent %+v", prompt, p.updates)
			}
		}
		p.notify("session/cancel", `{"sessionId":"$"}`) // concerns nothing
		if text, _, err := p.say("go on"); text != "echo:go on" || err != nil {
			t.Errorf("afterwards: %q, %v", text, err)
		}
	})
}

// TestHeldV2: a prompt that is held is withdrawn by a cancel that came behind it
// (S42).
func TestHeldV2(t *testing.T) {
	p := dialLines(t)
	p.write(0, "initialize", `{"protocolVersion":2,"info":{"name":"lines","version":"0"},"capabilities":{}}`)
	p.write(1, "session/new", `{"cwd":"/"}`)
	got := []string{p.read(), p.read()}
	p.write(2, "session/prompt", `{"sessionId":"sess-1","prompt":[{"type":"text","text":"!hold"}]}`)
	p.write(-1, "session/cancel", `{"sessionId":"sess-1"}`)
	p.write(3, "session/prompt", `{"sessionId":"sess-1","prompt":[{"type":"text","text":"echo next"}]}`)
	for len(got) < 5 {
		if w := p.read(); w != "" {
			got = append(got, w)
		}
	}
	slices.Sort(got) // answers have no order
	want := []string{"answer 0", "answer 1", "answer 2, error -32800", "answer 3", "next"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStopV2(t *testing.T) {
	p := dial(t, 2, false)
	if _, stop, err := p.say("!stop none"); stop != "" || err != nil {
		t.Errorf("stopped with %q, %v", stop, err)
	}
	if _, stop, err := p.say("!stop error"); stop != "error" || err != nil {
		t.Errorf("stopped with %q, %v", stop, err)
	}
	if e := p.idles[0].Error; e == nil || e.Message != "model down" || string(e.Data) != `{"a":1}` {
		t.Errorf("error %+v", e)
	}
	if _, _, err := p.say("!usage"); err != nil || p.idles[0].Usage == nil || p.idles[0].Usage.TotalTokens != 30 {
		t.Errorf("usage %+v, %v", p.idles[0].Usage, err)
	}
}

// TestHang: a turn that is cancelled can still say something.
func TestHang(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		go func() {
			p.await(func() bool { return p.text.String() == "hanging" })
			p.notify("session/cancel", `{"sessionId":"$"}`)
		}()
		want := map[int]string{1: "hanginglate-update-after-cancel", 2: "hanging+late"}[v]
		if text, stop, err := p.say("!hang"); text != want || stop != "cancelled" || err != nil {
			t.Errorf("said %q, stopped with %s, %v", text, stop, err)
		}
	})
}

func TestPermissions(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		p.answer = "reject"
		if text, _, err := p.say("!perm"); text != "perm:selected:reject" || err != nil {
			t.Errorf("rejected: %q, %v", text, err)
		}
		p.answer = ""
		<-p.asked
		go func() {
			<-p.asked
			p.notify("session/cancel", `{"sessionId":"$"}`)
		}()
		if text, stop, err := p.say("!perm"); text != "perm:cancelled" || stop != "cancelled" || err != nil {
			t.Errorf("cancelled: %q, %s, %v", text, stop, err)
		}
		if v == 1 {
			if text, _, err := p.say("!permcancel"); text != "permcancel:result:cancelled" || err != nil {
				t.Errorf("withdrawn: %q, %v", text, err)
			}
			return
		}
		p.answer = "a"
		if text, _, err := p.say("!permcustom"); text != "perm:selected" || err != nil {
			t.Errorf("custom: %q, %v", text, err)
		}
	})
}

// TestCancelledToolV2 cancels a tool call, then a command in the background.
func TestCancelledToolV2(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sleep")
	}
	p := dial(t, 2, false)
	go func() {
		p.await(func() bool { return len(p.updates) > 2 })
		p.call("tool_call/cancel", `{"sessionId":"$","toolCallId":"tcA"}`)
	}()
	if _, stop, err := p.say("!tool tcA"); stop != "end_turn" || err != nil {
		t.Errorf("stopped with %s, %v", stop, err)
	}
	p.mu.Lock()
	last, ok := p.updates[len(p.updates)-2].value.(*acpv2.ToolCallUpdate)
	p.mu.Unlock()
	if !ok || last.Status.Or("") != acpv2.ToolCallStatusCancelled || !last.Capabilities.IsClear() {
		t.Errorf("the last update of the call is %+v", last)
	}
	if _, err := p.try("tool_call/cancel", `{"sessionId":"$","toolCallId":"tcA"}`); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("cancelled twice: %v", err)
	}

	if _, _, err := p.say("!terminal btA"); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	background := p.idles[0].Background
	p.mu.Unlock()
	if want := []acpv2.BackgroundWork{&acpv2.BackgroundTerminal{TerminalID: "btA"}}; !cmp.Equal(background, want) {
		t.Errorf("in the background: %s", cmp.Diff(want, background))
	}
	p.call("terminal/cancel", `{"sessionId":"$","terminalId":"btA"}`)
	p.await(func() bool { return len(p.idles) > 1 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.idles[1].Background; b == nil || len(b) > 0 {
		t.Errorf("in the background afterwards: %+v", b)
	}
	for _, u := range p.updates {
		if u, ok := u.value.(*acpv2.TerminalUpdate); ok && u.Capabilities.IsClear() {
			if exit, _ := u.ExitStatus.Get(); exit.Signal == "" {
				t.Errorf("ended with %+v", exit)
			}
		}
	}
}

func TestTerm(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("echo is no program")
	}
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		if text, _, err := p.say("!term echo hi"); text != "term:0:hi:false" || err != nil {
			t.Errorf("said %q, %v", text, err)
		}
	})
}

// TestUpdates: every update there is, and only what a client has said it knows.
func TestUpdates(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("echo is no program")
	}
	common := []string{"user_message_chunk", "agent_thought_chunk", "agent_message_chunk", "tool_call_update",
		"available_commands_update", "config_option_update", "session_info_update", "usage_update"}
	optional := []string{"notice", "compaction_update", "compaction_summary_chunk"}
	experimental := []string{"plan_removed", "subagent_update", "session_message", "session_message_chunk"}
	ofVersion := map[int][]string{
		1: {"tool_call", "plan", "current_mode_update"},
		2: {"user_message", "agent_message", "agent_thought", "state_update", "tool_call_content_chunk",
			"terminal_update", "terminal_output_chunk", "plan_update", "_vendor_update"},
	}
	has := func(t *testing.T, p *peer, want bool, kinds []string) {
		t.Helper()
		seen := p.kinds()
		for _, k := range kinds {
			if seen[k] != want {
				t.Errorf("sent %s: %v", k, seen[k])
			}
		}
	}
	versions(t, func(t *testing.T, v int) {
		for _, stable := range []bool{false, true} {
			t.Run(fmt.Sprintf("stable=%v", stable), func(t *testing.T) {
				p := dial(t, v, stable)
				if _, stop, err := p.say("!updates"); stop != "end_turn" || err != nil {
					t.Fatalf("stopped with %s, %v", stop, err)
				}
				has(t, p, true, common)
				has(t, p, true, optional)
				has(t, p, true, ofVersion[v])
				has(t, p, !stable, experimental)
				text, _, err := p.say("!lenient")
				if text != "after-lenient" || err != nil {
					t.Errorf("said %q, %v", text, err)
				}
			})
		}
	})
	t.Run("nothing advertised", func(t *testing.T) {
		p := dialWith(t, 1, false, "{}")
		if _, stop, err := p.say("!updates"); stop != "end_turn" || err != nil {
			t.Fatalf("stopped with %s, %v", stop, err)
		}
		has(t, p, true, common)
		has(t, p, false, optional)
		has(t, p, false, experimental)
	})
}

// TestQueuedPromptsV1: what a turn sends is between the answer to the prompt
// before and its own (S40), also when everything was sent at once, the opening
// of the connection included.
func TestQueuedPromptsV1(t *testing.T) {
	p := dialLines(t)
	const n = 20
	p.write(0, "initialize", `{"protocolVersion":1}`)
	p.write(1, "session/new", `{"cwd":"/","mcpServers":[]}`)
	got, want := []string{p.read(), p.read()}, []string{"answer 0", "answer 1"}
	go func() {
		for i := range n {
			p.write(2+i, "session/prompt", fmt.Sprintf(`{"sessionId":"sess-1","prompt":[{"type":"text","text":"echo text %d"}]}`, i))
		}
	}()
	want = append(want, "commands")
	for i := range n {
		want = append(want, fmt.Sprintf("text %d", i), fmt.Sprintf("answer %d", 2+i))
	}
	for len(got) < len(want) {
		got = append(got, p.read())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
