package tap

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphost"
)

// A place is a guard with an open session "s", that works in root and more.
type place struct {
	*Guard
	t          *testing.T
	root, more string
	log        []*Entry
}

func newPlace(t *testing.T, version int, rules ...acphost.Rule) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: filepath.Join(dir, "root"), more: filepath.Join(dir, "more")}
	for _, d := range []string{p.root, p.more, filepath.Join(dir, "other")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.Guard = testGuard(t, func(e *Entry) { p.log = append(p.log, e) }, rules...)
	p.FromClient([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`))
	p.agent(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":%d}}`, version)
	p.FromClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":%q,"additionalDirectories":[%q],"mcpServers":[]}}`, p.root, p.more))
	p.agent(`{"jsonrpc":"2.0","id":"n","result":{"sessionId":"s"}}`)
	return p
}

// agent lets the agent say a line.
func (p *place) agent(format string, args ...any) Verdict {
	p.t.Helper()
	return p.FromAgent(fmt.Appendf(nil, format, args...))
}

// last is what was noted down last, in a few words.
func (p *place) last() string {
	p.t.Helper()
	if len(p.log) == 0 {
		p.t.Fatal("nothing was noted down")
	}
	e := p.log[len(p.log)-1]
	return strings.Join(strings.Fields(e.Decision+" "+e.By+" "+e.Rule+" "+e.Reason), " ")
}

// code is the code of an answer, 0 of one with a result.
func code(t *testing.T, v Verdict) (code int, id string) {
	t.Helper()
	var a struct {
		ID    json.RawMessage
		Error struct{ Code int }
	}
	if err := json.Unmarshal(v.Answer, &a); err != nil {
		t.Fatalf("%s: %v", v.Answer, err)
	}
	return a.Error.Code, string(a.ID)
}

const v1Options = `"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`

// ask is a permission request in the words of a version.
func ask(version int, id, call string) string {
	if version == 1 {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s","toolCall":%s,%s}}`, id, call, v1Options)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s","title":"May I?","subject":{"type":"tool_call","toolCall":%s},%s}}`, id, call, v1Options)
}

// TestPermission holds which requests are answered, and how, in both versions.
func TestPermission(t *testing.T) {
	rules := []acphost.Rule{
		{Name: "secrets", Effect: acphost.EffectDeny, Paths: []string{"**/.env"}},
		{Name: "reading", Effect: acphost.EffectAllow, Kinds: []string{"read"}, Paths: []string{"./**"}},
		{Name: "tests", Effect: acphost.EffectAllow, Commands: []string{"go test *"}},
		{Name: "here", Effect: acphost.EffectAllow, Commands: []string{"make"}, Cwd: []string{"**/root"}},
	}
	for _, version := range []int{1, 2} {
		p := newPlace(t, version, rules...)
		for _, tt := range []struct {
			call, want, log string
		}{
			{`{"toolCallId":"1","kind":"read","locations":[{"path":"ROOT/a"}]}`, "yes", "allow rule reading"},
			{`{"toolCallId":"2","kind":"read","locations":[{"path":"ROOT/.env"}]}`, "no", "deny rule secrets"},
			{`{"toolCallId":"3","kind":"read","locations":[{"path":"/etc/passwd"}]}`, "", "ask default"},
			{`{"toolCallId":"4","kind":"read","locations":[{"path":"ROOT/../other"}]}`, "", "ask default"},
			{`{"toolCallId":"5","kind":"read"}`, "", "ask rule secrets"}, // of which it cannot be told
			{`{"toolCallId":"6","kind":"execute","rawInput":{"command":"go test ./..."}}`, "yes", "allow rule tests"},
			{`{"toolCallId":"7","kind":"execute","rawInput":{"command":"go test ./... ; rm -rf /"}}`, "", "ask default"},
			{`{"toolCallId":"8","kind":"execute","rawInput":{"command":"make"}}`, "yes", "allow rule here"},
			{`{"toolCallId":"9","kind":"execute","rawInput":{"command":"make","cwd":"../other"}}`, "", "ask default"},
			{`{"toolCallId":"10","kind":"delete","locations":[{"path":"ROOT/a"}]}`, "", "ask default"},
		} {
			call := strings.ReplaceAll(tt.call, "ROOT", filepath.ToSlash(p.root))
			frame := ask(version, `"q"`, call)
			v := p.agent("%s", frame)
			want := `{"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"` + tt.want + `"}}}`
			if tt.want == "" {
				want = ""
			}
			if string(v.Answer) != want || v.Pass != (tt.want == "") || (v.Note != "") == v.Pass {
				t.Errorf("version %d, %s: %+v, answer %s", version, call, v, v.Answer)
			}
			if p.last() != tt.log {
				t.Errorf("version %d, %s: noted %q, want %q", version, call, p.last(), tt.log)
			}
		}
	}
}

// TestToldBefore holds that what was told of a tool call counts.
func TestToldBefore(t *testing.T) {
	rules := []acphost.Rule{{Name: "secrets", Effect: acphost.EffectDeny, Paths: []string{"**/.env"}}, {Name: "all", Effect: acphost.EffectAllow}}
	for _, version := range []int{1, 2} {
		p := newPlace(t, version, rules...)
		kind := "tool_call"
		if version == 2 {
			kind = "tool_call_update"
		}
		p.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"%s","toolCallId":"1","title":"x","kind":"read"}}}`, kind)
		p.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":"%s/.env"}]}}}`, filepath.ToSlash(p.root))
		p.agent("%s", ask(version, "1", `{"toolCallId":"1","kind":null}`))
		if p.last() != "deny rule secrets" {
			t.Errorf("version %d: %s", version, p.last())
		}
		// The request takes nothing away, and other calls are others.
		for id, want := range map[string]string{"1": "deny rule secrets", "2": "allow rule all"} {
			p.agent("%s", ask(version, "1", `{"toolCallId":"`+id+`","kind":"read","locations":[{"path":"/x"}]}`))
			if p.last() != want {
				t.Errorf("version %d, call %s: %s, want %s", version, id, p.last(), want)
			}
		}
	}
}

// TestAnnouncedBefore holds that a command that was announced counts, though the request is about a tool
// of another kind with an empty input: so OpenCode asks.
func TestAnnouncedBefore(t *testing.T) {
	rules := []acphost.Rule{{Name: "no mkdir", Effect: acphost.EffectDeny, Commands: []string{"mkdir *"}}, {Name: "all", Effect: acphost.EffectAllow}}
	for version, kind := range map[int]string{1: "tool_call", 2: "tool_call_update"} {
		p := newPlace(t, version, rules...)
		p.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"%s","toolCallId":"1","title":"bash","kind":"execute","rawInput":{"command":"mkdir x"}}}}`, kind)
		p.agent("%s", ask(version, "1", `{"toolCallId":"1","kind":"other","rawInput":{}}`))
		if p.last() != "deny rule no mkdir" {
			t.Errorf("version %d: %s", version, p.last())
		}
		p.agent("%s", ask(version, "1", `{"toolCallId":"2","kind":"other","rawInput":{}}`))
		if p.last() != "ask rule no mkdir" {
			t.Errorf("version %d, of which nobody knows anything: %s", version, p.last())
		}
	}
}

// TestCancelled holds that nothing is allowed in a turn that the client has cancelled, and that the
// next one begins anew.
func TestCancelled(t *testing.T) {
	for _, version := range []int{1, 2} {
		p := newPlace(t, version, acphost.Rule{Effect: acphost.EffectAllow})
		q := ask(version, "1", `{"toolCallId":"1","kind":"edit"}`)
		const cancelled = `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}`
		p.FromClient([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"other"}}`))
		if v := p.agent("%s", q); !strings.Contains(string(v.Answer), `"yes"`) {
			t.Errorf("version %d: %s", version, v.Answer)
		}
		p.FromClient([]byte(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`))
		if v := p.agent("%s", q); string(v.Answer) != cancelled || p.last() != "deny cancelled rule 1" {
			t.Errorf("version %d: %s, %s", version, v.Answer, p.last())
		}
		p.FromClient([]byte(`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`))
		if v := p.agent("%s", q); !strings.Contains(string(v.Answer), `"yes"`) {
			t.Errorf("version %d: %s", version, v.Answer)
		}
	}
}

// TestFiles holds what of files and terminals is let through.
func TestFiles(t *testing.T) {
	p := newPlace(t, 1,
		acphost.Rule{Name: "secrets", Effect: acphost.EffectDeny, Paths: []string{"**/.env"}},
		acphost.Rule{Name: "rm", Effect: acphost.EffectDeny, Commands: []string{"rm *"}})
	for link, to := range map[string]string{"out": "../other", "abs": filepath.Dir(p.root), "sly": ".env", "in": "sub"} {
		if err := os.Symlink(to, filepath.Join(p.root, link)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Mkdir(filepath.Join(p.root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	const refused, gone, denied, unknown = -32602, -32002, -32603, -32601
	for _, tt := range []struct {
		method, params string
		code           int // 0: it passes
		log            string
	}{
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/a"}`, 0, "pass roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"MORE/a","line":1}`, 0, "pass roots"},
		{"fs/write_text_file", `{"sessionId":"s","path":"ROOT/new/deep","content":"x"}`, 0, "pass roots"},
		{"fs/write_text_file", `{"sessionId":"s","path":"ROOT/in/x","content":""}`, 0, "pass roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/../other/a"}`, refused, "refuse roots Invalid params: params.path: is outside"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/out/a"}`, refused, "refuse roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/abs/a"}`, refused, "refuse roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT2/a"}`, refused, "refuse roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"a"}`, refused, "refuse roots"},
		{"fs/read_text_file", `{"sessionId":"s","path":"/etc/passwd"}`, refused, "refuse roots"},
		{"fs/read_text_file", `{"sessionId":"t","path":"ROOT/a"}`, gone, "refuse roots there is no such session"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/a","Path":"/etc/passwd"}`, refused, "refuse roots params: path"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/a","path":"/etc/passwd"}`, refused, "refuse roots params: path"},
		{"fs/read_text_file", `{"sessionId":"s","PATH":"/etc/passwd"}`, refused, "refuse roots params: path"},
		{"fs/read_text_file", `{"sessionId":"s","path":["ROOT/a"]}`, refused, "refuse roots params: path"},
		{"fs/read_text_file", `["s","ROOT/a"]`, refused, "refuse roots params: it is no object"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/.env"}`, denied, "refuse rule secrets denied by secrets"},
		{"fs/read_text_file", `{"sessionId":"s","path":"ROOT/sly"}`, denied, "refuse rule secrets"},
		{"fs/delete", `{"sessionId":"s","path":"ROOT/a"}`, unknown, "refuse roots the policy does not know"},
		{"terminal/create", `{"sessionId":"s","command":"make"}`, 0, "pass roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","cwd":null}`, 0, "pass roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","cwd":"ROOT/sub"}`, 0, "pass roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","cwd":"ROOT/out"}`, refused, "refuse roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","cwd":"/"}`, refused, "refuse roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","cwd":"sub"}`, refused, "refuse roots"},
		{"terminal/create", `{"sessionId":"s","command":"make","CWD":"/"}`, refused, "refuse roots params: cwd"},
		{"terminal/create", `{"sessionId":"t","command":"make"}`, gone, "refuse roots"},
		{"terminal/create", `{"sessionId":"s"}`, refused, "refuse roots params"},
		{"terminal/create", `{"sessionId":"s","command":"rm -rf x"}`, denied, "refuse rule rm"},
		{"terminal/resize", `{"sessionId":"s"}`, unknown, "refuse roots"},
	} {
		params := strings.NewReplacer("ROOT", filepath.ToSlash(p.root), "MORE", filepath.ToSlash(p.more)).Replace(tt.params)
		v := p.agent(`{"jsonrpc":"2.0","id":7.0,"method":"%s","params":%s}`, tt.method, params)
		if v.Pass != (tt.code == 0) || v.Pass != (v.Answer == nil) {
			t.Errorf("%s %s: %+v, %s", tt.method, params, v, v.Answer)
		} else if !v.Pass {
			if c, id := code(t, v); c != tt.code || id != "7.0" {
				t.Errorf("%s %s: %s, want %d", tt.method, params, v.Answer, tt.code)
			}
		}
		if !strings.HasPrefix(p.last(), tt.log) {
			t.Errorf("%s %s: noted %q, want %q", tt.method, params, p.last(), tt.log)
		}
	}
	for _, method := range []string{"terminal/output", "terminal/kill", "terminal/release", "terminal/wait_for_exit"} {
		if v := p.agent(`{"jsonrpc":"2.0","id":1,"method":"%s","params":{"sessionId":"s","terminalId":"t"}}`, method); !v.Pass {
			t.Errorf("%s is not let through", method)
		}
	}
	if v := p.agent(`{"jsonrpc":"2.0","method":"fs/write_text_file","params":{"sessionId":"s","path":"/etc/x","content":""}}`); v.Pass || v.Answer != nil {
		t.Errorf("a notification: %+v", v)
	}
	if v := p.agent(`{"jsonrpc":"2.0","id":1,"method":"fs\/read_text_file","params":{"sessionId":"s","path":"\/etc\/passwd"}}`); v.Pass {
		t.Error("an escape is not seen through")
	}
	if runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		other := filepath.Join(filepath.Dir(p.root), "ROOT")
		if v := p.agent(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"%s/a"}}`, other); v.Pass {
			t.Error("another directory that differs in case is let through")
		}
	}
}

// TestMisread holds that what could be read in two ways is not let through, and all else is.
func TestMisread(t *testing.T) {
	p := newPlace(t, 1)
	const call = `"method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}`
	for _, frame := range []string{
		`[{"jsonrpc":"2.0","id":1,` + call + `}]`,
		`[]`,
		`{"jsonrpc":"2.0","id":1,"method":"x",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"Method":"fs/read_text_file","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","METHOD":"fs/read_text_file"}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"paramſ\":{},\"method\":\"x\"}",
		`{"jsonrpc":"2.0","id":1,` + call + `} trailing`,
		`{"jsonrpc":"2.0","id":1,` + call,
		"\ufeff{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"\x00 {\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"\u00a0\u3000{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}", // which a reader may trim
		"\u200b{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"\x1c\x7f\xff{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"log\r{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}", // where a reader may end a line
		"log\v {\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"log\u0085{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		"log\u2028{\"jsonrpc\":\"2.0\",\"id\":1," + call + "}",
		`{"jsonrpc":"2.0","id":1,"method":["fs/read_text_file"]}`,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`,
		`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	} {
		v := p.agent("%s", frame)
		if v.Pass {
			t.Errorf("%s is let through", frame)
			continue
		}
		if c, id := code(t, v); c != -32600 || id != "null" {
			t.Errorf("%s: %s", frame, v.Answer)
		}
		if !strings.HasPrefix(p.last(), "refuse frame") {
			t.Errorf("%s: noted %q", frame, p.last())
		}
	}
	before := len(p.log)
	for _, line := range []string{
		"", "  ", "starting up", "Content-Length: 20\r", `"a string"`, "17", "\xff\xfe",
		"listening {\"port\": 1}\r", "50 %\r100 % [done]", "a\u00a0{b}",
		`{"jsonrpc":"2.0","id":9,"result":{}}`, `{"jsonrpc":"2.0","method":"_x/y","params":{"a":1,"a":2}}`, `{}`,
		` {"jsonrpc":"2.0","id":1,"method":"session/request_permission"} ` + "\r",
	} {
		if v := p.agent("%s", line); !v.Pass || v.Answer != nil {
			t.Errorf("%q is not let through: %s", line, v.Answer)
		}
	}
	if len(p.log) != before {
		t.Errorf("noted %q", p.last())
	}
}

// TestRooms holds where sessions work, however they are opened, and that it is forgotten.
func TestRooms(t *testing.T) {
	p := newPlace(t, 1)
	works := func(session, dir string) bool {
		return p.agent(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"%s","path":"%s/x"}}`, session, filepath.ToSlash(dir)).Pass
	}
	client := func(format string, args ...any) { p.FromClient(fmt.Appendf(nil, format, args...)) }
	got := map[string]bool{}
	client(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"l","cwd":%q}}`, p.root)
	got["while it is loaded"] = works("l", p.root)
	p.agent(`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}`)
	got["that could not be loaded"] = works("l", p.root)
	client(`{"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"sessionId":"s","cwd":%q}}`, p.more)
	got["resumed elsewhere"] = works("s", p.more) && !works("s", p.root)
	p.agent(`{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no"}}`)
	got["back where it was"] = works("s", p.root)
	client(`{"jsonrpc":"2.0","id":3,"method":"session/fork","params":{"sessionId":"s","cwd":%q}}`, p.more)
	got["before the answer"] = works("f", p.more)
	p.agent(`{"jsonrpc":"2.0","id":3,"result":{"sessionId":"f"}}`)
	got["forked"] = works("f", p.more) && !works("f", p.root)
	p.agent(`{"jsonrpc":"2.0","id":4,"result":{"sessionId":"made up"}}`)
	got["made up"] = works("made up", p.root)
	p.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"subagent_update","sessionId":"child"}}}`)
	got["of a subagent"] = works("child", p.root)
	client(`{"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"f"}}`)
	p.agent(`{"jsonrpc":"2.0","id":5,"result":{}}`)
	got["closed"] = works("f", p.more)
	client(`{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"relative"}}`)
	p.agent(`{"jsonrpc":"2.0","id":6,"result":{"sessionId":"r"}}`)
	got["in a relative directory"] = works("r", "relative")
	want := map[string]bool{
		"while it is loaded": true, "that could not be loaded": false, "resumed elsewhere": true, "back where it was": true,
		"before the answer": false, "forked": true, "made up": false, "of a subagent": true, "closed": false, "in a relative directory": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range maxSessions {
		client(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":%q}}`, 10+i, p.root)
		p.agent(`{"jsonrpc":"2.0","id":%d,"result":{"sessionId":"many %d"}}`, 10+i, i)
	}
	if works("s", p.root) || !works("many 0", p.root) || len(p.rooms.values) != maxSessions || len(p.pending.values) != 0 {
		t.Errorf("%d sessions are remembered, %d requests", len(p.rooms.values), len(p.pending.values))
	}
	for i := range maxPending + 10 {
		client(`{"jsonrpc":"2.0","id":"p%d","method":"session/new","params":{"cwd":%q}}`, i, p.root)
		p.agent(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"many %d","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"T"}}}`, i)
	}
	if len(p.pending.values) != maxPending || len(p.calls.values) != maxTold {
		t.Errorf("%d requests are remembered, %d sessions with tool calls", len(p.pending.values), len(p.calls.values))
	}
}

// FuzzGuard holds that no line brings a guard down, that what is refused is answered with JSON or not
// at all, and that no path outside is let through in a spelling that a client may understand.
func FuzzGuard(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}}`)
	f.Add(ask(1, "1", `{"toolCallId":"1"}`))
	f.Add(ask(2, "null", `{"toolCallId":"1"}`))
	f.Add(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1"}}}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":null}`)
	f.Add(`{"id":0,"result":{"sessionId":1}}`)
	f.Fuzz(func(t *testing.T, line string) {
		g := testGuard(t, nil, acphost.Rule{Effect: acphost.EffectAllow})
		g.FromClient([]byte(`{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/nowhere"}}`))
		g.FromClient([]byte(line))
		v := g.FromAgent([]byte(line))
		if v.Answer != nil && !json.Valid(v.Answer) {
			t.Fatalf("%s", v.Answer)
		}
		if v.Pass && v.Answer != nil {
			t.Fatal("it is let through and answered")
		}
		// encoding/json is as lenient a reader as there is.
		var m struct {
			Method string
			Params struct{ Path string }
		}
		if v.Pass && json.Unmarshal([]byte(line), &m) == nil && (m.Method == "fs/read_text_file" || m.Method == "fs/write_text_file") {
			t.Fatalf("%q is let through", line)
		}
	})
}
