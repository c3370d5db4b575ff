package proxies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		log := t.TempDir()
		p := newPair(t, 1, dir, Env{Dir: log}, "policy", "--deny", "path:**/.env", "--deny", "command:curl *", "--allow", "command:make", "--audit", "log")
		p.send(p.agent, tt.method, tt.params)
		if tt.want == refused {
			if m := p.agent.hears(); m.Error == nil {
				t.Errorf("%s: answered %s", tt.name, m.text)
			}
			if list := decisions(t, log); !strings.HasSuffix(tt.method, "proxy/successor") && // the chain itself refuses that
				(len(list) != 1 || list[0].Decision != tap.DecisionRefuse || list[0].Method != tt.method) {
				t.Errorf("%s: in the log are %+v", tt.name, list)
			}
			// Nobody waits for the answer to a notification.
			p.agent.says(fmt.Sprintf(`{"method":%q,"params":%s}`, tt.method, tt.params))
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
		if list := decisions(t, log); len(list) != 1 || list[0].Decision != "pass" {
			t.Errorf("%s: in the log are %+v", tt.name, list)
		}
	}
}

// decisions reads the log of the proxy policy.
func decisions(t *testing.T, dir string) (list []tap.Entry) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e tap.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// TestPolicyAudit holds that every refusal is in the log before it takes effect, also of what needs no answer and of what nobody
// could be asked, and that secrets are not.
func TestPolicyAudit(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := t.TempDir()
	p := newPair(t, 1, dir, Env{Dir: log}, "policy", "--deny", "kind:execute", "--audit", "log")
	p.agent.says(`{"method":"fs/write_text_file","params":{"sessionId":"s","path":"` + dir + `/x","content":"` + tokenOf + `"}}`)
	p.ask(p.client, p.agent, "session/set_mode", `{"sessionId":"s","modeId":"m"}`, `{}`)
	p.send(p.agent, "session/request_permission", `{"sessionId":"s","toolCall":{"toolCallId":"1","title":"curl -H 'Authorization: Bearer `+tokenOf+`' x","kind":"execute"},`+
		`"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}`)
	if m := p.agent.hears(); !strings.Contains(m.text, `"optionId":"n"`) {
		t.Error(m.text)
	}
	p.send(p.agent, "terminal/create", `{"sessionId":"s","command":"make","env":[{"name":"KEY","value":"`+tokenOf+`"}]}`)
	if m := p.agent.hears(); m.Error == nil {
		t.Error(m.text)
	}
	list := decisions(t, log)
	var got []string
	for _, e := range list {
		got = append(got, e.Method+" "+e.Decision+" "+e.By+" "+e.Session)
	}
	want := []string{"fs/write_text_file refuse frame s", "session/request_permission deny rule s", "terminal/create refuse rule s"}
	if !slices.Equal(got, want) {
		t.Errorf("in the log are %q", got)
	}
	if data, err := os.ReadFile(filepath.Join(log, "log")); err != nil || strings.Contains(string(data), tokenOf[5:]) {
		t.Errorf("%s, %v", data, err)
	}
	ready, err := Parse([]string{"policy", "--deny", "kind:execute", "--audit", filepath.Join(log, "no", "log")}, Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Start(); err == nil {
		t.Error("a log that cannot be written is ignored")
	}
	if _, err := Parse([]string{"policy", "--no-redact"}, Env{}); err == nil {
		t.Error("--no-redact without a log is accepted")
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
