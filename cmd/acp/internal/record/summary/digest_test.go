package summary

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/trace"
	"github.com/goacp/acp/transcript"
)

// frames makes records of lines that begin with their direction, one millisecond apart.
func frames(lines ...string) []*trace.Record {
	var out []*trace.Record
	for i, l := range lines {
		out = append(out, &trace.Record{
			At: time.Duration(i) * time.Millisecond, Kind: trace.Frame, Dir: trace.Direction(l[0]), Data: []byte(l[1:]),
		})
	}
	return out
}

const v1Initialized = `<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`

func TestNext(t *testing.T) {
	var f Follower
	var got []Item
	for _, r := range frames(
		`>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"ed","version":"3"}}}`,
		`<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"ag","version":"4"}}}`,
		`>{"jsonrpc":"2.0","id":"0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`,
		`<{"jsonrpc":"2.0","id":"0","result":{"sessionId":"s"}}`,
		`>{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"say\nhello"},{"type":"image","data":"","mimeType":"image/png"}]}}`,
		`<{"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Run it"},"options":[]}}`,
		`<{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u001b]0;x\u0007hi\u202e"}}}}`,
		`>{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`,
		`<{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}`,
		`<{"jsonrpc":"2.0","id":2,"result":{}}`,
		`<[1,2]`,
		`<{"method":3}`,
	) {
		got = append(got, f.Next(r))
	}
	ms := time.Millisecond
	want := []Item{
		{Type: Request, Method: "initialize", ID: "0", Summary: "version 1 · ed 3"},
		{Type: Answer, Method: "initialize", ID: "0", Asked: 1, Took: ms, Summary: "version 1 · ag 4"},
		{Type: Request, Method: "session/new", ID: `"0"`, Summary: "/w"},
		{Type: Answer, Method: "session/new", ID: `"0"`, Session: "s", Asked: 3, Took: ms, Summary: "s"},
		{Type: Request, Method: "session/prompt", ID: "2", Session: "s", Summary: "say hello [image]"},
		{Type: Request, Method: "session/request_permission", ID: "2", Session: "s", Summary: "Run it"},
		{Type: Notification, Method: "session/update", Update: "agent_message_chunk", Session: "s", Summary: "hi"},
		{Type: Answer, Method: "session/request_permission", ID: "2", Session: "s", Asked: 6, Took: 2 * ms, Summary: "selected · yes"},
		{Type: Failure, Method: "session/prompt", ID: "2", Session: "s", Asked: 5, Took: 4 * ms, Code: -32603, Summary: "-32603 · no"},
		{Type: Answer, ID: "2"},
		{Type: Odd, Summary: "[1,2]"},
		{Type: Odd, Summary: `{"method":3}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestOther(t *testing.T) {
	code := 3
	for _, tt := range []struct {
		rec  trace.Record
		want Item
	}{
		{trace.Record{Kind: trace.Stderr, Data: []byte("a\x1b[31mb")}, Item{Type: Stderr, Summary: "ab"}},
		{trace.Record{Kind: trace.Text, Data: []byte("plain")}, Item{Type: Text, Summary: "plain"}},
		{trace.Record{Kind: trace.Event, Name: "exit", Detail: trace.Detail{PID: 7, Code: &code, Text: "killed", Count: 2}},
			Item{Type: Event, Method: "exit", Summary: "pid 7 · status 3 · count 2 · killed"}},
		{trace.Record{Kind: trace.Frame, Data: nil}, Item{Type: Odd}},
	} {
		var f Follower
		if diff := cmp.Diff(tt.want, f.Next(&tt.rec)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSummaries(t *testing.T) {
	for _, tt := range []struct{ update, want string }{
		{`{"sessionUpdate":"tool_call","toolCallId":"c","status":"pending","title":"Read"}`, "pending · Read"},
		{`{"sessionUpdate":"tool_call_update","toolCallId":"c"}`, "c"},
		{`{"sessionUpdate":"plan","entries":[{"status":"completed"},{"status":"pending"}]}`, "1 of 2 done"},
		{`{"sessionUpdate":"plan_update","plan":{"entries":[{"status":"completed"}]}}`, "1 of 1 done"},
		{`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`, "idle · end_turn"},
		{`{"sessionUpdate":"usage_update","used":5,"size":10}`, "5 of 10"},
		{`{"sessionUpdate":"available_commands_update","availableCommands":[{},{}]}`, "2 commands"},
		{`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`, "ask"},
		{`{"sessionUpdate":"_mine"}`, ""},
		{`{"sessionUpdate":"agent_message","content":[{"type":"resource_link","uri":"file:///a"}]}`, "[file:///a]"},
		{`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"` + strings.Repeat("x", 5000) + `"}}`,
			strings.Repeat("x", maxLine-1) + "…"},
	} {
		var f Follower
		r := frames(`<{"method":"session/update","params":{"sessionId":"s","update":` + tt.update + `}}`)[0]
		it := f.Next(r)
		if it.Summary != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.update, it.Summary, tt.want)
		}
		if !strings.Contains(tt.update, `:"`+it.Update+`"`) {
			t.Errorf("%s: kind %q", tt.update, it.Update)
		}
	}
}

// kinds tells the conversation of a session.
func kinds(f *Follower, id string) []string {
	s, _ := f.Transcript(id)
	if s == nil {
		return nil
	}
	var out []string
	for e := range s.Entries() {
		w := string(e.EntryKind())
		switch e := e.(type) {
		case *transcript.Message:
			w += " " + string(e.Role) + " " + e.Text()
		case *transcript.Permission:
			if o, ok := e.Selected(); ok {
				w += " " + string(o.OptionID)
			}
		}
		out = append(out, w)
	}
	return append(out, string(s.Session().State.Foreground))
}

func TestConversations(t *testing.T) {
	v1 := []string{
		`>{"id":0,"method":"initialize","params":{}}`, v1Initialized,
		`>{"id":1,"method":"session/new","params":{"cwd":"/w"}}`,
		`<{"id":1,"result":{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}}`,
		`>{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}`,
		`<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"o"}}}}`,
		`<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"k"}}}}`,
		`<{"id":9,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}`,
		`>{"id":9,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}`,
		`<{"id":2,"result":{"stopReason":"end_turn"}}`,
	}
	v2 := []string{
		`>{"id":0,"method":"initialize","params":{}}`, `<{"id":0,"result":{"protocolVersion":2}}`,
		`>{"id":1,"method":"session/new","params":{"cwd":"/w"}}`,
		`<{"id":1,"result":{"sessionId":"s","configOptions":[]}}`,
		`<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"u","content":[{"type":"text","text":"hello"}]}}}`,
		`<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"ok"}}}}`,
		`<{"id":9,"method":"session/request_permission","params":{"sessionId":"s","title":"T","subject":{"type":"tool_call","toolCall":{"toolCallId":"c"}},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}`,
		`>{"id":9,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}`,
		`<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
	}
	want := []string{"message user hello", "message agent ok", "tool_call", "permission y", "idle"}
	for name, lines := range map[string][]string{"v1": v1, "v2": v2} {
		t.Run(name, func(t *testing.T) {
			var f Follower
			for _, r := range frames(lines...) {
				f.Next(r)
			}
			if diff := cmp.Diff(want, kinds(&f, "s")); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
			if s := f.Sessions(); len(s) != 1 || s[0].ID != "s" || s[0].Changes == 0 {
				t.Errorf("sessions: %+v", s)
			}
			if _, n := f.Transcript("s"); n != f.Sessions()[0].Changes {
				t.Errorf("changes: %d", n)
			}
		})
	}
	t.Run("load again", func(t *testing.T) {
		var f Follower
		for _, r := range frames(append(v1, `>{"id":3,"method":"session/load","params":{"sessionId":"s"}}`)...) {
			f.Next(r)
		}
		if got := kinds(&f, "s"); len(got) != 1 {
			t.Errorf("the history is there twice: %q", got)
		}
	})
}

// TestStart: what an agent answers that was started again has nothing to do with
// what the one before was asked.
func TestStart(t *testing.T) {
	var f Follower
	f.Next(frames(`>{"id":1,"method":"initialize"}`)[0])
	f.Next(&trace.Record{Kind: trace.Event, Name: "start"})
	if it := f.Next(frames(`<{"id":1,"result":{"protocolVersion":1}}`)[0]); it.Asked != 0 || f.Version() != 0 {
		t.Errorf("%+v", it)
	}
}

func TestBounds(t *testing.T) {
	var f Follower
	for i := range 3 * MaxPending {
		f.Next(frames(fmt.Sprintf(`>{"id":%d,"method":"x","params":{"sessionId":"s%d"}}`, i, i%100))[0])
	}
	if n := len(f.requests[0].open); n != MaxPending {
		t.Errorf("%d requests are waited for, want %d", n, MaxPending)
	}
	if n := len(f.requests[0].order); n > 2*MaxPending {
		t.Errorf("%d ids are kept", n)
	}
	if got := f.Next(frames(`<{"id":0,"result":{}}`)[0]).Asked; got != 0 {
		t.Errorf("the oldest request is not forgotten: %d", got)
	}
	last := 3*MaxPending - 1
	if got := f.Next(frames(fmt.Sprintf(`<{"id":%d,"result":{}}`, last))[0]).Asked; got != int64(last+1) {
		t.Errorf("the latest request has number %d", got)
	}
	if n := len(f.Sessions()); n != MaxSessions {
		t.Errorf("%d sessions, want %d", n, MaxSessions)
	}
	// One id again and again, answered each time.
	var g Follower
	for range 5 * MaxPending {
		g.Next(frames(`>{"id":1,"method":"x"}`)[0])
		g.Next(frames(`<{"id":1,"result":{}}`)[0])
	}
	if n := len(g.requests[0].order); n > 2*MaxPending {
		t.Errorf("%d ids of answered requests are kept", n)
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte(v1Initialized))
	f.Add([]byte("<{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"plan\",\"entries\":[1]}}}\n>{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[]}}\n<{\"id\":1,\"result\":null}"))
	f.Add([]byte(">{\"id\":[],\"method\":\"initialize\"}\n<{\"id\":[],\"result\":{\"protocolVersion\":2}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fo Follower
		for l := range strings.Lines(string(data)) {
			it := fo.Next(frames(l)[0])
			for _, r := range it.Summary {
				if unicode.IsControl(r) {
					t.Fatalf("control character in %q", it.Summary)
				}
			}
			if it.Session != "" {
				fo.Transcript(it.Session)
			}
		}
	})
}
