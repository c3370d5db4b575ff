package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A step is a call and a part of its result, or the code of its error.
type step struct {
	method, params string
	want           string
	code           int
}

func (p *peer) steps(steps []step) {
	for _, s := range steps {
		result, err := p.try(s.method, s.params)
		switch {
		case s.code != 0 && code(err) != s.code:
			p.t.Errorf("%s %s: %s, %v; want error %d", s.method, s.params, result, err, s.code)
		case s.code == 0 && (err != nil || !strings.Contains(string(result), s.want)):
			p.t.Errorf("%s %s: %s, %v; want %s", s.method, s.params, result, err, s.want)
		}
	}
}

// TestSessions takes sessions through everything that can happen to them. The
// session of the test is sess-1.
func TestSessions(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		if _, _, err := p.say("echo remember me"); err != nil {
			t.Fatal(err)
		}
		servers := `"mcpServers":[{"name":"s","command":"/x","args":[],"env":[]}]`
		if v == 2 {
			servers = `"mcpServers":[{"type":"stdio","name":"s","command":"/x"}]`
		}
		p.steps([]step{
			{method: "session/new", params: `{"cwd":"/two","additionalDirectories":["/opt"],` + servers + `,"systemPrompt":{"mode":"append","content":[{"type":"text","text":"be nice"}]}}`, want: `"additionalDirectories":["/opt"]`},
			{method: "session/new", params: `{"cwd":"/two","mcpServers":[]}`, want: `"sess-3"`},
			{method: "session/new", params: `{"cwd":"/","mcpServers":[],"_meta":{"tspeer":{"authRequired":true}}}`, code: -32000},
			{method: "session/list", params: `{}`, want: `"nextCursor":"2"`},
			{method: "session/list", params: `{"cursor":"2"}`, want: `"sess-3"`},
			{method: "session/list", params: `{"cursor":"nine"}`, code: -32602},
			{method: "session/list", params: `{"cwd":"/nowhere"}`, want: `"sessions":[]`},
			{method: "session/set_title", params: `{"sessionId":"$","title":" T "}`, want: `{"title":"T"}`},
			{method: "session/list", params: `{"cwd":"/"}`, want: `"title":"T"`},
			{method: "session/status", params: `{"sessionId":"$"}`, want: `"open"`},
			{method: "session/archive", params: `{"sessionId":"sess-3"}`},
			{method: "session/status", params: `{"sessionId":"sess-3"}`, want: `"saved"`},
			{method: "session/list", params: `{"archived":"only"}`, want: `"sess-3"`},
			{method: "session/list", params: `{"cwd":"/two"}`, want: `{"sessions":[{"sessionId":"sess-2"`},
			{method: "session/unarchive", params: `{"sessionId":"sess-3"}`},
			{method: "session/fork", params: `{"sessionId":"$","cwd":"/fork","mcpServers":[]}`, want: `"sess-4"`},
			{method: "session/fork", params: `{"sessionId":"nope","cwd":"/fork","mcpServers":[]}`, code: -32002},
			{method: "session/resume", params: `{"sessionId":"sess-3","cwd":"/two"}`, want: `"configOptions"`},
			{method: "session/close", params: `{"sessionId":"sess-3"}`},
			{method: "session/resume", params: `{"sessionId":"nope","cwd":"/two"}`, code: -32002},
			{method: "session/delete", params: `{"sessionId":"sess-3"}`},
			{method: "session/delete", params: `{"sessionId":"sess-3"}`, code: -32002},
			{method: "session/status", params: `{"sessionId":"sess-3"}`, code: -32002},
		})
		p.mu.Lock()
		p.updates = nil
		p.text.Reset()
		p.mu.Unlock()
		load := step{method: "session/load", params: `{"sessionId":"$","cwd":"/","mcpServers":[]}`}
		if v == 2 {
			load = step{method: "session/resume", params: `{"sessionId":"$","cwd":"/","replayFrom":{"type":"start"}}`}
		}
		p.steps([]step{load})
		want := []string{"user_message_chunk", "agent_message_chunk"}
		if v == 2 {
			want = []string{"user_message", "agent_message", "state_update"}
		}
		seen := p.kinds()
		for _, k := range want {
			if !seen[k] {
				t.Errorf("the replay %v has no %s", seen, k)
			}
		}
	})
}

func TestAccountsAndExtensions(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, false)
		login, logout := "authenticate", "logout"
		if v == 2 {
			login, logout = "auth/login", "auth/logout"
		}
		p.steps([]step{
			{method: "auth/status", params: `{}`, want: `"unauthenticated"`},
			{method: login, params: `{"methodId":"nope"}`, code: -32602},
			{method: login, params: `{"methodId":"tspeer-login"}`},
			{method: "auth/status", params: `{}`, want: `{"label":"tspeer","active":true}`},
			{method: "session/new", params: `{"cwd":"/","mcpServers":[],"_meta":{"tspeer":{"authRequired":true}}}`, want: "sess-2"},
			{method: logout, params: `{}`},
			{method: "providers/set", params: `{"providerId":"nope","apiType":"openai","baseUrl":"https://x"}`, code: -32602},
			{method: "providers/set", params: `{"providerId":"main","apiType":"openai","baseUrl":"https://x"}`},
			{method: "providers/list", params: `{}`, want: `"baseUrl":"https://x"`},
			{method: "providers/disable", params: `{"providerId":"main"}`},
			{method: "providers/list", params: `{}`, want: `"providerId":"main"`},
			{method: "_tspeer/echo", params: `{"a":[1,null]}`, want: `{"echoed":{"a":[1,null]}}`},
			{method: "_tspeer/sleep", params: `{"ms":1}`, want: `{"slept":1}`},
			{method: "_tspeer/sleep", params: `{"ms":"long"}`, code: -32602},
			{method: "_tspeer/throw", params: `{}`, code: -32603},
			{method: "_tspeer/init", params: `{}`, want: `"init":{"protocolVersion"`},
			{method: "_tspeer/notes", params: `{}`, want: `{"notes":[]}`},
		})
		p.notify("_tspeer/note", `{"n":7}`)
		p.steps([]step{{method: "_tspeer/notes", params: `{}`, want: `{"notes":[{"n":7}]}`}})
		var result json.RawMessage
		if err := p.conn.Call(t.Context(), "_tspeer/echo", nil, &result); err != nil || string(result) != `{"echoed":null}` {
			t.Errorf("echo of nothing: %s, %v", result, err)
		}
	})
}

// TestStable: without what is experimental there is no trace of it.
func TestStable(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		p := dial(t, v, true)
		for _, method := range []string{"session/fork", "session/archive", "session/status", "session/set_title", "auth/status", "providers/list"} {
			p.steps([]step{{method: method, params: `{"sessionId":"$","cwd":"/","mcpServers":[],"title":"t"}`, code: -32601}})
		}
		if text, stop, err := p.say("!mcp toy tools/list"); err == nil && stop != "error" {
			t.Errorf("mcp over acp: %q, %s, %v", text, stop, err)
		}
	})
}
