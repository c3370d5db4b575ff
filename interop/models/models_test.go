// Package models has the official SDKs of model providers judge the wires of the built-in
// agent: they decode its requests, and read the streams that it is tested with.
package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// limit bounds a run of the program.
const limit = 2 * time.Minute

// program builds the program, and returns it with an environment of its own.
func program(t *testing.T) (bin string, env []string) {
	t.Helper()
	dir := t.TempDir()
	bin = filepath.Join(t.TempDir(), "acp")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	cmd.Dir = filepath.Join("..", "..", "cmd", "acp")
	cmd.Env = append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasSuffix(name, "_API_KEY") && !strings.HasSuffix(name, "_BASE_URL") && !strings.HasSuffix(name, "_AUTH_TOKEN") {
			env = append(env, v)
		}
	}
	return bin, append(env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir)
}

// same holds that what an SDK made of a request says the same as the request: it knows each
// field, and each has the type that it expects.
func same(t *testing.T, sent []byte, decoded any) {
	t.Helper()
	again, err := json.Marshal(decoded)
	if err != nil {
		t.Error(err)
		return
	}
	var want, got map[string]any
	if err := errors.Join(json.Unmarshal(sent, &want), json.Unmarshal(again, &got)); err != nil {
		t.Error(err)
		return
	}
	delete(want, "stream") // which the SDKs add by themselves
	withoutNull(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-sent +decoded)\n%s", diff)
	}
}

// withoutNull removes members that are null, which mean what those that are not there do.
func withoutNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, w := range v {
			if w == nil {
				delete(v, k)
			}
			withoutNull(w)
		}
	case []any:
		for _, w := range v {
			withoutNull(w)
		}
	}
}

// A judge is a server that decodes requests and answers them one after the other.
type judge struct {
	decode  func(t *testing.T, body []byte)
	path    string
	answers []string

	mu     sync.Mutex
	bodies []string
}

func (j *judge) serve(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		j.mu.Lock()
		n := len(j.bodies)
		j.bodies = append(j.bodies, string(body))
		j.mu.Unlock()
		if r.URL.Path != j.path {
			t.Errorf("asked at %s, want %s", r.URL.Path, j.path)
		}
		j.decode(t, body)
		if n >= len(j.answers) {
			t.Errorf("request %d: %s", n, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, j.answers[n])
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func event(name string, v string) string {
	if name == "" {
		return "data: " + v + "\n\n"
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, v)
}

// TestRequests: the program works through a task with each interface. The official SDK
// decodes each of its requests without a loss, and each begins with the bytes of the one
// before.
func TestRequests(t *testing.T) {
	bin, env := program(t)
	const input = `{\"pattern\":\"needle\"}`
	for _, tc := range []struct {
		model, key, url string
		judge           *judge
		end             string // of what grows
		wants           []string
	}{
		{
			model: "anthropic/claude-test-1", key: "ANTHROPIC_API_KEY", url: "ANTHROPIC_BASE_URL", end: `],"cache_control"`,
			judge: &judge{
				path: "/v1/messages",
				decode: func(t *testing.T, body []byte) {
					var p anthropic.MessageNewParams
					if err := json.Unmarshal(body, &p); err != nil {
						t.Error(err)
					}
					same(t, body, p)
				},
				answers: []string{
					event("message_start", `"message":{"id":"m1","type":"message","role":"assistant","model":"claude-test-1","content":[],"usage":{"input_tokens":10,"output_tokens":1}}`) +
						event("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`) +
						event("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`) +
						event("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"c2lnbmF0dXJl"}`) +
						event("content_block_stop", `"index":0`) +
						event("content_block_start", `"index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"search","input":{}}`) +
						event("content_block_delta", `"index":1,"delta":{"type":"input_json_delta","partial_json":"`+input+`"}`) +
						event("content_block_stop", `"index":1`) +
						event("message_delta", `"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}`) + event("message_stop", `"x":0`),
					event("message_start", `"message":{"id":"m2","type":"message","role":"assistant","model":"claude-test-1","content":[],"usage":{"input_tokens":10,"output_tokens":1}}`) +
						event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
						event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"found it"}`) +
						event("content_block_stop", `"index":0`) +
						event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}`) + event("message_stop", `"x":0`),
				},
			},
			wants: []string{`{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl"}`, `"tool_use_id":"toolu_1"`, `hay.txt:1: a needle`},
		},
		{
			model: "openai/gpt-test-1", key: "OPENAI_API_KEY", url: "OPENAI_BASE_URL", end: `],"reasoning"`,
			judge: &judge{
				path: "/responses",
				decode: func(t *testing.T, body []byte) {
					var p responses.ResponseNewParams
					if err := json.Unmarshal(body, &p); err != nil {
						t.Error(err)
					}
					same(t, body, p)
				},
				answers: []string{
					event("response.created", `"response":{"id":"r1","model":"gpt-test-1"}`) +
						event("response.output_item.done", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ZW5j"}`) +
						event("response.output_item.done", `"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"search","arguments":"`+input+`","status":"completed"}`) +
						event("response.completed", `"response":{"id":"r1","status":"completed","usage":{"input_tokens":10,"output_tokens":5}}`),
					event("response.created", `"response":{"id":"r2","model":"gpt-test-1"}`) +
						event("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"found it","annotations":[]}]}`) +
						event("response.completed", `"response":{"id":"r2","status":"completed","usage":{"input_tokens":10,"output_tokens":5}}`),
				},
			},
			wants: []string{`"encrypted_content":"ZW5j"`, `"call_id":"call_1"`, `hay.txt:1: a needle`},
		},
		{
			model: "deepseek/test-1", key: "DEEPSEEK_API_KEY", url: "DEEPSEEK_BASE_URL", end: `],"stream"`,
			judge: &judge{
				path: "/chat/completions",
				decode: func(t *testing.T, body []byte) {
					var p openai.ChatCompletionNewParams
					// reasoning_content is DeepSeek's, which the SDK of OpenAI does not know.
					body = bytes.ReplaceAll(body, []byte(`,"reasoning_content":"hm"`), nil)
					if err := json.Unmarshal(body, &p); err != nil {
						t.Error(err)
					}
					same(t, body, p)
				},
				answers: []string{
					event("", `{"id":"c1","model":"test-1","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm"}}]}`) +
						event("", `{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"search","arguments":"`+input+`"}}]},"finish_reason":"tool_calls"}]}`) + event("", "[DONE]"),
					event("", `{"id":"c2","model":"test-1","choices":[{"index":0,"delta":{"content":"found it"},"finish_reason":"stop"}]}`) + event("", "[DONE]"),
				},
			},
			wants: []string{`"tool_call_id":"call_1"`, `hay.txt:1: a needle`, `"reasoning_content":"hm"`},
		},
	} {
		t.Run(tc.model, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "hay.txt"), []byte("a needle <&> \u2028\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, bin, "exec", "--no-stdin", "--model", tc.model, "Find the needle.")
			cmd.Dir = dir
			cmd.Env = append(env, tc.key+"=the-key", tc.url+"="+tc.judge.serve(t))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "found it") {
				t.Fatalf("%v\n%s", err, out)
			}
			bodies := tc.judge.bodies
			if len(bodies) != 2 {
				t.Fatalf("%d requests", len(bodies))
			}
			first, _, ok := strings.Cut(bodies[0], tc.end)
			if !ok || !strings.HasPrefix(bodies[1], first) {
				t.Errorf("the first request is not the beginning of the second:\n%s\n\n%s", bodies[0], bodies[1])
			}
			for _, want := range tc.wants {
				if !strings.Contains(bodies[1], want) {
					t.Errorf("there is no %s in %s", want, bodies[1])
				}
			}
		})
	}
}
