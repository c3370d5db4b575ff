package standin

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

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
			s := New(func(verb, rest string, offered []string) (Call, error) {
				return Call{Name: offered[0], Args: map[string]string{"command": rest}}, nil
			}, nil)
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
