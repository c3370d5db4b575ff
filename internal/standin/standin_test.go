package standin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Every interface streams what the prompt asks for, and answers the result of a
// tool with it.
func TestInterfaces(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		// say and call are requests, the latter with a tool; done brings its result.
		say, call, done string
		// input is how the arguments appear in the stream.
		input string
	}{
		{
			"chat", "/v1/chat/completions",
			`{"stream":true,"messages":[{"role":"user","content":"standin: say one two"}]}`,
			`{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"standin: run ls"}]}],"tools":[{"function":{"name":"sh"}}]}`,
			`{"stream":true,"messages":[{"role":"user","content":"standin: run ls"},{"role":"assistant","content":""},{"role":"tool","content":"none"}],"tools":[{"function":{"name":"sh"}}]}`,
			`{\"command\":\"ls\"}`,
		},
		{
			"responses", "/v1/responses",
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"standin: say one two"}]}]}`,
			`{"input":"standin: run ls","tools":[{"name":"sh"}]}`,
			`{"input":[{"role":"user","content":"standin: run ls"},{"type":"function_call_output","output":"none"}],"tools":[{"name":"sh"}]}`,
			`{\"command\":\"ls\"}`,
		},
		{
			"messages", "/v1/messages",
			`{"stream":true,"messages":[{"role":"user","content":"standin: say one two"}]}`,
			`{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"standin: run ls"}]}],"tools":[{"name":"sh"}]}`,
			`{"stream":true,"messages":[{"role":"user","content":"standin: run ls"},{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"none"}]}]}],"tools":[{"name":"sh"}]}`,
			`{\"command\":\"ls\"}`,
		},
		{
			"generate", "/v1beta/models/m:streamGenerateContent",
			`{"contents":[{"role":"user","parts":[{"text":"standin: say one two"}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"standin: run ls"}]}],"tools":[{"functionDeclarations":[{"name":"sh"}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"standin: run ls"}]},{"role":"user","parts":[{"functionResponse":{"response":"none"}}]}],"tools":[{"functionDeclarations":[{"name":"sh"}]}]}`,
			`{"command":"ls"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{Tools: func(verb, rest string, offered []string) (Call, error) {
				return Call{Name: offered[0], Args: map[string]string{"command": rest}}, nil
			}})
			defer s.Close()
			ask := func(body string) string {
				t.Helper()
				r, err := http.Post(s.URL+tt.path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				defer r.Body.Close()
				text, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Fatalf("%s, %v\n%s", r.Status, err, text)
				}
				for line := range strings.Lines(string(text)) {
					data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
					if ok && data != "[DONE]" && !json.Valid([]byte(data)) {
						t.Errorf("no JSON: %s", data)
					}
				}
				return string(text)
			}
			for body, want := range map[string][]string{
				tt.say:  {`"one "`, `"two"`},
				tt.call: {`"sh"`, tt.input},
				tt.done: {`the tool said: `, `none`},
			} {
				got := ask(body)
				for _, w := range want {
					if !strings.Contains(got, w) {
						t.Errorf("%s\nno %s in\n%s", body, w, got)
					}
				}
			}
			if got, want := s.Requests(), "3 POST "+tt.path; len(got) != 1 || got[0] != want {
				t.Errorf("requests %q, want %q", got, want)
			}
		})
	}
}

// post sends a request and returns the status and what came.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

// TestStrict: a strict server refuses what the services refuse, and says why.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestStrict(t *testing.T) {
	s := New(Options{Strict: true, Script: func(r *Request) Step {
		return Step{Thought: "hm", Text: []string{"a ", "b"}, Calls: []Call{{"read", map[string]any{"path": "x"}}, {"run", map[string]any{}}}, Input: 100, Output: 7}
	}})
	defer s.Close()
	messages := func(list string) string {
		return `{"model":"m","max_tokens":9,"stream":true,"messages":[` + list + `]}`
	}
	input := func(list string) string { return `{"model":"m","stream":true,"input":[` + list + `]}` }
	chat := func(list string) string { return `{"model":"m","stream":true,"messages":[` + list + `]}` }
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{}}]}`
	hi := `{"role":"user","content":"hi"}`
	call := `{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"c1","output":"x"}`
	custom := `{"type":"custom_tool_call","call_id":"c1","name":"p","input":"x"}`
	tools := func(list string) string {
		return `{"model":"m","stream":true,"input":[{"role":"user","content":"hi"}],"tools":[` + list + `]}`
	}
	calls := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]}`
	for _, tt := range []struct{ path, body, why string }{
		{"/v1/messages", messages(hi), ""},
		{"/v1/messages", messages(hi + `,` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"text","text":"y"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]}`), ""},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl1"},{"type":"text","text":"y"}]},` + hi), ""},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"other","signature":"c2lnbmF0dXJl1"}]},` + hi), "signature that is not its own"},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"text","text":"y"},{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl1"}]},` + hi), "not at the beginning"},
		{"/v1/messages", messages(hi + `,` + use + `,` + hi), "without a result"},
		{"/v1/messages", messages(hi + `,` + use + `,` + use), "without a result"},
		{"/v1/messages", messages(hi + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`), "no wish before it"},
		{"/v1/messages", messages(hi + `,` + use + `,{"role":"user","content":[{"type":"text","text":"y"},{"type":"tool_result","tool_use_id":"c1"}]}`), "after something else"},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"c:1","name":"read","input":{}}]}`), "is not one"},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"a","input":{}},{"type":"tool_use","id":"a","name":"a","input":{}}]}`), "there twice"},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"text","text":""}]}`), "a text is empty"},
		{"/v1/messages", messages(hi + `,{"role":"assistant","content":[{"type":"tool_result"}]}`), "of the assistant"},
		{"/v1/messages", messages(`{"role":"assistant","content":"x"}`), "not the user's"},
		{"/v1/messages", messages(`{"role":"user","content":""}`), "is empty"},
		{"/v1/messages", messages(`{"role":"user","content":[]}`), "no content"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"image","source":{"media_type":"image/jpeg","data":"` + pixel + `"}}]}`), "says that it is"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"image","source":{"media_type":"image/png","data":"` + pixel[:80] + `"}}]}`), "could not process image"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"image","source":{"media_type":"image/webp","data":"UklGRg` + strings.Repeat("A", 5<<20) + `"}}]}`), "not base64"},
		{"/v1/messages", messages(`{"role":"user","content":[{"type":"image","source":{"media_type":"image/webp","data":"UklGRgAA` + strings.Repeat("A", 5<<20) + `"}}]}`), "exceeds 5 MB"},
		{"/v1/responses", input(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,eA=="}]}`), "could not process image"},
		{"/v1/responses", `{"model":"m","tools":[{"name":"a","parameters":{"type":"object","properties":{},"anyOf":[{}]}}],"input":[{"role":"user","content":"hi"}]}`, "at the top level"},
		{"/v1/chat/completions", chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}`), ""},
		{"/api/chat", `{"model":"m","options":{"num_ctx":9},"messages":[{"role":"user","content":"hi","images":["` + pixel + `"]}]}`, ""},
		{"/api/chat", `{"model":"m","options":{"num_ctx":9},"messages":[` + hi + `,` + hi + `]}`, "must alternate"},
		{"/api/chat", `{"model":"m","messages":[` + hi + `]}`, "num_ctx is missing"},
		{"/v1/messages", `{"messages":[` + hi + `]}`, "max_tokens is missing"},
		{"/v1/messages", `{"model":"m","max_tokens":9,"tools":[{"name":"a b","input_schema":{"type":"object","properties":{}}}],"messages":[` + hi + `]}`, "the tool"},
		{"/v1/responses", input(`{"role":"user","content":"hi"},` + call + `,` + output), ""},
		{"/v1/responses", input(`{"type":"reasoning","encrypted_content":"c2lnbmF0dXJl1"},` + call + `,` + output + `,{"role":"assistant","content":"x"}`), ""},
		{"/v1/responses", input(`{"type":"reasoning","encrypted_content":"c2lnbmF0dXJl1"},{"role":"user","content":"hi"}`), "without the item"},
		{"/v1/responses", input(`{"type":"reasoning","encrypted_content":"x"},` + call), "not of this service"},
		{"/v1/responses", input(call), "without a result"},
		{"/v1/responses", input(call + `,{"role":"user","content":"hi"}`), "without a result"},
		{"/v1/responses", input(output), "no wish before it"},
		{"/v1/responses", input(`{"type":"function_call","call_id":"c1","name":"read","arguments":"["}`), "is not one"},
		{"/v1/responses", input(call + `,{"type":"function_call_output","call_id":"c1"}`), "without an output"},
		{"/v1/responses", input(custom + `,{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`), ""},
		{"/v1/responses", input(custom + `,` + output), "no output of its kind"},
		{"/v1/responses", input(call + `,{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`), "no output of its kind"},
		{"/v1/responses", input(custom), "without a result"},
		{"/v1/responses", input(`{"type":"custom_tool_call","call_id":"c1","name":"p","arguments":"{}"}`), "is not one"},
		{"/v1/responses", tools(`{"type":"custom","name":"p","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\""}}`), ""},
		{"/v1/responses", tools(`{"type":"custom","name":"p","format":{"type":"grammar","syntax":"ebnf","definition":"x"}}`), "the tool"},
		{"/v1/responses", tools(`{"type":"custom","name":"p","parameters":{}}`), "the tool"},
		{"/v1/responses", tools(`{"type":"function","name":"p"}`), "a schema"},
		{"/v1/responses", input(`{"type":"odd"}`), "of the type"},
		{"/v1/responses", `{"model":"m"}`, "missing"},
		{"/v1/chat/completions", chat(hi + `,` + calls + `,{"role":"tool","tool_call_id":"c1","content":"x"},{"role":"system","content":"s"}`), ""},
		{"/v1/chat/completions", chat(hi + `,` + calls + `,` + hi), "without a result"},
		{"/v1/chat/completions", chat(hi + `,` + calls), "without a result"},
		{"/v1/chat/completions", chat(`{"role":"tool","tool_call_id":"c1","content":"x"}`), "no wish before it"},
		{"/v1/chat/completions", chat(calls + `,{"role":"tool","tool_call_id":"c1"}`), "without content"},
		{"/v1/chat/completions", chat(`{"role":"assistant","content":""}`), "says nothing"},
		{"/v1/chat/completions", chat(`{"role":"user","content":""}`), "says nothing"},
		{"/v1/chat/completions", chat(`{"role":"nobody","content":"x"}`), "the role"},
		{"/v1/chat/completions", chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"x"}]}`), "is not one"},
		{"/v1/chat/completions", `{"messages":[]}`, "missing"},
	} {
		n := len(s.Faults())
		status, got := post(t, s.URL+tt.path, tt.body)
		faults := s.Faults()[n:]
		switch {
		case tt.why == "" && (status != http.StatusOK || len(faults) > 0):
			t.Errorf("%s %s: %d %s", tt.path, tt.body, status, got)
		case tt.why != "" && (status != http.StatusBadRequest || len(faults) != 1 || !strings.Contains(faults[0], tt.why) || !strings.Contains(got, "error")):
			t.Errorf("%s %s: %d %s, %q, want %q", tt.path, tt.body, status, got, faults, tt.why)
		case tt.why == "" && (!strings.Contains(got, "call_") || !strings.Contains(got, "read") || !strings.Contains(got, "run")):
			t.Errorf("%s %s: %s", tt.path, tt.body, got)
		}
	}
	if len(s.Bodies()) < 30 {
		t.Errorf("%d bodies", len(s.Bodies()))
	}
}

// TestScripted: a function sees the conversation and says what comes next.
func TestScripted(t *testing.T) {
	var seen []Request
	s := New(Options{Script: func(r *Request) Step {
		seen = append(seen, *r)
		return Step{Thought: "t", Text: []string{"x"}, Fail: r.Answers > 1}
	}})
	defer s.Close()
	for _, tt := range []struct{ path, body string }{
		{"/v1/messages", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`},
		{"/v1/responses", `{"input":[{"role":"user","content":"a"},{"type":"reasoning"},{"type":"function_call"},{"role":"user","content":"c"}]}`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[]},{"role":"user","parts":[{"text":"c"}]}]}`},
	} {
		if status, got := post(t, s.URL+tt.path, tt.body); status != http.StatusOK || !strings.Contains(got, "x") {
			t.Errorf("%s: %d %s", tt.path, status, got)
		}
		if r := seen[len(seen)-1]; r.Answers != 1 || strings.Join(r.Users, " ") != "a c" || r.API == "" || len(r.Body) == 0 {
			t.Errorf("%s: %+v", tt.path, r)
		}
	}
	if status, _ := post(t, s.URL+"/v1/chat/completions", `{"messages":[{"role":"assistant"},{"role":"assistant"}]}`); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
	if status, _ := post(t, s.URL+"/v1beta/models/m:countTokens", `{}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status, _ := post(t, s.URL+"/v1/messages/count_tokens", `{}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status, _ := post(t, s.URL+"/nowhere", `{}`); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	if status, _ := post(t, s.URL+"/v1/messages", `[`); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
}

// TestRefuses: a script refuses a request in the words of its interface.
func TestRefuses(t *testing.T) {
	s := New(Options{Script: func(*Request) Step { return Step{Refuse: "too \"odd\""} }})
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"/api/chat":            `{"error":"too \"odd\""}`,
		"/v1/chat/completions": `"error":{"code":400,"message":"too \"odd\"",`,
	} {
		if status, body := post(t, s.URL+path, `{"messages":[]}`); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %s", path, status, body)
		}
	}
}
