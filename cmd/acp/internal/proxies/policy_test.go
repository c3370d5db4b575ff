package proxies

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/record/hop"
	"github.com/goacp/acp/cmd/acp/internal/record/tap"
)

// TestPolicy tries to get round the rules.
func TestPolicy(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "a", ".env": "KEY=x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, ".env"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	const refused = "refused"
	file := func(name string) string { return fmt.Sprintf(`{"sessionId":"s","path":%q}`, filepath.Join(dir, name)) }
	for _, tt := range []struct {
		name, method, params string
		want                 string // what the client gets, or refused
	}{
		{"what is allowed", "fs/read_text_file", file("a.txt"), "a.txt"},
		{"what is denied", "fs/read_text_file", file(".env"), refused},
		{"a link to it", "fs/read_text_file", file("link"), refused},
		{"a way round", "fs/read_text_file", file("x/../.env"), refused},
		{"outside", "fs/read_text_file", `{"sessionId":"s","path":"/etc/passwd"}`, refused},
		{"another session", "fs/read_text_file", `{"sessionId":"t","path":"/etc/passwd"}`, refused},
		{"two paths", "fs/read_text_file", `{"sessionId":"s","path":"` + dir + `/a.txt","path":"` + dir + `/.env"}`, refused},
		{"two spellings", "fs/read_text_file", `{"sessionId":"s","path":"` + dir + `/a.txt","Path":"` + dir + `/.env"}`, refused},
		{"an unknown method", "fs/delete_file", file("a.txt"), refused},
		{"an unknown terminal", "terminal/exec", `{"sessionId":"s","command":"make"}`, refused},
		{"a command", "terminal/create", `{"sessionId":"s","command":"curl","args":["x"]}`, refused},
		{"within a shell", "terminal/create", `{"sessionId":"s","command":"sh","args":["-c","make; curl x"]}`, refused},
		{"an allowed command", "terminal/create", `{"sessionId":"s","command":"make"}`, "make"},
		{"in an envelope", "proxy/successor", `{"method":"fs/read_text_file","params":` + file(".env") + `}`, refused},
		{"in an old one", "_proxy/successor", `{"method":"fs/read_text_file","params":` + file(".env") + `}`, refused},
	} {
		p := newPair(t, 1, dir, Env{}, "policy", "--deny", "path:**/.env", "--deny", "command:curl *", "--allow", "command:make")
		p.send(p.agent, tt.method, tt.params)
		if tt.want == refused {
			if m := p.agent.hears(); m.Error == nil {
				t.Errorf("%s: answered %s", tt.name, m.text)
			}
			p.ask(p.client, p.agent, "session/close", `{"sessionId":"s"}`, `{}`) // nothing has come before
			continue
		}
		m := p.client.hears()
		if m.Method != tt.method || !strings.Contains(m.text, tt.want) {
			t.Errorf("%s: the client gets %s", tt.name, m.text)
		}
		p.client.answers(m, `{}`)
		if m := p.agent.hears(); m.Error != nil {
			t.Errorf("%s: the agent gets %s", tt.name, m.text)
		}
	}
}

// TestPolicyPermission holds that the rules answer what they decide, by what is known of the call and not by
// what the request says of it alone, and that what was permitted is not changed afterwards.
func TestPolicyPermission(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(version int, call string) string {
		if version == 1 {
			return fmt.Sprintf(`{"sessionId":"s","toolCall":%s,"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}`, call)
		}
		return fmt.Sprintf(`{"sessionId":"s","title":"May I?","subject":{"type":"tool_call","toolCall":%s},"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}`, call)
	}
	for _, version := range []int{1, 2} {
		p := newPair(t, version, dir, Env{}, "policy", "--allow", "kind:edit; path:**/a.txt", "--deny", "path:**/.env")
		for _, tt := range []struct{ call, want string }{
			{fmt.Sprintf(`{"toolCallId":"1","title":"E","kind":"edit","locations":[{"path":%q}]}`, dir+"/a.txt"), `"y"`},
			{fmt.Sprintf(`{"toolCallId":"2","title":"E","kind":"edit","locations":[{"path":%q}]}`, dir+"/.env"), `"n"`},
			{fmt.Sprintf(`{"toolCallId":"3","title":"E","kind":"edit","locations":[{"path":%q},{"path":%q}]}`, dir+"/a.txt", dir+"/.env"), `"n"`},
		} {
			p.send(p.agent, "session/request_permission", ask(version, tt.call))
			if m := p.agent.hears(); !strings.Contains(string(m.Result), `"optionId":`+tt.want) {
				t.Errorf("version %d: %s: %s", version, tt.call, m.text)
			}
		}
		// What the rules do not decide the client is asked.
		p.send(p.agent, "session/request_permission", ask(version, `{"toolCallId":"4","title":"R","kind":"execute","rawInput":{"command":"make"}}`))
		m := p.client.hears()
		p.client.answers(m, `{"outcome":{"outcome":"selected","optionId":"n"}}`)
		if m := p.agent.hears(); !strings.Contains(m.text, `"optionId":"n"`) {
			t.Errorf("version %d: %s", version, m.text)
		}
	}
	// Allowed to change one file, the agent changes another.
	p := newPair(t, 1, dir, Env{}, "policy", "--allow", "kind:edit; path:**/a.txt", "--deny", "path:**/.env")
	p.send(p.agent, "session/request_permission", ask(1, fmt.Sprintf(`{"toolCallId":"1","title":"E","kind":"edit","locations":[{"path":%q}]}`, dir+"/a.txt")))
	p.agent.hears()
	p.update("s", fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":%q}]}`, dir+"/.env"))
	p.client.hears()
	p.send(p.agent, "fs/write_text_file", fmt.Sprintf(`{"sessionId":"s","path":%q,"content":"x"}`, dir+"/.env"))
	if m := p.agent.hears(); m.Error == nil {
		t.Error(m.text)
	}
}

// TestPolicyAsksNobody holds that a question which cannot be asked is settled: the guard does not keep it.
func TestPolicyAsksNobody(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.json"), []byte(`{"version":1,"rules":[{"effect":"ask","kinds":["edit"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := config.ReadRules(config.Permissions{Policy: "rules.json"}, dir).Policy()
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{guard: tap.NewGuard(p, acphost.TerminalCommand, nil)}
	raw := func(format string, args ...any) json.RawMessage { return fmt.Appendf(nil, format, args...) }
	g.fromClient(hop.Request(1, "initialize", raw(`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}`)))
	g.fromAgent(hop.Answer(1, raw(`{"protocolVersion":1}`), nil))
	g.fromClient(hop.Request(2, "session/new", raw(`{"cwd":%q,"mcpServers":[]}`, dir)))
	g.fromAgent(hop.Answer(2, raw(`{"sessionId":"s"}`), nil))
	v := g.fromAgent(hop.Request(3, "fs/write_text_file", raw(`{"sessionId":"s","path":%q,"content":"x"}`, filepath.Join(dir, "a"))))
	var q struct{ ID string }
	if err := json.Unmarshal(v.Ask, &q); err != nil {
		t.Fatal(err)
	}
	if err := g.ask(t.Context(), &acp.ProxyMessage{}, v.Ask); err == nil {
		t.Error("permitted by nobody")
	}
	answer := raw(`{"jsonrpc":"2.0","id":%q,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}`, q.ID)
	if is, _, _ := g.guard.Settle(answer); is {
		t.Error("the guard still waits")
	}
}

// TestPolicyAsks holds that a rule that wants a call to be asked about is obeyed, both ways.
func TestPolicyAsks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(rules, []byte(`{"version":1,"rules":[{"effect":"ask","kinds":["edit"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPair(t, 1, dir, Env{Dir: dir}, "policy", "--policy", "rules.json")
	for _, option := range []string{"allow", "reject"} {
		p.send(p.agent, "fs/write_text_file", fmt.Sprintf(`{"sessionId":"s","path":%q,"content":"new text"}`, dir+"/b.txt"))
		q := p.client.hears()
		if q.Method != "session/request_permission" || !strings.Contains(q.text, "new text") {
			t.Fatal(q.text)
		}
		p.client.answers(q, fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, option))
		if option == "allow" {
			m := p.client.hears()
			if m.Method != "fs/write_text_file" {
				t.Fatal(m.text)
			}
			p.client.answers(m, `{}`)
		}
		if m := p.agent.hears(); (m.Error == nil) != (option == "allow") {
			t.Errorf("%s: %s", option, m.text)
		}
	}
}
