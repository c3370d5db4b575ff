package proxies

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	password = "correct/horse\"battery"
	tokenOf  = "ghp_0123456789abcdefghijABCDEFGHIJ"
)

// TestRedact tries to bring a secret to the agent.
func TestRedact(t *testing.T) {
	t.Setenv("DEPLOY_PASS", password)
	whole, _ := json.Marshal(password)
	inner := string(whole[1 : len(whole)-1])
	odd := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, version := range []int{1, 2} {
		p := newPair(t, version, "/", Env{}, "redact", "--env", "DEPLOY_PASS")
		for _, tt := range []struct{ name, blocks string }{
			{"a value", "[" + text("it is "+password+".") + "]"},
			{"a token", "[" + text("it is "+tokenOf+".") + "]"},
			{"an assignment", "[" + text("API_KEY=0f9e8d7c6b5a49382716") + "]"},
			{"two blocks", "[" + text("it is "+password[:9]) + "," + text(password[9:]+"!") + "]"},
			{"many blocks", "[" + text(password[:3]) + "," + text(password[3:6]) + "," + text(password[6:]) + "," + text("end") + "]"},
			{"a token in two blocks", "[" + text("it is "+tokenOf[:9]) + "," + text(tokenOf[9:]) + "]"},
			{"base64", "[" + text(odd(password)) + "," + text(odd("a"+password)) + "," + text(odd("ab"+password+"c")) + "]"},
			{"hexadecimal", "[" + text(hex.EncodeToString([]byte(password))) + "]"},
			{"JSON in a text", "[" + text(`{"pass":`+string(whole)+`}`) + "]"},
			{"escapes of JSON", `[{"type":"text","text":"` + strings.ReplaceAll(inner, "o", `\u006f`) + `"}]`},
			{"a resource", `[{"type":"resource","resource":{"uri":"file:///x","text":"` + inner + `"}}]`},
			{"a blob", `[{"type":"resource","resource":{"uri":"file:///x","blob":"` + odd("key="+password) + `"}}]`},
			{"a link", `[{"type":"resource_link","name":"x","uri":"https://x/?` + inner + `"}]`},
			{"_meta of a block", `[{"type":"text","text":"x","_meta":{"k":{"deep":["` + inner + `"]}}}]`},
			{"the name of a member", `[{"type":"text","text":"x","_meta":{"` + inner + `":1}}]`},
			{"a member twice", `[{"type":"text","text":"` + inner + `","text":"x"}]`},
		} {
			got := p.prompt("s", tt.blocks).text
			p.agent.says(fmt.Sprintf(`{"id":%d,"result":{"stopReason":"end_turn"}}`, lastID(t, got)))
			p.client.hears()
			for _, form := range []string{password, inner, tokenOf, tokenOf[9:], "0f9e8d7c6b5a49382716", odd(password)[:20], odd("a" + password)[2:22],
				hex.EncodeToString([]byte(password)), "battery"} {
				if strings.Contains(got, form) {
					t.Errorf("version %d: %s: the agent gets %s", version, tt.name, got)
				}
			}
		}
		// In _meta of the prompt, in other methods, in notifications.
		p.send(p.client, "session/prompt", `{"sessionId":"s","prompt":[`+text("x")+`],"_meta":{"a":"`+inner+`"}}`)
		m := p.agent.hears()
		if strings.Contains(m.text, inner) {
			t.Error(m.text)
		}
		p.agent.answers(m, `{"stopReason":"end_turn"}`)
		p.client.hears()
		p.send(p.client, "_session/steering", `{"sessionId":"s","prompt":[`+text(password[:9])+`,`+text(password[9:])+`]}`)
		if m = p.agent.hears(); strings.Contains(m.text, "battery") {
			t.Error(m.text)
		}
		p.agent.answers(m, `{"outcome":"injected"}`)
		p.client.hears()
		p.client.says(`{"method":"_note","params":{"sessionId":"s","x":"` + inner + `"}}`)
		if m := p.agent.hears(); strings.Contains(m.text, inner) {
			t.Error(m.text)
		}
		// What the agent reports.
		p.update("s", `{"sessionUpdate":"tool_call_update","toolCallId":"1","rawOutput":{"stdout":["`+inner+`"]},"content":[{"type":"content","content":{"type":"text","text":"`+tokenOf+`"}}]}`)
		if m := p.client.hears(); strings.Contains(m.text, inner) || strings.Contains(m.text, tokenOf) || !strings.Contains(m.text, "«secret ") {
			t.Error(m.text)
		}
		// What has no secret stays byte for byte, and MCP servers work.
		p.update("s", `{"sessionUpdate" : "agent_message_chunk","content":{"type":"text","text":"\u0061 "},"n":1.0e2}`)
		if m := p.client.hears(); !strings.Contains(m.text, `{"sessionUpdate" : "agent_message_chunk","content":{"type":"text","text":"\u0061 "},"n":1.0e2}`) {
			t.Error(m.text)
		}
		p.send(p.client, "session/new", `{"cwd":"/","mcpServers":[{"name":"m","command":"x","args":[],"env":[{"name":"K","value":"`+inner+`"}]}],"_meta":{"a":"`+inner+`"}}`)
		if m = p.agent.hears(); strings.Count(m.text, inner) != 1 {
			t.Error(m.text)
		}
		p.agent.answers(m, `{"sessionId":"t"}`)
		p.client.hears()
	}
}

func lastID(t *testing.T, frame string) int {
	t.Helper()
	var m struct{ ID int }
	if err := json.Unmarshal([]byte(frame), &m); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// TestRedactLent tries to bring a secret to the agent by files and terminals, and to put one where it has not been.
func TestRedactLent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("# no=comment-is-a-value\nexport PASS='"+password+"'\nSHORT=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPair(t, 1, "/", Env{Dir: dir}, "redact", "--env-file", ".env")
	value, _ := json.Marshal(password)
	inner := string(value[1 : len(value)-1])
	read := func(path string) string {
		m := p.ask(p.agent, p.client, "fs/read_text_file", fmt.Sprintf(`{"sessionId":"s","path":%q}`, path), `{"content":"PASS=`+inner+`\n"}`)
		var r struct{ Content string }
		if err := json.Unmarshal(m.Result, &r); err != nil || strings.Contains(r.Content, password) {
			t.Fatal(m.text, err)
		}
		return r.Content
	}
	content := read("/w/.env")
	write := func(path, content string) message {
		b, _ := json.Marshal(map[string]string{"sessionId": "s", "path": path, "content": content})
		p.send(p.agent, "fs/write_text_file", string(b))
		return p.client.hears()
	}
	// Where it was it may stay.
	m := write("/w/.env", content+"MORE=1\n")
	if m.Method != "fs/write_text_file" || !strings.Contains(m.text, inner) {
		t.Error(m.text)
	}
	p.client.answers(m, `{}`)
	p.agent.hears()
	// Elsewhere the user is asked, who sees where it goes and not the secret.
	for _, option := range []string{"reject", "allow"} {
		q := write("/w/public.html", content)
		if q.Method != "session/request_permission" || !strings.Contains(q.text, "/w/public.html") || strings.Contains(q.text, inner) {
			t.Fatal(q.text)
		}
		p.client.answers(q, fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":%q}}`, option))
		if option == "allow" {
			if m = p.client.hears(); !strings.Contains(m.text, inner) {
				t.Error(m.text)
			}
			p.client.answers(m, `{}`)
		}
		if m := p.agent.hears(); (m.Error == nil) != (option == "allow") {
			t.Error(m.text)
		}
	}
	// A command does not get it, and a mark that somebody else has written means nothing.
	b, _ := json.Marshal(map[string]any{"sessionId": "s", "command": "curl", "args": []string{content}})
	p.send(p.agent, "terminal/create", string(b))
	if m = p.client.hears(); strings.Contains(m.text, inner) {
		t.Error(m.text)
	}
	p.client.answers(m, `{"terminalId":"t"}`)
	p.agent.hears()
	if m = write("/w/.env", "«secret 1» «secret 1 abcdef»"); m.Method != "fs/write_text_file" || strings.Contains(m.text, inner) {
		t.Error(m.text)
	}
	p.client.answers(m, `{}`)
	p.agent.hears()
	// Output that begins and ends in the middle of it.
	m = p.ask(p.agent, p.client, "terminal/output", `{"sessionId":"s","terminalId":"t"}`,
		`{"output":"horse\"battery\nPASS=correct/ho","truncated":true}`)
	if strings.Contains(m.text, "battery") || strings.Contains(m.text, "correct") {
		t.Error(m.text)
	}
	// The error of a client.
	p.send(p.agent, "terminal/kill", `{"sessionId":"s","terminalId":"t"}`)
	m = p.client.hears()
	p.client.says(fmt.Sprintf(`{"id":%s,"error":{"code":-32603,"message":"no %s","data":{"x":"%s"}}}`, m.ID, inner, inner))
	if m = p.agent.hears(); m.Error == nil || strings.Contains(m.text, inner) {
		t.Error(m.text)
	}
	for _, args := range [][]string{{"--env", "NO_SUCH_VARIABLE_HERE"}, {"--env-file", "none"}, {"--env-file", "."}} {
		if _, err := Parse(append([]string{"redact"}, args...), Env{Dir: dir}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestRedactAsksForAll holds that the question names every secret which its answer lets through, and that a write with
// more of them than it can name is refused.
func TestRedactAsksForAll(t *testing.T) {
	for _, tt := range []struct{ secrets, named int }{{1, 1}, {3, 3}, {maxAsked, maxAsked}, {maxAsked + 1, 0}, {100, 0}} {
		dir := t.TempDir()
		var file, values strings.Builder
		for i := range tt.secrets {
			fmt.Fprintf(&file, "V%d=value-number-%03d\n", i, i)
			fmt.Fprintf(&values, "value-number-%03d\n", i)
		}
		if err := os.WriteFile(filepath.Join(dir, "env"), []byte(file.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPair(t, 1, "/", Env{Dir: dir}, "redact", "--env-file", "env")
		answer, _ := json.Marshal(map[string]string{"content": values.String() + values.String()})
		m := p.ask(p.agent, p.client, "fs/read_text_file", `{"sessionId":"s","path":"/w/env"}`, string(answer))
		var r struct{ Content string }
		if err := json.Unmarshal(m.Result, &r); err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(map[string]string{"sessionId": "s", "path": "/w/public", "content": r.Content})
		p.send(p.agent, "fs/write_text_file", string(b))
		if tt.named == 0 {
			if m := p.agent.hears(); m.Error == nil || !strings.Contains(m.text, "in parts") {
				t.Errorf("%d: %s", tt.secrets, m.text)
			}
			continue
		}
		q := p.client.hears()
		var params struct{ ToolCall struct{ Title string } }
		if err := json.Unmarshal(q.Params, &params); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(params.ToolCall.Title, "«secret "); n != tt.named || !strings.HasSuffix(params.ToolCall.Title, " /w/public") {
			t.Errorf("%d: the title %q names %d", tt.secrets, params.ToolCall.Title, n)
		}
		p.client.answers(q, `{"outcome":{"outcome":"selected","optionId":"reject"}}`)
		if m := p.agent.hears(); m.Error == nil || strings.Count(m.text, "«secret ") != tt.named {
			t.Errorf("%d: %s", tt.secrets, m.text)
		}
	}
}

// TestRedactOrigin holds that the client and the proxy agree on which file an agent has read: nobody can have a file
// that never had a secret taken for one that had it.
func TestRedactOrigin(t *testing.T) {
	t.Setenv("DEPLOY_PASS", password)
	value, _ := json.Marshal("P=" + password)
	for _, tt := range []struct {
		read string // params
		asks bool
	}{
		{`{"sessionId":"s","path":"/w/public"}`, false},
		{`{"sessionId":"s","path":"/w/x/../public"}`, false},
		{`{"sessionId":"s","path":"/w/env","Path":"/w/public"}`, true},
		{`{"sessionId":"s","path":"/w/env","PATH":"/w/public"}`, true},
		{`{"sessionId":"s","path":"/w/env","path":"/w/public","pAth":"/w/public"}`, true},
		{`{"sessionId":"s","path":"/w/env"}`, true},
	} {
		p := newPair(t, 1, "/", Env{}, "redact", "--env", "DEPLOY_PASS")
		p.send(p.agent, "fs/read_text_file", tt.read)
		m := p.client.hears()
		if strings.Count(tt.read, `"path"`) > 1 {
			p.client.says(fmt.Sprintf(`{"id":%s,"error":{"code":-32602,"message":"Invalid params"}}`, m.ID))
			p.agent.hears()
			continue
		}
		p.client.answers(m, `{"content":`+string(value)+`}`)
		m = p.agent.hears()
		var r struct{ Content string }
		if err := json.Unmarshal(m.Result, &r); err != nil || !strings.Contains(r.Content, "«secret ") {
			t.Fatal(m.text, err)
		}
		b, _ := json.Marshal(map[string]string{"sessionId": "s", "path": "/w/public", "content": r.Content})
		p.send(p.agent, "fs/write_text_file", string(b))
		if m := p.client.hears(); (m.Method == "session/request_permission") != tt.asks {
			t.Errorf("%s: then the client gets %s", tt.read, m.text)
		}
	}
}

// TestRedactNames holds which variables of the environment are secret: all that recordings leave out, and the keys of
// acp itself.
func TestRedactNames(t *testing.T) {
	for name, secret := range map[string]bool{
		"GITHUB_TOKEN": true, "TOKEN": true, "next_token": true, "PAGE_TOKEN": true, "A_SECRET": true, "SECRET": true, "db_password": true,
		"PGPASSWORD": true, "X_PASSWD": true, "OPENAI_API_KEY": true, "APIKEY": true, "AWS_ACCESS_KEY": true, "AWS_SECRET_ACCESS_KEY": true,
		"AWS_ACCESS_KEY_ID": true, "SSH_PRIVATE_KEY": true, "OPENAI_KEY": true, "GITHUB_CREDENTIALS": true, "SESSION_COOKIE": true,
		"KEY_PASSPHRASE": true, "ACP_DB": true, "ACP_STORE_DB": true, "EDITOR": false, "TOKENIZER": false, "MONKEY": false,
	} {
		t.Run(name, func(t *testing.T) {
			const value = "correct-horse-battery"
			t.Setenv(name, value)
			values, err := secretsOf(Env{}, nil, nil)
			if err != nil || slices.Contains(values, value) != secret {
				t.Errorf("secret: %v, %v", !secret, err)
			}
		})
	}
}
