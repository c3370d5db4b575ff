package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func config(rt http.RoundTripper) Config {
	return Config{
		Info: model.Info{Provider: "p", ID: "m-1", Images: true}, Key: "the-key",
		Client: stream.Client{HTTP: &http.Client{Transport: rt}, Retries: -1},
	}
}

func openChat(t *testing.T, rt http.RoundTripper, d Dialect) *Chat {
	t.Helper()
	c := config(rt)
	c.Dialect = d
	m, err := NewChat(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openResponses(t *testing.T, rt http.RoundTripper) *Responses {
	t.Helper()
	c := config(rt)
	c.Info.Efforts = []string{"low", "high"}
	m, err := NewResponses(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestChatStreams: what becomes of usual and odd streams.
func TestChatStreams(t *testing.T) {
	modeltest.Streams(t, "testdata/chat.txtar", 60, func(rt http.RoundTripper) model.Model {
		return openChat(t, rt, Dialect{Tag: "think"})
	})
}

// TestResponseStreams: what becomes of usual and odd streams.
func TestResponseStreams(t *testing.T) {
	modeltest.Streams(t, "testdata/responses.txtar", 60, func(rt http.RoundTripper) model.Model { return openResponses(t, rt) })
}

// TestGrowing: requests only grow.
func TestGrowing(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		thought := model.Opaque{API: "chat/p/m-1", Data: json.RawMessage(`"hm"`)}
		modeltest.Growing(t, "],", thought, func(rt http.RoundTripper) model.Model { return openChat(t, rt, Dialects["deepseek"]) })
	})
	t.Run("responses", func(t *testing.T) {
		thought := model.Opaque{API: "responses/m-1", Data: json.RawMessage(`{"type":"reasoning","id":"r","summary":[],"encrypted_content":"ZW5j"}`)}
		modeltest.Growing(t, "],", thought, func(rt http.RoundTripper) model.Model { return openResponses(t, rt) })
	})
}

func user(parts ...model.Part) *model.Message {
	return &model.Message{Role: model.User, Parts: parts}
}

func answer(parts ...model.Part) *model.Message {
	return &model.Message{Role: model.Assistant, Parts: parts}
}

func text(s string) *model.Text { return &model.Text{Text: s} }

// conversation is one with everything that a message can hold; opaque parts are marked
// with form.
func conversation(form string, thought, use, said string) []*model.Message {
	opaque := func(data string) model.Opaque {
		if data == "" {
			return model.Opaque{}
		}
		return model.Opaque{API: form, Data: json.RawMessage(data)}
	}
	return []*model.Message{
		user(text("hi"), text(""), text("there")),
		answer(&model.Thought{Text: "t", Opaque: opaque(thought)}, &model.Thought{Text: "of another", Opaque: model.Opaque{API: "other", Data: json.RawMessage(`{}`)}},
			&model.Text{Text: "so", Opaque: opaque(said)},
			&model.ToolUse{ID: "c1", Name: "a b/ü", Input: json.RawMessage(`{"x":"<&>"}`), Opaque: opaque(use)},
			&model.ToolUse{ID: "c2", Name: "", Input: json.RawMessage(`"{\"x"`), Malformed: true},
			&model.ToolUse{ID: "c3", Name: "b", Input: json.RawMessage(`[1]`)}),
		user(text("and now?"), &model.ToolResult{ID: "c1", Parts: []model.Part{text("one"), text("two")}},
			&model.ToolResult{ID: "c2", Failed: true},
			&model.ToolResult{ID: "c3", Failed: true, Parts: []model.Part{text("bad"), modeltest.Pixel()}}),
		answer(&model.Thought{Text: "cut off", Opaque: opaque(thought)}),
		user(&model.Image{MIMEType: "image/gif", Data: modeltest.Pixel().Data}, text("well?")),
	}
}

var prefix = &model.Prefix{System: "S", Tools: []model.Tool{{Name: "a", Description: "A.", Schema: json.RawMessage(`{"type":"object"}`)}}}

func same(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.ReplaceAll(want, `},{`, "},\n{"), strings.ReplaceAll(got, `},{`, "},\n{")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestResponsesBody: what is sent.
func TestResponsesBody(t *testing.T) {
	const head = `{"model":"m-1","tools":[{"type":"function","name":"a","description":"A.","parameters":{"type":"object","properties":{}},"strict":false}],"instructions":"S","store":false,"include":["reasoning.encrypted_content"],"input":[`
	for _, tc := range []struct {
		name string
		r    *model.Request
		want string
	}{
		{
			"everything",
			&model.Request{
				Prefix: prefix, Effort: "high", CacheKey: "k", MaxTokens: 9, Choice: model.ToolAny,
				Messages: conversation("responses/m-1", `{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"}`, "", `{"phase":"commentary"}`),
				Tail:     []model.Part{text("tail")},
			},
			head +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_text","text":"there"}]},` +
				`{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}],"phase":"commentary"},` +
				`{"type":"function_call","call_id":"c1","name":"a_b__","arguments":"{\"x\":\"<&>\"}"},` +
				`{"type":"function_call","call_id":"c2","name":"unknown","arguments":"{\"input\":\"{\\\"x\"}"},` +
				`{"type":"function_call","call_id":"c3","name":"b","arguments":"{\"input\":[1]}"},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"and now?"}]},` +
				`{"type":"function_call_output","call_id":"c1","output":"one\ntwo"},` +
				`{"type":"function_call_output","call_id":"c2","output":"error:"},` +
				`{"type":"function_call_output","call_id":"c3","output":[{"type":"input_text","text":"error: bad"},{"type":"input_image","image_url":"data:image/png;base64,` + modeltest.PixelData + `"}]},` +
				`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + modeltest.PixelData + `"},{"type":"input_text","text":"well?"}]},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"tail"}]}` +
				`],"reasoning":{"effort":"high","summary":"auto"},"tool_choice":"required","prompt_cache_key":"k","max_output_tokens":9,"stream":true}`,
		},
		{
			"least",
			&model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{user(text("hi"))}, Choice: model.ToolNone},
			`{"model":"m-1","store":false,"include":["reasoning.encrypted_content"],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"reasoning":{"summary":"auto"},"stream":true}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}
			_ = modeltest.Transcript(openResponses(t, s).Generate(t.Context(), tc.r))
			_, _, body := s.Last()
			same(t, tc.want, body)
		})
	}
}

// TestDialects: what is sent to each server that is known, and what goes back to it of its
// own thoughts.
func TestDialects(t *testing.T) {
	const head = `{"model":"m-1","tools":[{"type":"function","function":{"name":"a","description":"A.","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"S"},{"role":"user","content":"hi\n\nthere"},`
	const rest = `{"role":"tool","content":"one\ntwo","tool_call_id":"c1"},` +
		`{"role":"tool","content":"error:","tool_call_id":"c2"},` +
		`{"role":"tool","content":"error: bad","tool_call_id":"c3"},` +
		`{"role":"user","content":[{"type":"text","text":"and now?"},{"type":"text","text":"The images that c3 returned:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + modeltest.PixelData + `"}}]},` +
		`{"role":"assistant","content":"(no answer)"},` +
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + modeltest.PixelData + `"}},{"type":"text","text":"well?"}]},` +
		`{"role":"assistant","content":"(no answer)"},` +
		`{"role":"user","content":"tail"}]`
	calls := func(extra string) string {
		return `{"role":"assistant","content":"so","tool_calls":[{"id":"c1","type":"function","function":{"name":"a_b__","arguments":"{\"x\":\"<&>\"}"}` + extra +
			`},{"id":"c2","type":"function","function":{"name":"unknown","arguments":"{\"input\":\"{\\\"x\"}"}},{"id":"c3","type":"function","function":{"name":"b","arguments":"{\"input\":[1]}"}}]`
	}
	for _, tc := range []struct {
		dialect, thought, use string
		answer, end           string
	}{
		{"openai", `"t"`, "", calls("") + `},`, `,"max_completion_tokens":9,"prompt_cache_key":"k","reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"ollama", `"t"`, "", calls("") + `},`, `,"max_tokens":9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"llamacpp", `"t"`, "", calls("") + `,"reasoning_content":"t"},`, `,"max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"vllm", `"t"`, "", calls("") + `},`, `,"max_tokens":9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"lmstudio", `"t"`, "", calls("") + `},`, `,"max_tokens":9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"openrouter", `[{"type":"reasoning.text","text":"t","signature":"s"}]`, "", calls("") + `,"reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s"}]},`, `,"max_tokens":9,"reasoning":{"effort":"high"},"stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"gemini", `"t"`, `{"google":{"thought_signature":"s"}}`, calls(`,"extra_content":{"google":{"thought_signature":"s"}}`) + `},`, `,"max_tokens":9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
		{"deepseek", `"t"`, "", calls("") + `,"reasoning_content":"t"},`, `,"max_tokens":9,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"tool_choice":"required"}`},
	} {
		t.Run(tc.dialect, func(t *testing.T) {
			d, ok := Dialects[tc.dialect]
			if !ok {
				t.Fatal("there is no such dialect")
			}
			s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400, Body: "{}"}}}
			_ = modeltest.Transcript(openChat(t, s, d).Generate(t.Context(), &model.Request{
				Prefix: prefix, Effort: "high", CacheKey: "k", MaxTokens: 9, Choice: model.ToolAny,
				Messages: conversation("chat/p/m-1", tc.thought, tc.use, ""), Tail: []model.Part{text("tail")},
			}))
			_, _, body := s.Last()
			same(t, head+tc.answer+rest+tc.end, body)
		})
	}
	if len(Dialects) != 8 {
		t.Errorf("%d dialects are known, and 8 are tested", len(Dialects))
	}
}

// TestBack: what a server wants to have back of its thoughts goes back to it, and to no
// other model.
func TestBack(t *testing.T) {
	const stream = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}

data: {"choices":[{"index":0,"delta":{"content":"so"},"finish_reason":"stop"}]}

data: [DONE]

`
	s := &modeltest.Server{Answers: []modeltest.Answer{{Body: stream}}}
	m := openChat(t, s, Dialects["deepseek"])
	first := &model.Request{Prefix: &model.Prefix{}, Messages: []*model.Message{user(text("hi"))}}
	var said *model.Message
	for e, err := range m.Generate(t.Context(), first) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.(*model.Done); ok {
			said = d.Message
		}
	}
	next := &model.Request{Prefix: first.Prefix, Messages: append(first.Messages, said, user(text("and?")))}
	_ = modeltest.Transcript(m.Generate(t.Context(), next))
	if _, _, body := s.Last(); !strings.Contains(body, `{"role":"assistant","content":"so","reasoning_content":"hm"}`) {
		t.Errorf("the thought does not go back: %s", body)
	}
	c := config(s)
	c.Info.ID, c.Dialect = "m-2", Dialects["deepseek"]
	other, err := NewChat(c)
	if err != nil {
		t.Fatal(err)
	}
	_ = modeltest.Transcript(other.Generate(t.Context(), next))
	if _, _, body := s.Last(); strings.Contains(body, "hm") {
		t.Errorf("the thought goes to another model: %s", body)
	}
}

// TestHeaders: where requests go, and with which key.
func TestHeaders(t *testing.T) {
	for base, want := range map[string]string{
		"":                       "https://api.openai.com/v1",
		"http://127.0.0.1:8080/": "http://127.0.0.1:8080",
		"http://lab/v1":          "http://lab/v1",
	} {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Status: 400}}}
		c := config(s)
		c.URL, c.Header = base, http.Header{"X-Own": {"1"}}
		chat, err := NewChat(c)
		if err != nil {
			t.Fatal(err)
		}
		responses, err := NewResponses(c)
		if err != nil {
			t.Fatal(err)
		}
		for path, m := range map[string]model.Model{"/chat/completions": chat, "/responses": responses} {
			_ = modeltest.Transcript(m.Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
			url, h, _ := s.Last()
			if url != "POST "+want+path || h.Get("Authorization") != "Bearer the-key" || h.Get("X-Own") != "1" {
				t.Errorf("%q: %s, %v", base, url, h)
			}
		}
	}
	for _, base := range []string{"lab", "ftp://lab", "http://", "http://\x00"} {
		if _, err := NewChat(Config{URL: base}); err == nil {
			t.Errorf("%q is taken for a URL", base)
		}
		if _, err := NewResponses(Config{URL: base}); err == nil {
			t.Errorf("%q is taken for a URL", base)
		}
	}
}

// TestRefusals: what answers that are no streams mean.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, "Incorrect API key provided (auth, status 401)"},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "You exceeded your current quota (quota, status 429)"},
		{"rate", 429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, "Rate limit reached (rate, status 429)"},
		{"credits of OpenRouter", 402, `{"error":{"code":402,"message":"Insufficient credits"}}`, "Insufficient credits (quota, status 402)"},
		{"too long", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, "This model's maximum context length is 8192 tokens. (overflow, status 400)"},
		{"too long for llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, "the request exceeds the available context size (overflow, status 400)"},
		{"too long for vLLM", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, "This model's maximum context length is 4096 tokens (overflow, status 400)"},
		{"model", 404, `{"error":{"message":"model \"m-1\" not found, try pulling it first","type":"api_error"}}`, `model "m-1" not found, try pulling it first (request, status 404)`},
		{"list of Gemini", 400, `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, "API key not valid (request, status 400)"},
		{"string", 400, `{"error":"bad thing"}`, "bad thing (request, status 400)"},
		{"detail", 422, `{"detail":"no"}`, "no (request, status 422)"},
		{"overloaded", 503, `{"error":{"message":"busy","type":"server_error"}}`, "busy (overloaded, status 503)"},
		{"page", 502, `<html>bad gateway</html>`, "a web page (Bad Gateway) instead of an answer (overloaded, status 502)"},
		{"not a stream", 200, `{"id":"x","choices":[]}`, "not a stream of events (answer, status 200)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &modeltest.Server{Answers: []modeltest.Answer{{Status: tc.status, Body: tc.body, Header: http.Header{"Content-Type": {"application/json"}}}}}
			got := modeltest.Transcript(openChat(t, s, Dialect{}).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
			if want := "error p: " + tc.want + "\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestLimits: headers that say how much is left.
func TestLimits(t *testing.T) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	h.Set("x-ratelimit-remaining-requests", "7")
	h.Set("x-ratelimit-remaining-tokens", "-1")
	h.Set("x-ratelimit-reset-tokens", "6m0s")
	s := &modeltest.Server{Answers: []modeltest.Answer{{Header: h, Body: "data: [DONE]\n\n"}}}
	got := modeltest.Transcript(openChat(t, s, Dialect{}).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
	if want := "limits 7 -1\ndone end_turn \"\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzChat: whatever comes, an answer ends once, with Done or with an error.
func FuzzChat(f *testing.F) {
	f.Add("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>a\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Body: body}}}
		modeltest.Once(t, openChat(t, s, Dialects["llamacpp"]).Generate(t.Context(), &model.Request{Prefix: &model.Prefix{}}))
	})
}

// FuzzResponses: the same.
func FuzzResponses(f *testing.F) {
	f.Add("data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\"}}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"arguments\":\"{}\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n")
	f.Add(textStream(completed))
	f.Fuzz(func(t *testing.T, body string) {
		s := &modeltest.Server{Answers: []modeltest.Answer{{Body: body}}}
		modeltest.Once(t, openTexts(t, s, "m-1").Generate(t.Context(), &model.Request{Prefix: patchPrefix}))
	})
}

// TestWritten: thoughts that are not part of what a server calls the completion are counted as written.
func TestWritten(t *testing.T) {
	for _, tt := range []struct {
		usage string
		want  model.Usage
	}{
		{`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`, model.Usage{Input: 32, Output: 103, Reasoning: 94, Known: true}},
		{`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135}`, model.Usage{Input: 32, Output: 103, Known: true}},
		{`{"prompt_tokens":32,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":94}}`, model.Usage{Input: 32, Output: 103, Reasoning: 94, Known: true}},
		{`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`, model.Usage{Input: 32, Output: 103, Reasoning: 94, Known: true}},
		{`{"prompt_tokens":32,"completion_tokens":103,"total_tokens":0}`, model.Usage{Input: 32, Output: 103, Known: true}},
		{`{"prompt_tokens":-1,"completion_tokens":-2,"total_tokens":-3}`, model.Usage{Known: true}},
	} {
		var u chatUsage
		if err := json.Unmarshal([]byte(tt.usage), &u); err != nil {
			t.Fatal(err)
		}
		if got := u.usage(); got != tt.want {
			t.Errorf("%s: %+v", tt.usage, got)
		}
		var r responseUsage
		if err := json.Unmarshal([]byte(strings.NewReplacer("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens").Replace(tt.usage)), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.usage(); got != tt.want {
			t.Errorf("Responses: %s: %+v", tt.usage, got)
		}
	}
}

// TestOnce: what a server has an unknown word for is not sent again.
func TestOnce(t *testing.T) {
	for code, again := range map[string]bool{
		"server_error": true, "overloaded": true, "rate_limit_exceeded": true, "": true,
		"invalid_image_format": false, "image_too_large": false, "invalid_base64_image": false, "image_content_policy_violation": false,
		"unsupported_parameter": false, "something_new": false,
	} {
		e := (&errorBody{Message: "no", Code: json.RawMessage(`"` + code + `"`)}).failure()
		if e.Temporary() != again || e.Kind == "" {
			t.Errorf("%q: %+v", code, e)
		}
	}
}
